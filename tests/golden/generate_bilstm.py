#!/usr/bin/python3
"""Makes the golden of check_bilstm.c with PyTorch (Debian: python3-torch).

Usage: /usr/bin/python3 tests/golden/generate_bilstm.py

The case of PyTorch's own test_data_parallel_rnn: a bidirectional LSTM 300 -> 1024 on ones(4, 4, 300), zeros wanted
under MSELoss, SGD at a rate of 10. Weights and biases begin as constants, so that all units of a gate stay alike and the
golden is four numbers a tensor.

bilstm.json     the loss of each step; of each parameter after the last one the element of each gate
"""
import json
import os

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 1
HIDDEN = 1024


def main():
    torch.set_num_threads(1)
    model = nn.LSTM(300, HIDDEN, 1, batch_first=True, bidirectional=True)
    for name, parameter in model.named_parameters():
        nn.init.constant_(parameter, 0.05 if "bias" in name else 0.0005)
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=10), []
    for _ in range(STEPS):
        output = model(torch.ones(4, 4, 300))[0]
        loss = nn.functional.mse_loss(output, torch.zeros_like(output))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float("%.9g" % loss.item()))
    gates = {}
    for name, parameter in model.named_parameters():
        blocks = parameter.detach().reshape(4, -1)
        assert torch.allclose(blocks, blocks[:, :1].expand_as(blocks), rtol=1e-6)
        gates["rnn." + name] = [float("%.9g" % block[0]) for block in blocks]
    with open(os.path.join(HERE, "bilstm.json"), "w") as file:
        json.dump({"losses": losses, "gates": gates}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
