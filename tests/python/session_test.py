"""Features that need several calls: variables, updates, functions, phases, names, control flow."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse

import syncline as K
from launching import launch


def test_variables():
    v = K.variable(np.arange(3), name="weights")
    assert (v.dtype, v.shape, K.is_variable(v), K.is_tensor(v)) == ("float32", (3,), True, True)
    K.set_value(v, [1, 2, 3])
    w = K.variable(7, dtype="int64")
    K.batch_set_value([(v, np.ones(3)), (w, 2)])
    np.testing.assert_array_equal(K.batch_get_value([v])[0], [1, 1, 1])
    K.batch_set_value([(v, 0)])  # as Keras resets metrics
    assert K.get_value(v).sum() == 0 and K.get_value(w) == 2
    assert K.eval(K.variable(K.random_uniform((2, 2), 3, 4))).min() >= 3
    assert not K.is_variable(3) and not K.is_variable(K.placeholder(()))


def test_batch_set_value_sets_all_or_none():
    v, w = K.zeros((2,)), K.zeros((3,))
    with pytest.raises(ValueError):
        K.batch_set_value([(v, [1, 1]), (w, [1, 1])])
    assert K.get_value(v).sum() == 0


def test_updates_see_the_values_from_before():
    v, w = K.variable(1.0), K.variable(10.0)
    f = K.function([], [v, w], [K.update(v, w), (w, v + 1), K.update_add(K.variable(0.0), v)])
    assert f([]) == [1, 10] and (K.get_value(v), K.get_value(w)) == (10, 2)


def test_eval_carries_out_an_update():
    v = K.variable(1.0)
    assert K.eval(K.update_add(v, 2)) == 3 and K.get_value(v) == 3
    K.eval(K.moving_average_update(v, 1.0, 0.5))
    assert K.get_value(v) == 2
    K.eval(K.update_sub(v, np.float64(0.5)))
    assert K.function([], [K.update(v, 5)])([]) == [5] and K.get_value(v) == 5


def test_moves_of_a_variable_add_up_in_order():
    v = K.variable(1.0)
    K.function([], [], [K.update_add(v, 1), K.moving_average_update(v, 10, 0.5), K.update_sub(v, 2)])([])
    assert K.get_value(v) == 4
    once = K.update_add(v, 1)
    K.function([], [], [once, [once]])([])
    assert K.get_value(v) == 5


def test_of_several_new_values_the_last_counts():
    v = K.variable(1.0)
    K.function([], [], [K.update(v, v + 1), (v, v * 10), K.update_add(v, 2)])([])
    assert K.get_value(v) == 12
    K.function([], [], [K.update_add(v, 2), K.update(v, v * 10)])([])
    assert K.get_value(v) == 120


def test_control_dependencies():
    total = K.variable(1.0)
    added = K.update_add(total, 5)
    with K.control_dependencies([added]):
        after = total * 2
    before = total * 2
    assert K.function([], [before, after], [added])([]) == [2, 12]
    assert K.function([], [before, after], [added])([]) == [12, 22]


def test_learning_phase():
    K.clear_session()
    x = K.placeholder((None,))
    y = K.in_train_phase(x * 2, lambda: x)
    assert y._uses_learning_phase
    f = K.function([x, K.learning_phase()], [y])
    assert f([[3.0], 1])[0] == 6 and f([[3.0], 0])[0] == 3
    assert K.function([x], [y])([[3.0]])[0] == 3  # without a fed phase: testing
    assert K.learning_phase() is K.learning_phase()
    K.set_learning_phase(1)
    try:
        assert K.learning_phase() == 1 and K.function([x], [K.in_train_phase(x * 2, x)])([[3.0]])[0] == 6
    finally:
        K.clear_session()
    assert K.is_tensor(K.learning_phase())


def test_a_phase_from_before_clear_session_is_the_one_that_is_fed():
    x = K.placeholder((None,))
    y = K.in_train_phase(x * 2, x)
    K.clear_session()
    f = K.function([x, K.learning_phase()], [y])
    assert f([[3.0], 1])[0] == 6 and f([[3.0], 0])[0] == 3


def test_the_phase_within_and_before_a_loop():
    x = K.placeholder((None, 2, 1))
    for inputs, factor in (K.in_train_phase(x * 2, x), lambda e: e), (x, lambda e: K.in_train_phase(e * 2, e) + 0), (x, lambda e: e):
        last, _, _ = K.rnn(lambda e, states: (factor(e), [factor(e) + states[0]]), inputs, [K.zeros((1, 1))])
        depends = K.function([x, K.learning_phase()], [last])([np.ones((1, 2, 1)), 1])[0].item() == 2
        assert last._uses_learning_phase == depends


def test_names():
    K.clear_session()
    with K.name_scope("dense_1"):
        kernel, bias = K.zeros((1,), name="kernel"), K.variable(0, name="kernel")
        with K.name_scope("inner"):
            assert K.zeros((1,), name="w").name == "dense_1/inner/w:0"
    assert (kernel.name, bias.name) == ("dense_1/kernel:0", "dense_1/kernel_1:0")
    assert (K.get_uid("dense"), K.get_uid("dense")) == (1, 2)
    K.reset_uids()
    assert K.get_uid("dense") == 1


def test_gradients():
    x, w = K.placeholder((None, 2)), K.variable([[1.0], [2.0]])
    loss = K.sum(K.square(K.dot(x, w)))
    gradient, none = K.gradients(loss, [w, K.variable(1.0)])
    assert none is None
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    expected = 2 * rows.T @ (rows @ [[1.0], [2.0]])
    np.testing.assert_allclose(K.function([x], [gradient])([rows])[0], expected)
    assert K.gradients(loss, []) == []


def test_sparse():
    matrix = scipy.sparse.csr_matrix(np.array([[0, 1.0], [2, 0], [0, 0]]))
    v = K.variable(matrix)
    assert K.is_sparse(v) and K.is_variable(v)
    np.testing.assert_array_equal(K.eval(K.dot(v, K.variable(np.eye(2)))), matrix.toarray())
    np.testing.assert_array_equal(K.get_value(v).toarray(), matrix.toarray())
    x = K.placeholder((None, 2), sparse=True)
    y = K.to_dense(x)
    for given in (matrix, matrix.tocoo(), matrix.toarray()):
        np.testing.assert_array_equal(K.function([x], [y])([given])[0], matrix.toarray())
    dense = K.placeholder((None, 2))
    np.testing.assert_array_equal(K.function([dense], [dense + 0])([matrix])[0], matrix.toarray())


def test_recurrence():
    x = K.placeholder((None, 4, 2))

    def step(x, states):
        return x + states[0] * states[1], [states[0] + x]

    last, outputs, states = K.rnn(step, x, [K.zeros_like(x[:, 0])], constants=[K.constant(2.0)])
    values = np.random.rand(3, 4, 2).astype("float32")
    sums = np.cumsum(values, axis=1)
    expected = values + 2 * np.concatenate([np.zeros((3, 1, 2)), sums[:, :-1]], 1)
    got = K.function([x], [last, outputs, states[0]])([values])
    for result, wanted in zip(got, (expected[:, -1], expected, sums[:, -1])):
        np.testing.assert_allclose(result, wanted, rtol=1e-5)


def test_folds_and_maps():
    x = K.variable(np.arange(1.0, 5.0))
    assert K.eval(K.foldl(lambda a, b: a * 2 + b, x)) == ((1 * 2 + 2) * 2 + 3) * 2 + 4
    assert K.eval(K.foldr(lambda a, b: a - b, x, 0.0)) == -10
    np.testing.assert_array_equal(K.eval(K.map_fn(lambda e: e * e, x)), [1, 4, 9, 16])
    np.testing.assert_array_equal(K.eval(K.map_fn(lambda e: e[0] + e[1], (x, x))), [2, 4, 6, 8])


def test_switch_is_lazy():
    flag = K.placeholder((), dtype="bool")
    table = K.ones((1, 1))
    wrong = K.gather(table, K.constant([9], "int32"))  # fails if it is computed
    f = K.function([flag], [K.switch(flag, lambda: wrong, lambda: table * 2)])
    assert f([False])[0] == 2
    with pytest.raises(ValueError):
        f([True])


def test_an_error_in_a_callback_is_pythons_own():
    def step(x, states):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        K.rnn(step, K.placeholder((None, 3, 2)), [])
    with pytest.raises(KeyError):
        K.switch(K.placeholder((), dtype="bool"), lambda: {}["x"], lambda: K.constant(1.0))


def test_random_numbers_follow_numpys_seed():
    def draw():
        K.clear_session()
        np.random.seed(3)
        return K.eval(K.random_normal((5,)))

    first = draw()
    assert not np.array_equal(first, K.eval(K.random_normal((5,))))
    x = K.placeholder((1000,))
    kept = K.function([x], [K.dropout(x, 0.25)])([np.ones(1000)])[0]
    assert set(np.unique(kept)) == {np.float32(0), np.float32(1 / 0.75)} and 150 < (kept == 0).sum() < 350


def test_equal_seeds_draw_equal_numbers():
    x, y = K.random_uniform((5,), seed=7), K.random_uniform((5,), seed=7)
    third, fourth = K.function([], [x, y])([])
    np.testing.assert_array_equal(third, fourth)
    f = K.function([], [K.random_normal((5,))])
    assert not np.array_equal(f([]), f([]))  # each step draws anew


def test_threads_take_turns():
    x = K.placeholder((200, 200))
    f = K.function([x], [K.sum(K.dot(x, x))])
    results = []
    threads = [threading.Thread(target=lambda: results.append(float(f([np.eye(200)])[0])), daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [200.0] * 8


def test_print_tensor(capfd):
    x = K.print_tensor(K.constant([[1.0]]), "msg")
    K.eval(x)
    assert "msg" in capfd.readouterr().out


# Standard output is an object of the program, whose write() computes and raises a signal.
COMPUTING_OUTPUT = """
import io, signal, sys
import syncline as K
class Out(io.StringIO):
    def write(self, text):
        super().write(text)
        if "seen" in text:
            assert K.eval(K.constant(2.0) * 3) == 6
            signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, lambda *_: kept.append(K.get_value(v)))
