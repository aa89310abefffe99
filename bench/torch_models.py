"""The models of bench/jobs in PyTorch, with the state_dict's names that traind gives them.

ResNets are tests/golden/resnet.py's; the rest is built from a document's layers, as nn.Sequential where each layer
reads the one before it.
"""
import math
import os
import sys

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "tests", "golden"))
from resnet import ResNet  # noqa: E402


class PositionalEmbedding(nn.Embedding):
    def forward(self, x):
        return x + self.weight[: x.shape[1]]


class SelfAttention(nn.Module):
    """nn.MultiheadAttention's parameters, computed as decoders on PyTorch do: one product for queries, keys and
    values, and scaled_dot_product_attention where there is one."""

    def __init__(self, embed_dim, num_heads, causal=False, bias=True):
        super().__init__()
        self.heads, self.causal = num_heads, causal
        self.in_proj_weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * embed_dim)) if bias else None
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.mask = None

    def attend(self, q, k, v):
        if hasattr(functional, "scaled_dot_product_attention"):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]))
        if self.causal:
            if self.mask is None:
                self.mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(self.mask, -math.inf)
        return scores.softmax(-1) @ v

    def forward(self, x):
        n, t, e = x.shape
        qkv = functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = qkv.view(n, t, 3, self.heads, e // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.out_proj(self.attend(q, k, v).transpose(1, 2).reshape(n, t, e))


class LSTM(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0]


class Add(nn.Module):
    def forward(self, a, b):
        return a + b


OURS = {
    "Add": Add,
    "LSTM": lambda **args: LSTM(batch_first=True, **args),
    "PositionalEmbedding": PositionalEmbedding,
    "SelfAttention": SelfAttention,
}
# Sizes that a document may leave out, from the layer's input.
INFERRED = {
    "Linear": lambda x: {"in_features": x.shape[-1]},
    "Conv2d": lambda x: {"in_channels": x.shape[1]},
    "LayerNorm": lambda x: {"normalized_shape": x.shape[-1]},
    "LSTM": lambda x: {"input_size": x.shape[-1]},
    "PositionalEmbedding": lambda x: {"embedding_dim": x.shape[-1]},
    "SelfAttention": lambda x: {"embed_dim": x.shape[-1]},
}
# Of no consequence here: weights are loaded, no bench drops anything out.
IGNORED = ("type", "name", "inputs", "weight_init", "bias_init", "dropout")


class Layers(nn.Module):
    """Layers some of which read others than the one before them."""

    def __init__(self, modules):
        super().__init__()
        self.steps = []
        for name, module, sources in modules:
            self.put(name, module)
            self.steps.append((name, module, sources))
        self.kept = {source for _, _, sources in self.steps for source in sources or ()}

    def put(self, path, module):
        """Registers it under a name with dots."""
        *parents, last = path.split(".")
        at = self
        for parent in parents:
            if not hasattr(at, parent):
                at.add_module(parent, nn.Module())
            at = getattr(at, parent)
        at.add_module(last, module)

    def forward(self, x):
        kept = {}
        for name, module, sources in self.steps:
            x = module(*[kept[source] for source in sources]) if sources else module(x)
            if name in self.kept:
                kept[name] = x
        return x


def build(model, sample):
    """The module of a document's "model", whose preset is written out unless it is a ResNet."""
    if str(model.get("preset")).startswith("resnet"):
        return ResNet(model["preset"], **model.get("args", {}))
    modules, outputs, before = [], {}, sample[:2]
    with torch.no_grad():
        for index, layer in enumerate(model["layers"]):
            name, sources = layer.get("name", str(index)), layer.get("inputs")
            inputs = [outputs[source] for source in sources] if sources else [before]
            args = {key: value for key, value in layer.items() if key not in IGNORED}
            args = {**INFERRED.get(layer["type"], lambda x: {})(inputs[0]), **args}
            module = (OURS.get(layer["type"]) or getattr(nn, layer["type"]))(**args)
            before = outputs[name] = module(*inputs)
            modules.append((name, module, sources))
    if any(sources for _, _, sources in modules):
        return Layers(modules)
    sequence = nn.Sequential()
    for name, module, _ in modules:
        sequence.add_module(name, module)
    return sequence
