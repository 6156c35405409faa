"""Small replacements for what some of Keras's examples need and the environment lacks: packages, downloaded weights, command lines."""

import itertools
import os
import re
import sys
import types

import numpy as np

# The command lines of the examples that read one. write_pictures() makes the files.
ARGUMENTS = {
    "class_activation_maps": ["picture.png"],
    "deep_dream": ["picture.png", "dream"],
    "neural_style_transfer": ["narrow.png", "picture.png", "styled", "--iter", "1"],
    "neural_doodle": [
        *("--nlabels", "2", "--style-image", "picture.png", "--style-mask", "mask.png"),
        *("--target-mask", "mask.png", "--content-image", "picture.png", "--target-image-prefix", "doodle"),
    ],
}

WEIGHTS = "made-up weights"  # the path that replaces the path of all downloaded weights


def _pillow():
    from PIL import Image, ImageDraw

    return Image, ImageDraw


class _Surface:
    """The part of cairo that paints one line of black text on white."""

    def __init__(self, _, width, height):
        Image, _ = _pillow()
        self.image = Image.new("L", (width, height), 255)

    def get_data(self):
        return np.repeat(np.asarray(self.image)[..., None], 4, axis=-1).tobytes()


class _Context:
    def __init__(self, surface):
        _, ImageDraw = _pillow()
        self._draw, self._at = ImageDraw.Draw(surface.image), (0, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def text_extents(self, text):
        left, top, right, bottom = self._draw.textbbox((0, 0), text)
        return left, top, right - left, bottom - top, right, 0

    def move_to(self, x, y):
        self._at = x, y

    def show_text(self, text):
        self._draw.text(self._at, text, fill=0)

    set_source_rgb = paint = select_font_face = set_font_size = lambda self, *_: None


def _edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def _read_picture(path):
    return np.asarray(_pillow()[0].open(path).convert("RGB"))[:, :, ::-1]


def _resize_picture(picture, size):
    rows = np.arange(size[1]) * picture.shape[0] // size[1]
    columns = np.arange(size[0]) * picture.shape[1] // size[0]
    return picture[rows][:, columns]


class _GridSearch:
    """Fits an estimator for each choice of parameters, on three folds each."""

    def __init__(self, estimator, param_grid, **_):
        self._estimator, self._grid = estimator, param_grid

    def fit(self, x, y):
        for values in itertools.product(*self._grid.values()):
            chosen = {**self._estimator.get_params(), **dict(zip(self._grid, values))}
            for fold in range(3):
                rows = np.arange(len(x)) % 3 != fold
                type(self._estimator)(**chosen).fit(x[rows], y[rows])


def _module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(members)


def _made_up_weights(keras):
    """Makes networks that would load downloaded weights keep their initial weights, which the seed determines."""
    load, get_file = keras.engine.network.Network.load_weights, keras.utils.get_file

    def load_weights(self, path, *arguments, **options):
        return None if path == WEIGHTS else load(self, path, *arguments, **options)

    def get_weights(fname, *arguments, **options):
        return WEIGHTS if options.get("cache_subdir") == "models" else get_file(fname, *arguments, **options)

    keras.engine.network.Network.load_weights = load_weights
    keras.utils.get_file = get_weights


def _split_as_python_3_6(split):
    # Since Python 3.7 re.split also splits at empty matches, which babi_memnn's pattern allows.
    return lambda pattern, text, *rest: split(pattern.replace(r"(\W+)?", r"(\W+)"), text, *rest)


def _fitting_labels():
    from matplotlib import axis

    set_ticklabels = axis.Axis.set_ticklabels

    def set_as_many(self, labels, **options):
        # Matplotlib 3.5 and newer require as many labels as ticks.
        labels, ticks = list(labels), len(self.get_majorticklocs())
        return set_ticklabels(self, (labels + [""] * ticks)[:ticks], **options)

    axis.Axis.set_ticklabels = set_as_many


def install(keras, name):
    if name in ARGUMENTS:
        sys.argv += ARGUMENTS[name]
    if name == "mnist_sklearn_wrapper":
        _module("sklearn")
        _module("sklearn.model_selection", GridSearchCV=_GridSearch)
    if name == "babi_memnn":
        re.split = _split_as_python_3_6(re.split)
    if name == "variational_autoencoder_deconv":
        _fitting_labels()
    _module("cv2", imread=_read_picture, resize=_resize_picture)
    _module("editdistance", eval=_edit_distance)
    slants = {"FORMAT_RGB24": 1, "FONT_SLANT_NORMAL": 0, "FONT_WEIGHT_NORMAL": 0, "FONT_WEIGHT_BOLD": 1}
    _module("cairocffi", ImageSurface=_Surface, Context=_Context, **slants)
    _made_up_weights(keras)


def write_pictures(folder):
    """Writes the pictures that ARGUMENTS names."""
    Image, _ = _pillow()
    random = np.random.RandomState(17)
    for name, size in {"picture.png": (160, 160), "narrow.png": (16, 80)}.items():
        coarse = Image.fromarray(random.randint(0, 256, (8, 8, 3)).astype("uint8"))
        coarse.resize(size, Image.BICUBIC).save(os.path.join(folder, name))
    # neural_doodle's k-means starts at random and fails for a cluster without pixels, so the mask has all colours.
    Image.fromarray(random.randint(0, 256, (48, 48, 3)).astype("uint8")).save(os.path.join(folder, "mask.png"))
