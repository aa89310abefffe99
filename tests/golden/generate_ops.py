#!/usr/bin/python3
"""Makes the goldens of check_ops.c with PyTorch (Debian: python3-torch, python3-numpy).

Usage: /usr/bin/python3 tests/golden/generate_ops.py

ops.safetensors   of each case, "CASE/NAME": what its ops take and give, by the names in engine/ops/ops.def: x, w, b, y; gx, gw,
                  gb are torch.autograd's, in float64 from float32 inputs, for a random gradient gy of y. "NAME.after": what
                  an op leaves in its input.

Shapes are odd and small. The attributes are those of check_ops.c's rows.
"""
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from generate import write_safetensors

tensors = {}


def normal(*shape):
    """Float64 numbers that are float32's too, none near 0, where a ReLU's gradient is by chance."""
    x = torch.randn(*shape).float().double()
    return torch.where(x.abs() < 0.01, torch.full_like(x, 0.5), x)


def store(case, **named):
    for name, value in named.items():
        if value is not None:
            value = value.detach()
            tensors[f"{case}/{name}"] = value if value.dtype == torch.int64 else value.float()


def differentiate(case, forward, inputs, after=None, constant=None):
    """Stores the inputs, y = forward(*inputs), and every gradient for a random gy."""
    leaves = {name: x.clone().requires_grad_(x.is_floating_point()) for name, x in inputs.items()}
    y = forward(*leaves.values())
    gy = normal(*y.shape)
    wanted = [name for name, x in leaves.items() if x.requires_grad]
    gradients = torch.autograd.grad(y, [leaves[name] for name in wanted], gy)
    store(case, **inputs, y=y, gy=gy, **{f"g{name}": g for name, g in zip(wanted, gradients)}, **(after or {}), **(constant or {}))


def conv(case, x, out, kernel, **args):
    shape = (out, x[1] // args.get("groups", 1), *kernel)
    differentiate(case, lambda x, w, b: functional.conv2d(x, w, b, **args), {"x": normal(*x), "w": normal(*shape), "b": normal(out)})


def convolutions():
    conv("conv2d", (2, 3, 7, 5), 4, (3, 3), padding=1)
    conv("conv2d-one", (1, 1, 5, 4), 1, (1, 1))
    conv("conv2d-strided", (2, 5, 9, 7), 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))
    conv("conv2d-grouped", (1, 6, 9, 9), 12, (3, 3), stride=2, padding=2, dilation=2, groups=3)
    conv("conv2d-depthwise", (2, 5, 6, 6), 5, (3, 3), padding=1, groups=5)
    conv("conv2d-same", (2, 3, 5, 6), 4, (2, 4), padding="same")
    for case, x in (("linear", (5, 7)), ("linear-one", (1, 1)), ("linear-steps", (2, 3, 5))):
        differentiate(case, functional.linear, {"x": normal(*x), "w": normal(4, x[-1]), "b": normal(4)})


def norms():
    for case, x in (("batch-norm", (3, 5, 3, 4)), ("batch-norm-rows", (5, 3))):
        mean, var = normal(x[1]), normal(x[1]).abs() + 0.5
        leaves = {"x": normal(*x), "w": normal(x[1]), "b": normal(x[1])}
        ye = functional.batch_norm(leaves["x"], mean, var, leaves["w"], leaves["b"], False, 0.3, 1e-3)
        store(case, running_mean=mean, running_var=var, tracked=torch.tensor(0), ye=ye)
        differentiate(case, lambda x, w, b: functional.batch_norm(x, mean, var, w, b, True, 0.3, 1e-3), leaves)
        store(case, **{"running_mean.after": mean, "running_var.after": var, "tracked.after": torch.tensor(1)})
    for case, x, dims in (("layer-norm", (3, 2, 7), 1), ("layer-norm-planes", (2, 3, 2, 5), 3)):
        shape = x[len(x) - dims :]
        differentiate(case, lambda x, w, b: functional.layer_norm(x, shape, w, b, 1e-3),
                      {"x": normal(*x), "w": normal(*shape), "b": normal(*shape)},
                      constant={"mean": torch.zeros(x[: len(x) - dims])})
        tensors[f"{case}/mean"] = tensors[f"{case}/x"].double().mean([-d for d in range(1, dims + 1)]).float()


def activations():
    for case, function in (
        ("relu", functional.relu), ("gelu", functional.gelu), ("gelu-tanh", lambda x: functional.gelu(x, approximate="tanh")),
        ("silu", functional.silu), ("sigmoid", torch.sigmoid), ("tanh", torch.tanh),
        ("softmax", lambda x: functional.softmax(x, 1)), ("softmax-last", lambda x: functional.softmax(x, 3)),
        ("log-softmax", lambda x: functional.log_softmax(x, 2)),
    ):
        differentiate(case, function, {"x": normal(2, 5, 3, 7)})
    differentiate("mul", lambda a, b, c: a * b * c, {"a": normal(3, 5), "b": normal(3, 5), "c": normal(3, 5)})
    differentiate("add", lambda a, b, c: a + b + c, {"a": normal(3, 5), "b": normal(3, 5), "c": normal(3, 5)})
    differentiate("cat", lambda a, b: torch.cat([a, b], 1), {"a": normal(2, 3, 5), "b": normal(2, 4, 5)})


