#!/usr/bin/python3
"""Makes the goldens of this folder with PyTorch (Debian: python3-torch, python3-numpy).

Usage: /usr/bin/python3 tests/golden/generate.py

Run by hand when a case is added; the files are committed, and no test needs PyTorch. Each case is ten
steps from given weights, on one device and on two, the latter as nn.DataParallel makes them: the batch
cut by torch.chunk, each chunk forwarded alone (BatchNorm normalises by its chunk, the controller's
buffers are kept, the other replicas' are discarded), the loss over the gathered output, the gradients
summed. check_golden.c compares.

CASE.json               the job document, and the losses of each step by number of devices
MODEL-{inputs,targets}.idx   unsigned bytes
MODEL-initial.safetensors    the weights at the start
CASE-N-final.safetensors     the state_dict after the last step on N devices
"""
import json
import os
import struct

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 10
SAMPLES = 64
BATCH = 13  # chunks of 7 and 6; an epoch's last batch has 12
CLASSES = 4

MODELS = {
    "mlp": {
        "shape": [6],
        "layers": [
            {"type": "Linear", "out_features": 16},
            {"type": "ReLU"},
            {"type": "Linear", "out_features": 8},
            {"type": "ReLU"},
            {"type": "Linear", "out_features": CLASSES},
        ],
    },
    "cnn": {
        "shape": [2, 8, 8],
        "layers": [
            {"type": "Conv2d", "name": "conv1", "out_channels": 8, "kernel_size": 3, "padding": 1},
            {"type": "BatchNorm2d", "name": "bn1"},
            {"type": "ReLU"},
            {"type": "MaxPool2d", "kernel_size": 2},
            {"type": "Conv2d", "name": "conv2", "out_channels": 8, "kernel_size": 3, "bias": False},
            {"type": "BatchNorm2d", "name": "bn2", "momentum": 0.3},
            {"type": "ReLU"},
            {"type": "AdaptiveAvgPool2d", "output_size": [2, 1]},
            {"type": "Flatten"},
            {"type": "Linear", "name": "fc", "out_features": CLASSES},
        ],
    },
}

OPTIMIZERS = {
    "plain": {"lr": 0.1},
    "momentum": {"lr": 0.05, "momentum": 0.9, "dampening": 0.1},
    "nesterov": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
}

CASES = [
    ("mlp-plain", "mlp", "plain", "CrossEntropyLoss"),
    ("mlp-momentum", "mlp", "momentum", "CrossEntropyLoss"),
    ("mlp-nesterov", "mlp", "nesterov", "CrossEntropyLoss"),
    ("mlp-mse", "mlp", "momentum", "MSELoss"),
    ("cnn-plain", "cnn", "plain", "CrossEntropyLoss"),
    ("cnn-momentum", "cnn", "momentum", "CrossEntropyLoss"),
    ("cnn-nesterov", "cnn", "nesterov", "CrossEntropyLoss"),
]


def build(spec):
    """The nn.Sequential of a document's layers, sizes inferred as the engine infers them."""
    model, x = nn.Sequential(), torch.zeros(2, *spec["shape"])
    for index, layer in enumerate(spec["layers"]):
        args = {k: v for k, v in layer.items() if k not in ("type", "name")}
        first = {"Linear": ["in_features"], "Conv2d": ["in_channels"], "BatchNorm2d": ["num_features"]}
        for key in first.get(layer["type"], []):
            args[key] = x.shape[1]
        module = getattr(nn, layer["type"])(**args)
        model.add_module(layer.get("name", str(index)), module)
        x = module(x)
    reset(model)
    return model


def reset(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            # Not the default ones and zeros: a swapped weight and bias must show.
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)


def forward(model, x, devices):
    """What nn.DataParallel(model)(x) returns, and does to the controller's buffers."""
    outputs, kept = [], {}
    before = {k: b.clone() for k, b in model.named_buffers()}
    for replica, chunk in enumerate(torch.chunk(x, devices)):
        for k, b in model.named_buffers():
            b.data.copy_(before[k])
        outputs.append(model(chunk))
        if replica == 0:
            kept = {k: b.clone() for k, b in model.named_buffers()}
    for k, b in model.named_buffers():
        b.data.copy_(kept[k])
    return torch.cat(outputs)


def train(model, optimizer, loss_type, x, y, devices):
    loss_fn, losses = getattr(nn, loss_type)(), []
    target = nn.functional.one_hot(y, CLASSES).float() if loss_type == "MSELoss" else y
    optimizer = torch.optim.SGD(model.parameters(), **optimizer)
    batches = list(zip(x.split(BATCH), target.split(BATCH)))
    for step in range(STEPS):
        inputs, targets = batches[step % len(batches)]
        loss = loss_fn(forward(model, inputs, devices), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def write_safetensors(name, tensors):
    kinds = {torch.float32: "F32", torch.int64: "I64"}
    header, body = {}, bytearray()
    for key, tensor in tensors.items():
        data = tensor.detach().contiguous().numpy().tobytes()
        header[key] = {
            "dtype": kinds[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def write_idx(name, tensor):
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(struct.pack(">HBB", 0, 0x08, tensor.dim()))
        file.write(struct.pack(">%dI" % tensor.dim(), *tensor.shape))
        file.write(tensor.to(torch.uint8).numpy().tobytes())


def document(name, model, optimizer, loss_type):
    return {
        "version": 1,
        "name": name,
        "model": {
            "input": {"shape": MODELS[model]["shape"]},
            "layers": MODELS[model]["layers"],
            "init": {"weights": model + "-initial.safetensors"},
        },
        "data": {
            "train": {"format": "idx", "inputs": model + "-inputs.idx", "targets": model + "-targets.idx"},
            "transform": {"scale": 1 / 128, "mean": 1},  # exact in float32
            "shuffle": False,
        },
        "loss": {"type": loss_type},
        "optimizer": {"type": "SGD", **OPTIMIZERS[optimizer]},
        "train": {"max_steps": STEPS, "batch_size": BATCH},
        "parallel": {"mode": "replicate", "devices": 1},
    }


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    prepared = {}
    for name, spec in MODELS.items():
        x = torch.randint(0, 256, [SAMPLES] + spec["shape"])
        y = torch.randint(0, CLASSES, [SAMPLES])
        initial = {k: v.clone() for k, v in build(spec).state_dict().items()}
        write_idx(name + "-inputs.idx", x)
        write_idx(name + "-targets.idx", y)
        write_safetensors(name + "-initial.safetensors", initial)
        prepared[name] = (x.float() / 128 - 1, y, initial)
    for name, model_name, optimizer, loss_type in CASES:
        x, y, initial = prepared[model_name]
        losses = {}
        for devices in (1, 2):
            model = build(MODELS[model_name])
            model.load_state_dict(initial)
            losses[devices] = train(model, OPTIMIZERS[optimizer], loss_type, x, y, devices)
            write_safetensors("%s-%d-final.safetensors" % (name, devices), model.state_dict())
        with open(os.path.join(HERE, name + ".json"), "w") as file:
            json.dump({"job": document(name, model_name, optimizer, loss_type), "losses": losses}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