kept, v, true, sys.stdout = [], K.variable(1.0), sys.stdout, Out()
f = K.function([], [K.print_tensor(v, "seen")], [K.update_add(v, 1)])
f([])
wrong = K.gather(K.ones((1, 1)), K.print_tensor(K.constant([9], "int32"), "of a step that fails"))
try:
    K.eval(wrong)
except ValueError:
    pass
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    f([])
except KeyboardInterrupt:
    print("stopped", kept, K.get_value(v))
print(sys.stdout.getvalue(), file=true)
"""


def test_print_tensor_to_an_output_that_computes():
    run = subprocess.run([sys.executable, "-c", COMPUTING_OUTPUT], capture_output=True, timeout=60)
    assert run.stdout.decode().split("\n")[:4] == ["seen 1.0", "of a step that fails [9]", "seen 2.0", "stopped [2.0] 3.0"], run


INTERRUPTED = """
import signal, threading, time, numpy as np, os
import syncline as K
v = K.variable(1.0)
x = K.placeholder((400, 400))
y = x
for _ in range(300):
    y = K.dot(y, x)
f = K.function([x], [K.sum(y)], [K.update_add(v, 1)])
if HANDLER:
    signal.signal(signal.SIGINT, lambda *_: os.write(1, b"handled\\n"))  # print() may be under way
threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.time()
try:
    f([np.eye(400)])
    print("ended", K.get_value(v), flush=True)
except KeyboardInterrupt:
    print("stopped", K.get_value(v), time.time() - begin < 2)
f([np.eye(400)])
print(K.get_value(v))
"""


@pytest.mark.parametrize("handler, printed", [(0, ["stopped 1.0 True", "2.0"]), (1, ["handled", "ended 2.0", "3.0"])])
def test_ctrl_c_stops_between_nodes(handler, printed):
    script = INTERRUPTED.replace("HANDLER", str(handler))
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120)
    assert run.stdout.decode().split("\n")[:-1] == printed, run.stderr.decode()


# A signal handler that computes, sets a variable and forks during a step.
COMPUTING_HANDLER = """
def handle(*_):
    assert K.eval(K.constant(2.0) * 3) == 6
    assert other([np.ones((3, 3))])[0] == 9
    K.set_value(v, K.get_value(v) + 10)
    child = os.fork()
    if child == 0:
        os._exit(int(K.eval(K.constant(7))))
    assert os.waitpid(child, 0)[1] == 7 << 8
    print("handled", flush=True)
z = K.placeholder((None, 3))
other = K.function([z], [K.sum(z)])
signal.signal(signal.SIGINT, handle)
"""


def test_a_handler_may_compute_and_fork():
    script = INTERRUPTED.replace("if HANDLER:", COMPUTING_HANDLER + "if False:")
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert run.stdout.decode().split("\n")[:-1] == ["handled", "ended 12.0", "13.0"], run.stderr.decode()


def test_signals_that_come_all_the_time_do_not_keep_a_step_from_its_end():
    script = INTERRUPTED.replace("HANDLER", "True").replace(
        "threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()",
        "threading.Thread(target=lambda: [(time.sleep(0.02), os.kill(os.getpid(), signal.SIGINT)) for _ in range(3000)], "
        "daemon=True).start()",
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert [line for line in run.stdout.decode().split("\n")[:-1] if line != "handled"] == ["ended 2.0", "3.0"], run.stderr.decode()


# Another thread reads a variable while steps update it and calls set it. Each read must return a whole value.
def test_values_are_read_between_steps():
    v = K.variable(np.zeros((300, 1000)))
    f = K.function([], [], [K.update_add(v, K.ones_like(v))])
    ended, torn = threading.Event(), []

    def read():
        while not ended.is_set():
            value = K.get_value(v)
            if value.min() != value.max():
                torn.append((value.min(), value.max()))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    for step in range(300):
        f([])
        if step % 10 == 0:
            K.set_value(v, np.full((300, 1000), float(step)))
    ended.set()
    thread.join(60)
    assert not thread.is_alive(), "a read of the variable does not return"
    assert not torn


@pytest.mark.parametrize("read", [lambda a, b: [a, b], lambda a, b: [a, b * 1]])
def test_values_of_several_variables_are_of_one_moment(read):
    a, b = K.variable(0.0), K.variable(0.0)
    values, wide = read(a, b), [K.variable(np.zeros(20_000)) for _ in range(20)]
    f = K.function([], [], [K.update_add(a, 1), K.update_add(b, 1)])
    ended, apart = threading.Event(), []

    def run():
        while not ended.is_set():
            f([])

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        for _ in range(300):
            first, *_, last = K.batch_get_value([values[0], *wide, values[1]])
            if first != last:
                apart.append((first, last))
    finally:
        ended.set()
        thread.join(60)
    assert not apart and not thread.is_alive()


@pytest.mark.parametrize("limit", ["(resource.RLIMIT_AS, (150 << 20, 150 << 20))", "(resource.RLIMIT_DATA, (80 << 20, 80 << 20))"])
def test_a_process_with_little_memory_ends(limit):
    ended = launch(0, f"import resource\nresource.setrlimit{limit}\nimport syncline", limit=60)
    assert ended.code == 0, ended


def test_a_small_address_space_has_room_for_a_process_without_threads():
    program = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (240 << 20, 240 << 20))
import os, syncline as K
print("OPENBLAS_NUM_THREADS" in os.environ, K.eval(K.dot(K.ones((200, 300)), K.ones((300, 200)))).sum())
"""
    ended = launch(0, program, limit=60)
    assert ended.code == 0 and ended.out.split() == ["False", "12000000.0"], ended
