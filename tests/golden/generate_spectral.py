#!/usr/bin/python3
"""Makes the goldens of spectral_norm, as generate_layers.py makes its own.

Usage: /usr/bin/python3 tests/golden/generate_spectral.py

torch.nn.utils.spectral_norm: its u and v are buffers, which each of DataParallel's replicas begins with as
the controller left them.
"""
from generate import CLASSES
from generate_layers import generate

MODELS = {
    "spectral": {
        "shape": [2, 8, 8],
        "layers": [
            {
                "type": "Conv2d",
                "name": "conv1",
                "out_channels": 8,
                "kernel_size": 3,
                "padding": 1,
                "groups": 2,
                "spectral_norm": True,
            },
            {"type": "BatchNorm2d", "name": "bn1", "num_features": 8},
            {"type": "ReLU"},
            {"type": "MaxPool2d", "kernel_size": 2},
            {
                "type": "Conv2d",
                "name": "conv2",
                "out_channels": 6,
                "kernel_size": [3, 2],
                "bias": False,
                "spectral_norm": True,
            },
            {"type": "ReLU"},
            {"type": "Flatten"},
            {"type": "Linear", "name": "fc", "out_features": CLASSES, "spectral_norm": True},
        ],
    },
    "spectral-tokens": {
        "shape": [5],
        "tokens": 9,
        "lengths": True,
        "layers": [
            {
                "type": "Embedding",
                "name": "embedding",
                "num_embeddings": 9,
                "embedding_dim": 6,
                "padding_idx": 2,
                "spectral_norm": True,
            },
            {"type": "SelectLast"},
            {"type": "Linear", "name": "fc", "out_features": CLASSES, "spectral_norm": True},
        ],
    },
}

if __name__ == "__main__":
    generate(MODELS)
