"""Trains a variational autoencoder on Fashion-MNIST and prints the test loss, in nats an image.

    KERAS_BACKEND=syncline python variational_autoencoder.py
    KERAS_BACKEND=syncline mpirun -n 2 python variational_autoencoder.py

The loss is the negative of the evidence lower bound: crossentropy of the pixels plus the divergence of the code from
the standard normal distribution. The defaults reach a test loss of 244.
"""

import numpy as np
from keras import backend as K
from keras.layers import Dense, Input, Layer
from keras.models import Model

import command_line
import fashion_mnist_data

PIXELS = fashion_mnist_data.SIDE**2
CODE = 16


class Sample(Layer):
    """Draws from normal distributions, given their means and the logarithms of their variances. Adds their mean
    divergence from the standard normal distribution to the loss."""

    def call(self, inputs):
        mean, log_variance = inputs
        divergence = -0.5 * K.sum(1 + log_variance - K.square(mean) - K.exp(log_variance), axis=-1)
        self.add_loss(K.mean(divergence), inputs)
        return mean + K.exp(0.5 * log_variance) * K.random_normal(K.shape(mean))

    def compute_output_shape(self, input_shape):
        return input_shape[0]


def pixel_crossentropy(image, decoded):
    return K.sum(K.binary_crossentropy(image, decoded), axis=-1)


def build():
    image = Input((PIXELS,))
    hidden = Dense(256, activation="relu")(image)
    code = Sample()([Dense(CODE)(hidden), Dense(CODE)(hidden)])
    decoded = Dense(PIXELS, activation="sigmoid")(Dense(256, activation="relu")(code))
    model = Model(image, decoded)
    model.compile("adam", pixel_crossentropy)
    return model


def main():
    options = command_line.options(__doc__, epochs=20, batch_size=128, samples=60000)
    options.add_argument("--data", default=fashion_mnist_data.DIRECTORY, help="folder of the IDX files (%(default)s)")
    args = command_line.parse(options)
    (x, _), (x_test, _) = fashion_mnist_data.load(args.data, args.samples)
    x, x_test = (np.reshape(images, (len(images), PIXELS)) for images in (x, x_test))
    model, epoch = command_line.start(args, build, {"Sample": Sample, "pixel_crossentropy": pixel_crossentropy})
    model.fit(
        x, x, args.batch_size, args.epochs, args.verbose, command_line.callbacks(args),
        validation_data=(x_test, x_test), initial_epoch=epoch,
    )  # fmt: skip
    print(f"test loss {model.evaluate(x_test, x_test, args.batch_size, verbose=0):.4f}")


if __name__ == "__main__":
    command_line.run(main)
