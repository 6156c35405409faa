"""The networks in PyTorch, eager, with its default optimizers; measure.py describes them."""

import torch
from torch import nn

import measure


class LastOutput(nn.Module):
    """A dense layer on the last output of a recurrent layer."""

    def __init__(self, layers, recurrent, units, outputs):
        super().__init__()
        self.layers, self.recurrent, self.dense = layers, recurrent, nn.Linear(units, outputs)

    def forward(self, x):
        y, _ = self.recurrent(self.layers(x))
        return self.dense(y[:, -1])


def normalized_conv(inputs):
    return [nn.Conv2d(inputs, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64, eps=1e-3, momentum=0.01)]


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*normalized_conv(64), nn.ReLU(), *normalized_conv(64))

    def forward(self, x):
        return torch.relu(self.layers(x) + x)


def network(model):
    if model == "lstm":
        return LastOutput(nn.Embedding(measure.WORDS, 128), nn.LSTM(128, 128, batch_first=True), 128, 1)
    if model == "gru":
        return LastOutput(nn.Identity(), nn.GRU(64, 256, batch_first=True), 256, 10)
    if model == "residual":
        blocks = [Residual() for _ in range(3)]
        return nn.Sequential(
            *normalized_conv(3), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
        ).to(memory_format=torch.channels_last)
    if model == "mlp_small":
        return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    if model == "mlp_wide":
        return nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))
    if model == "mlp":
        return nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(512, 10),
        )  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
        nn.Flatten(), nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def optimizer(model, parameters):
    if model in ("mlp_small", "mlp_wide", "gru"):
        return torch.optim.SGD(parameters, lr=0.01)
    if model == "residual":
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    if model in ("mlp", "lstm"):
        return torch.optim.Adam(parameters, lr=0.001)
    return torch.optim.Adadelta(parameters, lr=1.0, rho=0.95)


def training_step(model, net):
    """A function that runs one step of `net`, which may be a DistributedDataParallel."""
    x, labels = measure.data(model)
    x = torch.from_numpy(x)
    if model == "cnn":
        x = x.reshape(-1, 1, 28, 28)  # PyTorch's order of axes; with one channel the bytes are the same
    if model == "residual":
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    if model == "lstm":
        labels, loss_of = torch.from_numpy(labels).float()[:, None], nn.BCEWithLogitsLoss()
    else:
        labels, loss_of = torch.from_numpy(labels).long(), nn.CrossEntropyLoss()
    update = optimizer(model, net.parameters())

    def step():
        update.zero_grad(set_to_none=True)
        loss_of(net(x), labels).backward()
        update.step()

    return step
