#!/usr/bin/python3
"""Makes the goldens of check_learning.c with PyTorch (Debian: python3-torch, python3-numpy).

Usage: /usr/bin/python3 tests/golden/generate_learning.py

Run by hand when a case is added; the files are committed, and no test needs PyTorch. Each case is 50 steps of a
small model from given weights, on the whole batch: what any number of devices must come to, since there is no
BatchNorm (but in a frozen layer, on one device). Every optimizer, schedule and loss is here with its arguments.

learning.json                   a list of cases: the job document, the loss and learning rate of each step, what tensors may
                                differ by (in max|a-b| / max|b|), on how many devices it is run
learning.safetensors            the tensors after the last step, "CASE/0.weight"
learning-MODEL-initial.safetensors   the weights at the start
learning-*.idx                  samples and targets, unsigned bytes
"""
import json
import os

import torch
from torch import nn
from torch.optim import lr_scheduler

from generate import HERE, write_idx, write_safetensors

STEPS = 50
SAMPLES = 64
BATCH = 13  # chunks of 7 and 6, of 5, 5 and 3; an epoch's last batch has 12
CLASSES = 4
IGNORED = 3  # also all targets of the first batch's second chunk

MLP = [
    {"type": "Linear", "out_features": 12},
    {"type": "Tanh"},
    {"type": "Linear", "out_features": CLASSES},
]
MODELS = {
    "mlp": {"shape": [6], "layers": MLP},
    "nll": {"shape": [6], "layers": MLP + [{"type": "LogSoftmax", "dim": -1}]},
    "steps": {"shape": [5, 6], "layers": MLP},
    "norm": {
        "shape": [6],
        "layers": [
            {"type": "Linear", "name": "body.fc", "out_features": 12},
            {"type": "BatchNorm1d", "name": "body.bn"},
            {"type": "Tanh"},
            {"type": "Linear", "name": "head", "out_features": CLASSES},
        ],
    },
}

CE = {"type": "CrossEntropyLoss"}
SGD = {"type": "SGD", "lr": 0.05, "momentum": 0.9}
ADAM = {"type": "Adam", "lr": 0.01}
RMSPROP = {"type": "RMSprop", "lr": 0.001}
NO_DECAY = {"weight_decay": 0.1, "no_decay": ["*.bias"]}
WEIGHT = [0.5, 2, 1, 0.25]


def case(name, model="mlp", loss=CE, optimizer=SGD, schedule=None, clip=None, freeze=None, tolerance=1e-6, devices=(1, 2, 3)):
    return locals()


