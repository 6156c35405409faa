"""The fourteen networks of keras_nets.py in PyTorch: NETS maps a name to a function that makes the module.

torchvision's networks where it has them, with the strides and the head of Keras's and without dropout. They have no biases in ResNet50's
convolutions, more scales in InceptionV3 and two biases in an LSTM. A module takes inputs from from_keras and returns logits of ten
classes.
"""

import keras_nets
import torch
import torchvision
from torch import nn
from torch.nn import functional
from torchvision.models import vgg

LENGTH, WIDTH, HEADS = keras_nets.LENGTH, keras_nets.WIDTH, keras_nets.HEADS


def from_keras(inputs):
    """Arrays of keras_nets.py as tensors: the channels of images and volumes behind the batch, but last in memory."""
    tensors = [torch.from_numpy(array) for array in inputs]
    return [x.movedim(-1, 1) if x.ndim > 3 else x for x in tensors]


def resnet50():
    net = torchvision.models.resnet50(num_classes=keras_nets.CLASSES)
    for layer in (net.layer2, net.layer3, net.layer4):  # Keras strides in the first convolution of a block
        layer[0].conv1.stride, layer[0].conv2.stride = layer[0].conv2.stride, layer[0].conv1.stride
    return net


def vgg16():
    head = [nn.Linear(512 * 2 * 2, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, keras_nets.CLASSES)]
    return nn.Sequential(vgg.make_layers(vgg.cfgs["D"]), nn.Flatten(), *head)


def inceptionv3():
    return torchvision.models.inception_v3(num_classes=keras_nets.CLASSES, aux_logits=False, init_weights=False, dropout=0.0)


def normalized(conv, channels):
    return nn.Sequential(conv, nn.BatchNorm2d(channels))


def separable(before, after):
    depthwise = nn.Conv2d(before, before, 3, padding=1, groups=before, bias=False)
    return nn.Sequential(depthwise, normalized(nn.Conv2d(before, after, 1, bias=False), after))


class XceptionBlock(nn.Module):
    """Separable convolutions, each behind a rectifier; then pooling beside a strided convolution, or the sum with the input."""

    def __init__(self, channels, pool, rectify_first=True):
        super().__init__()
        layers = []
        for before, after in zip(channels, channels[1:]):
            layers += [nn.ReLU()] if layers or rectify_first else []
            layers.append(separable(before, after))
        self.layers = nn.Sequential(*layers, *([nn.MaxPool2d(3, 2, 1)] if pool else []))
        shortcut = nn.Conv2d(channels[0], channels[-1], 1, stride=2, bias=False)
        self.shortcut = normalized(shortcut, channels[-1]) if pool else nn.Identity()

    def forward(self, x):
        return self.layers(x) + self.shortcut(x)


def xception():
    return nn.Sequential(
        normalized(nn.Conv2d(3, 32, 3, stride=2, bias=False), 32), nn.ReLU(),
        normalized(nn.Conv2d(32, 64, 3, bias=False), 64), nn.ReLU(),
        XceptionBlock([64, 128, 128], pool=True, rectify_first=False),
        XceptionBlock([128, 256, 256], pool=True),
        XceptionBlock([256, 728, 728], pool=True),
        *[XceptionBlock([728] * 4, pool=False) for _ in range(8)],
        XceptionBlock([728, 728, 1024], pool=True),
        separable(1024, 1536), nn.ReLU(), separable(1536, 2048), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, keras_nets.CLASSES),
    )  # fmt: skip


class TransformerLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.joined = nn.Linear(WIDTH, WIDTH)
        self.hidden, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        heads = [part(x).reshape(-1, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.parts]
        attended = functional.scaled_dot_product_attention(*heads).transpose(1, 2).reshape(-1, LENGTH, WIDTH)
        x = functional.layer_norm(x + self.joined(attended), (WIDTH,))
        return functional.layer_norm(x + self.out(functional.relu(self.hidden(x))), (WIDTH,))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(keras_nets.VOCABULARY, WIDTH)
        self.layers = nn.Sequential(TransformerLayer(), TransformerLayer())
        self.head = nn.Linear(WIDTH, keras_nets.CLASSES)

    def forward(self, words):
        return self.head(self.layers(self.words(words)).mean(1))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()

        def conv(before, after):
            return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.ReLU())

        self.down = nn.ModuleList(
            nn.Sequential(conv(before, after), nn.BatchNorm2d(after)) for before, after in ((3, 16), (16, 32), (32, 64))
        )
        self.bottom = conv(64, 128)
        sizes = ((128, 64), (64, 32), (32, 16))
        self.widen = nn.ModuleList(nn.ConvTranspose2d(b, a, 3, stride=2, padding=1, output_padding=1) for b, a in sizes)
        self.up = nn.ModuleList(conv(2 * a, a) for _, a in sizes)
        self.head = nn.Linear(16, keras_nets.CLASSES)

    def forward(self, x):
        skips = []
        for down in self.down:
            skips.append(down(x))
            x = functional.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for widen, up, skip in zip(self.widen, self.up, reversed(skips)):
            x = up(torch.cat([widen(x), skip], 1))
        return self.head(x.mean((2, 3)))


