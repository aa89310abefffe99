#!/usr/bin/python3
"""Makes the goldens of check_none.c with PyTorch (Debian: python3-torch, python3-numpy).

Usage: /usr/bin/python3 tests/golden/generate_none.py

Evaluations under reduction none: PyTorch's losses of every element, and of a sample that has several the mean over those
that count.

none.json           a list of cases: the job document, the loss of each sample
none.safetensors    samples, targets, and the weights
"""
import json
import os

import torch
from torch import nn

from generate import HERE, write_safetensors

SAMPLES, FEATURES, STEPS, CLASSES = 23, 5, 4, 3
IGNORED = 1
WEIGHT = [0.5, 2.0, 1.25]

CASES = [
    ("rows", "labels", {"type": "CrossEntropyLoss"}),
    (
        "rows",
        "labels",
        {"type": "CrossEntropyLoss", "label_smoothing": 0.1, "ignore_index": IGNORED, "weight": WEIGHT},
    ),
    ("steps", "step_labels", {"type": "CrossEntropyLoss", "label_smoothing": 0.2, "ignore_index": IGNORED}),
    ("steps", "step_labels", {"type": "CrossEntropyLoss", "weight": WEIGHT}),
    ("rows", "labels", {"type": "NLLLoss", "ignore_index": IGNORED, "weight": WEIGHT}),
    ("rows", "values", {"type": "MSELoss"}),
    ("steps", "step_values", {"type": "L1Loss"}),
    ("rows", "shares", {"type": "BCEWithLogitsLoss", "pos_weight": WEIGHT}),
]


def make_data():
    torch.manual_seed(5)
    labels = torch.randint(0, CLASSES, (SAMPLES, STEPS))
    labels[3] = IGNORED  # of this sample nothing counts
    return {
        "rows": torch.randn(SAMPLES, FEATURES),
        "steps": torch.randn(SAMPLES, STEPS, FEATURES),
        "labels": labels[:, 0].contiguous(),
        "step_labels": labels,
        "values": torch.randn(SAMPLES, CLASSES),
        "step_values": torch.randn(SAMPLES, STEPS, CLASSES),
        "shares": torch.rand(SAMPLES, CLASSES),
        "fc.weight": torch.randn(CLASSES, FEATURES),
        "fc.bias": torch.randn(CLASSES),
    }


def losses(inputs, targets, spec, data):
    arguments = {key: value for key, value in spec.items() if key != "type"}
    for key in ("weight", "pos_weight"):
        if key in arguments:
            arguments[key] = torch.tensor(arguments[key])
    output = nn.functional.linear(data[inputs], data["fc.weight"], data["fc.bias"])
    target = data[targets]
    counts = target != spec.get("ignore_index", -100) if targets.endswith("labels") else torch.ones_like(target)
    if spec["type"] == "NLLLoss":
        output = output.log_softmax(-1)
    if output.dim() == 3 and targets.endswith("labels"):
        output = output.transpose(1, 2)  # the class dimension comes second there
    each = getattr(nn, spec["type"])(reduction="none", **arguments)(output, target)
    each, counts = each.reshape(SAMPLES, -1), counts.reshape(SAMPLES, -1)
    return (each.sum(1) / counts.sum(1).clamp(min=1)).tolist()


def document(inputs, targets, spec, data):
    layers = [{"type": "Linear", "name": "fc", "out_features": CLASSES}]
    if spec["type"] == "NLLLoss":
        layers.append({"type": "LogSoftmax", "dim": -1})
    source = {"format": "safetensors", "path": "none.safetensors", "inputs": inputs, "targets": targets}
    return {
        "version": 1,
        "model": {
            "input": {"shape": list(data[inputs].shape[1:])},
            "layers": layers,
            "init": {"weights": "none.safetensors", "strict": False},
        },
        "data": {"train": source},
        "loss": dict(spec, reduction="none"),
        "train": {"mode": "evaluate", "batch_size": 9},
    }


def main():
    data = make_data()
    write_safetensors("none.safetensors", data)
    cases = [
        {"job": document(inputs, targets, spec, data), "losses": losses(inputs, targets, spec, data)}
        for inputs, targets, spec in CASES
    ]
    with open(os.path.join(HERE, "none.json"), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