CASES = [
    case("sgd", optimizer={"type": "SGD", "lr": 0.1}),
    case("sgd-dampening", optimizer={**SGD, "dampening": 0.3}),
    case("sgd-nesterov", optimizer={**SGD, "nesterov": True, "weight_decay": 0.01}),
    case("sgd-no-decay", optimizer={**SGD, **NO_DECAY}),
    case("adam", optimizer=ADAM),
    case("adam-amsgrad", optimizer={**ADAM, "amsgrad": True, "weight_decay": 0.1, "betas": [0.8, 0.95]}),
    case("adamw", optimizer={**ADAM, "type": "AdamW"}),
    case("adamw-no-decay", optimizer={**ADAM, "type": "AdamW", "amsgrad": True, "eps": 1e-6, **NO_DECAY}),
    case("rmsprop", optimizer=RMSPROP, tolerance=1e-5),
    case("rmsprop-momentum", optimizer={**RMSPROP, "momentum": 0.5, "weight_decay": 0.01, "alpha": 0.9}, tolerance=1e-5),
    case("rmsprop-centered", optimizer={**RMSPROP, "centered": True, "eps": 1e-6}, tolerance=1e-5),
    case("step-lr", schedule={"type": "StepLR", "step_size": 7, "gamma": 0.7}),
    case("multi-step-lr", schedule={"type": "MultiStepLR", "milestones": [30, 5, 12], "gamma": 0.5}),
    case("cosine", schedule={"type": "CosineAnnealingLR", "T_max": 50, "eta_min": 0.001}),
    case("cosine-beyond", optimizer=ADAM, schedule={"type": "CosineAnnealingLR", "T_max": 15}),
    case("warmup", optimizer=ADAM, schedule={"type": "StepLR", "step_size": 20, "warmup_steps": 10}),
    case("warmup-constant", schedule={"type": "constant", "warmup_steps": 8}),
    case("clip", optimizer={**SGD, "lr": 0.2}, clip=0.3),
    case("clip-adam", optimizer={**ADAM, "weight_decay": 0.1}, clip=0.1),
    case("ce-sum", loss={**CE, "reduction": "sum"}, optimizer={"type": "SGD", "lr": 0.01}),
    case("ce-smooth", loss={**CE, "label_smoothing": 0.2}),
    case("ce-ignore", loss={**CE, "ignore_index": IGNORED}),
    case("ce-weight", loss={**CE, "weight": WEIGHT}),
    case("ce-all", loss={**CE, "weight": WEIGHT, "ignore_index": IGNORED, "label_smoothing": 0.1}),
    case("ce-steps", "steps", {**CE, "ignore_index": IGNORED, "label_smoothing": 0.1}),
    case("nll", "nll", {"type": "NLLLoss", "weight": WEIGHT, "ignore_index": IGNORED}),
    case("nll-sum", "nll", {"type": "NLLLoss", "reduction": "sum"}, {"type": "SGD", "lr": 0.01}),
    case("mse-sum", loss={"type": "MSELoss", "reduction": "sum"}, optimizer={"type": "SGD", "lr": 0.005}),
    case("l1", loss={"type": "L1Loss"}),
    case("bce", loss={"type": "BCEWithLogitsLoss"}),
    case("bce-weight", loss={"type": "BCEWithLogitsLoss", "pos_weight": WEIGHT}),
    case("freeze", optimizer=ADAM, freeze=["0"]),
    case("freeze-norm", "norm", optimizer={**SGD, **NO_DECAY}, freeze=["body"], devices=(1,)),
]


def build(spec):
    model, x = nn.Sequential(), torch.zeros(2, *spec["shape"])
    for index, layer in enumerate(spec["layers"]):
        args = {k: v for k, v in layer.items() if k not in ("type", "name")}
        key = {"Linear": "in_features", "BatchNorm1d": "num_features"}.get(layer["type"])
        if key is not None:
            args[key] = x.shape[-1]
        module = getattr(nn, layer["type"])(**args)
        name = layer.get("name", str(index))
        parent = model
        for part in name.split(".")[:-1]:
            if not hasattr(parent, part):
                parent.add_module(part, nn.Sequential())
            parent = getattr(parent, part)
        parent.add_module(name.split(".")[-1], module)
        x = module.eval()(x)
        module.train()
    return model


def make_loss(spec):
    args = {k: v for k, v in spec.items() if k != "type"}
    for key in ("weight", "pos_weight"):
        if key in args:
            args[key] = torch.tensor(args[key], dtype=torch.float32)
    loss = getattr(nn, spec["type"])(**args)
    if spec["type"] in ("CrossEntropyLoss", "NLLLoss"):
        return lambda output, target: loss(output.flatten(0, -2), target.flatten())
    return loss


def make_optimizer(spec, model):
    args = {k: v for k, v in spec.items() if k not in ("type", "no_decay")}
    trained = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    groups = [
        {"params": [p for n, p in trained if not n.endswith(".bias")]},
        {"params": [p for n, p in trained if n.endswith(".bias")]},
    ]
    if "no_decay" in spec:
        groups[1]["weight_decay"] = 0
    return getattr(torch.optim, spec["type"])(groups, **args)


def make_schedule(spec, optimizer):
    spec = dict(spec or {"type": "constant"})
    kind, warmup = spec.pop("type"), spec.pop("warmup_steps", 0)
    if kind == "constant":
        return lr_scheduler.LambdaLR(optimizer, lambda made: 1.0), warmup
    if kind == "MultiStepLR":
        spec["milestones"] = sorted(spec["milestones"])
    return getattr(lr_scheduler, kind)(optimizer, **spec), warmup


