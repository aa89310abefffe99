"""Random small jobs: layers, loss, optimizer, devices and all else that a document may ask for. `job(random.Random(seed))`."""

DEVICES = 4  # of the machine that they are for


def layer(type, **arguments):
    return {"type": type, **arguments}


def recurrent(r, shape):
    both = r.random() < 0.4
    made = layer(r.choice(["LSTM", "GRU", "RNN"]), hidden_size=4, bidirectional=both, num_layers=r.choice([1, 1, 2]))
    if r.random() < 0.3:
        made["checkpoint_steps"] = 2
    return made, [shape[0], 8 if both else 4]


def same(r, shape):
    return layer(r.choice(["ReLU", "GELU", "SiLU", "Sigmoid", "Tanh", "LayerNorm"])), shape


def dropout(r, shape):
    return layer("Dropout", p=0.3), shape


def linear(r, shape):
    n = r.choice([3, 4, 8])
    return layer("Linear", out_features=n, bias=r.random() < 0.8), [*shape[:-1], n]


def attention(r, shape):
    heads = r.choice([n for n in (1, 2, 4) if shape[1] % n == 0])
    return layer("SelfAttention", num_heads=heads, causal=r.random() < 0.5), shape


def positions(r, shape):
    return layer("PositionalEmbedding", num_embeddings=shape[0] + r.choice([0, 2])), shape


def convolution(r, shape):
    groups = r.choice([n for n in (1, 2) if shape[0] % n == 0])
    return layer("Conv2d", out_channels=4, kernel_size=3, padding=1, groups=groups), [4, *shape[1:]]


def pool(r, shape):
    return layer(r.choice(["MaxPool2d", "AvgPool2d"]), kernel_size=3, stride=1, padding=1), shape


def norm(r, shape):
    return layer("BatchNorm2d" if len(shape) == 3 else "BatchNorm1d"), shape


# What may follow a value of so many dimensions.
NEXT = {1: [linear, linear, same, same, dropout], 2: [linear, recurrent, recurrent, attention, positions, same, dropout],
        3: [convolution, convolution, pool, same, dropout]}
INPUTS = {"flat": {"shape": [5]}, "image": {"shape": [2, 5, 5]}, "sequence": {"shape": [5, 4]},
          "tokens": {"shape": [5], "dtype": "int64"}}


class Chain:
    """Layers one after another, with here and there a residual."""

    def __init__(self, r, shape):
        self.r, self.shape, self.layers, self.shapes = r, shape, [], []

    def add(self, made, shape):
        self.layers.append({**made, "name": f"block{len(self.layers) // 3}.{made['type'].lower()}{len(self.layers)}"})
        self.shapes.append(shape)
        self.shape = shape

    def residual(self):
        earlier = [i for i, shape in enumerate(self.shapes[:-1]) if shape == self.shape]
        if earlier:
            names = [self.layers[self.r.choice(earlier)]["name"], self.layers[-1]["name"]]
            self.add(layer(self.r.choice(["Add", "Mul"]), inputs=names), self.shape)


def model(r):
    kind = r.choice(sorted(INPUTS))
    entry = dict(INPUTS[kind])
    inputs = {"input": entry}
    chain = Chain(r, entry["shape"])
    if kind in ("sequence", "tokens") and r.random() < 0.5:
        entry["lengths"] = True
    if kind == "flat" and r.random() < 0.3:
        inputs = {"inputs": {"x": entry, "all": {"shape": entry["shape"], "scatter": False}}}
        chain.add(layer(r.choice(["Add", "Mul"]), inputs=["x", "all"]), entry["shape"])
    if kind == "tokens":
        chain.add(layer("Embedding", num_embeddings=7, embedding_dim=4), [5, 4])
    choices = NEXT[len(chain.shape)] + ([norm] if kind in ("flat", "image") and r.random() < 0.3 else [])
    for _ in range(r.randint(1, 5)):
        chain.add(*r.choice(choices)(r, chain.shape))
        if r.random() < 0.3:
            chain.residual()
    if len(chain.shape) == 3:
        chain.add(layer("Flatten"), [chain.shape[0] * 25])
    if len(chain.shape) == 2 and r.random() < 0.6:
        chain.add(layer("SelectLast"), [chain.shape[1]])
    chain.add(layer("Linear", out_features=3), [*chain.shape[:-1], 3])
    return {**inputs, "layers": chain.layers}, chain


LOSSES = [{"type": "CrossEntropyLoss"}, {"type": "CrossEntropyLoss", "label_smoothing": 0.1, "weight": [1, 2, 0.5]},
          {"type": "CrossEntropyLoss", "reduction": "sum"}, {"type": "NLLLoss", "ignore_index": 2}, {"type": "MSELoss"},
          {"type": "L1Loss"}, {"type": "BCEWithLogitsLoss", "pos_weight": 2}]
