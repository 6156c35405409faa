"""Trains an LSTM for 100 steps on made-up data, and prints a digest of its weights on each rank."""

import hashlib

import numpy as np
from keras.layers import LSTM, Dense, Embedding
from keras.models import Sequential

np.random.seed(7)
model = Sequential([Embedding(50, 24, mask_zero=True), LSTM(40, dropout=0.1), Dense(1, activation="sigmoid")])
model.compile("adam", "binary_crossentropy")
words = np.random.randint(0, 50, (3200, 12))
model.fit(words, words[:, -1] % 2, batch_size=32, epochs=1, verbose=0)
weights = b"".join(value.tobytes() for value in model.get_weights())
print(f"digest {hashlib.sha256(weights).hexdigest()[:16]}\n", end="", flush=True)
