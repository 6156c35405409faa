"""If batches or feeds differ between ranks, every rank uses those of rank 0, and one warning is given."""

import pytest

from launching import launch, run

BEGIN = """
    import threading, time, warnings
    import numpy as np
    import keras
    from keras import backend as K
    from keras import layers, models
    from syncline import distributed as d

    K.set_floatx("float64")
    told = []
    warnings.showwarning = lambda message, kind, *_: told.append(str(message)) if kind is RuntimeWarning else None
    warnings.simplefilter("always")
    rank = d.rank()
    x, y = np.random.RandomState(1).rand(64, 3), np.random.RandomState(2).rand(64, 1)

    def network():
        start = np.random.RandomState(3)
        model = models.Sequential([layers.Dense(4, activation="tanh", input_shape=(3,)), layers.Dense(1)])
        model.compile("sgd", "mse")
        model.set_weights([start.rand(*w.shape) for w in model.get_weights()])
        return model

    def same(value):
        value = np.asarray(value)
        assert value.tobytes() == d.broadcast(value).tobytes(), value

    class Batches(keras.utils.Sequence):
        def __init__(self, make, number=8):
            self.make, self.number = make, number
        def __len__(self):
            return self.number
        def __getitem__(self, i):
            return self.make(i)

    def expect_told(times, text=""):
        assert len(told) == times and all(text in each for each in told), told
        told.clear()
"""

