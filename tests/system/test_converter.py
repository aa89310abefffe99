"""examples/pth_to_safetensors.py: weights between PyTorch and traind, both ways, with the ResNet that torchvision builds."""

import json
import os
import subprocess
import sys

import pytest

from traind import LIMIT, SOURCE, WORKER

try:
    import torch

    sys.path.insert(0, os.path.join(SOURCE, "tests", "golden"))
    from resnet import ResNet
except ImportError:
    torch = None
pytestmark = pytest.mark.skipif(torch is None, reason="there is no PyTorch (python3-torch)")

CONVERTER = os.path.join(SOURCE, "examples", "pth_to_safetensors.py")


def convert(folder, source, target):
    return subprocess.run([sys.executable, "-B", CONVERTER, source, target], cwd=folder, capture_output=True, text=True,
                          timeout=LIMIT)


def train(folder, weights=None, lr=0.1):
    """One step of a narrow resnet18; its weights' path."""
    model = {"preset": "resnet18", "args": {"num_classes": 10, "width": 8}, "input": {"shape": [3, 32, 32]}}
    if weights is not None:
        model["init"] = {"weights": weights}
    job = {"version": 1, "model": model, "data": {"train": {"format": "random", "samples": 8, "classes": 10}},
           "loss": {"type": "CrossEntropyLoss"}, "optimizer": {"type": "SGD", "lr": lr},
           "train": {"max_steps": 1, "batch_size": 8}}
    done = subprocess.run([WORKER, "run", "-", "--output", "out"], input=json.dumps(job), cwd=folder, capture_output=True,
                          text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return os.path.join("out", "weights.safetensors")


def test_pytorch_loads_what_was_trained_here(folder):
    done = convert(folder, train(folder), "w.pth")
    assert (done.returncode, done.stdout) == (0, "w.pth: 122 tensors\n"), done.stderr
    model = ResNet("resnet18", 10, 8)
    before = model.conv1.weight.clone()
    model.load_state_dict(torch.load(os.path.join(folder, "w.pth")), strict=True)
    assert not torch.equal(model.conv1.weight, before)
    assert model.bn1.num_batches_tracked.item() == 1


def test_traind_trains_what_pytorch_saved(folder):
    model = ResNet("resnet18", 10, 8)
    torch.save({"epoch": 3, "state_dict": model.state_dict()}, os.path.join(folder, "w.pth"))
    assert convert(folder, "w.pth", "w.safetensors").returncode == 0
    assert convert(folder, train(folder, "w.safetensors", lr=0), "again.pth").returncode == 0
    again = torch.load(os.path.join(folder, "again.pth"))
    for name, parameter in model.named_parameters():
        assert torch.equal(again[name], parameter), name


def test_every_type_goes_there_and_back(folder):
    tensors = {
        "f64": torch.rand(3, dtype=torch.float64), "f32": torch.rand(2, 3).t(), "f16": torch.rand(5).half(),
        "bf16": torch.rand(3, 1).bfloat16(), "i64": torch.tensor(-7), "u8": torch.tensor([1, 255], dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]), "empty": torch.zeros(0, 4),
    }
    torch.save(tensors, os.path.join(folder, "a.pth"))
    assert convert(folder, "a.pth", "a.safetensors").returncode == 0
    inspected = subprocess.run([WORKER, "inspect", "a.safetensors", "--json"], cwd=folder, capture_output=True, timeout=LIMIT)
    assert {t["name"]: t["shape"] for t in json.loads(inspected.stdout)["tensors"]} == {k: list(t.shape) for k, t in tensors.items()}
    assert convert(folder, "a.safetensors", "b.pth").returncode == 0
    again = torch.load(os.path.join(folder, "b.pth"))
    assert set(again) == set(tensors)
    for name, tensor in tensors.items():
        assert again[name].dtype == tensor.dtype and torch.equal(again[name], tensor), name


@pytest.mark.parametrize("save,says", [(lambda: [1, 2], "no state_dict but a list"),
                                       (lambda: {"a": 1}, "'a' is no tensor but a int"),
                                       (lambda: {"a": torch.zeros(1, dtype=torch.complex64)}, "complex64")])
def test_what_is_no_state_dict_is_named(folder, save, says):
    torch.save(save(), os.path.join(folder, "a.pth"))
    done = convert(folder, "a.pth", "a.safetensors")
    assert done.returncode == 1 and "a.pth: " in done.stderr and says in done.stderr
    assert not os.path.exists(os.path.join(folder, "a.safetensors"))


def test_the_names_say_which_way(folder):
    assert convert(folder, "a.pth", "b.pth").returncode == 1
    assert "pth_to_safetensors.py model.pth model.safetensors" in convert(folder, "a.safetensors", "b.safetensors").stderr
