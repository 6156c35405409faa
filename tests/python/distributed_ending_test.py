"""However a rank ends, the job ends within seconds, prints the reason once, and leaves no process."""

import pathlib
import re
import textwrap
import time
import uuid

import pytest

from launching import LAYOUTS, launch

# Seconds. mpirun needs 1 to 4 to end the ranks of other nodes. A main thread that waits for a dead thread is watched for 4 s first.
LIMIT = 10
WATCHED = 4

# fail() raises on the last rank. moment() writes the time to the file that the first argument names.
BEGIN = """
    import os, queue, signal, sys, threading, time
    import numpy as np
    import syncline as K
    from syncline import distributed as d
    culprit = d.rank() == d.size() - 1

    def moment():
        with open(sys.argv[1], "w") as file:
            file.write(str(time.time()))

    def fail():
        if culprit:
            moment()
            raise KeyError("the data set is gone")

    def steps(number=1000):
        x = K.placeholder((None, 2))
        double = K.function([x], [K.sum(x * 2)])
        for _ in range(number):
            double([np.ones((8, 2))])
            time.sleep(0.02)
"""

KERAS = BEGIN + """
    import keras
    from keras import layers, models
    x, y = np.ones((64, 3)), np.ones((64, 1))
    def network(*more):
        model = models.Sequential([layers.Dense(2, input_shape=(3,)), *more, layers.Dense(1)])
        model.compile("sgd", "mse")
        return model
"""

UNCAUGHT = {
    "script": BEGIN + """
    steps(3)
    fail()
    steps()
    """,
    "before_the_first_step": BEGIN + """
    fail()
    steps()
    """,
    "callback": KERAS + """
    stop = keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: fail() if batch == 3 else None)
    network().fit(x, y, epochs=1000, batch_size=8, callbacks=[stop])
    """,
    "generator": KERAS + """
    def batches():
        for i in range(100000):
            if i == 20:
                fail()
            yield x, y
    network().fit_generator(batches(), steps_per_epoch=1000, epochs=100)
    """,
    "sequence_in_worker_processes": KERAS + """
    class Batches(keras.utils.Sequence):
        def __len__(self):
            return 100
        def __getitem__(self, i):
            if i == 20:
                fail()
            return x, y
    network().fit_generator(Batches(), epochs=1000, workers=2, use_multiprocessing=True)
    """,
    "layer": KERAS + """
    class Layer(layers.Layer):
        def call(self, x):
            fail()
            return x
    model = network(Layer())
    model.fit(x, y, epochs=1000)
    """,
    "thread_that_is_waited_for": BEGIN + """
    batches = queue.Queue()
    def produce():
        for i in range(5):
            batches.put(i)
        fail()
        while True:
            batches.put(i)
            time.sleep(0.01)
    threading.Thread(target=produce, daemon=True).start()
    while True:
        batches.get()
        steps(1)
    """,
    "own_excepthook": BEGIN + """
    import traceback
    sys.excepthook = lambda *what: traceback.print_exception(*what)
    fail()
    steps()
    """,
}


# Only a rank of the same node sees the state of a rank that does not come, and reports it.
ON_ONE_NODE = {"layout": "one_node", "SYNCLINE_STALL_LIMIT": "1", "SYNCLINE_WAIT_LIMIT": "4"}


def end(ranks, program, tmp_path, **options):
    """Returns how the program ended. `seconds` counts from the time that moment() wrote, if it did. Checks that no process is left."""
    moment = tmp_path / f"moment_{uuid.uuid4().hex}"
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    ended = launch(ranks, path, str(moment), limit=90, **options)
    if moment.exists():
        ended.seconds = time.time() - float(moment.read_text())
    # mpirun does not wait for the processes of other nodes.
    for _ in range(20):
        left = [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if moment.name in text_of(p)]
        if not left:
            return ended
        time.sleep(0.1)
    raise AssertionError(f"still there: {left}\n{ended}")


def text_of(path):
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("where", UNCAUGHT)
def test_an_uncaught_exception_ends_the_job(where, ranks, tmp_path):
    ended = end(ranks, UNCAUGHT[where], tmp_path)
    print(f"{where} on {ranks} ranks: {ended.seconds:.2f} s from the exception to the end of the job")
    assert ended.code not in (0, 124, 137), ended
    assert ended.seconds < LIMIT + (WATCHED if "waited_for" in where else 0), ended
    assert "in fail" in ended.err and "KeyError: 'the data set is gone'" in ended.err, ended
    # multiprocessing prints the worker's traceback and, below it, the rank's own.
    assert ended.err.count("\nKeyError: 'the data set is gone'") <= (2 if "worker" in where else 1), ended
    # If the program replaces our hook, the other ranks report the end of the rank, but not its cause.
    assert where == "own_excepthook" or "has ended, while" not in ended.err, ended


