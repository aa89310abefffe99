"""The GPU backend on simulated GPUs: what it trains is what CPUs train, in whatever order its streams allow."""

import json
import os
import struct
import subprocess

import pytest
from traind import BUILD, LIMIT, WORKER

LIBRARIES = os.path.join(BUILD, "tests", "cudasim", "lib")
pytestmark = pytest.mark.skipif(not os.path.exists(os.path.join(LIBRARIES, "libkernels.so")),
                                reason="this build has no GPU backend")

IMAGE = {"shape": [1, 8, 8]}
MODELS = {
    "mlp": ({"shape": [12]}, [{"type": "Linear", "name": "a", "out_features": 16}, {"type": "ReLU"},
                              {"type": "Dropout", "p": 0.3}, {"type": "Linear", "name": "b", "out_features": 5}]),
    "cnn": (IMAGE, [{"type": "Conv2d", "name": "c", "out_channels": 4, "kernel_size": 3, "padding": 1, "bias": False},
                    {"type": "BatchNorm2d", "name": "n"}, {"type": "ReLU"}, {"type": "MaxPool2d", "kernel_size": 2},
                    {"type": "Flatten"}, {"type": "Linear", "name": "f", "out_features": 5}]),
}
OPTIMIZERS = {
    "momentum": {"type": "SGD", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
    "adam": {"type": "AdamW", "lr": 0.01},
}


def document(model, optimizer, **train):
    shape, layers = MODELS[model]
    return {"version": 1, "model": {"input": shape, "layers": layers},
            "data": {"train": {"format": "random", "samples": 40, "classes": 5}},
            "loss": {"type": "CrossEntropyLoss"}, "optimizer": OPTIMIZERS[optimizer],
            "train": {"epochs": 2, "batch_size": 16, "log_every": 1, **train},
            "checkpoint": {"every": "never", "resume": "never"}}


def run(folder, job, devices, seed=1, gpus=3, **environment):
    output = os.path.join(folder, f"out-{devices.replace(':', '-')}-{seed}")
    env = {**os.environ, "LD_LIBRARY_PATH": LIBRARIES, "CUDASIM_SEED": str(seed), "CUDASIM_DEVICES": str(gpus),
           "TRAIND_CUDA_MODULE": os.path.join(BUILD, "engine", "backend", "cuda", "engine-cuda.so"), **environment}
    return output, subprocess.run([WORKER, "run", "-", "--devices", devices, "--cpu-devices", "3", "--output", output,
                                   "--json"], env=env, input=json.dumps(job), capture_output=True, text=True,
                                  timeout=LIMIT)


def weights(output):
    """By name the elements of a safetensors file, all F32 or I64."""
    with open(os.path.join(output, "weights.safetensors"), "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    found = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            kind = {"F32": "f", "I64": "q"}[tensor["dtype"]]
            found[name] = struct.unpack(f"<{(end - begin) // struct.calcsize(kind)}{kind}", data[begin:end])
    return found


def same(a, b, tolerance):
    assert a.keys() == b.keys()
    for name in a:
        largest = max(map(abs, b[name]), default=0)
        worst = max((abs(x - y) for x, y in zip(a[name], b[name])), default=0)
        assert worst <= tolerance * max(largest, 1e-3), f"{name}: {worst} of {largest}"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_trains_as_a_cpu(folder, model, optimizer):
    job = document(model, optimizer)
    cpu, done = run(folder, job, "cpu:0")
    assert done.returncode == 0, done.stderr
    found = []
    for seed in (1, 2, 3):
        gpu, done = run(folder, job, "cuda:0", seed)
        assert done.returncode == 0, done.stderr
        found.append(weights(gpu))
        same(found[-1], weights(cpu), 2e-4)
    assert found[0] == found[1] == found[2]  # to the bit, whatever the order


def test_probe_lists_them(folder):
    env = {**os.environ, "LD_LIBRARY_PATH": LIBRARIES, "CUDASIM_DEVICES": "2",
           "TRAIND_CUDA_MODULE": os.path.join(BUILD, "engine", "backend", "cuda", "engine-cuda.so")}
    done = subprocess.run([WORKER, "probe", "--json"], env=env, capture_output=True, text=True, timeout=LIMIT)
    devices = [d for d in json.loads(done.stdout)["devices"] if d["type"] == "cuda"]
    assert [d["name"] for d in devices] == ["cuda:0", "cuda:1"]


def test_no_memory_is_named(folder):
    job = document("mlp", "adam")
    job["model"]["layers"][0]["out_features"] = 100000
    _, done = run(folder, job, "cuda:0", CUDASIM_MEMORY=str(4 << 20))
    assert done.returncode == 1
    assert "cuda:0" in done.stderr and "MiB" in done.stderr


@pytest.mark.parametrize("n", [2, 3])
def test_replicas_are_those_of_cpus(folder, n):
    job = document("cnn", "momentum")
    job["parallel"] = {"mode": "replicate", "devices": n}
    cpu, done = run(folder, job, ",".join(f"cpu:{i}" for i in range(n)))
    assert done.returncode == 0, done.stderr
    for seed in (1, 2):
        gpu, done = run(folder, job, ",".join(f"cuda:{i}" for i in range(n)), seed)
        assert done.returncode == 0, done.stderr
        same(weights(gpu), weights(cpu), 2e-4)