def train(c, initial, x, y):
    model = build(MODELS[c["model"]])
    model.load_state_dict(initial)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not any(name.startswith(f + ".") for f in c["freeze"] or []))
    loss_fn, optimizer = make_loss(c["loss"]), make_optimizer(c["optimizer"], model)
    schedule, warmup = make_schedule(c["schedule"], optimizer)
    batches, losses, rates = list(zip(x.split(BATCH), y.split(BATCH))), [], []
    for step in range(1, STEPS + 1):
        inputs, targets = batches[(step - 1) % len(batches)]
        loss = loss_fn(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        if c["clip"] is not None:
            nn.utils.clip_grad_norm_(model.parameters(), c["clip"])
        rate = optimizer.param_groups[0]["lr"]
        warm = min(1, step / warmup) if warmup else 1
        for group in optimizer.param_groups:
            group["lr"] = rate * warm
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] = rate
        schedule.step()
        losses.append(float("%.9g" % loss.item()))
        rates.append(float("%.9g" % (rate * warm)))
    return model.state_dict(), losses, rates


def document(c):
    inputs = "steps" if c["model"] == "steps" else "rows"
    classes = c["loss"]["type"] in ("CrossEntropyLoss", "NLLLoss")
    targets = ("step-labels" if inputs == "steps" else "labels") if classes else "values"
    job = {
        "version": 1,
        "name": c["name"],
        "model": {
            "input": {"shape": MODELS[c["model"]]["shape"]},
            "layers": MODELS[c["model"]]["layers"],
            "init": {"weights": "learning-%s-initial.safetensors" % ("norm" if c["model"] == "norm" else "mlp")},
        },
        "data": {
            "train": {
                "format": "idx",
                "inputs": "learning-%s.idx" % inputs,
                "targets": "learning-%s.idx" % targets,
            },
            "transform": {"scale": 1 / 128, "mean": 1},  # exact in float32
            "shuffle": False,
        },
        "loss": c["loss"],
        "optimizer": c["optimizer"],
        "train": {"max_steps": STEPS, "batch_size": BATCH},
        "parallel": {"mode": "replicate", "devices": 1},
        "checkpoint": {"every": "never"},
    }
    if c["schedule"] is not None:
        job["schedule"] = c["schedule"]
    if c["clip"] is not None:
        job["train"]["clip_grad_norm"] = c["clip"]
    if c["freeze"] is not None:
        job["model"]["freeze"] = c["freeze"]
    return job


def make_data():
    data = {
        "rows": torch.randint(0, 256, [SAMPLES, 6]),
        "steps": torch.randint(0, 256, [SAMPLES, 5, 6]),
        "labels": torch.randint(0, CLASSES, [SAMPLES]),
        "step-labels": torch.randint(0, CLASSES, [SAMPLES, 5]),
        "values": torch.randint(0, 2, [SAMPLES, CLASSES]),
    }
    data["labels"][7:13] = IGNORED
    data["step-labels"][7:13] = IGNORED
    for name, tensor in data.items():
        write_idx("learning-%s.idx" % name, tensor)
    for name in ("rows", "steps"):
        data[name] = data[name].float() / 128 - 1
    data["values"] = data["values"].float()
    return data


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    data, initial, finals, cases = make_data(), {}, {}, []
    for name in ("mlp", "norm"):
        initial[name] = {k: v.clone() for k, v in build(MODELS[name]).state_dict().items()}
        write_safetensors("learning-%s-initial.safetensors" % name, initial[name])
    for c in CASES:
        job = document(c)
        files = [job["data"]["train"][k][len("learning-") : -len(".idx")] for k in ("inputs", "targets")]
        state, losses, rates = train(c, initial["norm" if c["model"] == "norm" else "mlp"], *(data[f] for f in files))
        finals.update({"%s/%s" % (c["name"], k): v.clone() for k, v in state.items()})
        cases.append({"job": job, "losses": losses, "lr": rates, "tolerance": c["tolerance"], "devices": c["devices"]})
    write_safetensors("learning.safetensors", finals)
    with open(os.path.join(HERE, "learning.json"), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
