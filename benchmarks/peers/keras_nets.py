"""The fourteen networks of benchmarks/nets.py, for Keras 2 (on Syncline, and tf_keras on TensorFlow) and Keras 3 (on JAX).

NETS maps a name to a Net. Each network ends with a softmax over ten classes. `keras` is the module keras or tf_keras.
"""

from collections import namedtuple
from types import SimpleNamespace

import numpy

# build(keras): the model. feeds(random, batch): the inputs of a batch. batch: the rows of a training step.
Net = namedtuple("Net", "build feeds batch")

CLASSES = 10
VOCABULARY, LENGTH, WIDTH, HEADS = 8000, 128, 256, 4  # of the transformer


def classifier(keras, inputs, features):
    return keras.models.Model(inputs, keras.layers.Dense(CLASSES, activation="softmax")(features))


def application(name, size):
    def build(keras):
        network = getattr(keras.applications, name)
        return network(weights=None, input_shape=(size, size, 3), classes=CLASSES)

    return build


def functions(keras):
    """What Lambda layers call: Keras 2's backend, or the same functions of Keras 3's keras.ops."""
    if not keras.__version__.startswith("3."):
        return keras.backend
    ops = keras.ops

    def batch_dot(a, b, axes):
        return ops.matmul(a, ops.transpose(b, (0, 2, 1)) if axes == (2, 2) else b)

    names = ("reshape", "softmax", "mean", "var", "sqrt")
    same = {name: getattr(ops, name) for name in names}
    return SimpleNamespace(batch_dot=batch_dot, permute_dimensions=ops.transpose, **same)


def hard_sigmoid(keras):
    """Keras 2's: 0.2 x + 0.5 in [0, 1]; Keras 3's own has another slope."""
    if not keras.__version__.startswith("3."):
        return "hard_sigmoid"
    return lambda x: keras.ops.clip(0.2 * x + 0.5, 0, 1)


def attention(keras, x):
    """Attention of several heads through batch_dot, as code for Keras 2 writes it."""
    layers, K = keras.layers, functions(keras)
    each = WIDTH // HEADS

    def of_heads(value):
        value = K.permute_dimensions(K.reshape(value, (-1, LENGTH, HEADS, each)), (0, 2, 1, 3))
        return K.reshape(value, (-1, LENGTH, each))

    def attend(values):
        query, key, value = values
        weights = K.softmax(K.batch_dot(query, key, axes=(2, 2)) / each**0.5)
        return K.batch_dot(weights, value, axes=(2, 1))

    def joined(value):
        value = K.permute_dimensions(K.reshape(value, (-1, HEADS, LENGTH, each)), (0, 2, 1, 3))
        return K.reshape(value, (-1, LENGTH, WIDTH))

    parts = [layers.Lambda(of_heads, output_shape=(LENGTH, each))(layers.Dense(WIDTH)(x)) for _ in range(3)]
    heads = layers.Lambda(attend, output_shape=(LENGTH, each))(parts)
    return layers.Dense(WIDTH)(layers.Lambda(joined, output_shape=(LENGTH, WIDTH))(heads))


def transformer(keras):
    layers, K = keras.layers, functions(keras)

    def normalized(x):
        def normalize(value):
            return (value - K.mean(value, -1, True)) / K.sqrt(K.var(value, -1, True) + 1e-5)

        return layers.Lambda(normalize, output_shape=(LENGTH, WIDTH))(x)

    words = layers.Input((LENGTH,))
    x = layers.Embedding(VOCABULARY, WIDTH)(words)
    for _ in range(2):
        x = normalized(layers.add([x, attention(keras, x)]))
        hidden = layers.Dense(4 * WIDTH, activation="relu")(x)
        x = normalized(layers.add([x, layers.Dense(WIDTH)(hidden)]))
    return classifier(keras, words, layers.GlobalAveragePooling1D()(x))


def unet(keras):
    layers = keras.layers

    def conv(filters, x):
        return layers.Conv2D(filters, 3, padding="same", activation="relu")(x)

    image = x = layers.Input((64, 64, 3))
    skips = []
    for filters in (16, 32, 64):
        x = layers.BatchNormalization()(conv(filters, x))
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = conv(128, x)
    for filters, skip in zip((64, 32, 16), reversed(skips)):
        x = layers.Conv2DTranspose(filters, 3, strides=2, padding="same")(x)
        x = conv(filters, layers.concatenate([x, skip]))
    return classifier(keras, image, layers.GlobalAveragePooling2D()(x))


