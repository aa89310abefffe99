#!/usr/bin/python3
"""A job's training steps in PyTorch: what bench/steps.c is on traind's side, line for line.

Usage: torch_steps.py [--channels-last] [--compile] [--autocast] [--threads N] JOB DIR

JOB is a document, its preset written out; DIR has weights.safetensors and batch.safetensors. After the first step, and
then after each line of standard input, a number of steps, it prints {"seconds": [...], "losses": [...]}. With --version
alone it says which PyTorch this is.
"""
import argparse
import contextlib
import json
import os
import struct
import sys
import time

import torch


def load(path):
    kinds = {"F32": torch.float32, "I64": torch.int64}
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), bytearray(file.read())
    header.pop("__metadata__", None)
    tensors = {}
    for name, row in header.items():
        begin, end = row["data_offsets"]
        flat = torch.frombuffer(data, dtype=torch.uint8)[begin:end].clone().view(kinds[row["dtype"]])
        tensors[name] = flat.reshape(row["shape"])
    return tensors


def parse():
    parser = argparse.ArgumentParser()
    for flag in ("--channels-last", "--compile", "--autocast"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("job")
    parser.add_argument("folder")
    return parser.parse_args()


def prepare(args):
    """A function that makes a step and returns its loss."""
    from torch_models import build

    with open(args.job) as file:
        job = json.load(file)
    batch = load(os.path.join(args.folder, "batch.safetensors"))
    target = batch.pop("target").flatten()
    (x,) = batch.values()
    model = build(job["model"], x)
    model.load_state_dict(load(os.path.join(args.folder, "weights.safetensors")))
    model.train()
    if args.channels_last and x.dim() == 4:
        x, model = x.contiguous(memory_format=torch.channels_last), model.to(memory_format=torch.channels_last)
    settings = dict(job["optimizer"])
    optimizer = getattr(torch.optim, settings.pop("type"))(model.parameters(), **settings)
    called = torch.compile(model) if args.compile else model
    loss_fn = getattr(torch.nn, job["loss"]["type"])()
    low = torch.autocast("cpu", dtype=torch.bfloat16) if args.autocast else contextlib.nullcontext()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with low:
            output = called(x)
            loss = loss_fn(output.reshape(-1, output.shape[-1]), target)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def answer(step, n):
    seconds, losses = [], []
    for _ in range(n):
        begun = time.monotonic()
        losses.append(step())
        seconds.append(time.monotonic() - begun)
    print(json.dumps({"seconds": seconds, "losses": losses}), flush=True)


def main():
    if sys.argv[1:] == ["--version"]:
        print(json.dumps({"torch": torch.__version__, "compile": hasattr(torch, "compile")}))
        return
    args = parse()
    torch.set_num_threads(args.threads)
    step = prepare(args)
    answer(step, 1)
    for line in sys.stdin:
        answer(step, int(line))


if __name__ == "__main__":
    main()