def pools():
    for case, x, function in (
        ("max-pool", (2, 3, 7, 5), lambda x: functional.max_pool2d(x, (3, 2), (2, 1), (1, 1))),
        ("max-pool-dilated", (1, 5, 9, 9), lambda x: functional.max_pool2d(x, 3, 2, 1, 2)),
        ("max-pool-ceil", (2, 2, 6, 6), lambda x: functional.max_pool2d(x, 3, 2, ceil_mode=True)),
        ("avg-pool", (2, 3, 7, 5), lambda x: functional.avg_pool2d(x, (3, 2), (2, 1), (1, 1))),
        ("avg-pool-ceil", (1, 2, 6, 6), lambda x: functional.avg_pool2d(x, 3, 2, ceil_mode=True, count_include_pad=False)),
        ("avg-pool-divided", (2, 2, 5, 5), lambda x: functional.avg_pool2d(x, 2, divisor_override=3)),
        ("adaptive-avg-pool", (2, 3, 7, 5), lambda x: functional.adaptive_avg_pool2d(x, (3, 2))),
        ("adaptive-avg-pool-wider", (1, 3, 2, 3), lambda x: functional.adaptive_avg_pool2d(x, (5, 1))),
    ):
        differentiate(case, function, {"x": normal(*x)})


def attend(qkv, heads, causal):
    q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in qkv.chunk(3, -1))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2), scores.logsumexp(-1)


def sequences():
    for case, x, heads, causal in (("attention", (2, 5, 18), 2, False), ("attention-causal", (1, 7, 9), 1, True)):
        qkv = normal(*x)
        differentiate(case, lambda x: attend(x, heads, causal)[0], {"x": qkv}, constant={"lse": attend(qkv, heads, causal)[1]})
    for case, padding in (("embedding", None), ("embedding-padded", 2)):
        indices = torch.randint(0, 5, (3, 7))
        differentiate(case, lambda indices, w: functional.embedding(indices, w, padding), {"indices": indices, "w": normal(5, 3)})
    differentiate("positions", lambda x, w: x + w[:4], {"x": normal(3, 4, 5), "w": normal(6, 5)})
    x, lengths = normal(3, 4, 5), torch.tensor([4, 1, 3])
    differentiate("select", lambda x: x[:, -1], {"x": x})
    differentiate("select-lengths", lambda x, n: x[torch.arange(3), n - 1], {"x": x, "lengths": lengths})
    for name, make in (
        ("lstm", nn.LSTM), ("gru", nn.GRU), ("rnn", nn.RNN), ("rnn-relu", lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k)),
    ):
        for suffix, back, n in (("", False, None), ("-lengths", False, lengths), ("-back", True, None), ("-back-lengths", True, lengths)):
            recurrent(name + suffix, make, back, n)


def recurrent(case, make, back, lengths, samples=3, steps=4, features=2, size=3):
    module = make(features, size, batch_first=True, bidirectional=back).double()
    names = [name for name, _ in module.named_parameters() if name.endswith("_reverse") == back]
    with torch.no_grad():
        for name in names:
            getattr(module, name).copy_(normal(*getattr(module, name).shape) / 2)
    x, gy = normal(samples, steps, features).requires_grad_(), normal(samples, steps, size)
    given = x if lengths is None else pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y = module(given)[0]
    if lengths is not None:
        y = pad_packed_sequence(y, batch_first=True, total_length=steps)[0]
    y = y[..., -size:]
    weights = [getattr(module, name) for name in names]
    short = [f"{kind[0]}_{kind.split('_')[1]}" for kind in names]  # weight_ih_l0: w_ih
    gx, *gradients = torch.autograd.grad(y, [x, *weights], gy)
    store(case, x=x, lengths=lengths, y=y, gy=gy, gx=gx, **dict(zip(short, weights)),
          **{f"g{name}": g for name, g in zip(short, gradients)})


def loss(case, function, x, target):
    leaf = x.clone().requires_grad_()
    value = function(leaf, target)
    (gradient,) = torch.autograd.grad(value, [leaf])
    store(case, x=x, target=target, loss=value.reshape(1), gx=gradient / 7)


def losses():
    weight = torch.tensor([0.5, 2, 1.25, 1, 0.75]).double()
    for name, function in (("cross-entropy", functional.cross_entropy), ("nll", functional.nll_loss)):
        for suffix, shape, args in (
            ("", (6, 5), {}), ("-steps", (2, 7, 5), {"ignore_index": 2}), ("-weighted", (6, 5), {"weight": weight, "ignore_index": 1}),
        ):
            loss(name + suffix, lambda x, y: function(x.flatten(0, -2), y.flatten(), reduction="sum", **args),
                 normal(*shape), torch.randint(0, 5, shape[:-1]))
    for suffix, args in (("-smooth", {}), ("-smooth-weighted", {"weight": weight, "ignore_index": 3})):
        loss("cross-entropy" + suffix, lambda x, y: functional.cross_entropy(x, y, reduction="sum", label_smoothing=0.2, **args),
             normal(9, 5), torch.randint(0, 5, (9,)))
    for name, function in (("mse", functional.mse_loss), ("l1", functional.l1_loss), ("bce", functional.binary_cross_entropy_with_logits)):
        loss(name, lambda x, y: function(x, y, reduction="sum"), normal(3, 5), torch.rand(3, 5).double().float().double())
    loss("bce-weighted", lambda x, y: functional.binary_cross_entropy_with_logits(x, y, reduction="sum", pos_weight=weight),
         normal(3, 5), torch.rand(3, 5).float().double())


def main():
    torch.set_num_threads(1)
    for part in (convolutions, norms, activations, pools, sequences, losses):
        torch.manual_seed(4)  # a new case changes only those behind it in its part
        part()
    write_safetensors("ops.safetensors", tensors)


if __name__ == "__main__":
    main()
