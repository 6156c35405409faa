"""The programs of docs/tutorial.md run, alone and on two ranks, and print what the page says."""

import re

import pytest

from launching import ROOT, launch, run

TEXT = (ROOT / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"^```python(?: title=\"([\w.]+)\")?\n(.*?)^```", TEXT, re.M | re.S)
FILES = {name: code for name, code in BLOCKS if name}


def test_the_first_functions():
    printed = run(0, "".join(code for name, code in BLOCKS if not name))
    assert printed == "[[0.]\n [0.]]\n[[3.]\n [2.]\n [1.]]\n"


@pytest.mark.parametrize("ranks", [0, 2])
def test_train(ranks):
    accuracy = float(run(ranks, FILES["train.py"]).rpartition("accuracy ")[2])
    assert accuracy > 0.95


def test_own_rows():
    assert "2 ranks, loss below 0.001: True" in run(2, FILES["own_rows.py"])


def test_survive(tmp_path):
    for epoch in (0, 3):
        ended = launch(2, FILES["survive.py"], folder=tmp_path)
        assert ended.code == 0 and f"starts at epoch {epoch}\n" in ended.out, ended
    assert (tmp_path / "run" / "latest").exists()
