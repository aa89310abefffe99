#!/usr/bin/python3
"""Makes the goldens of check_observe.c with PyTorch (Debian: python3-torch, python3-numpy).

Usage: /usr/bin/python3 tests/golden/generate_observe.py

Run by hand when a case is added, after generate.py, whose CNN and data it uses. What can be seen of each
replica: the statistics of tensors that forward hooks and tensor hooks see, as record.jsonl has them, and
the vector of losses that DataParallel returns where the module computes its loss itself. Replicas are
copies of the module, a chunk each, as nn.DataParallel makes them.

observe.json    a list of cases: the job document; by number of devices the replica_losses of each step,
                and the rows of record.jsonl as lists: step, name, device, mean, std, norm, max_abs,
                nan_count
"""
import copy
import json
import os
import struct

import numpy
import torch
from torch import nn

from generate import BATCH, HERE, MODELS, SAMPLES, build

RECORD = ["conv1.output", "conv1.weight.grad", "bn1.output.grad", "8.output", "8.output.grad", "fc.weight"]


def case(name, devices=(1, 2, 3), steps=3, accumulate=1, accumulate_reduction="mean", reduction="mean", record=RECORD):
    return locals()


CASES = [
    case("observe"),
    case("observe-resting", devices=(8,), steps=2),
    case("observe-accumulate", accumulate=2),
    case("observe-accumulate-sum", accumulate=3, accumulate_reduction="sum", steps=2, devices=(1, 2)),
    case("observe-sum", reduction="sum", record=["fc.weight.grad"]),
]


def read_idx(name):
    with open(os.path.join(HERE, name), "rb") as file:
        rank = file.read(4)[3]
        shape = struct.unpack(">%dI" % rank, file.read(4 * rank))
        return torch.tensor(numpy.frombuffer(file.read(), numpy.uint8).reshape(shape).copy())


def read_safetensors(name):
    dtypes = {"F32": numpy.float32, "I64": numpy.int64}
    with open(os.path.join(HERE, name), "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for key, entry in header.items():
        if key == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        array = numpy.frombuffer(data[begin:end], dtypes[entry["dtype"]]).reshape(entry["shape"])
        tensors[key] = torch.tensor(array.copy())
    return tensors


def statistics(x):
    x = x.detach().double()
    row = [x.mean(), x.std(), x.norm(), x.abs().max(), x.isnan().sum()]
    return [float("%.8g" % v.item()) for v in row]


def find(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


class Replica:
    """A copy of the module on one device, and what its hooks saw in the last batch."""

    def __init__(self, model, record):
        self.module, self.seen = copy.deepcopy(model), {}
        for name in {n.split(".output")[0] for n in record if ".output" in n}:
            find(self.module, name).register_forward_hook(self.hook(name))

    def hook(self, name):
        def forward(module, inputs, output):
            self.seen[name + ".output"] = output.detach().clone()
            output.register_hook(lambda grad: self.seen.update({name + ".output.grad": grad.clone()}))

        return forward

    def value(self, name):
        if name in self.seen:
            return self.seen[name]
        if name.endswith(".grad"):
            return find(self.module, name[: -len(".grad")]).grad
        return find(self.module, name)



def step(c, model, optimizer, window, n_devices, step_number):
    """One optimizer step over a window of batches; returns the replicas' losses and the rows."""
    replicas = [Replica(model, c["record"]) for _ in range(n_devices)]
    samples = sum(len(x) for x, _ in window)
    sums, counts = [0.0] * n_devices, [0] * n_devices
    for x, y in window:
        mean_over = len(x) if c["accumulate_reduction"] == "sum" else samples
        divisor = 1 if c["reduction"] == "sum" else mean_over
        used = list(zip(replicas, x.chunk(n_devices), y.chunk(n_devices)))
        for r, (replica, inputs, targets) in enumerate(used):
            loss = nn.functional.cross_entropy(replica.module(inputs), targets, reduction="sum")
            (loss / divisor).backward()
            sums[r] += loss.item()
            counts[r] += len(inputs)
        for replica in replicas[1:]:  # the next batch begins with the controller's buffers
            for mine, buffer in zip(replica.module.buffers(), replicas[0].module.buffers()):
                mine.copy_(buffer)
    rows = [
        [step_number, name, "cpu:%d" % r] + statistics(replica.value(name))
        for name in c["record"]
        for r, (replica, _, _) in enumerate(used)
    ]
    model.load_state_dict(replicas[0].module.state_dict())
    for i, parameter in enumerate(model.parameters()):
        grads = [list(replica.module.parameters())[i].grad for replica in replicas]
        parameter.grad = sum(g for g in grads if g is not None)
    optimizer.step()
    divide = c["reduction"] == "mean"
    return [float("%.9g" % (s / n if divide else s)) for s, n in zip(sums, counts) if n > 0], rows


def windows(c, x, y):
    """The windows of an epoch, again and again; none crosses its end."""
    batches = list(zip(x.split(BATCH), y.split(BATCH)))
    epoch = [batches[i : i + c["accumulate"]] for i in range(0, len(batches), c["accumulate"])]
    return [epoch[i % len(epoch)] for i in range(c["steps"])]


def run(c, n_devices, x, y):
    model = build(MODELS["cnn"])
    model.load_state_dict(read_safetensors("cnn-initial.safetensors"))
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    losses, rows = [], []
    for number, window in enumerate(windows(c, x, y), 1):
        replica_losses, seen = step(c, model, optimizer, window, n_devices, number)
        losses.append(replica_losses)
        rows += seen
    return {"devices": n_devices, "replica_losses": losses, "rows": rows}


def document(c):
    return {
        "version": 1,
        "name": c["name"],
        "model": {
            "input": {"shape": MODELS["cnn"]["shape"]},
            "layers": MODELS["cnn"]["layers"],
            "init": {"weights": "cnn-initial.safetensors"},
        },
        "data": {
            "train": {"format": "idx", "inputs": "cnn-inputs.idx", "targets": "cnn-targets.idx"},
            "transform": {"scale": 1 / 128, "mean": 1},
            "shuffle": False,
        },
        "loss": {"type": "CrossEntropyLoss", "reduction": c["reduction"]},
        "optimizer": {"type": "SGD", "lr": 0.02, "momentum": 0.9},
        "train": {
            "max_steps": c["steps"],
            "batch_size": BATCH,
            "accumulate": c["accumulate"],
            "accumulate_reduction": c["accumulate_reduction"],
            "record": c["record"],
        },
        "parallel": {"mode": "replicate", "devices": 1},
        "checkpoint": {"every": "never"},
    }


def main():
    torch.set_num_threads(1)
    x, y = read_idx("cnn-inputs.idx").float() / 128 - 1, read_idx("cnn-targets.idx").long()
    assert len(x) == SAMPLES
    cases = [{"job": document(c), "runs": [run(c, n, x, y) for n in c["devices"]]} for c in CASES]
    with open(os.path.join(HERE, "observe.json"), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
