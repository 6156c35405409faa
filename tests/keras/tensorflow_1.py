"""Presents TensorFlow 2 to Keras 2.3.1 as TensorFlow 1.15. Import this module before Keras."""

import sys
import types

from syncline.keras_support import compat  # noqa: F401  (Keras 2.3.1 needs it on this Python with every backend)
import tensorflow
from tensorflow.python.framework import ops
from tensorflow.python.ops import resource_variable_ops

tf1 = tensorflow.compat.v1
tf1.disable_v2_behavior()
shown = types.ModuleType("tensorflow")
shown.__dict__.update(tf1.__dict__)
shown.__version__, shown.__path__ = "1.15.0", tensorflow.__path__
sys.modules["tensorflow"] = shown
ops._TensorLike = (tf1.Tensor, tf1.Variable, resource_variable_ops.BaseResourceVariable, tf1.SparseTensor)
ops.is_dense_tensor_like = lambda x: isinstance(x, ops._TensorLike[:-1])
