"""Only the primary rank writes Keras's files; no rank reads a partial file, and no rank waits for one that does not come."""

import pytest

from launching import launch, run

BEGIN = """
    import os, sys, time
    import numpy as np, keras
    from keras import layers, models
    from syncline import distributed as d
    rank = d.rank()
    x, y = np.ones((8, 3)), np.ones((8, 1))
    def network(width=2):
        model = models.Sequential([layers.Dense(width, input_shape=(3,)), layers.Dense(1)])
        model.compile("sgd", "mse")
        return model
    class Fails(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise KeyError("of the program")
"""

PROGRAMS = {
    # The model is large, so that writing takes a while; the code after the call must find the whole file.
    "saved_file_is_there": """
    for trial in range(5):
        model = network(300000)
        model.fit(x, y, epochs=1, verbose=0)
        path = "model%d.h5" % trial
        model.save(path)
        assert os.path.exists(path)
        size = os.path.getsize(path)
        loaded = models.load_model(path)
        for a, b in zip(model.get_weights(), loaded.get_weights()):
            assert (a == b).all()
        model.save_weights("same.h5")
        model.load_weights("same.h5")
        assert size == d.broadcast(size)
    """,
    "other_ranks_open_nothing_for_writing": """
    import builtins, io
    import h5py
    model = network()
    if rank != 0:
        os.mkdir("only%d" % rank)
        os.chdir("only%d" % rank)  # relative paths now lead elsewhere
    model.save("a.h5")
    model.save_weights("b.h5")
    model.fit(x, y, verbose=0, callbacks=[keras.callbacks.CSVLogger("c.csv"), keras.callbacks.ModelCheckpoint("d.h5")])
    assert sorted(os.listdir(".")) == ([] if rank else ["a.h5", "b.h5", "c.csv", "d.h5", "only1"]), os.listdir(".")
    """,
    # Rank 0 cannot open the file; the others do not wait for it.
    "a_file_that_cannot_be_opened": """
    model = network()
    begin = time.monotonic()
    for save in model.save, model.save_weights:
        try:
            save("none/a.h5")
            assert rank != 0
        except OSError:
            assert rank == 0
    d.barrier()
    assert time.monotonic() - begin < 30
    """,
    # Rank 0 writes for longer than the limit. While the file changes the others wait; then they end, and do not write it.
    "a_slow_file_is_waited_for": """
    from keras.engine import saving
    from syncline.distribution import files
    files._core.wait_limit = lambda: 2
    original, changes = saving.save_weights_to_hdf5_group, 0
    def slowly(group, layers):
        original(group, layers)
        for second in range(6 * (rank == 0)):
            if second < changes:
                group.attrs["second"] = second
                group.file.flush()
            time.sleep(1)
    saving.save_weights_to_hdf5_group = slowly
    model, changes = network(), 6
    model.save_weights("slow.h5")
    model.load_weights("slow.h5")
    changes, stalled = 0, False
    try:
        model.save_weights("hung.h5")
    except d.StallError as error:
        stalled = "rank 0 has begun to write 'hung.h5'" in str(error)
    assert stalled == (rank != 0)
    d.barrier()
    model.load_weights("hung.h5")
    """,
    "a_name_that_is_not_text": """
    name = os.fsdecode(b"l\\xff.h5")
    network().save(name)
    models.load_model(name)
    """,
    # The old file is sparse and has a terabyte: a rank that read it before writing would run out of memory.
    "old_files_are_not_read": """
    model = network()
    if rank == 0:
        with open("old.h5", "wb") as file:
            file.truncate(1 << 40)
    d.barrier()
    if rank == 0:
        time.sleep(1)  # the others come first
    model.save_weights("old.h5")
    model.load_weights("old.h5")
    assert os.path.getsize("old.h5") < 1 << 20 and os.listdir(".") == ["old.h5"], os.listdir(".")
    """,
    "guarded_by_the_program": """
    begin = time.monotonic()
    model = network()
    if rank == 0:
        model.save("a.h5")
        assert os.path.getsize("a.h5")
    model.fit(x, y, verbose=0)
    if rank == 0:
        model.save_weights("b.h5")
    d.barrier()
    model.load_weights("b.h5")
    model.fit(x, y, verbose=0)
    assert time.monotonic() - begin < 30
    """,
    # Steps tell a save of rank 0 alone from a later save of the same name that all ranks make, however late rank 0 comes to it.
    "guarded_first_and_later_not": """
    model = network()
    if rank == 0:
        model.save("a.h5")
        model.save("b.h5")
    model.fit(x, y, verbose=0)
    if rank == 0:
        time.sleep(6)
    model.save("a.h5")
    for a, b in zip(model.get_weights(), models.load_model("a.h5").get_weights()):
        assert (a == b).all()
    d.barrier()
    if rank == 0:
        time.sleep(1)
        os.remove("b.h5")
    model.save("b.h5")
    models.load_model("b.h5")
    """,
    "own_files_are_left_alone": """
    import h5py
    with open("mine.%d" % rank, "w") as file:
        file.write("text")
    with h5py.File("mine.%d.h5" % rank, "w") as file:
        file["x"] = x
    np.savez("mine.%d.npz" % rank, x=x)
    assert open("mine.%d" % rank).read() == "text" and h5py.File("mine.%d.h5" % rank, "r")["x"].shape == x.shape
    with open("json.%d" % rank, "w") as file:
        file.write(network().to_json())
    d.barrier()
    assert len(os.listdir(".")) == 4 * d.size()
    """,
    "to_memory": """
    import io, pickle
    model = network()
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    again = models.load_model(buffer)
    assert (again.predict(x) == model.predict(x)).all()
    assert (pickle.loads(pickle.dumps(model)).predict(x) == model.predict(x)).all()
    assert os.listdir(".") == []
    """,
    "temporary_files_are_everybody's": """
    import tempfile
    begin = time.monotonic()
    model = network()
    handle, path = tempfile.mkstemp(".h5")
    os.close(handle)
    with tempfile.TemporaryDirectory() as folder:
        for name in [path, os.path.join(folder, "model.h5")]:
            model.save(name)
            assert (models.load_model(name).predict(x) == model.predict(x)).all()
            os.remove(name)
    assert time.monotonic() - begin < 30
    path = "model.%d.h5" % os.getpid()
    model.save(path)
    assert (models.load_model(path).predict(x) == model.predict(x)).all()
    os.remove(path)
    """,
    "append_to_a_log": """
    logger = keras.callbacks.CSVLogger("log.csv", append=True)
    network().fit(x, y, epochs=2, verbose=0, callbacks=[logger])
    network().fit(x, y, epochs=2, verbose=0, callbacks=[logger])
    lines = open("log.csv").read().split()
    assert len(lines) == 5 and lines[0] == "epoch,loss", lines
    """,
    "log_again_after_an_error": """
    for fails in True, True, False, False:
        if fails:
            logger = keras.callbacks.CSVLogger("log.csv")
        begin = time.monotonic()
        try:
            network().fit(x, y, epochs=2, verbose=0, callbacks=[logger, *([Fails()] if fails else [])])
        except KeyError:
            assert fails
        assert time.monotonic() - begin < 30
    network().fit(x, y, epochs=2, verbose=0, callbacks=[keras.callbacks.CSVLogger("log.csv")])
    assert len(open("log.csv").read().split()) == 3
    """,
    # The loggers whose `fit` has raised are collected on one rank only.
    "log_again_after_a_collection": """
    import gc
    def fail():
        try:
            network().fit(x, y, verbose=0, callbacks=[keras.callbacks.CSVLogger("log.csv"), Fails()])
        except KeyError as error:
            kept = error  # a reference cycle
    for who in 0, 1:
        fail()
        if rank == who:
            gc.collect()
        begin = time.monotonic()
        network().fit(x, y, epochs=2, verbose=0, callbacks=[keras.callbacks.CSVLogger("log.csv")])
        assert len(open("log.csv").read().split()) == 3
        assert time.monotonic() - begin < 30
    """,
    "fetched_once": """
    import tarfile
    os.environ["KERAS_HOME"] = os.path.abspath("home")
    origin = "origin/archive.tar.gz"
    if rank == 0:
        os.mkdir("origin")
        with open("origin/data", "wb") as file:
            file.write(os.urandom(30000000))
        with tarfile.open(origin, "w:gz", compresslevel=1) as archive:
            archive.add("origin/data", "data")
    d.barrier()
    before = time.time()
    path = keras.utils.get_file("archive.tar.gz", "file://" + os.path.abspath(origin), extract=True)
    unpacked = os.path.join(os.path.dirname(path), "data")
    assert open(unpacked, "rb").read() == open("origin/data", "rb").read()
    assert os.stat(unpacked).st_ino == d.broadcast(os.stat(unpacked).st_ino)
    d.barrier()
    """,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_files(program, tmp_path):
    run(2, BEGIN + PROGRAMS[program].rstrip() + "\n    print('done')\n", folder=tmp_path, limit=180)


def test_a_folder_that_the_nodes_do_not_share_is_named(tmp_path):
    program = """
    path = "/dev/shm/syncline_own.h5"  # a node's own there
    model = network()
    model.save(path)
    model.fit(x, y, verbose=0)
    if rank == 0:
        os.remove(path)
    """
    ended = launch(2, BEGIN + program, folder=tmp_path, layout="by_node")
    assert ended.code == 0, ended
    told = "rank 1 does not find '/dev/shm/syncline_own.h5', which rank 0 has written"
    assert ended.err.count(told) == 1 and "save to a folder that all nodes share" in ended.err, ended


FETCH = """
    import hashlib, pathlib
    os.environ["KERAS_HOME"] = os.path.abspath("home")
    os.makedirs("home", exist_ok=True)
    origin = pathlib.Path("origin").resolve()
    if rank == 0:
        origin.write_bytes(bytes(3000000))
    d.barrier()
    time.sleep(1 - rank)  # the other rank comes first
    with open(keras.utils.get_file("data", origin.as_uri()), "rb") as file:
        assert file.read() == bytes(3000000)
"""


def test_whoever_fetches_a_file_says_so(tmp_path):
    ended = launch(2, BEGIN + FETCH, folder=tmp_path, limit=60)
    assert ended.code == 0 and ended.out.count("Downloading data from file:///") == 1, ended


def test_a_file_system_without_locks(tmp_path):
    program = """
    import errno, fcntl
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")
    fcntl.flock = flock
    """
    ended = launch(2, BEGIN + program + FETCH, folder=tmp_path, limit=60)
    assert ended.code == 0 and ended.out.count("Downloading data from file:///") == 1, ended


def test_names_of_temporary_files_are_forgotten():
    program = """
    import tempfile
    from syncline.distribution import files
    names = tempfile._RandomNameSequence()
    for _ in range(5000):
        last = next(names)
    assert len(files._temporary_names) <= 1000 and files._is_of_this_process("/tmp/" + last)
    """
    run(2, BEGIN + program)
