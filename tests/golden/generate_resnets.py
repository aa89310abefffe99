#!/usr/bin/python3
"""Makes the goldens of the ResNets with PyTorch (Debian: python3-torch, python3-numpy).

Usage: /usr/bin/python3 tests/golden/generate_resnets.py

NAME.txt                 the state_dict: a name, a type and a shape a line, in its order
NAME-steps.safetensors   five single steps on 3x32x32 inputs: "losses", and of each step a row a tensor: the largest
                         magnitude and the norm of what it is after the step, and SAMPLES of its elements

A deep network with BatchNorm amplifies rounding from step to step, so that only single steps can be compared. Each starts
from a full state: weights, running statistics, momentum buffers. Whole states would be megabytes, so they are drawn by a
generator that check_resnets.c has too, element by element, bit by bit.

Where an input of a ReLU is 0 but for rounding, its gradient is one or nothing by chance, and a weight's differs by as much
as a sample gives: PyTorch's float32 and float64 then part by 1e-1 in resnet50. Among a million activations there is always one
such, so the networks are narrow here, and of many draws the five are taken whose activations keep farthest from 0.
"""
import os

import numpy
import torch
from torch import nn

from generate import write_safetensors
from resnet import COUNTS, ResNet

HERE = os.path.dirname(os.path.abspath(__file__))
NETS = ["resnet18", "resnet50"]
STEPS, CANDIDATES, BATCH, CLASSES, WIDTH, SAMPLES = 5, 100, 8, 10, 8, 8
SGD = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}
MASK = (1 << 64) - 1


def fnv1a(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h


def words(name, step, n):
    """n 64-bit words of a tensor at a step: splitmix64."""
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(fnv1a(name) + step & MASK) + numpy.arange(1, n + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return z ^ (z >> numpy.uint64(31))


def interval(name, shape):
    """The middle and half the width of what a tensor's elements are drawn from."""
    if name.endswith("momentum_buffer"):
        return 0.0, 0.01
    if name.endswith("running_var"):
        return 1.0, 0.5
    if name.endswith("bn3.weight"):  # near zero_init_residual's: each bottleneck else amplifies rounding threefold
        return 0.1, 0.1
    if len(shape) == 1:
        return (1.0, 0.5) if name.endswith("weight") else (0.0, 0.125)
    if len(shape) == 2:
        return 0.0, float(1.0 / numpy.sqrt(shape[1]))  # PyTorch's default
    return 0.0, float(numpy.sqrt(6.0 / (numpy.prod(shape) / shape[1])))  # kaiming_uniform_, fan_out


def draw(name, step, shape):
    middle, half = interval(name, shape)
    unit = (words(name, step, int(numpy.prod(shape))) >> numpy.uint64(40)).astype(numpy.float64) * 2.0**-24
    return torch.from_numpy((middle + (2 * unit - 1) * half).astype(numpy.float32).reshape(shape))


def load(model, optimizer, step):
    for key, tensor in model.state_dict().items():
        tensor.copy_(torch.tensor(step) if tensor.dim() == 0 else draw(key, step, tuple(tensor.shape)))
    for key, parameter in model.named_parameters():
        buffer = draw(key + ".momentum_buffer", step, tuple(parameter.shape))
        optimizer.state[parameter]["momentum_buffer"] = buffer


def state(model, optimizer):
    """Parameters and buffers, then the momentum buffers in the order of the parameters."""
    yield from model.state_dict().items()
    for key, parameter in model.named_parameters():
        yield key + ".momentum_buffer", optimizer.state[parameter]["momentum_buffer"]


def row(name, step, tensor):
    flat = tensor.detach().double().flatten().numpy()
    at = words(name + ".sample", step, SAMPLES) % numpy.uint64(flat.size)
    return [numpy.abs(flat).max(), numpy.sqrt((flat**2).sum())] + list(flat[at.astype(numpy.int64)])


def batch(step, dtype):
    x = draw("input", step, (BATCH, 3, 32, 32)) * 32  # kaiming_uniform_'s half width is small for these
    y = torch.from_numpy((words("target", step, BATCH) % numpy.uint64(CLASSES)).astype(numpy.int64))
    return x.to(dtype), y


def gap(name, step):
    """How near to 0 an input of a ReLU comes."""
    model = ResNet(name, CLASSES, WIDTH)
    load(model, torch.optim.SGD(model.parameters(), **SGD), step)
    least = []
    for module in model.double().modules():
        if isinstance(module, nn.ReLU):
            module.register_forward_hook(lambda _, inputs, __: least.append(inputs[0].abs().min().item()))
    with torch.no_grad():
        model(batch(step, torch.float64)[0])
    return min(least)


def train(name, step, dtype):
    """The loss of a step, and the state after it."""
    model = ResNet(name, CLASSES, WIDTH)
    optimizer = torch.optim.SGD(model.parameters(), **SGD)
    load(model, optimizer, step)
    model.to(dtype)
    for parameter in model.parameters():
        optimizer.state[parameter]["momentum_buffer"] = optimizer.state[parameter]["momentum_buffer"].to(dtype)
    x, y = batch(step, dtype)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item(), dict(state(model, optimizer))


def steps(name):
    best = sorted(range(1, CANDIDATES + 1), key=lambda step: -gap(name, step))[:STEPS]
    tensors, losses = {"numbers": torch.tensor(best)}, []
    for i, step in enumerate(best):
        loss, after = train(name, step, torch.float32)
        _, exact = train(name, step, torch.float64)
        parted = max(((after[k] - exact[k]).abs().max() / exact[k].abs().max()).item() for k in exact)
        print(f"{name}: draw {step}: gap {gap(name, step):.2g}, float32 and float64 part by {parted:.2g}")
        losses.append(loss)
        rows = [row(key, step, tensor) for key, tensor in after.items()]
        tensors[f"step{i}"] = torch.tensor(rows, dtype=torch.float32)
    tensors["losses"] = torch.tensor(losses, dtype=torch.float32)
    write_safetensors(name + "-steps.safetensors", tensors)


def names(name):
    model = ResNet(name)
    entries = model.state_dict()
    count = sum(p.numel() for p in model.parameters())
    assert (len(entries), count) == COUNTS[name], (name, len(entries), count)
    with open(os.path.join(HERE, name + ".txt"), "w") as file:
        for key, tensor in entries.items():
            kind = {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype]
            file.write(f"{key} {kind} {list(tensor.shape)}\n")


def main():
    torch.set_num_threads(2)
    for name in COUNTS:
        if name in NETS:
            names(name)
            steps(name)
        else:
            model = ResNet(name)
            assert (len(model.state_dict()), sum(p.numel() for p in model.parameters())) == COUNTS[name]


if __name__ == "__main__":
    main()
