#!/usr/bin/python3
"""Makes the goldens of check_curves.c and check_mnist.c with PyTorch (Debian: python3-torch, python3-numpy).

Usage: /usr/bin/python3 tests/golden/generate_curves.py BUILD/engine/worker/traind-worker MNIST-FOLDER

Run by hand when a case is added or the engine's own initialisation changes; the files are committed. Each case is the
losses of 20 steps of a model as users train it. PyTorch's model is written down here, not made of the preset; what it gets
from the engine is the weights at the start, which are no files: the job draws them from its init's seed, and the worker
writes them when it trains one step at a rate of 0. Batches are in the file's order.

curves.json             a list of cases: the job document, the loss of each step; check_curves.c
mnist.json              the case of the whole MNIST, which is not committed; check_mnist.c
curves-mnist-*.gz, curves-digits.csv.gz, curves-text.txt   small parts of what README.md names
"""
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn

from generate import HERE

STEPS = 20
OURS = os.path.join(HERE, "..", "..", "examples", "data")


class LeNet(nn.Sequential):
    def __init__(self):
        super().__init__()
        self.add_module("conv1", nn.Conv2d(1, 6, 5, padding=2))
        self.add_module("relu1", nn.ReLU())
        self.add_module("pool1", nn.MaxPool2d(2))
        self.add_module("conv2", nn.Conv2d(6, 16, 5))
        self.add_module("relu2", nn.ReLU())
        self.add_module("pool2", nn.MaxPool2d(2))
        self.add_module("flatten", nn.Flatten())
        self.add_module("fc1", nn.Linear(400, 120))
        self.add_module("relu3", nn.ReLU())
        self.add_module("fc2", nn.Linear(120, 84))
        self.add_module("relu4", nn.ReLU())
        self.add_module("fc3", nn.Linear(84, 10))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 48), nn.Linear(48, 24), nn.Linear(24, 10)

    def forward(self, x):
        return self.fc3(self.fc2(self.fc1(x).relu()).relu())


