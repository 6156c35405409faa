"""How often ranks wait for each other in a training step of ResNet50 (Keras applications)."""

import re

from launching import run

STEP = """
    import os, sys
    import numpy as np
    import keras

    model = keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3), classes=10)
    model.compile("adam", "categorical_crossentropy", ["accuracy"])
    model._make_train_function()  # with the optimizer's slots
    os.environ["SYNCLINE_DUMP_PLAN"] = sys.argv[1]
    values = np.random.RandomState(1)
    model.train_on_batch(values.rand(4, 32, 32, 3), np.eye(10)[:4])
"""


def test_few_blocking_collectives(tmp_path):
    """A rank blocks if it waits for a collective that the task before started. ResNet50 has 53 batch normalizations; the statistics of
    a block's shortcut travel with those of its first layer. Other collectives overlap with work."""
    run(2, STEP, str(tmp_path), limit=200, layout="one_node")
    (folder,) = tmp_path.glob("0-*-train_function")
    last = sorted(folder.iterdir())[-1].read_text()
    tasks = re.findall(r"^\d+: (\S+)(?: transfer (\d+))?", last, re.MULTILINE)
    started = [transfer for kind, transfer in tasks if transfer and kind != "wait"]
    blocking = [
        transfer for (_, before), (kind, transfer) in zip(tasks, tasks[1:]) if kind == "wait" and before == transfer
    ]
    assert len(started) == len(set(started)) >= 100  # of the forward and the backward pass
    assert 0 < len(blocking) <= 50
