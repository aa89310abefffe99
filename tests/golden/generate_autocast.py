#!/usr/bin/python3
"""Makes autocast.json: cases of the other generators, trained here under torch.autocast in bfloat16.

Usage: /usr/bin/python3 tests/golden/generate_autocast.py

Their documents, initial weights and data are read, so they must be there already.
"""
import json
import os
import struct

import torch
from torch import nn

import generate_layers
from generate import BATCH, CLASSES, HERE, STEPS

CASES = ["mlp-momentum", "mlp-mse", "cnn-plain", "cnn-momentum", "same"]  # PyTorch 1.13 has no LayerNorm of BF16 here

generate_layers.INFERRED["BatchNorm2d"] = lambda x: {"num_features": x.shape[1]}


def read_idx(name):
    with open(os.path.join(HERE, name), "rb") as file:
        data = file.read()
    kind, rank = data[2], data[3]
    shape = struct.unpack(">%dI" % rank, data[4 : 4 + 4 * rank])
    dtype = {0x08: torch.uint8}[kind]
    return torch.frombuffer(bytearray(data[4 + 4 * rank :]), dtype=dtype).reshape(shape)


def read_safetensors(name):
    with open(os.path.join(HERE, name), "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header, body = json.loads(file.read(size)), bytearray(file.read())
    kinds = {"F32": torch.float32, "I64": torch.int64}
    return {
        key: torch.frombuffer(body[slice(*row["data_offsets"])], dtype=kinds[row["dtype"]]).reshape(row["shape"])
        for key, row in header.items()
    }


def train(job):
    files, transform = job["data"]["train"], job["data"].get("transform")
    x, y = read_idx(files["inputs"]), read_idx(files["targets"]).long()
    x = x.float() * transform["scale"] - transform["mean"] if transform else x.long()
    if job["loss"]["type"] == "MSELoss":
        y = nn.functional.one_hot(y, CLASSES).float()
    model = generate_layers.Model({"layers": job["model"]["layers"]}, x[:2])
    model.load_state_dict(read_safetensors(job["model"]["init"]["weights"]))
    args = {k: v for k, v in job["optimizer"].items() if k != "type"}
    optimizer, loss_fn, losses = torch.optim.SGD(model.parameters(), **args), getattr(nn, job["loss"]["type"])(), []
    batches = list(zip(x.split(BATCH), y.split(BATCH)))
    for step in range(STEPS):
        inputs, targets = batches[step % len(batches)]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(inputs)
        loss = loss_fn(output.float(), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.set_num_threads(1)
    rows = []
    for name in CASES:
        with open(os.path.join(HERE, name + ".json")) as file:
            job = json.load(file)["job"]
        job["train"]["precision"] = "bf16"
        rows.append({"job": job, "losses": train(job)})
    with open(os.path.join(HERE, "autocast.json"), "w") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
