"""`pip wheel` of the repository: its contents, and that it works outside the repository."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Builds the wheel in build/wheel, which is kept, so that only changed files are compiled again."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--config-settings=build-dir=build/wheel"]
    # The test is about the package, not its speed.
    options.append("--config-settings=cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG")
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "-w", folder, ROOT], check=True, timeout=1500)
    return next(folder.glob("syncline-*.whl"))


def test_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"syncline"}
    sources = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python" / "syncline").rglob("*.py")}
    assert sources | {"syncline/py.typed", "syncline/_core.pyi"} <= set(names)
    assert sum(name.startswith("syncline/_core.") and name.endswith(".so") for name in names) == 1


def test_works_installed(wheel, tmp_path):
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", tmp_path, wheel], check=True
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "KERAS_BACKEND": "syncline", "KERAS_HOME": str(tmp_path)}
    script = "import keras, syncline; assert syncline.__file__.startswith(%r); print(keras.backend.eval(syncline.ones((2,))))"
    run = subprocess.run(
        [sys.executable, "-c", script % str(tmp_path)], env=environment, cwd=tmp_path, capture_output=True, timeout=60
    )
    assert run.returncode == 0, run.stderr.decode()
    assert run.stdout == b"[1. 1.]\n"
