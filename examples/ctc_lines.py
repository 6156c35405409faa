"""Trains a network to read lines of drawn digits with the CTC loss and prints the character error rate.

    KERAS_BACKEND=syncline python ctc_lines.py
    KERAS_BACKEND=syncline mpirun -n 2 python ctc_lines.py

Each line is an image of 3 to 7 digits at uneven distances and heights, with noise; the labels contain no positions. The
network has two convolutions and a bidirectional GRU over the columns. The defaults reach a character error rate of 0.03.
"""

import numpy as np
from keras import backend as K
from keras.layers import GRU, Bidirectional, Conv2D, Dense, Input, Lambda, MaxPooling2D, Permute, Reshape
from keras.models import Model
from keras.optimizers import Adam

import command_line

HEIGHT, WIDTH, LONGEST = 18, 96, 7
COLUMNS = WIDTH // 2  # time steps of the recurrent layer
DIGITS = [
    "01110 10001 10011 10101 11001 10001 01110", "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111", "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010", "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110", "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110", "01110 10001 10001 01111 00001 00010 01100",
]  # fmt: skip
GLYPHS = [np.kron([[int(dot) for dot in row] for row in digit.split()], np.ones((2, 2))) for digit in DIGITS]


def draw_lines(random, count):
    """(images, labels padded with 0, number of digits of each line)"""
    images = random.uniform(0, 0.7, (count, HEIGHT, WIDTH, 1)).astype("float32")
    labels, lengths = np.zeros((count, LONGEST), "int32"), random.randint(3, LONGEST + 1, (count, 1))
    for image, label, (length,) in zip(images, labels, lengths):
        label[:length] = random.randint(0, 10, length)
        left = random.randint(0, 6)
        for digit in label[:length]:
            glyph, top = GLYPHS[digit], random.randint(0, HEIGHT - 13)
            image[top : top + 14, left : left + 10, 0] += random.uniform(0.2, 0.5) * glyph
            left += 10 + random.randint(1, 4)
    return images, labels, lengths


def ctc_cost(arguments):
    return K.ctc_batch_cost(*arguments)


def given_cost(unused, cost):
    """The loss function of a model whose output is the cost."""
    return cost


def build():
    image = Input((HEIGHT, WIDTH, 1), name="image")
    x = Conv2D(16, 3, padding="same", activation="relu")(image)
    x = MaxPooling2D((2, 2))(x)
    x = Conv2D(32, 3, padding="same", activation="relu")(x)
    x = MaxPooling2D((3, 1))(x)
    x = Reshape((COLUMNS, 3 * 32))(Permute((2, 1, 3))(x))  # columns become time steps
    x = Dense(48, activation="relu")(x)
    x = Bidirectional(GRU(48, return_sequences=True))(x)
    characters = Dense(len(DIGITS) + 1, activation="softmax", name="characters")(x)  # the last one is the blank
    label, columns, length = Input((LONGEST,)), Input((1,), dtype="int32"), Input((1,), dtype="int32")
    cost = Lambda(ctc_cost, output_shape=(1,), name="cost")([label, characters, columns, length])
    model = Model([image, label, columns, length], cost)
    model.compile(Adam(0.003, clipnorm=5.0), given_cost)
    return model


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def error_rate(probabilities, labels, lengths):
    """Edits that turn the decoded digits into the drawn ones, divided by the number of drawn digits."""
    columns = np.full(len(probabilities), COLUMNS)
    read = K.eval(K.ctc_decode(probabilities, columns)[0][0])
    edits = sum(
        edit_distance([c for c in line if c >= 0], list(label[:length]))
        for line, label, (length,) in zip(read, labels, lengths)
    )
    return edits / lengths.sum()


def main():
    args = command_line.parse(command_line.options(__doc__, epochs=12, batch_size=32, samples=5000))
    random = np.random.RandomState(args.seed)

    def inputs_and_targets(images, labels, lengths):
        return [images, labels, np.full((len(images), 1), COLUMNS), lengths], np.zeros(len(images))

    x, y = inputs_and_targets(*draw_lines(random, args.samples))
    test = draw_lines(random, 500)
    model, epoch = command_line.start(args, build, {"ctc_cost": ctc_cost, "given_cost": given_cost})
    model.fit(
        x, y, args.batch_size, args.epochs, args.verbose, command_line.callbacks(args),
        validation_data=inputs_and_targets(*test), initial_epoch=epoch,
    )  # fmt: skip
    reader = Model(model.get_layer("image").input, model.get_layer("characters").output)
    images, labels, lengths = test
    print(f"character error rate {error_rate(reader.predict(images), labels, lengths):.4f}")


if __name__ == "__main__":
    command_line.run(main)
