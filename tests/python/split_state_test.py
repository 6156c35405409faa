"""optimizer_state=split: the slots of an optimizer, whose rows are on one node each, are saved and restored as others."""

import pytest

from launching import run

# Trains, saves in two ways, and continues with what was saved. Prints digests.
PROGRAM = """
    import hashlib, sys
    import keras
    import numpy as np
    import syncline as K
    from syncline import distributed
    from syncline.jobs import Checkpoints

    def digest(values):
        return hashlib.sha256(b"".join(np.ascontiguousarray(value).tobytes() for value in values)).hexdigest()[:16]

    folder = sys.argv[1]
    random = np.random.RandomState(0)
    x, y = random.rand(64, 20).astype("f"), random.rand(64, 3).astype("f")
    model = keras.Sequential([
        keras.layers.Dense(50, activation="tanh", input_shape=(20,), kernel_initializer=keras.initializers.RandomNormal(seed=3)),
        keras.layers.Dense(3, kernel_initializer=keras.initializers.RandomNormal(seed=4)),
    ])
    model.compile(keras.optimizers.Adam(0.01, clipnorm=1.0), "mse")
    each = keras.callbacks.ModelCheckpoint(folder + "/each.h5", period=1)
    model.fit(x, y, 16, epochs=2, verbose=0, shuffle=False, callbacks=[each, Checkpoints(folder + "/job")])
    lines = [digest(model.get_weights()), digest(K.batch_get_value(model.optimizer.weights))]
    for name in "/each.h5", "/job/latest":
        again = keras.models.load_model(folder + name)
        lines.append(digest(K.batch_get_value(again.optimizer.weights)))
        again.fit(x, y, 16, epochs=1, verbose=0, shuffle=False)
        lines.append(digest(again.get_weights()))
    if distributed.rank() == 0:
        print(*lines)
"""


@pytest.mark.parametrize("layout", ["messages", "by_node"])
def test_saved_and_continued(layout, tmp_path):
    def trained(state):
        folder = tmp_path / state
        folder.mkdir()
        environment = {"SYNCLINE_OPTIMIZER_STATE": state, "SYNCLINE_SHARE_FROM": "64"}
        return run(3, PROGRAM, str(folder), layout=layout, **environment).split()

    split = trained("split")
    assert split == trained("auto")
    assert split[1] == split[2] == split[4]
    assert split[3] == split[5]