@pytest.mark.parametrize(
    "how, code, text",
    [
        ("sys.exit(3)", 3, "rank 1 of 2 ended with exit code 3"),
        ("exit('nothing to learn from')", 1, "nothing to learn from"),
        ("os._exit(4)", None, ""),
        ("os.kill(os.getpid(), signal.SIGINT)", 130, "KeyboardInterrupt"),
    ],
)
def test_other_ends(how, code, text, tmp_path):
    program = BEGIN + f"""
    steps(3)
    if culprit:
        moment()
        {how}
        time.sleep(1)
    steps()
    """
    ended = end(2, program, tmp_path)
    print(f"{how}: {ended.seconds:.2f} s")
    assert ended.code not in (0, 124) and (code is None or ended.code == code), ended
    assert ended.seconds < LIMIT and text in ended.err, ended


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rank", range(3))
def test_a_killed_rank_ends_the_job(rank, layout, tmp_path):
    program = BEGIN + f"""
    steps(3)
    if d.rank() == {rank}:
        moment()
        os.kill(os.getpid(), signal.SIGKILL)
    steps()
    """
    ended = end(3, program, tmp_path, layout=layout)
    assert ended.code not in (0, 124) and ended.seconds < LIMIT, ended
    # mpirun prints the first text, another rank of the node the second, depending on which one detects it first.
    assert "signal 9" in ended.err or f"rank {rank} has died: its process is gone" in ended.err, ended


def test_a_rank_that_ends_early_is_named(tmp_path):
    program = BEGIN + """
    steps(3)
    if culprit:
        moment()
    else:
        steps()
    """
    ended = end(3, program, tmp_path)
    assert ended.code == 65 and ended.seconds < LIMIT, ended
    assert ended.err.count("DisagreementError: the program of rank 2 has ended, while rank 0 goes on with") == 1, ended
    assert "in steps" in ended.err, ended


def test_a_stopped_rank_is_named(tmp_path):
    program = KERAS + """
    def stop(batch, logs):
        if culprit and batch == 3:
            moment()
            os.kill(os.getpid(), signal.SIGSTOP)
    network().fit(x, y, epochs=1000, batch_size=8, callbacks=[keras.callbacks.LambdaCallback(on_batch_end=stop)])
    """
    ended = end(3, program, tmp_path, **ON_ONE_NODE)
    assert ended.code == 66 and ended.seconds < LIMIT, ended
    reports = [line for line in ended.err.splitlines() if line.startswith("syncline: rank 0 of 3 has waited ")]
    assert reports and all("rank 2 (stopped by a signal or a debugger, after step " in line for line in reports), ended
    assert "syncline: rank 1 of 3 has waited" not in ended.err, ended
    assert ended.err.count("StallError: rank ") == 1 and "in fit" in ended.err, ended


def test_a_rank_that_is_stopped_behind_its_last_step_is_named(tmp_path):
    program = BEGIN + """
    steps(3)
    if culprit:
        moment()
        os.kill(os.getpid(), signal.SIGSTOP)
    """
    ended = end(2, program, tmp_path, **ON_ONE_NODE)
    assert ended.code == 66, ended
    reports = [line for line in ended.err.splitlines() if line.startswith("syncline: rank 0 of 2 has waited ")]
    assert reports and all("rank 1 (stopped by a signal or a debugger" in line for line in reports), ended


def test_a_rank_that_never_joins_is_waited_for_within_the_limit(tmp_path):
    program = """
    import os, sys, time
    if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
        with open(sys.argv[1], "w") as file:
            file.write(str(time.time()))
        os._exit(0)
    import syncline
    """
    ended = end(2, program, tmp_path, SYNCLINE_STALL_LIMIT="0.5", SYNCLINE_WAIT_LIMIT="2")
    assert ended.code == 66 and ended.seconds < LIMIT, ended
    assert "rank 0 of 2 is starting and waits for the other ranks to join" in ended.err, ended


def test_what_fails_everywhere_is_told_once(tmp_path):
    ended = end(3, BEGIN + "    moment()\n    K.no_such_thing", tmp_path)
    assert ended.code == 1 and ended.err.count("AttributeError") == 1 and "rank 0 of 3 ends the job" in ended.err, ended


def test_equal_exit_codes_are_no_failure_of_the_job(tmp_path):
    ended = end(3, BEGIN + "    steps(3)\n    moment()\n    sys.exit(5)", tmp_path)
    assert ended.code == 5 and ended.seconds < LIMIT and "syncline: rank" not in ended.err and "ABORT" not in ended.err, ended


GOOD_ENDS = {
    "one_is_late": """
    steps(3)
    time.sleep(5 if culprit else 0)
    """,
    "a_thread_that_nobody_waits_for_dies": """
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    for _ in range(5):
        steps(1)
        time.sleep(1)
    """,
    "an_error_that_all_ranks_take": """
    try:
        d.all_reduce(1) if culprit else d.all_reduce(1.0)
        raise SystemExit("no error")
    except RuntimeError:
        pass
    """,
}


@pytest.mark.parametrize("how", GOOD_ENDS)
def test_good_ends(how, tmp_path):
    ended = end(2, BEGIN + GOOD_ENDS[how].rstrip() + "\n    print('done')\n", tmp_path)
    assert ended.code == 0 and ended.out == "done\n", ended


def test_a_rank_that_is_busy_behind_its_last_step_is_waited_for(tmp_path):
    program = BEGIN + """
    steps(3)
    time.sleep(8 if culprit else 0)
    print('done')
    """
    ended = end(2, program, tmp_path, SYNCLINE_STALL_LIMIT="1", SYNCLINE_WAIT_LIMIT="4")
    assert ended.code == 0 and ended.out == "done\n", ended
    assert re.search(r"syncline: rank 0 of 2 has waited [5-9]\.", ended.err), ended