class TcnBlock(nn.Module):
    def __init__(self, before, dilation):
        super().__init__()
        self.first = nn.Conv2d(before, 64, (1, 3), dilation=(1, dilation))
        self.second = nn.Conv2d(64, 64, (1, 3), dilation=(1, dilation))
        self.shortcut = nn.Conv2d(before, 64, 1)
        self.dropout = nn.Dropout2d(0.1)
        self.padding = (2 * dilation, 0)  # causal

    def forward(self, x):
        y = self.dropout(functional.relu(self.first(functional.pad(x, self.padding))))
        return functional.relu(self.second(functional.pad(y, self.padding))) + self.shortcut(x)


class Tcn(nn.Module):
    """Of series as images of one row: PyTorch has channels-last convolutions of images only, and they are faster."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(TcnBlock(32, 1), *[TcnBlock(64, dilation) for dilation in (2, 4, 8, 16)])
        self.head = nn.Linear(64, keras_nets.CLASSES)

    def forward(self, x):
        return self.head(self.blocks(x.unsqueeze(1).permute(0, 3, 1, 2)).amax((2, 3)))


class Seq2seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = (nn.LSTM(80, 256, batch_first=True) for _ in range(2))
        self.letters, self.head = nn.Linear(256, 80), nn.Linear(80, keras_nets.CLASSES)

    def forward(self, source, target):
        _, state = self.encoder(source)
        y, _ = self.decoder(target, state)
        return self.head(self.letters(y).softmax(-1).mean(1))


class GlobalMean(nn.Module):
    """The mean over all axes behind the channels."""

    def forward(self, x):
        return x.flatten(2).mean(2)


def conv3d():
    return nn.Sequential(
        nn.Conv3d(3, 16, 3), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(16, 32, 3), nn.ReLU(),
        GlobalMean(), nn.Linear(32, keras_nets.CLASSES),
    )  # fmt: skip


class BiLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20000, 64)
        self.first = nn.LSTM(64, 64, batch_first=True, bidirectional=True)
        self.second = nn.LSTM(128, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, keras_nets.CLASSES)

    def forward(self, words):
        y, _ = self.first(self.words(words))
        _, (hidden, _) = self.second(y)
        return self.head(torch.cat([hidden[0], hidden[1]], 1))


class ConvLstmLayer(nn.Module):
    """Of a list of images, one per time step; the input's convolution of all steps is one."""

    def __init__(self, before, filters):
        super().__init__()
        self.of_input = nn.Conv2d(before, 4 * filters, 3, padding=1)
        self.of_state = nn.Conv2d(filters, 4 * filters, 3, padding=1, bias=False)

    def forward(self, images):
        states, cell = [], None
        for inputs in self.of_input(torch.cat(images)).chunk(len(images)):
            i, f, c, o = (inputs + self.of_state(states[-1]) if states else inputs).chunk(4, 1)
            i, f, o = (functional.hardtanh(0.2 * gate + 0.5, 0, 1) for gate in (i, f, o))
            cell = i * torch.tanh(c) if cell is None else f * cell + i * torch.tanh(c)
            states.append(o * torch.tanh(cell))
        return states


class ConvLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = ConvLstmLayer(1, 16), ConvLstmLayer(16, 16)
        self.norm, self.head = nn.BatchNorm2d(16), nn.Linear(16, keras_nets.CLASSES)

    def forward(self, video):
        states = self.first(list(video.unbind(2)))
        states = self.norm(torch.cat(states)).chunk(len(states))
        return self.head(self.second(states)[-1].mean((2, 3)))


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(200000, 32) for _ in range(2))
        self.layers = nn.Sequential(
            nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, keras_nets.CLASSES)
        )

    def forward(self, *ids):
        return self.layers(torch.cat([table(one).flatten(1) for table, one in zip(self.tables, ids)], 1))


class Probabilities(nn.Module):
    """The softmax of a network's logits."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, *inputs):
        return self.net(*inputs).softmax(-1)


NETS = {
    "resnet50": resnet50,
    "mobilenetv2": lambda: torchvision.models.mobilenet_v2(num_classes=keras_nets.CLASSES, dropout=0.0),
    "vgg16": vgg16,
    "inceptionv3": inceptionv3,
    "densenet121": lambda: torchvision.models.densenet121(num_classes=keras_nets.CLASSES),
    "xception": xception,
    "transformer": Transformer,
    "unet": Unet,
    "tcn": Tcn,
    "seq2seq": Seq2seq,
    "conv3d": conv3d,
    "bilstm": BiLstm,
    "convlstm": ConvLstm,
    "recommender": Recommender,
}


def make(name):
    """The module, with its convolutions' weights channels-last in memory."""
    net = NETS[name]()
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            module.to(memory_format=torch.channels_last)
        elif isinstance(module, nn.Conv3d):
            module.to(memory_format=torch.channels_last_3d)
    return net
