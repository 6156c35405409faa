"""syncline.distributed.set_parts: the same bits on any number of ranks, set by the program itself."""

import pytest

from launching import run

PROGRAM = """
    import sys
    import numpy as np
    import scipy.linalg
    from syncline import _core, distributed as d
    d.set_parts(4)
    assert d.parts() == 4
    import keras
    from keras import backend as K, layers, models
    K.set_floatx(sys.argv[1])
    np.random.seed(3)
    model = models.Sequential([layers.Embedding(50, 40, input_length=9), layers.LSTM(64), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01, clipnorm=1.0), "mse")
    random = np.random.RandomState(1)
    x, y = random.randint(0, 50, (77, 9)), random.rand(77, 1)
    history = model.fit(x, y, epochs=3, batch_size=24, verbose=0).history
    shards = []
    for rows, steps in [(77, 4), (75, 3)]:  # last batches of five rows, and of three, fewer than parts
        batches = d.ShardedSequence(lambda rows: (x[rows], y[rows]), rows, 24)
        assert len(batches) == steps
        with d.local_feeds():
            shards.append(model.fit_generator(batches, epochs=6, shuffle=False, validation_data=batches, verbose=0).history)
    # Own rows as arrays: a rank has three rows of the last batch, another two or one.
    first = _core.first_parts(d.size(), 4)
    begin, end = first[d.rank()], first[d.rank() + 1]
    own = np.r_[24 * begin // 4 : 24 * end // 4, 24 + 5 * begin // 4 : 24 + 5 * end // 4]
    with d.local_feeds():
        sizes = dict(batch_size=6 * (end - begin), verbose=0)
        history_of_own = model.fit(x[own], y[own], epochs=2, shuffle=False, validation_data=(x[own], y[own]), **sizes).history
        shards += [history_of_own, model.evaluate(x[own], y[own], **sizes)]
    for rows, batch_size in [(77, 3), (3, 8)]:
        try:
            d.ShardedSequence(None, rows, batch_size)
            raise AssertionError("accepted")
        except ValueError as e:
            assert "4, the number of parts" in str(e) or "3 rows for 4 parts" in str(e), e
    for call in lambda: d.shard(x, y), lambda: d.EvenSteps([(x, y)]):
        try:
            call()
            assert d.size() == 1, "accepted"
        except ValueError as e:
            assert d.size() > 1 and "with parts of the batch (SYNCLINE_PARTS) the batches must be those of one process" in str(e), e
    singular = scipy.linalg.svd(random.rand(300, 300))[0].sum()
    values = [history, shards, singular, [float(np.float64(w).sum()) for w in model.get_weights()], model.predict(x[:5]).tolist()]
    for wrong, text in [(4, "set_parts: the session has run"), *((n, f"number of parts is {n};") for n in (3, -1, 2000, 2**40))]:
        try:
            d.set_parts(wrong)
            raise AssertionError("accepted")
        except ValueError as e:
            assert text in str(e), e
    if d.rank() == 0:
        print("values", values)
"""


def values(ranks, floatx="float32"):
    lines = [line for line in run(ranks, PROGRAM, floatx).split("\n") if line.startswith("values")]
    assert len(lines) == 1
    return lines[0]


# Without a limit on the threads of NumPy and SciPy, the initial weights of the LSTM and singular values depend on the number of processors
# of a rank.
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_same_bits_on_any_number_of_ranks(ranks):
    assert values(ranks) == values(0)


# In float64 the products of losses and rows are rounded, so the order of an epoch's sum decides bits.
def test_same_bits_in_float64():
    assert values(3, "float64") == values(0, "float64")


def test_too_few_parts():
    with pytest.raises(AssertionError, match="3 ranks cannot share 2 parts of a batch; set a number of parts"):
        run(3, "from syncline import distributed; distributed.set_parts(2)")


def test_no_parts():
    program = """
        from syncline import distributed as d
        from keras import backend as K
        d.set_parts(0)
        assert d.parts() == 0 and K.eval(K.sum(K.ones((5, 2)))) == 10
    """
    run(0, program, SYNCLINE_PARTS="8")
    run(2, program, SYNCLINE_PARTS="8")
