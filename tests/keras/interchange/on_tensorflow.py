"""Runs Keras 2.3.1 on TensorFlow 2, which tensorflow_1.py presents as TensorFlow 1 (scripts/keras/interchange sets the path).

usage: on_tensorflow.py save MODEL PREDICTIONS    trains model.py's model, writes it and its predictions
       on_tensorflow.py load MODEL PREDICTIONS    fails unless the model in the file predicts the same to 1e-5
"""

import sys

import tensorflow_1  # noqa: F401
import numpy as np

import model

if __name__ == "__main__":
    action, path, predictions = sys.argv[1:]
    if action == "save":
        np.save(predictions, model.train_and_save(path))
    else:
        loaded, loss = model.load(path)
        difference = np.abs(loaded - np.load(predictions)).max()
        print(f"saved by Syncline, loaded by TensorFlow: predictions differ by {difference:.1e}")
        sys.exit(0 if difference < 1e-5 and np.isfinite(loss) else 1)
