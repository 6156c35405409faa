"""A SIGINT handler that computes, between two batches and within a function. On two ranks it may read, but must not compute alone."""

import signal

import pytest

from faulty_training import state, train

HANDLER = """
    count = K.variable(0.0)
    seen = []
    def handler(number, frame):
        value = K.eval(count * 2)
        %s
        seen.append(value)
    signal.signal(signal.SIGINT, handler)
"""

WITHIN_FUNCTIONS = """
    more = K.function([], [count], updates=[(count, count + 1)])
    a = K.variable(np.ones((400, 400)))
    long = K.function([], [K.sum(K.dot(K.dot(a, a), K.dot(a, a)))])
    stop = threading.Event()
    def disturb():
        sent = 0
        while not stop.wait(0.01):
            if len(seen) == sent:  # the handler has ended: a loaded machine gets nowhere else
                sent += 1
                os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=disturb, daemon=True)
    thread.start()
    end = time.monotonic() + 2
    calls = 0
    while time.monotonic() < end:
        more([]); long([])
        calls += 1
    stop.set()
    thread.join()
    assert K.eval(count) == calls and len(seen) >= 3, (K.eval(count), calls, len(seen))
    print("done")
"""


def test_within_functions(tmp_path):
    ended = train(0, HANDLER % "pass" + WITHIN_FUNCTIONS, tmp_path, limit=30)
    assert ended.code == 0 and ended.out == "done\n", ended


@pytest.mark.parametrize("compute", ["model.predict(x)", "model.evaluate(x, y, verbose=0)", "model.train_on_batch(x, y)"])
def test_within_fit(compute, tmp_path):
    program = HANDLER % compute + """
    model = build(2000)
    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)
    timers = [threading.Timer(delay / 10, interrupt) for delay in range(1, 6)]
    class Start(Callback):
        def on_train_begin(self, logs=None):
            for timer in timers:
                if timer.ident is None:
                    timer.start()
    x, y = np.tile(x, (500, 1)), np.tile(y, 500)
    while not seen or any(timer.is_alive() for timer in timers):  # signals that wait are one
        model.fit(x, y, 512, 1, 0, [Start(), Checkpoints(folder)] if not seen else [])
    print("done")
    """
    ended = train(0, program, tmp_path, limit=30)
    assert ended.code == 0 and ended.out == "done\n", ended
    assert state(tmp_path) == ("finished", 0)


def test_ends_the_training(tmp_path):
    program = HANDLER % "raise KeyboardInterrupt" + """
    train(At(1, 2, lambda: os.kill(os.getpid(), signal.SIGINT)))
    """
    ended = train(0, program, tmp_path, limit=30)
    assert ended.code == -signal.SIGINT and state(tmp_path) == ("failed", 130), ended


def test_forks(tmp_path):
    program = HANDLER % "pid = os.fork() or os._exit(0); os.waitpid(pid, 0)" + WITHIN_FUNCTIONS
    ended = train(0, program, tmp_path, limit=30)
    assert ended.code == 0 and ended.out == "done\n", ended


@pytest.mark.parametrize("sent_to", [[0], [1], [0, 1]])
def test_on_ranks_a_handler_may_read(sent_to, tmp_path):
    program = f"""
    count, seen = K.variable(3.0), []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(K.get_value(count)))
    model = train(At(1, 2, lambda: rank in {sent_to} and os.kill(os.getpid(), signal.SIGINT)))
    assert seen == [3.0] * (rank in {sent_to}), seen
    for weights in model.get_weights():
        assert (weights == distributed.broadcast(weights)).all()
    """
    ended = train(2, program, tmp_path, limit=60)
    assert ended.code == 0 and state(tmp_path) == ("finished", 0), ended


# The step in the handler meets a different step of the other rank.
def test_on_ranks_a_handler_that_computes_alone_ends_the_job(tmp_path):
    program = HANDLER % "pass" + """
    train(At(1, 2, lambda: rank == 1 and os.kill(os.getpid(), signal.SIGINT)))
    """
    ended = train(2, program, tmp_path, limit=60)
    assert ended.code == 65 and "every rank must run the same functions in the same order" in ended.err, ended
