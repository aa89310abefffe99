#!/usr/bin/python3
"""Makes the goldens of the layers beside Linear, Conv2d and BatchNorm, as generate.py makes its own.

Usage: /usr/bin/python3 tests/golden/generate_layers.py

A layer with a weight stands in front of every layer, so that a wrong input gradient shows in it. A model
with "lengths" has one sample's tokens in a row, and behind them its length, as Model.run parts them.
"""
import json
import os

import torch
from torch import nn

from generate import BATCH, CLASSES, HERE, SAMPLES, STEPS, forward, write_idx, write_safetensors


def linear(name, size, source=None):
    layer = {"type": "Linear", "name": name, "out_features": size}
    return {**layer, "inputs": [source]} if source else layer


MODELS = {
    "activations": {
        "shape": [6],
        "layers": [
            linear("a", 8),
            {"type": "GELU"},
            linear("b", 9),
            {"type": "GELU", "approximate": "tanh"},
            linear("c", 7),
            {"type": "SiLU", "name": "silu"},
            linear("d", 7),
            {"type": "Sigmoid", "name": "gate"},
            {"type": "Tanh", "name": "tanh", "inputs": ["silu"]},
            {"type": "Mul", "name": "product", "inputs": ["gate", "tanh", "silu"]},
            {"type": "LayerNorm", "name": "norm", "normalized_shape": 7},
            linear("e", CLASSES),
            {"type": "LogSoftmax", "dim": -1},
        ],
    },
    "planes": {
        "shape": [2, 8, 8],
        "layers": [
            {"type": "Conv2d", "name": "a", "out_channels": 16, "kernel_size": 3, "padding": 1},
            {
                "type": "AvgPool2d",
                "name": "average",
                "kernel_size": 3,
                "stride": 2,
                "padding": 1,
                "ceil_mode": True,
                "count_include_pad": False,
            },
            {"type": "Conv2d", "name": "b", "out_channels": 16, "kernel_size": 3, "stride": 2, "padding": 1, "inputs": ["a"]},
            {"type": "AvgPool2d", "name": "padded", "kernel_size": [2, 3], "stride": 1, "padding": [1, 1], "inputs": ["b"]},
            {"type": "AvgPool2d", "name": "summed", "kernel_size": [2, 1], "stride": 1, "divisor_override": 3},
            {"type": "Conv2d", "name": "c", "out_channels": 3, "kernel_size": [2, 2], "inputs": ["average"]},
            {"type": "Cat", "name": "cat", "dim": 1, "inputs": ["summed", "c"]},
            {"type": "Softmax", "name": "weights", "dim": 1},
            {"type": "Cat", "name": "wide", "dim": -1, "inputs": ["weights", "cat"]},
            {"type": "Reshape", "shape": [4, -1]},
            {"type": "LayerNorm", "name": "norm", "normalized_shape": [4, 152], "eps": 0.01},
            {"type": "Softmax", "dim": 2},
            {"type": "Flatten"},
            linear("fc", CLASSES),
        ],
    },
    "same": {
        "shape": [2, 5, 6],
        "layers": [
            {"type": "Conv2d", "name": "even", "out_channels": 3, "kernel_size": [2, 4], "padding": "same"},
            {"type": "Conv2d", "name": "wide", "out_channels": 4, "kernel_size": 3, "dilation": [2, 3], "padding": "same"},
            {"type": "Conv2d", "name": "valid", "out_channels": 4, "kernel_size": 2, "padding": "valid"},
            {"type": "Flatten"},
            linear("fc", CLASSES),
        ],
    },
    "tokens": {
        "shape": [7],
        "tokens": 11,
        "lengths": True,
        "layers": [
            {"type": "Embedding", "name": "table", "num_embeddings": 11, "embedding_dim": 5, "padding_idx": 3},
            {"type": "PositionalEmbedding", "name": "position", "num_embeddings": 9},
            {"type": "LayerNorm", "name": "norm"},
            {"type": "SelectLast", "name": "valid"},
            {"type": "Linear", "name": "summary", "out_features": 3, "inputs": ["norm"]},
            {"type": "Flatten", "name": "all"},
            {"type": "Cat", "dim": 1, "inputs": ["valid", "all"]},
            linear("fc", CLASSES),
        ],
    },
    "attention": {
        "shape": [7, 4],
        "layers": [
            linear("embed", 6),
            {"type": "SelfAttention", "name": "causal", "num_heads": 2, "causal": True},
            {"type": "Mul", "name": "gated", "inputs": ["embed", "causal"]},
            {"type": "SelfAttention", "name": "full", "num_heads": 3, "bias": False},
            {"type": "SelectLast"},
            linear("fc", CLASSES),
        ],
    },
}


class Reshape(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return x.reshape(x.shape[0], *self.shape)


class Mul(nn.Module):
    def forward(self, *inputs):
        product = inputs[0]
        for x in inputs[1:]:
            product = product * x
        return product


class Cat(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, *inputs):
        return torch.cat(inputs, self.dim)


class PositionalEmbedding(nn.Embedding):
    def forward(self, x):
        return x + super().forward(torch.arange(x.shape[1]))


class SelectLast(nn.Module):
    takes_lengths = True

    def forward(self, x, lengths):
        return x[torch.arange(x.shape[0]), lengths - 1] if lengths is not None else x[:, -1]


class SelfAttention(nn.MultiheadAttention):
    def __init__(self, embed_dim, num_heads, causal=False, bias=True):
        super().__init__(embed_dim, num_heads, bias=bias, batch_first=True)
        self.causal = causal

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1]).triu(1).bool() if self.causal else None
        return super().forward(x, x, x, need_weights=False, attn_mask=mask)[0]