def tcn(keras):
    layers = keras.layers

    def conv(dilation, x):
        return layers.Conv1D(64, 3, dilation_rate=dilation, padding="causal", activation="relu")(x)

    series = x = layers.Input((256, 32))
    for dilation in (1, 2, 4, 8, 16):
        y = conv(dilation, layers.SpatialDropout1D(0.1)(conv(dilation, x)))
        x = layers.add([y, layers.Conv1D(64, 1)(x)])
    return classifier(keras, series, layers.GlobalMaxPooling1D()(x))


def seq2seq(keras):
    layers = keras.layers
    source, target = layers.Input((40, 80)), layers.Input((40, 80))
    _, hidden, cell = layers.LSTM(256, return_state=True)(source)
    y = layers.LSTM(256, return_sequences=True)(target, initial_state=[hidden, cell])
    y = layers.TimeDistributed(layers.Dense(80, activation="softmax"))(y)
    return classifier(keras, [source, target], layers.GlobalAveragePooling1D()(y))


def conv3d(keras):
    layers = keras.layers
    volume = layers.Input((16, 32, 32, 3))
    x = layers.MaxPooling3D()(layers.Conv3D(16, 3, activation="relu")(volume))
    x = layers.Conv3D(32, 3, activation="relu")(x)
    return classifier(keras, volume, layers.GlobalAveragePooling3D()(x))


def bilstm(keras):
    layers = keras.layers
    words = layers.Input((100,))
    x = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(layers.Embedding(20000, 64)(words))
    return classifier(keras, words, layers.Bidirectional(layers.LSTM(32))(x))


def convlstm(keras):
    layers = keras.layers
    video = layers.Input((8, 24, 24, 1))
    gates = {"padding": "same", "recurrent_activation": hard_sigmoid(keras)}
    x = layers.ConvLSTM2D(16, 3, return_sequences=True, **gates)(video)
    x = layers.ConvLSTM2D(16, 3, **gates)(layers.BatchNormalization()(x))
    return classifier(keras, video, layers.GlobalAveragePooling2D()(x))


def recommender(keras):
    layers = keras.layers
    ids = [layers.Input((1,)), layers.Input((1,))]
    x = layers.concatenate([layers.Flatten()(layers.Embedding(200000, 32)(one)) for one in ids])
    x = layers.Dense(64, activation="relu")(layers.Dense(128, activation="relu")(x))
    return classifier(keras, ids, x)


def numbers(*shape):
    return lambda random, batch: [random.random((batch, *shape), dtype=numpy.float32)]


def indices(below, *shape):
    return lambda random, batch: [random.integers(0, below, (batch, *shape)).astype("int32")]


def twice(feeds):
    return lambda random, batch: feeds(random, batch) + feeds(random, batch)


NETS = {
    "resnet50": Net(application("ResNet50", 128), numbers(128, 128, 3), 16),
    "mobilenetv2": Net(application("MobileNetV2", 128), numbers(128, 128, 3), 16),
    "vgg16": Net(application("VGG16", 64), numbers(64, 64, 3), 16),
    "inceptionv3": Net(application("InceptionV3", 139), numbers(139, 139, 3), 8),
    "densenet121": Net(application("DenseNet121", 96), numbers(96, 96, 3), 16),
    "xception": Net(application("Xception", 96), numbers(96, 96, 3), 8),
    "transformer": Net(transformer, indices(VOCABULARY, LENGTH), 16),
    "unet": Net(unet, numbers(64, 64, 3), 16),
    "tcn": Net(tcn, numbers(256, 32), 32),
    "seq2seq": Net(seq2seq, twice(numbers(40, 80)), 32),
    "conv3d": Net(conv3d, numbers(16, 32, 32, 3), 8),
    "bilstm": Net(bilstm, indices(20000, 100), 32),
    "convlstm": Net(convlstm, numbers(8, 24, 24, 1), 16),
    "recommender": Net(recommender, twice(indices(200000, 1)), 256),
}
