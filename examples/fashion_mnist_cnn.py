"""Trains a convolutional network on Fashion-MNIST and prints its test accuracy.

    KERAS_BACKEND=syncline python fashion_mnist_cnn.py
    KERAS_BACKEND=syncline mpirun -n 2 python fashion_mnist_cnn.py

The defaults reach a test accuracy of 0.90.
"""

from keras.layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D
from keras.models import Sequential
from keras.utils import to_categorical

import command_line
import fashion_mnist_data


def build():
    model = Sequential(
        [
            Conv2D(32, 3, activation="relu", input_shape=(28, 28, 1)),
            Conv2D(64, 3, activation="relu"),
            MaxPooling2D(2),
            Dropout(0.25),
            Flatten(),
            Dense(128, activation="relu"),
            Dropout(0.5),
            Dense(fashion_mnist_data.CLASSES, activation="softmax"),
        ]
    )
    model.compile("adadelta", "categorical_crossentropy", ["accuracy"])
    return model


def main():
    options = command_line.options(__doc__, epochs=3, batch_size=128, samples=60000)
    options.add_argument("--data", default=fashion_mnist_data.DIRECTORY, help="folder of the IDX files (%(default)s)")
    args = command_line.parse(options)
    (x, labels), (x_test, labels_test) = fashion_mnist_data.load(args.data, args.samples)
    y, y_test = (to_categorical(each, fashion_mnist_data.CLASSES) for each in (labels, labels_test))
    model, epoch = command_line.start(args, build)
    model.fit(
        x, y, args.batch_size, args.epochs, args.verbose, command_line.callbacks(args),
        validation_data=(x_test, y_test), initial_epoch=epoch,
    )  # fmt: skip
    loss, accuracy = model.evaluate(x_test, y_test, args.batch_size, verbose=0)
    print(f"test loss {loss:.4f}  test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    command_line.run(main)
