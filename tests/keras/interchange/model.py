"""The model whose files Keras on TensorFlow and Keras on Syncline exchange. It has a layer of every kind with its own layout of
weights."""

import numpy as np


def data():
    generator = np.random.default_rng(5)
    return generator.random((16, 8, 8, 2), "float32"), np.eye(3, dtype="float32")[generator.integers(0, 3, 16)]


def build():
    from keras.layers import (
        BatchNormalization, Bidirectional, Conv2D, Conv2DTranspose, Dense, DepthwiseConv2D, GRU, Input,
        LocallyConnected2D, LSTM, MaxPooling2D, PReLU, Reshape, SeparableConv2D,
    )  # fmt: skip
    from keras.models import Model

    image = Input((8, 8, 2))
    x = Conv2D(4, 3, activation="relu", padding="same")(image)
    x = BatchNormalization()(x)
    x = DepthwiseConv2D(3, depth_multiplier=2, padding="same")(x)
    x = PReLU(shared_axes=[1, 2])(x)
    x = MaxPooling2D()(x)
    x = Conv2DTranspose(3, 2, strides=2)(x)
    x = LocallyConnected2D(2, 3, strides=2)(x)
    x = SeparableConv2D(6, 2, dilation_rate=2)(x)
    x = Reshape((1, 6))(x)
    x = Bidirectional(LSTM(5, return_sequences=True, dropout=0.1))(x)
    x = GRU(4, reset_after=True)(x)
    model = Model(image, Dense(3, activation="softmax")(x))
    model.compile("adam", "categorical_crossentropy", ["accuracy"])
    return model


def train_and_save(path):
    """Trains for an epoch, saves the model with its optimizer and returns its predictions."""
    x, y = data()
    model = build()
    model.fit(x, y, epochs=1, verbose=0)
    model.save(path)
    return model.predict(x)


def load(path):
    """Returns (predictions, loss of one more training step) of the model in a file."""
    from keras.models import load_model

    x, y = data()
    model = load_model(path)
    predictions = model.predict(x)
    assert int(model.optimizer.get_weights()[0]) == 1  # one step: 16 samples are less than a batch
    return predictions, float(model.train_on_batch(x, y)[0])
