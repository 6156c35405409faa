"""optimizer_state=split: the slots of an optimizer, whose rows are on one node each, are saved and restored as others."""

import pytest

from launching import launch, run

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


# A save by rank 0 alone, which needs all ranks; then the other ranks do something else.
GUARDED = """
    import sys
    import keras
    import numpy as np
    from syncline import distributed

    folder, then = sys.argv[1:]
    model = keras.Sequential([keras.layers.Dense(50, input_shape=(20,)), keras.layers.Dense(3)])
    model.compile(keras.optimizers.Adam(), "mse")
    model.fit(np.ones((16, 20)), np.ones((16, 3)), verbose=0)
    if distributed.rank() == 0:
        model.save(folder + "/best.h5")
    exec(then)
    print("not refused")
"""


@pytest.mark.parametrize(
    "then, text",
    [
        ("model.save(folder + '/last.h5')", "/best.h5', which every rank must read"),
        ("model.save_weights(folder + '/last.h5')", "/last.h5' of rank 0, and rank 0 reads variables that are split between nodes"),
        ("model.fit(np.ones((16, 20)), np.ones((16, 3)), verbose=0)", ", which every rank must read"),
    ],
)
@pytest.mark.parametrize("layout", ["messages", "by_node"])
def test_guarded_save_is_refused(then, text, layout, tmp_path):
    ended = launch(3, GUARDED, str(tmp_path), then, layout=layout, SYNCLINE_OPTIMIZER_STATE="split", SYNCLINE_SHARE_FROM="64")
    assert ended.code == 65 and text in ended.err and "not refused" not in ended.out, ended
    assert ended.seconds < 60 and not (tmp_path / "last.h5").exists(), ended


def test_guarded_save_of_whole_variables(tmp_path):
    launched = launch(3, GUARDED, str(tmp_path), "model.save(folder + '/last.h5')", layout="messages", SYNCLINE_SHARE_FROM="64")
    assert launched.code == 0 and (tmp_path / "last.h5").exists(), launched


# Each rank names its own log. The others wait a little for theirs; rank 0 meanwhile begins the save that takes all ranks.
NAMED_BY_RANK = """
    import sys, threading
    import keras
    import numpy as np
    from syncline import distributed

    folder = sys.argv[1]
    model = keras.Sequential([keras.layers.Dense(50, input_shape=(20,)), keras.layers.Dense(3)])
    model.compile(keras.optimizers.Adam(), "mse")
    log = keras.callbacks.CSVLogger(f"{folder}/log{distributed.rank()}.csv")
    model.fit(np.ones((16, 20)), np.ones((16, 3)), verbose=0, callbacks=[log])
    model.save(folder + "/model.h5")
    saving = threading.Thread(target=model.save_weights, args=(folder + "/weights.h5",))
    saving.start()
    slots = model.optimizer.get_weights()
    saving.join()
    again = keras.models.load_model(folder + "/model.h5").optimizer.get_weights()
    assert all((a == b).all() for a, b in zip(slots, again))
"""


def test_files_named_by_rank(tmp_path):
    run(3, NAMED_BY_RANK, str(tmp_path), layout="messages", SYNCLINE_OPTIMIZER_STATE="split", SYNCLINE_SHARE_FROM="64")
    assert {"log0.csv", "model.h5", "weights.h5"} <= {path.name for path in tmp_path.iterdir()}
