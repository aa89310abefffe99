#!/usr/bin/python3
"""Makes golden.txt: what the simulated libraries are compared with, computed by PyTorch in double.

Usage: /usr/bin/python3 tests/cudasim/generate.py

Run by hand when a case is added; the file is committed, and no test needs PyTorch. A line is a name, how many values
there are, and the values. Shapes stand in the tests.
"""
import os

import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_default_dtype(torch.float64)
torch.manual_seed(1)
lines = []


def put(name, tensor):
    values = tensor.detach().reshape(-1).tolist()
    lines.append("%s %d %s" % (name, len(values), " ".join("%.10g" % v for v in values)))


def new(*shape):
    """Multiples of 1/32 that a float holds exactly, in [-2, 2]."""
    return (torch.randint(-64, 65, shape) / 32.0).requires_grad_()


def back(name, y, inputs):
    """Puts y, a gradient of it, and the gradients of the inputs under d + their names."""
    dy = new(*y.shape)
    put(name + ".y", y)
    put(name + ".dy", dy)
    for key, gradient in zip(inputs, torch.autograd.grad(y, inputs.values(), dy)):
        put("%s.%s" % (name, key), inputs[key])
        put("%s.d%s" % (name, key), gradient)


def conv(name, n, c, h, w, k, r, s, **options):
    x, f, b = new(n, c, h, w), new(k, c // options.get("groups", 1), r, s), new(k)
    back(name, F.conv2d(x, f, b, **options), {"x": x, "w": f, "b": b})


def norm():
    x, scale, bias = new(3, 4, 2, 5), new(4), new(4)
    mean, variance = torch.linspace(-1, 1, 4), torch.linspace(0.5, 2, 4)
    put("norm.mean", mean)
    put("norm.variance", variance)
    put("norm.eval", F.batch_norm(x, mean, variance, scale, bias, False, 0.1, 1e-3))
    y = F.batch_norm(x, mean, variance, scale, bias, True, 0.25, 1e-3)  # changes mean and variance
    back("norm", y, {"x": x, "scale": scale, "bias": bias})
    put("norm.running_mean", mean)
    put("norm.running_variance", variance)


def pools():
    for name, function in {
        "max": lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 1)),
        "average": lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 1)),
        "average_inside": lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 1), count_include_pad=False),
    }.items():
        x = new(2, 3, 6, 5)
        back("pool." + name, function(x), {"x": x})


def pointwise():
    for name, function in {
        "softmax": lambda x: F.softmax(x, 1),
        "log_softmax": lambda x: F.log_softmax(x, 1),
        "relu": F.relu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "elu": lambda x: F.elu(x, 0.75),
        "swish": F.silu,
        "clipped_relu": lambda x: x.clamp(0, 0.75),
    }.items():
        x = new(2, 5, 3, 2)
        back(name, function(x), {"x": x})


def products():
    a, b, bias = new(2, 8, 6), new(2, 6, 5), new(2, 8)
    sums = a @ b + bias[:, :, None]
    put("product.a", a)
    put("product.b", b)
    put("product.bias", bias)
    put("product.plain", a @ b)
    put("product.biased", sums)
    put("product.relu", sums.relu())
    put("product.gelu", 0.5 * sums * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (sums + 0.044715 * sums**3))))
    pre = new(8, 5)
    gelu = 0.5 * pre * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (pre + 0.044715 * pre**3)))
    put("product.pre", pre)
    put("product.dgelu", torch.autograd.grad(gelu, pre, (a @ b)[0])[0])
    put("product.drelu", torch.where(pre > 0, (a @ b)[0], torch.zeros(())))


def recurrent(name, kind, bidirectional, layers, lengths):
    batch, steps, inputs, hidden = len(lengths), max(lengths), 3, 4
    options = dict(num_layers=layers, bidirectional=bidirectional)
    model = kind(inputs, hidden, **options) if not isinstance(kind, str) else nn.RNN(inputs, hidden, nonlinearity=kind, **options)
    for parameter in model.parameters():
        parameter.data = new(*parameter.shape).data / 2
    pseudo = layers * (2 if bidirectional else 1)
    x, h, c = new(steps, batch, inputs), new(pseudo, batch, hidden), new(pseudo, batch, hidden)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
    out, last = model(packed, (h, c) if kind is nn.LSTM else h)
    y, _ = nn.utils.rnn.pad_packed_sequence(out, total_length=steps)
    outputs = {"y": y, "hy": last[0] if kind is nn.LSTM else last}
    wanted = {"x": x, "h": h}
    if kind is nn.LSTM:
        outputs["cy"], wanted["c"] = last[1], c
    gradients = {key: new(*value.shape) for key, value in outputs.items()}
    wanted.update({key.replace("_reverse", "r"): value for key, value in model.named_parameters()})
    for key, value in outputs.items():
        put("%s.%s" % (name, key), value)
        put("%s.d%s" % (name, key), gradients[key])
    for key, gradient in zip(wanted, torch.autograd.grad(list(outputs.values()), wanted.values(), list(gradients.values()))):
        put("%s.%s" % (name, key), wanted[key])
        put("%s.d%s" % (name, key), gradient)


conv("conv.plain", 2, 3, 6, 5, 4, 3, 3)
conv("conv.strided", 2, 3, 9, 8, 4, 3, 2, stride=(2, 3), padding=(1, 2))
conv("conv.dilated", 2, 2, 9, 9, 3, 3, 3, padding=2, dilation=(2, 3))
conv("conv.grouped", 2, 6, 5, 5, 4, 3, 3, padding=1, groups=2)
conv("conv.pointwise", 3, 5, 4, 4, 2, 1, 1, stride=2)
norm()
pools()
pointwise()
products()
recurrent("lstm", nn.LSTM, False, 2, [4, 2, 4])
recurrent("bilstm", nn.LSTM, True, 2, [5, 3, 1])
recurrent("gru", nn.GRU, False, 1, [3, 3])
recurrent("bigru", nn.GRU, True, 2, [4, 3])
recurrent("rnn_tanh", "tanh", False, 2, [3, 2])
recurrent("rnn_relu", "relu", True, 1, [4, 2])
with open(os.path.join(HERE, "golden.txt"), "w") as file:
    file.write("\n".join(lines) + "\n")
