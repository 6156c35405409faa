"""Two jobs with one folder, repeated signals, stopped and killed ranks: how a Keras training ends, and which files it leaves."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from faulty_training import BEGIN, expect_continues, expect_order, on_one_and_two_ranks, state, status, train
from launching import LAYOUTS, on_ranks

# The second epoch waits for the file FOLDER.go.
WAITING = """
def wait():
    begin = time.monotonic()
    while not os.path.exists(folder + ".go") and time.monotonic() - begin < 60:
        time.sleep(0.02)
train(At(1, 0, wait))
"""


def start(ranks, program, folder, layout=None):
    """Starts a job in its own process group and waits for its first checkpoint."""
    command = on_ranks(ranks, [sys.executable, "-c", BEGIN + textwrap.dedent(program), str(folder)], layout)
    process = subprocess.Popen(["timeout", "-k", "5", "60", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "KERAS_BACKEND": "syncline"}, start_new_session=True)
    begin = time.monotonic()
    while not (folder / "epoch-0001.h5").exists() and time.monotonic() - begin < 30:
        time.sleep(0.02)
    return process


@on_one_and_two_ranks
def test_a_second_job_on_the_folder(ranks, tmp_path):
    folder = tmp_path / "run"
    first = start(ranks, WAITING, folder, "one_node")  # in the other layouts processes and nodes have other names
    second = train(ranks, "train()", folder, layout="one_node")
    assert state(folder) == ("running", None)
    (tmp_path / "run.go").touch()
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0, out + err
    assert second.code == 1, second
    assert second.err.count(f"\nOSError: Checkpoints: cannot use '{folder}': another job writes to '{folder}': process ") == 1, second
    assert f" on {os.uname().nodename}, since " in second.err and "Give each job a folder of its own" in second.err, second
    assert state(folder) == ("finished", 0)
    expect_order(folder, "epoch-0002.h5", "epoch-0003.h5", "epoch-0004.h5")


@pytest.mark.parametrize(
    "begin, epochs, places",
    [
        ("(model, 2)", 6, "rank 0 at epoch 4 from epoch-0004.h5, rank 1 at epoch 2 from epoch-0004.h5"),
        ("(model, 2)", 4, "rank 0 at its end from epoch-0004.h5, rank 1 at epoch 2 from epoch-0004.h5"),
        ("(new, 0)", 6, "rank 0 at epoch 4 from epoch-0004.h5, rank 1 at epoch 0 from no checkpoint"),
    ],
)
def test_ranks_that_begin_at_different_places(begin, epochs, places, tmp_path):
    folder = tmp_path / "run"
    assert train(2, "train()", folder).code == 0
    program = f"""
    load = load_latest
    def load_latest(folder):
        (model, epoch), new = load(folder), build()
        new._make_train_function()
        return (model, epoch) if rank == 0 else {begin}
    train(epochs={epochs})
    """
    ended = train(2, program, folder)
    text = f"Checkpoints: the ranks begin at different places: {places}. Give every rank the model"
    assert ended.code == 1 and ended.err.count(f"\nOSError: {text}") == 1, ended
    assert state(folder) == ("failed", 1) and status(folder)["reason"].startswith(f"OSError: {text}")
    expect_order(folder, "epoch-0002.h5", "epoch-0003.h5", "epoch-0004.h5")


def test_only_rank_0_sees_the_folder(tmp_path):
    folder = tmp_path / "run"
    assert train(2, "train(epochs=2)", folder).code == 0
    damaged = folder / "epoch-0002.h5"
    damaged.write_bytes(damaged.read_bytes()[:3000])
    ended = train(3, 'folder = folder if rank == 0 else "/nowhere"; train(epochs=3)', folder)
    assert ended.code == 0 and ended.out.split()[-2:] == ["from", "1"] and ended.err.count("cannot be read") == 1, ended
    assert state(folder) == ("finished", 0)


@on_one_and_two_ranks
def test_a_killed_job_is_in_nobodys_way(ranks, tmp_path):
    folder = tmp_path / "run"
    first = start(ranks, WAITING, folder)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=30)
    subprocess.run(["pkill", "-KILL", "-f", str(folder)], check=False)  # ranks have process groups of their own
    assert state(folder) == ("running", None)
    begin = time.monotonic()
    expect_continues(ranks, folder, 1)
    assert time.monotonic() - begin < 30


@on_one_and_two_ranks
def test_a_second_signal_on_the_way_out(ranks, tmp_path):
    program = """
    import atexit
    def signal_all():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGUSR2)
    class Late:  # goes when the interpreter does
        def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGUSR1):
            kill(pid, number)
    sys.late = Late()
    atexit.register(signal_all)
    train(At(1, 2, lambda: os.kill(os.getpid(), signal.SIGUSR1)))
    """
    ended = train(ranks, program, tmp_path)
    assert ended.code == 75 and "Traceback" not in ended.err, ended
    assert state(tmp_path) == ("saved", 75) and status(tmp_path)["reason"] == "SIGUSR1"
    expect_order(tmp_path, "epoch-0001.h5", "epoch-0001-batch-000003.h5")
    expect_continues(ranks, tmp_path, 1)


@on_one_and_two_ranks
def test_who_takes_the_end_for_no_end_has_its_handlers_back(ranks, tmp_path):
    program = """
    def mine(number, frame):
        print("mine")
    signal.signal(signal.SIGUSR2, mine)
    try:
        train(At(1, 2, lambda: os.kill(os.getpid(), signal.SIGUSR1)))
    except SystemExit as leaving:
        assert leaving.code == 75
        os.kill(os.getpid(), signal.SIGUSR2)  # this may be its way out
    assert signal.getsignal(signal.SIGUSR2) is mine and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    print("goes on")
    """
    ended = train(ranks, program, tmp_path)
    assert ended.code == 0 and ended.out.split("\n")[-2] == "goes on" and "mine" not in ended.out, ended
    assert state(tmp_path) == ("saved", 75)


@on_one_and_two_ranks
def test_handlers_are_given_back(ranks, tmp_path):
    program = """
    def mine(number, frame):
        pass
    signal.signal(signal.SIGUSR1, mine)
    def raised():
        try:
            train(At(1, 1, fail))
        except KeyError:
            return True
    for trial in range(2):
        assert raised()
        assert signal.getsignal(signal.SIGUSR1) is mine and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    train()
    assert signal.getsignal(signal.SIGUSR1) is mine
    print("done")
    """
    ended = train(ranks, program, tmp_path)
    assert ended.code == 0 and "done" in ended.out, ended
    assert state(tmp_path) == ("finished", 0)


@on_one_and_two_ranks
def test_fit_in_another_thread(ranks, tmp_path):
    program = """
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    """
    ended = train(ranks, program, tmp_path)
    assert ended.code == 0 and "Traceback" not in ended.err, ended
    assert state(tmp_path) == ("finished", 0)


@pytest.mark.parametrize("which", [0, 1])
def test_a_stopped_rank(which, tmp_path):
    program = f"""
    def stop():
        if rank == {which}:
            os.kill(os.getpid(), signal.SIGSTOP)
    train(At(1, 2, stop))
    """
    # Ranks on other nodes do not see that it is stopped.
    ended = train(2, program, tmp_path, layout="one_node", SYNCLINE_STALL_LIMIT="1", SYNCLINE_WAIT_LIMIT="3")
    assert ended.code == 66, ended
    assert f"rank {which} (stopped by a signal or a debugger" in ended.err, ended
    # mpirun continues a stopped rank 0 before it kills it; rank 0 may then report that rank 1 has left.
    assert 1 <= ended.err.count("\nsyncline.distributed.StallError: ") <= 2 - which, ended
    # The training itself has not failed; it can resume from its last checkpoint.
    assert state(tmp_path) == ("saved", None)
    expect_continues(2, tmp_path, 1)


@pytest.mark.parametrize("at, begins", [("0, 1", 0), ("1, 2", 1)])
def test_the_status_of_a_killed_rank_is_where_training_goes_on(at, begins, tmp_path):
    program = f"""
    def die():
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    train(At({at}, die))
    """
    ended = train(2, program, tmp_path)
    assert ended.code in (66, 137), ended
    told = status(tmp_path)
    if told["state"] == "running":  # mpirun ended the other rank before it wrote the status
        return
    assert told["state"] == "saved" and told["exit_code"] is None, told
    assert (told["epoch"], told["step"]) == (begins, 0) and (told["global_step"] > 0) == (begins > 0), told
    assert told["checkpoint"] == ("epoch-0001.h5" if begins else None), told


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", [0, 1])
def test_a_killed_rank(which, layout, tmp_path):
    program = f"""
    def die():
        if rank == {which}:
            os.kill(os.getpid(), signal.SIGKILL)
    train(At(1, 2, die))
    """
    ended = train(2, program, tmp_path, layout=layout)
    assert ended.code in (66, 137), ended
    # mpirun may end the other rank before it writes the status.
    assert state(tmp_path) in (("saved", None), ("running", None)), status(tmp_path)
    expect_continues(2, tmp_path, 1)
