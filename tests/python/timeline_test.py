"""SYNCLINE_TRACE in Python: each rank writes a file, and so does a single process. Forked children do not write to it."""

import json

import pytest

from launching import launch

PROGRAM = """
    import multiprocessing
    import numpy as np, syncline as K
    from syncline import distributed as d
    x, w = K.placeholder((None, 3)), K.variable(np.ones((3, 2)))
    loss = K.mean(K.square(K.dot(x, w)))
    step = K.function([x], [loss], [K.update_sub(w, 0.1 * K.gradients(loss, [w])[0])])
    for trial in range(5):
        step([np.ones((4, 3))])
    child = multiprocessing.get_context("fork").Process(target=step, args=([np.ones((4, 3))],))
    child.start()
    child.join()
    assert child.exitcode == 0
"""


@pytest.mark.parametrize("ranks", [0, 2])
def test_a_file_a_rank(tmp_path, ranks):
    ended = launch(ranks, PROGRAM, SYNCLINE_TRACE=str(tmp_path / "trace"))
    assert ended.code == 0, str(ended)
    assert ended.err.count("syncline: 5 steps in ") == 1, str(ended)
    files = sorted(path.name for path in (tmp_path / "trace").iterdir())
    assert files == ["rank0.json", "rank1.json"][: max(ranks, 1)]
    for name in files:
        events = json.loads((tmp_path / "trace" / name).read_text())
        assert sum(event.get("cat") == "step" for event in events) == 5
        assert (sum(event.get("cat") == "transfer" for event in events) >= 5) == (ranks == 2)
        assert events[-1]["name"] == "end"


def test_off(tmp_path):
    ended = launch(2, PROGRAM, folder=tmp_path)
    assert ended.code == 0 and "steps" not in ended.err, str(ended)
    assert list(tmp_path.iterdir()) == []


def test_a_rank_that_fails_leaves_its_events(tmp_path):
    ended = launch(2, PROGRAM.replace("child = ", "assert d.rank() == 0; child = "), SYNCLINE_TRACE=str(tmp_path / "trace"))
    assert ended.code == 1, str(ended)
    text = (tmp_path / "trace" / "rank1.json").read_text()
    events = json.loads(text[: text.rindex(",")] + "]")
    assert sum(event.get("cat") == "step" for event in events) == 5
