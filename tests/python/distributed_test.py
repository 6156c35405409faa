"""syncline.distributed: ranks, their output, local feeds, and worker processes."""

import os
import textwrap

import numpy as np
import pytest

from launching import launch, run


def test_alone():
    from syncline import distributed as d

    assert (d.rank(), d.size(), d.local_rank()) == (0, 1, 0)
    assert d.all_reduce(3.0) == 3 and d.broadcast("text") == "text" and d.barrier() is None
    assert d.shard(np.arange(3)).tolist() == [0, 1, 2]
    with d.local_feeds():
        pass


def test_alone_nothing_is_changed():
    program = """
        import sys, threading
        before = sys.stdout, sys.stderr, sys.excepthook, threading.excepthook
        import syncline
        assert before == (sys.stdout, sys.stderr, sys.excepthook, threading.excepthook)
        assert "h5py" not in sys.modules and "multiprocessing" not in sys.modules and "mpi4py" not in sys.modules
        print(open("/proc/self/maps").read().count("mca_"))  # the plug-ins that MPI_Init loads
    """
    assert run(0, program) == "0\n"


COLLECTIVES = """
    import os
    import numpy as np
    from syncline import distributed as d
    r, n = d.rank(), d.size()
    assert 0 <= d.local_rank() < n and d.local_rank() == int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
    assert d.all_reduce(r + 1) == n * (n + 1) / 2
    assert d.all_reduce(np.float32([r, -r]), "max").tolist() == [n - 1, 0]
    assert d.all_reduce(r, "min") == 0 and d.all_reduce(r, "mean") == (n - 1) / 2
    assert d.broadcast({"from": r}, n - 1) == {"from": n - 1}
    d.barrier()
    for error, value, op in [(ValueError, 1, "median"), (TypeError, True, "sum"), (TypeError, np.float16(1), "sum")]:
        if n > 1:
            try:
                d.all_reduce(value, op)
                raise SystemExit("no error for " + op)
            except error:
                pass
    x = np.arange(14).reshape(7, 2)
    own, (other, none) = d.shard(x, [{"a": x[:, 0]}["a"], None])
    assert own.tolist() == x[7 // n * r : 7 // n * (r + 1)].tolist() and other.tolist() == own[:, 0].tolist() and none is None
    assert d.shard({"a": x})["a"].shape == own.shape
    for wrong in [(x, x[:3]), (x[: n - 1],)]:
        try:
            d.shard(*wrong)
            raise SystemExit("no error")
        except ValueError:
            pass
    print(d.broadcast("all is well"))
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_collectives_and_shard(ranks):
    assert run(ranks, COLLECTIVES) == "all is well\n"


def test_random_states_are_aligned():
    program = """
        import random, numpy as np
        from syncline import distributed as d
        for draw in [random.random, np.random.rand, lambda: np.random.default_rng().random(), lambda: np.random.RandomState().rand(),
                     lambda: np.random.seed() or np.random.rand()]:
            value = draw()
            assert d.broadcast(value) == value
        assert np.random.default_rng().random() != np.random.default_rng().random()
    """
    run(2, program)


def test_different_data_is_told():
    program = """
        import sys, warnings
        import numpy as np, syncline as K
        from syncline import distributed as d
        warnings.simplefilter("error")
        x, y = K.placeholder((None, 2)), K.placeholder((None, 300000), name="targets")
        f = K.function([x, y], [K.sum(x) + K.sum(y)], name="step")
        large = np.zeros((2, 300000), "float32")
        for _ in range(20):
            f([np.ones((4, 2)), large])
        with d.local_feeds():
            for _ in range(20):
                f([np.full((2, 2), d.rank()), large])
        large[-1, -1] = d.rank()
        try:
            for _ in range(200):
                f([np.ones((4, 2)), large])
            raise SystemExit("no warning")
        except RuntimeWarning as warning:
            assert "step: the ranks feed different values for input 1 (targets)" in str(warning), warning
        print("told")
    """
    assert run(2, program) == "told\n"


PRINTS = """
    import os, subprocess, sys, time, traceback, warnings
    import syncline as K
    rank = K.distributed.rank()
    d = K.distributed
    for trial in range(d.size()):  # one after the other: mpirun mixes lines
        d.barrier()
        if trial == rank:
            sys.stdout.write("out %d\\n" % rank)
            sys.stdout.flush()
            sys.stderr.write("err %d\\n" % rank)
            warnings.warn("warning %d" % rank)
            sys.__stdout__.write("explicit %d\\n" % rank)
            sys.__stdout__.flush()
            time.sleep(0.2)
    subprocess.run([sys.executable, "-c", "import syncline"], stdout=sys.stdout)
    try:
        raise ValueError("told by rank %d" % rank)
    except ValueError:
        traceback.print_exc()
    K.distributed.barrier()
