"""What Keras 2.3.1 and programs for it expect of Python, TensorFlow 1 and each other."""