OURS = {
    "Reshape": Reshape,
    "Mul": Mul,
    "Cat": Cat,
    "PositionalEmbedding": PositionalEmbedding,
    "SelectLast": SelectLast,
    "SelfAttention": SelfAttention,
}
INFERRED = {
    "Linear": lambda x: {"in_features": x.shape[-1]},
    "Conv2d": lambda x: {"in_channels": x.shape[1]},
    "LayerNorm": lambda x: {"normalized_shape": x.shape[-1]},
    "PositionalEmbedding": lambda x: {"embedding_dim": x.shape[-1]},
    "SelfAttention": lambda x: {"embed_dim": x.shape[-1]},
}


class Model(nn.Module):
    """The layers of a document, sizes inferred as the engine infers them."""

    def __init__(self, spec, sample):
        super().__init__()
        self.steps, self.lengths = [], spec.get("lengths")
        for index, layer in enumerate(spec["layers"]):
            args = {k: v for k, v in layer.items() if k not in ("type", "name", "inputs")}
            name = layer.get("name", str(index))
            self.steps.append((name, layer.get("inputs")))
            x = self.run(sample, inputs_only=True)[0]
            args = {**INFERRED.get(layer["type"], lambda x: {})(x), **args}
            module = OURS.get(layer["type"]) or getattr(nn, layer["type"])
            wrap = nn.utils.spectral_norm if args.pop("spectral_norm", False) else lambda made: made
            self.add_module(name, wrap(module(**args)))
        for parameter in self.parameters():  # not ones and zeros: a swapped weight and bias must show
            if parameter.dim() == 1 or list(parameter.shape) == [4, 152]:
                nn.init.uniform_(parameter, 0.25, 1.25)

    def run(self, x, inputs_only=False):
        if self.lengths:
            x, lengths = x[:, :-1], x[:, -1]
        else:
            lengths = None
        outputs, before = {"input": x}, x
        for name, sources in self.steps:
            inputs = [outputs[source] for source in sources] if sources else [before]
            if inputs_only and name == self.steps[-1][0]:
                return inputs
            if self.lengths and getattr(getattr(self, name), "takes_lengths", False):
                inputs.append(lengths)
            before = outputs[name] = getattr(self, name)(*inputs)
        return before

    def forward(self, x):
        return self.run(x)


def train(model, x, y, devices, lr):
    loss_fn, losses = nn.CrossEntropyLoss(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    batches = list(zip(x.split(BATCH), y.split(BATCH)))
    for step in range(STEPS):
        inputs, targets = batches[step % len(batches)]
        loss = loss_fn(forward(model, inputs, devices), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def document(name, spec):
    tokens = {"dtype": "int64", "lengths": True} if spec.get("lengths") else {}
    lengths = {"lengths": name + "-lengths.idx"} if spec.get("lengths") else {}
    return {
        "version": 1,
        "name": name,
        "model": {
            "input": {"shape": spec["shape"], **tokens},
            "layers": spec["layers"],
            "init": {"weights": name + "-initial.safetensors"},
        },
        "data": {
            "train": {"format": "idx", "inputs": name + "-inputs.idx", "targets": name + "-targets.idx", **lengths},
            **({} if tokens else {"transform": {"scale": 1 / 128, "mean": 1}}),  # exact in float32
            "shuffle": False,
        },
        "loss": {"type": "CrossEntropyLoss"},
        "optimizer": {"type": "SGD", "lr": 0.1},
        "train": {"max_steps": STEPS, "batch_size": BATCH},
        "parallel": {"mode": "replicate", "devices": 1},
    }


def generate(models):
    torch.set_num_threads(1)
    for name, spec in models.items():
        torch.manual_seed(2)  # a new model changes no other's files
        x = torch.randint(0, spec.get("tokens", 256), [SAMPLES] + spec["shape"])
        y = torch.randint(0, CLASSES, [SAMPLES])
        write_idx(name + "-inputs.idx", x)
        write_idx(name + "-targets.idx", y)
        if spec.get("lengths"):
            lengths = torch.randint(1, spec["shape"][0] + 1, [SAMPLES])
            write_idx(name + "-lengths.idx", lengths)
            x = torch.cat([x, lengths[:, None]], 1)
        else:
            x = x.float() / 128 - 1
        first = Model(spec, x[:2])
        initial = {k: v.clone() for k, v in first.state_dict().items()}
        write_safetensors(name + "-initial.safetensors", initial)
        losses = {}
        for devices in (1, 2):
            model = Model(spec, x[:2])
            model.load_state_dict(initial)
            losses[devices] = train(model, x, y, devices, 0.1)
            write_safetensors("%s-%d-final.safetensors" % (name, devices), model.state_dict())
        with open(os.path.join(HERE, name + ".json"), "w") as file:
            json.dump({"job": document(name, spec), "losses": losses}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    generate(MODELS)