"""


def test_only_rank_0_prints():
    ended = launch(2, PRINTS)
    assert ended.code == 0, ended
    assert "out 0" in ended.out and "err 0" in ended.err and "warning 0" in ended.err, ended
    assert "out 1" not in ended.out and "err 1" not in ended.err and "warning 1" not in ended.err, ended
    assert "explicit 1" in ended.out and "told by rank 1" in ended.err, ended


def test_every_rank_prints_if_asked():
    ended = launch(2, PRINTS, SYNCLINE_OUTPUT="all")
    assert "out 1" in ended.out and "err 1" in ended.err and "warning 1" in ended.err, ended


WORKERS = """
    import multiprocessing, os, subprocess, sys
    import numpy as np
    import syncline as K
    from syncline import distributed as d

    def work(value):
        import syncline
        try:
            d.barrier()
            return "a worker met the ranks"
        except RuntimeError as error:
            assert "worker process" in str(error), error
        x = syncline.placeholder((None, 3))
        doubled = syncline.function([x], [syncline.sum(x * 2)])([np.full((200, 3), value)])[0]
        return d.rank(), d.size(), float(doubled), twice([np.full((4, 2), 1)])[0].sum() if method == "fork" else 16

    method = sys.argv[1]
    y = K.placeholder((None, 2))
    twice = K.function([y], [y * 2])

    if __name__ == "__main__":
        big = np.random.rand(512, 512).astype("float32")
        for trial in range(2):
            twice([np.ones((64, 2))])
            K.eval(K.dot(K.constant(big), K.constant(big)))  # the pool of threads is there
            with multiprocessing.get_context(method).Pool(2) as pool:
                results = pool.map(work, [1, 2, 3])
            assert results == [(d.rank(), d.size(), v * 1200.0, 16) for v in [1, 2, 3]], results
        again = subprocess.run([sys.executable, "-c", "import syncline.distributed as d; d.all_reduce(1)"], capture_output=True, text=True)
        assert "worker process" in again.stderr, again.stderr
        assert d.all_reduce(1) == d.size()
        print("done")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_worker_processes_are_no_ranks(method, tmp_path):
    program = tmp_path / "workers.py"
    program.write_text(textwrap.dedent(WORKERS))
    # By node, the launcher numbers three ranks otherwise.
    assert run(3, program, method, layout="by_node") == "done\n"


LOCAL = """
    import keras, numpy as np
    from keras import layers, models
    from syncline import distributed as d
    x = np.random.RandomState(3).uniform(-1, 1, (96, 4))
    y = x.sum(axis=1, keepdims=True)

    start = []
    def network():
        model = models.Sequential([layers.Dense(5, activation="tanh", input_shape=(4,)), layers.BatchNormalization(), layers.Dense(1)])
        model.compile("sgd", "mse", metrics=["mae"])
        start[:] = start or model.get_weights()
        model.set_weights(start)
        return model

    def same(a, b):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_allclose(a[name], b[name], 1e-4, 1e-4, err_msg=name)

    loaded = []
    def load(rows):
        loaded.extend(rows)
        return x[rows], y[rows]

    rows = 96 - 96 % d.size() - d.size()  # the last batch is a short one
    sequence = d.ShardedSequence(load, rows, 12)
    model = network()
    with d.local_feeds():
        local = model.fit_generator(sequence, epochs=3, shuffle=False, validation_data=sequence, verbose=2).history
    assert set(local["loss"]) == set(d.broadcast(local["loss"]))
    assert len(set(loaded)) == rows // d.size()
    whole = network()
    class Batches(keras.utils.Sequence):
        def __len__(self):
            return -(-rows // 12)
        def __getitem__(self, i):
            return x[:rows][12 * i : 12 * i + 12], y[:rows][12 * i : 12 * i + 12]
    expected = whole.fit_generator(Batches(), epochs=3, shuffle=False, validation_data=Batches(), verbose=0).history
    same(local, expected)
    np.testing.assert_allclose(model.predict(x), whole.predict(x), 1e-4, 1e-4)

    # fit on shards: as one process on batches that are made of one of each shard's.
    each = 96 // d.size()
    order = np.concatenate([np.arange(r * each, (r + 1) * each)[i : i + 4] for i in range(0, each, 4) for r in range(d.size())])
    model, own = network(), d.shard(x, y)
    with d.local_feeds():
        local = model.fit(*own, batch_size=4, epochs=2, shuffle=False, verbose=0).history
    expected = network().fit(x[order], y[order], batch_size=4 * d.size(), epochs=2, shuffle=False, verbose=0).history
    same(local, expected)

    # Uneven on purpose: what a rank has seen differs, what it is told does not.
    if d.size() > 1:
        uneven = x[: 8 + d.rank()], y[: 8 + d.rank()]
        with d.local_feeds():
            history = network().fit(*uneven, batch_size=16, epochs=2, verbose=0, validation_split=0.3).history
        assert d.broadcast(history) == history
    print("same")
"""


