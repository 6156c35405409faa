"""syncline.distributed.set_parts: the same bits on any number of ranks, set by the program itself."""

import pytest

from launching import run

PROGRAM = """
    import numpy as np
    from syncline import distributed as d
    d.set_parts(4)
    assert d.parts() == 4
    import keras
    from keras import backend as K, layers, models
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
            shards.append(model.fit_generator(batches, epochs=2, shuffle=False, validation_data=batches, verbose=0).history)
    for rows, batch_size in [(77, 3), (3, 8)]:
        try:
            d.ShardedSequence(None, rows, batch_size)
            raise AssertionError("accepted")
        except ValueError as e:
            assert "4, the number of parts" in str(e) or "3 rows for 4 parts" in str(e), e
    values = [history, shards, [float(np.float64(w).sum()) for w in model.get_weights()], model.predict(x[:5]).tolist()]
    for wrong, text in [(4, "set_parts: the session has run"), *((n, f"number of parts is {n};") for n in (3, -1, 2000, 2**40))]:
        try:
            d.set_parts(wrong)
            raise AssertionError("accepted")
        except ValueError as e:
            assert text in str(e), e
    if d.rank() == 0:
        print("values", values)
"""


def values(ranks, **variables):
    lines = [line for line in run(ranks, PROGRAM, **variables).split("\n") if line.startswith("values")]
    assert len(lines) == 1
    return lines[0]


# Without a limit on NumPy's threads, the initial weights of the LSTM depend on the number of processors of a rank.
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_same_bits_on_any_number_of_ranks(ranks):
    assert values(ranks) == values(0)


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
