#!/usr/bin/python3
"""Makes the golden of check_golden.c's job in stages with PyTorch (Debian: python3-torch, python3-numpy).

Usage: /usr/bin/python3 tests/golden/generate_stages.py

The CNN of generate.py, whose batches are split by hand (Tensor.split): micro-batches go through the model one by
one, so that each BatchNorm normalises by its micro-batch and its buffers follow them in order; the loss is that of
the whole batch.

stages.json                 the job document, in three stages, and the losses of each step
stages-final.safetensors    the state_dict after the last step
"""
import json
import os

import numpy
import torch
from torch import nn

from generate import BATCH, HERE, MODELS, OPTIMIZERS, STEPS, build, document, write_safetensors

SPLIT = 5


def read_idx(name, dims):
    with open(os.path.join(HERE, name), "rb") as file:
        data = file.read()[4 + 4 * dims:]
    return torch.from_numpy(numpy.frombuffer(data, dtype=numpy.uint8).copy())


def read_safetensors(name):
    with open(os.path.join(HERE, name), "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for key, entry in json.loads(data[8:8 + size]).items():
        begin, end = entry["data_offsets"]
        kind = {"F32": numpy.float32, "I64": numpy.int64}[entry["dtype"]]
        array = numpy.frombuffer(data[8 + size:][begin:end], dtype=kind).copy()
        tensors[key] = torch.from_numpy(array).reshape(entry["shape"])
    return tensors


def main():
    torch.set_num_threads(1)
    x = read_idx("cnn-inputs.idx", 4).reshape([-1] + MODELS["cnn"]["shape"]).float() / 128 - 1
    y = read_idx("cnn-targets.idx", 1).long()
    model, losses = build(MODELS["cnn"]), []
    model.load_state_dict(read_safetensors("cnn-initial.safetensors"))
    optimizer = torch.optim.SGD(model.parameters(), **OPTIMIZERS["momentum"])
    batches = list(zip(x.split(BATCH), y.split(BATCH)))
    for step in range(STEPS):
        inputs, targets = batches[step % len(batches)]
        outputs = torch.cat([model(part) for part in inputs.split(SPLIT)])
        loss = nn.functional.cross_entropy(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    job = document("stages", "cnn", "momentum", "CrossEntropyLoss")
    job["parallel"] = {"mode": "stages", "devices": 3, "split": ["3", "bn2"], "split_size": SPLIT}
    write_safetensors("stages-final.safetensors", model.state_dict())
    with open(os.path.join(HERE, "stages.json"), "w") as file:
        json.dump({"job": job, "losses": losses}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