@pytest.mark.parametrize("ranks", [0, 2, 3])
def test_local_feeds_under_keras(ranks):
    assert run(ranks, LOCAL).endswith("same\n")


def test_local_feeds_switch():
    program = """
        import numpy as np, syncline as K
        from syncline import distributed as d
        x = K.placeholder((None, 1))
        total = K.function([x], [K.sum(x), x * 2])
        own = np.full((d.rank() + 1, 1), 10.0 ** d.rank())
        for _ in range(2):
            assert total([np.ones((5, 1))])[0] == 5
            with d.local_feeds():
                result, rows = total([own])
                assert result == 21, result
                assert rows[:, 0].tolist() == [2, 20, 20]
        assert total([np.ones((2, 1))])[0] == 2  # a plan for rows of this number was made under local feeds
    """
    run(2, program)


def test_sharded_sequence():
    from syncline.distributed import ShardedSequence

    sequence = ShardedSequence(lambda rows: rows.tolist(), 7, 3)
    assert list(sequence) == [[0, 1, 2], [3, 4, 5], [6]] and len(sequence) == 3
    with pytest.raises(IndexError):
        sequence[3]
    for batch_size in [0, -1]:
        with pytest.raises(ValueError, match="batch_size"):
            ShardedSequence(None, 7, batch_size)
    with pytest.raises(ValueError, match="0 rows"):
        ShardedSequence(None, 0, 1)
    shuffled = ShardedSequence(lambda rows: rows.tolist(), 50, 50, shuffle=True)
    first = shuffled[0]
    shuffled.on_epoch_end()
    assert sorted(first) == sorted(shuffled[0]) == list(range(50)) and first != shuffled[0]


def test_processors_are_shared():
    # scripts/launch binds ranks only if each one has its own processor.
    program = """
        import os, syncline
        from syncline import _core
        processors = len(os.sched_getaffinity(0))
        assert _core.threads() == max(1, processors // int(os.environ["SHARERS"])), (_core.threads(), processors)
    """
    processors = len(os.sched_getaffinity(0))
    run(processors + 1, program, SHARERS=str(processors + 1), layout="one_node")
    run(1, program, SHARERS="1")


@pytest.mark.parametrize("first", ["mpi", "syncline"])
def test_mpi_of_somebody_else(first):
    """As with mpi4py, another library initializes MPI before us, or finds it initialized by us. Whichever initialized MPI finalizes it."""
    program = """
        import atexit, ctypes, sys
        mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
        flag, level = ctypes.c_int(), ctypes.c_int()
        def init():
            mpi.MPI_Initialized(ctypes.byref(flag))
            if not flag.value:
                assert mpi.MPI_Init_thread(None, None, 3, ctypes.byref(level)) == 0
                atexit.register(lambda: mpi.MPI_Finalize() == 0 and print("finalized"))
        if sys.argv[1] == "mpi":
            init()
        import syncline as K
        init()
        assert K.distributed.all_reduce(1) == 2
        print("joined")
    """
    assert run(2, program, first) == ("joined\nfinalized\n" if first == "mpi" else "joined\n")
