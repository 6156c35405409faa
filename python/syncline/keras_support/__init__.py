"""Compatibility of Keras 2.3.1 and its programs with newer versions of Python packages."""