class LSTMModel(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.encoder = nn.Embedding(256, size)
        self.rnn = nn.LSTM(size, size, num_layers=2, batch_first=True)
        self.decoder = nn.Linear(size, 256)

    def forward(self, x):
        return self.decoder(self.rnn(self.encoder(x))[0])


class Block(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attn = nn.MultiheadAttention(size, heads, batch_first=True)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(size, 4 * size), "c_proj": nn.Linear(4 * size, size)})

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False, attn_mask=mask)[0]
        y = self.mlp["c_fc"](self.ln_2(x))
        return x + self.mlp["c_proj"](nn.functional.gelu(y, approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, context, layers, heads, size):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(256, size), nn.Embedding(context, size)
        self.h = nn.ModuleList(Block(size, heads) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(size), nn.Linear(size, 256, bias=False)

    def forward(self, x):
        x = self.wte(x) + self.wpe.weight[: x.shape[1]]
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def mnist_part(folder, samples):
    """The first images and labels, as IDX in gz."""
    for kind, header in (("images-idx3", 16), ("labels-idx1", 8)):
        with gzip.open(os.path.join(folder, f"train-{kind}-ubyte.gz")) as file:
            data = file.read()
        size = 28 * 28 if header == 16 else 1
        part = data[:4] + samples.to_bytes(4, "big") + data[8 : header + samples * size]
        with open(os.path.join(HERE, f"curves-mnist-{kind[:6]}.gz"), "wb") as raw:
            with gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
                file.write(part)


def read_mnist(images, labels, limit=None):
    with gzip.open(images) as x, gzip.open(labels) as y:
        x = numpy.frombuffer(x.read(), numpy.uint8, offset=16).reshape(-1, 1, 28, 28)[:limit]
        y = numpy.frombuffer(y.read(), numpy.uint8, offset=8)[:limit]
    return (torch.tensor(x).float() / 256 - 0.125) / 0.25, torch.tensor(y).long()


def digits_part(samples):
    """The first of the examples' digits as a table, the label in the last column."""
    with gzip.open(os.path.join(OURS, "digits-train-images.gz")) as x, gzip.open(os.path.join(OURS, "digits-train-labels.gz")) as y:
        x, y = x.read()[16:], y.read()[8:]
    with open(os.path.join(HERE, "curves-digits.csv.gz"), "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        for i in range(samples):
            file.write((",".join(str(v) for v in [*x[64 * i : 64 * i + 64], y[i]]) + "\n").encode())


def read_digits():
    with gzip.open(os.path.join(HERE, "curves-digits.csv.gz"), "rt", newline="") as file:
        rows = torch.tensor([[int(value) for value in row] for row in csv.reader(file)])
    return rows[:, :-1].float() / 16, rows[:, -1]


def read_text(context):
    with open(os.path.join(HERE, "curves-text.txt"), "rb") as file:
        ids = torch.tensor(list(file.read()))
    n = (len(ids) - 1) // context
    return ids[: n * context].view(n, context), ids[1 : n * context + 1].view(n, context)


def case(name, model, preset, data, samples, batch, optimizer, **train):
    job = {
        "version": 1,
        "name": name,
        "model": {**preset, "init": {"seed": 3}},
        "data": {"train": data, "shuffle": False},
        "loss": {"type": "CrossEntropyLoss"},
        "optimizer": optimizer,
        "train": {"max_steps": STEPS, "batch_size": batch, **train},
        "parallel": {"mode": "replicate", "devices": 1},
        "checkpoint": {"every": "never"},
    }
    return job, model, samples


def initial_weights(worker, job):
    """What the engine starts with: the weights after a step at a rate of 0."""
    still = {**job, "optimizer": {"type": "SGD", "lr": 0}, "train": {"max_steps": 1, "batch_size": 2}}
    with tempfile.TemporaryDirectory() as output:
        document = os.path.join(output, "job.json")
        with open(document, "w") as file:
            json.dump(still, file)
        command = [worker, "run", document, "--output", output + "/out", "--devices", "cpu:0"]
        subprocess.run(command, cwd=HERE, check=True, stdout=subprocess.DEVNULL)
        with open(output + "/out/weights.safetensors", "rb") as file:
            data = file.read()
    size = int.from_bytes(data[:8], "little")
    body = data[8 + size :]
    weights = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            weights[name] = torch.tensor(numpy.frombuffer(body[begin:end], "<f4")).reshape(entry["shape"])
    return weights


def train(job, model, x, y):
    args = {k: v for k, v in job["optimizer"].items() if k != "type"}
    optimizer = getattr(torch.optim, job["optimizer"]["type"])(model.parameters(), **args)
    clip, size = job["train"].get("clip_grad_norm"), job["train"]["batch_size"]
    batches = list(zip(x.split(size), y.split(size)))
    losses = []
    for step in range(STEPS):
        inputs, targets = batches[step % len(batches)]
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
    return losses


def golden(worker, job, model, samples):
    weights = initial_weights(worker, job)
    model.load_state_dict(weights)
    losses = train(job, model, *samples)
    model.double().load_state_dict(weights)
    exact = train(job, model, *(s.double() if s.is_floating_point() else s for s in samples))
    parted = max(abs(a - b) / b for a, b in zip(losses, exact))
    print(f"{job['name']}: {losses[0]:.4f} to {losses[-1]:.4f}, float32 and float64 part by {parted:.2g}")
    return {"job": job, "losses": losses}


def write(name, cases):
    with open(os.path.join(HERE, name), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    worker, mnist = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    torch.set_num_threads(1)
    mnist_part(mnist, 120)
    digits_part(200)
    images = {"format": "idx", "inputs": "curves-mnist-images.gz", "targets": "curves-mnist-labels.gz"}
    whole = {**images, "inputs": mnist + "/train-images-idx3-ubyte.gz", "targets": mnist + "/train-labels-idx1-ubyte.gz"}
    lenet, momentum = {"preset": "lenet"}, {"type": "SGD", "lr": 0.05, "momentum": 0.9}
    mlp = {"preset": "mlp", "args": {"hidden": [48, 24]}, "input": {"shape": [64]}}
    lstm = {"preset": "lstm_lm", "args": {"context": 16, "embedding_dim": 32, "hidden_size": 32}}
    gpt = {"preset": "gpt", "args": {"context": 24, "n_layer": 2, "n_head": 2, "n_embd": 32}}
    text, adam = {"format": "text", "path": "curves-text.txt"}, {"type": "AdamW", "lr": 0.003, "weight_decay": 0.1}
    few = read_mnist(os.path.join(HERE, images["inputs"]), os.path.join(HERE, images["targets"]))
    cases = [
        case("lenet", LeNet(), lenet, images, few, 25, momentum),
        case("mlp", MLP(), mlp, {"format": "csv", "path": "curves-digits.csv.gz"}, read_digits(), 32, {"type": "Adam", "lr": 0.01}),
        case("lstm-lm", LSTMModel(32), lstm, {**text, "context": 16}, read_text(16), 20, {"type": "SGD", "lr": 2.0}, clip_grad_norm=0.25),
        case("gpt", GPT(24, 2, 2, 32), gpt, {**text, "context": 24}, read_text(24), 14, adam, clip_grad_norm=1.0),
    ]
    cases[0][0]["data"]["transform"] = centred = {"scale": 1 / 256, "mean": 0.125, "std": 0.25}  # exact in float32
    cases[1][0]["data"]["transform"] = {"scale": 1 / 16}
    write("curves.json", [golden(worker, *c) for c in cases])
    job, model, samples = case("lenet-mnist", LeNet(), lenet, whole, read_mnist(whole["inputs"], whole["targets"]), 64, momentum)
    job["data"]["transform"] = centred
    result = golden(worker, job, model, samples)
    for key in ("inputs", "targets"):  # check_mnist.c puts its folder in front
        job["data"]["train"][key] = os.path.basename(whole[key])
    write("mnist.json", [result])


if __name__ == "__main__":
    main()
