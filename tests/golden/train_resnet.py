#!/usr/bin/python3
"""Trains a ResNet on random 3x32x32 images with PyTorch, a step at a time, for check_resnet_training.c.

Usage: /usr/bin/python3 tests/golden/train_resnet.py NAME FOLDER

Writes before.safetensors, the full state (weights, buffers, momentum buffers), and step.safetensors: a batch ("input",
"target"), its "loss", and the state after the step; prints a line, and waits for one: "next" goes on from the new state, "again"
makes another step from the same. FOLDER is the reader's to remove. The last convolutions of resnet50's blocks begin at
nothing (zero_init_residual), without which PyTorch's own float32 and float64 part by 1e-1 in one step.
"""
import copy
import os
import sys

import torch
from torch import nn

import generate
from resnet import ResNet

BATCH, CLASSES = 8, 10
SGD = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4}


def state(model, optimizer):
    tensors = dict(model.state_dict())
    for name, parameter in model.named_parameters():
        buffer = optimizer.state[parameter].get("momentum_buffer")
        tensors[name + ".momentum_buffer"] = buffer if buffer is not None else torch.zeros_like(parameter)
    return tensors


def main():
    name, folder = sys.argv[1:]
    torch.manual_seed(6)
    torch.set_num_threads(1)
    model = ResNet(name, CLASSES)
    for key, module in model.named_modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif key.endswith("bn3"):
            nn.init.zeros_(module.weight)
    optimizer = torch.optim.SGD(model.parameters(), **SGD)
    while True:
        generate.write_safetensors(os.path.join(folder, "before.safetensors"), state(model, optimizer))
        before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        while True:
            x, y = torch.randn(BATCH, 3, 32, 32), torch.randint(0, CLASSES, (BATCH,))
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step = {"input": x, "target": y, "loss": loss.detach(), **state(model, optimizer)}
            generate.write_safetensors(os.path.join(folder, "step.safetensors"), step)
            print("made", flush=True)
            answer = sys.stdin.readline().strip()
            if answer != "again":
                break
            model.load_state_dict(before[0])
            optimizer.load_state_dict(copy.deepcopy(before[1]))
        if answer != "next":
            return


if __name__ == "__main__":
    main()