# Each program compares its results with those of rank 0's data.
PROGRAMS = {
    "sequence": """
    seen = []
    def make(i):
        part = slice(8 * i, 8 * i + 8)
        batch = x[part] + rank, y[part]
        return batch
    def rank_0s(i):
        return x[8 * i : 8 * i + 8], y[8 * i : 8 * i + 8]
    for workers in (0, 1, 4):
        losses = network().fit_generator(Batches(make), epochs=2, shuffle=False, verbose=0, workers=workers).history["loss"]
        expected = network().fit_generator(Batches(rank_0s), epochs=2, shuffle=False, verbose=0, workers=0).history["loss"]
        assert losses == expected, (losses, expected)
        losses = network().evaluate_generator(Batches(make), workers=workers)
        assert losses == network().evaluate_generator(Batches(rank_0s), workers=workers)
        same(network().predict_generator(Batches(lambda i: make(i)[0]), workers=workers))
    expect_told(1, "the ranks' generators return different batches. Every rank uses those of rank 0")
    """,
    "generator": """
    def batches(shift):
        for trial in range(100):
            yield x[:16] + trial * shift, {"dense_%d" % outputs: y[:16]}, np.ones(16)
    for workers in (0, 1):
        outputs = 2 + 4 * workers
        losses = network().fit_generator(batches(1 + rank), 10, epochs=2, verbose=0, workers=workers).history["loss"]
        outputs += 2
        assert losses == network().fit_generator(batches(1), 10, epochs=2, verbose=0, workers=0).history["loss"]
    expect_told(1, "rank 0")
    """,
    # A Sequence that is also an iterator; its length is known.
    "sequence_that_is_an_iterator": """
    Batches.__next__ = lambda self: 1 / 0
    for workers in (0, 1):
        network().fit_generator(Batches(lambda i: (x[:8] + rank, y[:8])), epochs=2, verbose=0, workers=workers)
    expect_told(1, "rank 0")
    """,
    # Rank 1 has fewer and smaller batches.
    "other_numbers_of_rows": """
    def batches(rank):
        for i in range(10 - 5 * rank):
            yield x[: 16 - i - rank] * (1 + i), y[: 16 - i - rank]
    losses = network().fit_generator(batches(rank), 10, verbose=0).history["loss"]
    assert losses == network().fit_generator(batches(0), 10, verbose=0).history["loss"]
    same(losses)
    """,
    # Threads draw random numbers in an undefined order, as image generators do.
    "threads_that_draw": """
    def make(i):
        time.sleep(np.random.rand() / 1000)
        return x[8 * i : 8 * i + 8] + np.random.rand(8, 3), y[8 * i : 8 * i + 8]
    model, seen = network(), []
    for name in ("train_on_batch", "test_on_batch"):
        def step(x, *others, original=getattr(model, name), **keywords):
            seen.append(x)
            return original(x, *others, **keywords)
        setattr(model, name, step)
    losses = model.fit_generator(Batches(make), epochs=3, workers=4, verbose=0, validation_data=Batches(make)).history
    assert len(seen) == 2 * 3 * 8
    same(seen)
    same(losses["loss"] + losses["val_loss"])
    told.clear()
    for trial in range(3):
        same(np.random.rand(4))  # the states are alike again
        time.sleep(0.05)
    same(network().fit(x, y, batch_size=8, epochs=2, verbose=0).history["loss"])
    expect_told(0)
    """,
    "generators_that_part_the_states": """
    model = network()
    np.random.seed(rank)
    same(model.fit(x, y, batch_size=8, epochs=2, verbose=0).history["loss"])  # shuffled alike
    expect_told(0)
    """,
    "fit": """
    mine = x + rank
    for sizes in (8, 32):
        model, whole = network(), network()
        losses = model.fit(mine, y, batch_size=sizes, epochs=2, shuffle=False, verbose=0).history["loss"]
        expect_told(1, "for input 0 (dense_")
        assert losses == whole.fit(x, y, batch_size=sizes, epochs=2, shuffle=False, verbose=0).history["loss"]
        same(model.predict(mine))
        expect_told(1, "rank 0")
        assert [model.train_on_batch(mine, y) for _ in range(5)] == [whole.train_on_batch(x, y) for _ in range(5)]
        expect_told(0)
    """,
    # The ranks' data differ at one call only, in the middle of the training.
    "a_call_in_the_middle": """
    model, whole = network(), network()
    for trial in range(12):
        mine = x + rank * (trial == 6)
        assert model.train_on_batch(mine, y) == whole.train_on_batch(x, y), trial
    expect_told(1, "for input 0 (dense_")
    """,
    "function": """
    import scipy.sparse
    a, b, c = K.placeholder((None, 2)), K.placeholder(()), K.placeholder((3, 3), sparse=True)
    f = K.function([a, b, c], [a * b, K.sum(K.dot(c, K.ones((3, 1))))])
    for call in range(6):
        first, second = f([[[1.0, 2.0]] * (1 + rank), 3 + rank, scipy.sparse.eye(3).tocsr() * (1 + rank)])
        assert first.tolist() == [[3.0, 6.0]] and second == 3, (first, second)
    expect_told(1, "for input 0 ")
    with d.local_feeds():
        assert len(f([np.ones((1 + rank, 2)), 3, scipy.sparse.eye(3).tocsr()])[0]) == sum(1 + r for r in range(d.size()))
    """,
    "own_rows_are_left_alone": """
    with d.local_feeds():
        batches = Batches(lambda i: (x[8 * i + 4 * rank : 8 * i + 4 * rank + 4], y[8 * i + 4 * rank : 8 * i + 4 * rank + 4]))
        losses = network().fit_generator(batches, epochs=2, shuffle=False, verbose=0).history["loss"]
        model = network()
        np.random.seed(rank)
        state = np.random.get_state()[1].tolist()
        model.fit(x, y, batch_size=8, verbose=0, shuffle=False)
        assert np.random.get_state()[1].tolist() == state
    np.random.seed(5)
    whole = Batches(lambda i: (x[8 * i : 8 * i + 8], y[8 * i : 8 * i + 8]))
    np.testing.assert_allclose(losses, network().fit_generator(whole, epochs=2, shuffle=False, verbose=0).history["loss"], 1e-12)
    expect_told(0)
    """,
    "equal_batches_are_not_sent": """
    import syncline.distribution.ranks
    sent = []
    original = syncline.distribution.ranks.broadcast
    syncline.distribution.ranks.broadcast = lambda value, root=0: sent.append(type(value)) or original(value, root)
    network().fit_generator(Batches(lambda i: (x[:8], y[:8])), epochs=2, verbose=0)
    assert sent == [], sent
    expect_told(0)
    """,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_is_rank_0s(program):
    assert run(2, BEGIN + PROGRAMS[program].rstrip() + "\n    print('done')\n", limit=60) == "done\n"


def test_a_generator_that_fails_on_one_rank():
    program = """
    def batches():
        for i in range(100):
            if i == 7 and rank == 1:
                raise KeyError("the data set is gone")
            yield x, y
    network().fit_generator(batches(), 50, verbose=0)
    """
    ended = launch(2, BEGIN + program, limit=60)
    assert ended.code == 1 and ended.err.count("\nKeyError: 'the data set is gone'") == 1, ended
