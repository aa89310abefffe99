"""He et al.'s ResNets in plain PyTorch, with torchvision's module names: what torchvision.models.resnet18 … build,
for where there is no torchvision."""
from torch import nn

DEPTHS = {
    "resnet18": ((2, 2, 2, 2), False),
    "resnet34": ((3, 4, 6, 3), False),
    "resnet50": ((3, 4, 6, 3), True),
    "resnet101": ((3, 4, 23, 3), True),
    "resnet152": ((3, 8, 36, 3), True),
}
# Entries of torchvision's state_dicts, and the parameters that its documentation counts.
COUNTS = {
    "resnet18": (122, 11689512),
    "resnet34": (218, 21797672),
    "resnet50": (320, 25557032),
    "resnet101": (626, 44549160),
    "resnet152": (932, 60192808),
}


def conv(channels_in, channels_out, size, stride=1):
    return nn.Conv2d(channels_in, channels_out, size, stride=stride, padding=size // 2, bias=False)


class Block(nn.Module):
    """BasicBlock, or with `bottleneck` Bottleneck, whose stride is on the 3x3 convolution."""

    def __init__(self, channels_in, width, stride, bottleneck):
        super().__init__()
        sizes = [(width, 1, 1), (width, 3, stride), (4 * width, 1, 1)] if bottleneck else [(width, 3, stride), (width, 3, 1)]
        before, self.n = channels_in, len(sizes)
        for i, (channels, size, step) in enumerate(sizes, 1):
            setattr(self, f"conv{i}", conv(before, channels, size, step))
            setattr(self, f"bn{i}", nn.BatchNorm2d(channels))
            before = channels
        self.relu = nn.ReLU()
        self.downsample = None
        if stride != 1 or channels_in != before:
            self.downsample = nn.Sequential(conv(channels_in, before, 1, stride), nn.BatchNorm2d(before))

    def forward(self, x):
        y = x
        for i in range(1, self.n + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.n:
                y = self.relu(y)
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, name, num_classes=1000, width=64):
        super().__init__()
        blocks, bottleneck = DEPTHS[name]
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        channels = width
        for stage, n in enumerate(blocks):
            layer = nn.Sequential()
            for i in range(n):
                layer.append(Block(channels, width << stage, 2 if stage > 0 and i == 0 else 1, bottleneck))
                channels = (width << stage) * (4 if bottleneck else 1)
            setattr(self, f"layer{stage + 1}", layer)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, num_classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))
