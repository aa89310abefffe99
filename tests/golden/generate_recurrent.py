#!/usr/bin/python3
"""Makes the goldens of LSTM, GRU and RNN, as generate_layers.py makes its own.

Usage: /usr/bin/python3 tests/golden/generate_recurrent.py

With lengths, a layer is PyTorch's pack_padded_sequence, layer, pad_packed_sequence; the lengths are not sorted.
"""
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from generate import CLASSES
from generate_layers import INFERRED, OURS, generate, linear


def recurrent(base):
    class Recurrent(base):
        takes_lengths = True

        def __init__(self, **args):
            super().__init__(batch_first=True, **args)

        def forward(self, x, lengths=None):
            if lengths is None:
                return super().forward(x)[0]
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return pad_packed_sequence(super().forward(packed)[0], batch_first=True, total_length=x.shape[1])[0]

    return Recurrent


for base in (nn.LSTM, nn.GRU, nn.RNN):
    OURS[base.__name__] = recurrent(base)
    INFERRED[base.__name__] = lambda x: {"input_size": x.shape[-1]}

BRANCHES = [
    {"type": "LSTM", "name": "lstm", "hidden_size": 3, "num_layers": 2, "bidirectional": True, "inputs": ["front"]},
    {"type": "GRU", "name": "gru", "hidden_size": 5, "num_layers": 2, "bidirectional": True, "inputs": ["front"]},
    {"type": "RNN", "name": "rnn", "hidden_size": 4, "num_layers": 2, "bidirectional": True, "inputs": ["front"]},
    {
        "type": "RNN",
        "name": "relu",
        "hidden_size": 4,
        "bias": False,
        "nonlinearity": "relu",
        "inputs": ["front"],
    },
    {"type": "GRU", "name": "one", "hidden_size": 2, "inputs": ["front"]},
]
JOINED = [
    *BRANCHES,
    {"type": "Cat", "name": "states", "dim": -1, "inputs": [branch["name"] for branch in BRANCHES]},
]

MODELS = {
    "recurrent": {
        "shape": [5, 6],
        "layers": [
            linear("front", 4),
            *JOINED,
            {"type": "Flatten"},
            linear("fc", CLASSES),
        ],
    },
    "packed": {
        "shape": [7],
        "tokens": 11,
        "lengths": True,
        "layers": [
            {"type": "Embedding", "name": "table", "num_embeddings": 11, "embedding_dim": 5},
            linear("front", 4),
            *JOINED,
            {"type": "SelectLast", "name": "valid"},
            {"type": "Flatten", "name": "all", "inputs": ["states"]},
            {"type": "Cat", "dim": 1, "inputs": ["valid", "all"]},
            linear("fc", CLASSES),
        ],
    },
    "lstm": {
        "shape": [9],
        "tokens": 11,
        "lengths": True,
        "layers": [
            {"type": "Embedding", "name": "table", "num_embeddings": 11, "embedding_dim": 5},
            {"type": "LSTM", "name": "lstm", "hidden_size": 7},
            {"type": "SelectLast"},
            linear("fc", CLASSES),
        ],
    },
}

if __name__ == "__main__":
    generate(MODELS)
