"""Tests of plot_graph."""

import os
import re

import numpy as np
import pytest

import syncline as K
from launching import run


def trained():
    w = K.variable(np.ones((7, 3)), name="kernel")
    x = K.placeholder((None, 7), name="images")
    loss = K.mean(K.square(K.dot(x, w)))
    f = K.function([x], [loss], [K.update_sub(w, 0.1 * K.gradients(loss, [w])[0])])
    f([np.ones((4, 7))])
    return f


def test_text_names_steps_values_and_what_is_assigned():
    K.clear_session()
    text = str(K.plot_graph(trained()))
    assert re.search(
        r"1 dot\(.*\n +images:0 float32\(4, 7\), kernel:0 float32\(7, 3\) -> dot_\d+:0 float32\(4, 3\)", text
    )
    assert "= kernel" in text


def test_files(tmp_path):
    for kind, begin in (("txt", b"   1 dot"), ("dot", b"digraph"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        path = tmp_path / f"plan.{kind}"
        K.plot_graph(trained(), path)
        assert path.read_bytes().startswith(begin)
    with pytest.raises(ValueError, match="plan.doc"):
        K.plot_graph(trained(), "plan.doc")


def test_there_must_be_a_plan():
    with pytest.raises(ValueError, match="call the function first"):
        K.plot_graph(K.function([], [K.constant(1.0)]))


def test_without_graphviz(monkeypatch):
    monkeypatch.setenv("PATH", "")
    picture = K.plot_graph(trained())
    assert picture._repr_svg_() is None
    with pytest.raises(RuntimeError, match="Graphviz"):
        picture.save("plan.svg")


def test_placement_and_buckets_of_two_ranks():
    program = "import sys; sys.path.insert(0, %r); import picture_test, syncline as K; print(K.plot_graph(picture_test.trained()))"
    out = run(2, program % os.path.dirname(__file__))
    assert "bucket of 2 sums over ranks" in out and "images:0 float32(4, 7) split(0)" in out and "(7, 3) partial" in out