OPTIMIZERS = [{"type": "SGD"}, {"type": "SGD", "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
              {"type": "Adam", "eps": 0.001}, {"type": "AdamW", "eps": 0.001, "weight_decay": 0.1},
              {"type": "RMSprop", "eps": 0.01}]
SCHEDULES = [{"type": "constant"}, {"type": "StepLR", "step_size": 2},
             {"type": "CosineAnnealingLR", "T_max": 4, "warmup_steps": 2}]
MICROBATCHES = [lambda r: {}, lambda r: {"split_size": r.randint(1, 5)}, lambda r: {"microbatches": r.randint(1, 5)},
                lambda r: {"microbatches": "auto"}]


def stages(r, names):
    made = {"mode": "stages", "schedule": r.choice(["none", "gpipe", "1f1b", "zero_bubble", "zero_bubble"])}
    count = r.randint(1, min(DEVICES, len(names)))
    begins = [names[i] for i in sorted(r.sample(range(1, len(names)), count - 1))]
    how = r.choice(["automatic", "split", "shared", "replicas"])
    if how == "shared":
        devices = [f"cpu:{i}" for i in range(DEVICES)]
        r.shuffle(devices)
        cuts = [0, *sorted(r.sample(range(1, DEVICES), count - 1)), DEVICES]
        made["stages"] = [{"begin": b, "devices": devices[i:j]} for b, i, j in zip([names[0], *begins], cuts, cuts[1:])]
    elif how == "replicas":
        made["replicas"] = r.choice([1, 2, 4])
        made["devices"] = made["replicas"] * r.randint(1, DEVICES // made["replicas"])
    else:
        made["devices"] = count
        if how == "split" and begins:
            made["split"] = begins
    if made["schedule"] != "none" or r.random() < 0.05:
        made.update(r.choice(MICROBATCHES)(r))
    return made


def replicate(r, names):
    made = {"mode": "replicate", "devices": r.randint(1, DEVICES)}
    if r.random() < 0.4:
        made["shard_optimizer"] = True
    if r.random() < 0.4:
        made["shards"] = r.randint(made["devices"], 6)
    elif r.random() < 0.5:
        made["batch_norm"] = "synchronized"
    return made


def data(r, labelled):
    parts = {"train": {"format": "random", "samples": r.choice([7, 9, 13]), "seed": 1}}
    if r.random() < 0.4:
        parts["validation"] = {"format": "random", "samples": r.choice([1, 5, 8]), "seed": 2}
    if labelled:
        parts = {name: {**part, "classes": 3} for name, part in parts.items()}
    return {**parts, "shuffle": r.random() < 0.7, "workers": r.choice([1, 2])}


def job(r):
    described, chain = model(r)
    names = [made["name"] for made in described["layers"]]
    loss = dict(r.choice(LOSSES))
    if loss["type"] == "NLLLoss":
        chain.add(layer("LogSoftmax", dim=-1), chain.shape)
    if r.random() < 0.2:
        described["freeze"] = r.sample(names[:-1], 1) if len(names) > 1 else []
    if r.random() < 0.1:
        described["layers"][names.index(next(n for n in names if "linear" in n))]["spectral_norm"] = True
    train = {"max_steps": r.randint(2, 5), "batch_size": r.choice([1, 2, 3, 5, 8]), "seed": r.randint(0, 9), "log_every": 1}
    if r.random() < 0.3:
        train.update(accumulate=r.choice([2, 3]), accumulate_reduction=r.choice(["mean", "sum"]))
    if r.random() < 0.3:
        train["checkpoint_activations"] = r.choice([True, sorted(r.sample(names, 1))])
    if r.random() < 0.3:
        train["clip_grad_norm"] = 0.1
    if r.random() < 0.15:
        train["precision"] = "bf16"
    if r.random() < 0.2:
        train["record"] = [r.choice(names) + r.choice([".output", ".output.grad"])]
    if r.random() < 0.3:
        train["validate_every"] = r.choice(["1 step", "2 steps"])
    labelled = loss["type"] in ("CrossEntropyLoss", "NLLLoss") or (loss["type"] == "MSELoss" and r.random() < 0.5)
    return {"version": 1, "model": described, "data": data(r, labelled), "loss": loss,
            "optimizer": {**r.choice(OPTIMIZERS), "lr": 0.01, "no_decay": r.choice([[], ["*.bias"]])},
            "schedule": r.choice(SCHEDULES), "train": train,
            "parallel": r.choice([stages, stages, replicate])(r, names),
            "checkpoint": {"every": r.choice(["1 step", "2 steps"])}}
