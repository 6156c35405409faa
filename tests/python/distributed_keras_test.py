"""An unchanged Keras script gives the same numbers on 1, 2 and 3 ranks as in one process, on every rank; with parts of the batch, the
same bits. It prints and writes once."""

import json
import pathlib

import numpy as np
import pytest

from launching import launch, run

PROGRAM = pathlib.Path(__file__).with_name("training_program.py")
TOLERANCE = {"float32": 1e-4, "float64": 1e-10}
SHARE_FROM = {"float32": "1", "float64": "64KiB"}  # ranks share all variables, and none, because the networks are small
SCENARIOS = [line.split("(")[0][4:] for line in PROGRAM.read_text().split("@scenario\n")[1:]]


class Results:
    def __init__(self, folder, floatx, ranks, parts):
        work = folder / f"{floatx}_{ranks}_{parts}"
        work.mkdir()
        values = folder / f"{floatx}_{ranks}_{parts}_values"
        options = {"SYNCLINE_SHARE_FROM": SHARE_FROM[floatx], "SYNCLINE_PARTS": str(parts)}
        self.out = run(ranks, PROGRAM, floatx, str(work), str(values), limit=300, **options)
        self.text = [pathlib.Path(f"{values}.{rank}").read_text() for rank in range(max(ranks, 1))]
        self.values = json.loads(self.text[0])
        # The size of a CSV log depends on the last digits of numbers, so it is not compared.
        self.files = {path.name: path.suffix == ".csv" or path.stat().st_size for path in work.iterdir()}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    known = {}

    def of(floatx, ranks, parts=0):
        if (floatx, ranks, parts) not in known:
            known[floatx, ranks, parts] = Results(folder, floatx, ranks, parts)
        return known[floatx, ranks, parts]

    return of


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("floatx", TOLERANCE)
def test_same_numbers(results, floatx, ranks, scenario):
    expected = results(floatx, 0).values[scenario]
    values = results(floatx, ranks).values[scenario]
    assert values.keys() == expected.keys()
    for name, value in values.items():
        np.testing.assert_allclose(value, expected[name], TOLERANCE[floatx], TOLERANCE[floatx], err_msg=name)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_same_bits_with_parts(results, ranks):
    assert results("float32", ranks, parts=8).text[0] == results("float32", 0, parts=8).text[0]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("floatx", TOLERANCE)
def test_same_on_every_rank(results, floatx, ranks):
    assert len(set(results(floatx, ranks).text)) == 1


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_printed_and_written_once(results, ranks):
    alone, several = results("float32", 0), results("float32", ranks)
    for text in ["Epoch 1/4\n", "saving model to best.h5\n", "LearningRateScheduler setting", "Invalid loss, terminating"]:
        assert alone.out.count(text) == several.out.count(text) > 0, text
    assert several.files == alone.files


UNSEEDED = """
    import random, sys, warnings
    import numpy as np
    import keras
    from keras import layers, models
    from keras.preprocessing.image import ImageDataGenerator
    from syncline import distributed as d
    warnings.simplefilter("error", RuntimeWarning)  # of ranks that are given different data
    x = np.random.rand(60, 8, 8, 1)
    y = np.array([random.choice([0.0, 1.0]) for _ in x])
    x += np.random.default_rng().random(x.shape)
    model = models.Sequential([layers.Conv2D(3, 3, input_shape=(8, 8, 1)), layers.Dropout(0.5), layers.Flatten(), layers.Dense(1)])
    model.compile("adam", "mse")
    history = [model.fit(x, y, epochs=2, batch_size=16).history]
    flipped = ImageDataGenerator(horizontal_flip=True, width_shift_range=2).flow(x, y, batch_size=16)
    history += [model.fit_generator(flipped, epochs=3).history]
    assert d.broadcast(history) == history
    for mine, rank_0s in zip(model.get_weights(), d.broadcast(model.get_weights())):
        assert mine.tobytes() == rank_0s.tobytes()
"""


def test_unseeded_programs_agree():
    ended = launch(2, UNSEEDED)
    assert ended.code == 0 and ended.err.count("Using syncline backend.") == 1, ended
