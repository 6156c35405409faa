"""Ranks that disagree end the job with exit code 65 and the name of the first difference. Ranks that agree run undisturbed."""

import pytest

from launching import launch

MODEL = """
    import numpy as np
    import keras
    from keras import backend as K
    from keras import callbacks, layers, models
    from syncline import distributed as d

    x, y = np.random.RandomState(0).rand(64, 6), np.random.RandomState(1).rand(64, 2)
    model = models.Sequential([layers.Dense(8, activation="relu", input_shape=(6,)), layers.BatchNormalization(), layers.Dropout(0.3),
                               layers.Dense(2)])
    model.compile("adam", "mse", metrics=["mae"])
"""

FAULTS = {
    "flip": ("1:30:flip:dense_1/kernel:13:20", ["variable 'dense_1/kernel", "at [1, 5] (element 13 of 48)", "on rank 0; "]),
    "skip": ("1:40:skip", ["disagree about the step of a collective", "step 40"]),
    "version": ("1:0:version", ["ranks 0 and 1 are not alike: rank 0 has Syncline "]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_the_job(fault):
    what, texts = FAULTS[fault]
    program = MODEL + "    model.fit(x, y, epochs=20, batch_size=8, verbose=0)\n"
    ended = launch(2, program, SYNCLINE_FAULT=what, SYNCLINE_ALLOW_FAULTS="1", SYNCLINE_CHECK_STEPS="10")
    assert ended.code == 65, ended
    assert f"rank 1 WILL INJECT A FAULT, as SYNCLINE_FAULT asks: '{what}'" in ended.err, ended
    assert ended.err.count("\nsyncline.distributed.DisagreementError: ") == 1, ended
    for text in texts:
        assert text in ended.err, ended


def test_training_that_is_well_is_not_disturbed():
    program = MODEL + """
    slower = callbacks.LearningRateScheduler(lambda epoch: 0.01 / (epoch + 1))
    model.fit(x, y, epochs=6, batch_size=8, verbose=0, callbacks=[slower], validation_split=0.25)
    model.set_weights([w * 0.5 for w in model.get_weights()])
    model.evaluate(x, y, verbose=0)
    with d.local_feeds():
        model.fit(*d.shard(x, y), epochs=2, batch_size=4, verbose=0)
    print("done")
    """
    ended = launch(2, program, SYNCLINE_CHECK_STEPS="1")
    assert ended.code == 0 and ended.out.endswith("done\n"), ended


def test_a_seed_by_rank_is_named():
    program = MODEL + """
    dropped = K.function([], [K.sum(K.dropout(K.ones((8, 8)), 0.5, seed=40 + d.rank()))])
    dropped([])
    """
    ended = launch(3, program)
    assert ended.code == 65 and "rank 0 has " in ended.err and "op=of seed 41" in ended.err, ended


def test_the_error_can_be_caught():
    program = """
    from syncline import distributed as d
    try:
        d.all_reduce(1) if d.rank() else d.all_reduce(1.0)
    except d.DisagreementError as error:
        assert isinstance(error, RuntimeError)
        print("caught:", error)
    """
    ended = launch(2, program)
    assert ended.code == 0 and "caught: ranks disagree about " in ended.out and "int64" in ended.out, ended


@pytest.mark.parametrize("ranks", [0, 2])
def test_faults_must_be_allowed(ranks):
    ended = launch(ranks, "import syncline as K\nK.variable(1)", SYNCLINE_FAULT=f"{max(0, ranks - 1)}:0:throw")
    assert ended.code == 1 and "set SYNCLINE_ALLOW_FAULTS=1 for a test" in ended.err, ended


def test_a_fault_of_a_process_alone():
    program = """
    import syncline as K
    f = K.function([], [K.variable(1) * 2])
    for step in range(5):
        print(step, f([])[0], flush=True)
    """
    ended = launch(0, program, SYNCLINE_FAULT="0:3:throw", SYNCLINE_ALLOW_FAULTS="1")
    assert ended.code == 1 and "RuntimeError: SYNCLINE_FAULT: '0:3:throw' is thrown" in ended.err, ended
    assert "0 2.0\n" in ended.out and "4 2.0\n" not in ended.out, ended
