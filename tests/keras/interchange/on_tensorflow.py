"""Runs with Keras 2.3.1 on TensorFlow 2, which is shown to it as TensorFlow 1 (scripts/interchange sets the path).

usage: on_tensorflow.py save MODEL PREDICTIONS    trains model.py's model, writes it and its predictions
       on_tensorflow.py load MODEL PREDICTIONS    fails unless the model in the file predicts the same to 1e-5
"""

import sys
import types

from syncline import compat  # noqa: F401  (Keras 2.3.1 needs it on this Python, whatever its backend)
import numpy as np
import tensorflow
from tensorflow.python.framework import ops

tf1 = tensorflow.compat.v1
tf1.disable_v2_behavior()
shown = types.ModuleType("tensorflow")
shown.__dict__.update(tf1.__dict__)
shown.__version__, shown.__path__ = "1.15.0", tensorflow.__path__
sys.modules["tensorflow"] = shown
ops._TensorLike = (tf1.Tensor, tf1.Variable, tf1.SparseTensor)
ops.is_dense_tensor_like = lambda x: isinstance(x, (tf1.Tensor, tf1.Variable))

import model  # noqa: E402

if __name__ == "__main__":
    action, path, predictions = sys.argv[1:]
    if action == "save":
        np.save(predictions, model.train_and_save(path))
    else:
        loaded, loss = model.load(path)
        difference = np.abs(loaded - np.load(predictions)).max()
        print(f"saved by Syncline, loaded by TensorFlow: predictions differ by {difference:.1e}")
        sys.exit(0 if difference < 1e-5 and np.isfinite(loss) else 1)
