"""Exceptions in callbacks, generators and threads of a Keras training, sys.exit() and Ctrl-C: the exit code and the status file."""

import signal

import pytest

from faulty_training import expect_continues, on_one_and_two_ranks, state, status, train

GENERATORS = """
    class Batches(keras.utils.Sequence):
        def __len__(self):
            return 5
        def __getitem__(self, i):
            if (self.epoch, i) == (1, 2) and rank == last:
                fail()
            return x[8 * i : 8 * i + 8], y[8 * i : 8 * i + 8]
        epoch = 0
        def on_epoch_end(self):
            self.epoch += 1

    def generated():
        batches = Batches()
        while True:
            for i in range(5):
                yield batches[i]
            batches.on_epoch_end()

    def fit(batches, **keywords):
        build().fit_generator(batches, steps_per_epoch=5, epochs=4, verbose=0, callbacks=[Checkpoints(folder)], **keywords)
"""

PROGRAMS = {
    "callback": "    train(At(1, 2, fail))",
    "callback_of_the_last_rank": "    train(At(1, 2, lambda: fail() if rank == last else None))",
    "callback_of_the_first_rank": "    train(At(1, 2, lambda: fail() if rank == 0 else None))",
    "generator": GENERATORS + "    fit(generated())",
    "generator_in_the_main_thread": GENERATORS + "    fit(generated(), workers=0)",
    "sequence_in_threads": GENERATORS + "    fit(Batches(), workers=4)",
}


@on_one_and_two_ranks
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_exception(program, ranks, tmp_path):
    ended = train(ranks, PROGRAMS[program], tmp_path)
    assert ended.code == 1, ended
    assert "KeyError: 'the data set is gone'" in ended.err and "has lost a thread" not in ended.err, ended
    assert state(tmp_path) == ("failed", 1), status(tmp_path)
    assert status(tmp_path)["reason"] == "KeyError: 'the data set is gone'"
    assert (status(tmp_path)["epoch"], status(tmp_path)["checkpoint"]) == (1, "epoch-0001.h5")
    expect_continues(ranks, tmp_path, 1)


def test_an_exception_while_rank_0_still_saves(tmp_path):
    program = """
    save = keras.Model.save
    def save_slowly(*arguments, **keywords):
        time.sleep(0.2)
        save(*arguments, **keywords)
    keras.Model.save = save_slowly
    train(keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: fail() if (epoch, rank) == (1, 1) else None))
    """
    ended = train(2, program, tmp_path)
    assert ended.code == 1, ended
    assert state(tmp_path) == ("failed", 1) and status(tmp_path)["reason"] == "KeyError: 'the data set is gone'", status(tmp_path)


@on_one_and_two_ranks
def test_an_exception_that_the_script_takes(ranks, tmp_path):
    program = """
    try:
        train(At(1, 2, fail))
    except KeyError:
        print("taken")
    train()
    """
    ended = train(ranks, program, tmp_path)
    assert ended.code == 0 and ended.out.split() == ["from", "0", "taken", "from", "1"], ended
    assert state(tmp_path) == ("finished", 0)


@on_one_and_two_ranks
def test_a_thread_that_dies_and_is_not_waited_for(ranks, tmp_path):
    program = """
    def start():
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    train(At(1, 2, start))
    """
    ended = train(ranks, program, tmp_path)
    assert ended.code == 0 and "KeyError: 'the data set is gone'" in ended.err, ended
    assert state(tmp_path) == ("finished", 0)


@on_one_and_two_ranks
@pytest.mark.parametrize("code", [0, 3])
def test_a_script_that_leaves_within_fit(code, ranks, tmp_path):
    ended = train(ranks, f"train(At(1, 2, lambda: sys.exit({code})))", tmp_path)
    assert ended.code == code, ended
    assert state(tmp_path) == (("finished", "failed")[code > 0], code)


@on_one_and_two_ranks
def test_ctrl_c(ranks, tmp_path):
    ended = train(ranks, "train(At(1, 2, lambda: signal.raise_signal(signal.SIGINT)))", tmp_path)
    assert ended.code == (130 if ranks else -signal.SIGINT), ended
    assert state(tmp_path) == ("failed", 130)
    expect_continues(ranks, tmp_path, 1)
