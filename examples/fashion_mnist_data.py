"""Fashion-MNIST as NumPy arrays, read from the IDX files of Debian's package dataset-fashion-mnist."""

import gzip
import os
import zlib

import numpy as np

from command_line import DataError

DIRECTORY = "/usr/share/datasets/fashion-mnist"
CLASSES = 10
SIDE = 28


def load(directory=DIRECTORY, samples=0):
    """((train images, train labels), (test images, test labels)).

    Images: float32 in [0, 1], shape (n, 28, 28, 1). Labels: int32, shape (n,). `samples` keeps the first so many
    training images, and a sixth of that of test images; 0 keeps all.

    # Raises
        DataError: a file is missing, damaged or no file of Fashion-MNIST.
    """
    return _load_split(directory, "train", samples), _load_split(directory, "t10k", -(-samples // 6))


def _load_split(directory, prefix, samples):
    images_path = _find_file(directory, prefix + "-images-idx3-ubyte")
    labels_path = _find_file(directory, prefix + "-labels-idx1-ubyte")
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if images.shape[1:] != (SIDE, SIDE):
        raise DataError(f"data file '{images_path}': holds images of {images.shape[1:]}, {(SIDE, SIDE)} expected")
    if len(images) != len(labels):
        raise DataError(
            f"data file '{labels_path}': holds {len(labels)} labels for {len(images)} images in '{images_path}'"
        )
    if labels.max(initial=0) >= CLASSES:
        raise DataError(f"data file '{labels_path}': holds label {labels.max()}, 0 to {CLASSES - 1} expected")
    if samples:
        images, labels = images[:samples], labels[:samples]
    return (images[..., np.newaxis] / np.float32(255)).astype(np.float32), labels.astype(np.int32)


def _find_file(directory, name):
    for path in (os.path.join(directory, name + ".gz"), os.path.join(directory, name)):
        if os.path.exists(path):
            return path
    raise DataError(
        f"data set: neither '{os.path.join(directory, name)}.gz' nor '{name}' is there; install the Debian package "
        f"dataset-fashion-mnist, which puts it into {DIRECTORY}, or name its directory with --data"
    )


def read_idx(path, ndim):
    """The uint8 array of `ndim` axes that an IDX file, plain or gzipped, holds. Raises DataError otherwise."""
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            content = file.read()
    except (EOFError, zlib.error, OSError) as error:
        raise DataError(f"data file '{path}': cannot read: {error}; fetch the file again") from None
    if len(content) < 4 + 4 * ndim or content[:4] != bytes([0, 0, 8, ndim]):
        raise DataError(
            f"data file '{path}': begins with {list(content[:4])}, {[0, 0, 8, ndim]} expected; it is no IDX file"
        )
    shape = np.frombuffer(content, ">i4", ndim, offset=4)
    if len(content) - 4 - 4 * ndim != shape.prod(dtype=np.int64):
        raise DataError(
            f"data file '{path}': holds {len(content) - 4 - 4 * ndim} bytes where its header promises "
            f"{shape.prod(dtype=np.int64)}; fetch the file again"
        )
    return np.frombuffer(content, np.uint8, offset=4 + 4 * ndim).reshape(shape)
