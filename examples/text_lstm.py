"""Trains an LSTM to tell good reviews from bad ones and prints its test accuracy.

    KERAS_BACKEND=syncline python text_lstm.py
    KERAS_BACKEND=syncline mpirun -n 2 python text_lstm.py

A small grammar generates the reviews. The last sentence decides the label, "not" negates its word, and earlier sentences
are random: counting words reaches an accuracy of about 0.7, the defaults reach 0.99.
"""

import numpy as np
from keras.layers import LSTM, Dense, Embedding
from keras.models import Sequential
from keras.preprocessing.sequence import pad_sequences
from keras.preprocessing.text import Tokenizer

import command_line

LENGTH = 40  # words; longer reviews lose their beginning
GOOD = "good great brilliant moving funny clever charming superb gripping wonderful".split()
BAD = "bad awful dull boring clumsy silly tedious weak hollow dreadful".split()
PARTS = "plot cast music ending script camera dialogue pacing scenery hero".split()
FILLER = [
    "I saw it on a rainy evening", "my friend had told me about it", "it runs for two hours",
    "the first half is set in a small town", "nobody in the row before us said a word",
]  # fmt: skip
OPENINGS = ["all in all it was", "in the end I found it", "so my verdict is that it was", "looking back it was"]


def opinion(random):
    """(words, True for praise)"""
    praise, turned = random.random() < 0.5, random.random() < 0.4
    word = random.choice(GOOD if praise != turned else BAD)
    degree = random.choice(["", "very ", "really ", "quite "])
    return ("not " if turned else "") + degree + word, praise


def review(random):
    """(text, 1 for praise or 0)"""
    sentences = []
    for _ in range(random.randint(1, 6)):
        if random.random() < 0.3:
            sentences.append(random.choice(FILLER))
        else:
            sentences.append(f"the {random.choice(PARTS)} was {opinion(random)[0]}")
    words, praise = opinion(random)
    sentences.append(f"{random.choice(OPENINGS)} {words}")
    return ". ".join(sentences) + ".", int(praise)


def reviews(random, count):
    texts, labels = zip(*(review(random) for _ in range(count)))
    return list(texts), np.array(labels)


def build(words):
    model = Sequential([Embedding(words, 32, mask_zero=True), LSTM(64, dropout=0.1), Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy", ["accuracy"])
    return model


def main():
    args = command_line.parse(command_line.options(__doc__, epochs=4, batch_size=64, samples=8000))
    random = np.random.RandomState(args.seed)
    texts, y = reviews(random, args.samples)
    texts_test, y_test = reviews(random, 1000)
    tokenizer = Tokenizer()
    tokenizer.fit_on_texts(texts)
    x, x_test = (pad_sequences(tokenizer.texts_to_sequences(each), LENGTH) for each in (texts, texts_test))
    model, epoch = command_line.start(args, lambda: build(len(tokenizer.word_index) + 1))
    model.fit(
        x, y, args.batch_size, args.epochs, args.verbose, command_line.callbacks(args),
        validation_data=(x_test, y_test), initial_epoch=epoch,
    )  # fmt: skip
    loss, accuracy = model.evaluate(x_test, y_test, args.batch_size, verbose=0)
    print(f"test loss {loss:.4f}  test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    command_line.run(main)
