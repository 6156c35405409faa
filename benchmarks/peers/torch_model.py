"""The three networks in PyTorch, eager, with its default optimizers; measure.py describes them."""

import torch
from torch import nn

import measure


def network(model):
    if model == "mlp_small":
        return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
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
    if model == "mlp_small":
        return torch.optim.SGD(parameters, lr=0.01)
    if model == "mlp":
        return torch.optim.Adam(parameters, lr=0.001)
    return torch.optim.Adadelta(parameters, lr=1.0, rho=0.95)


def training_step(model, net):
    """A function that runs one step of `net`, plain or wrapped."""
    x, labels = measure.data(model)
    x = torch.from_numpy(x)
    if model == "cnn":
        x = x.reshape(-1, 1, 28, 28)  # PyTorch's own order of axes; one channel makes it the same bytes
    labels = torch.from_numpy(labels).long()
    update = optimizer(model, net.parameters())
    loss_of = nn.CrossEntropyLoss()

    def step():
        update.zero_grad(set_to_none=True)
        loss_of(net(x), labels).backward()
        update.step()

    return step
