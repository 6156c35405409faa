"""`pip wheel` of the repository: its contents, and that it works outside the repository."""

import json
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
    # The flags of the dev preset, whose build has compiled most files: ccache, where it is installed, has the results.
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    (dev,) = (preset["cacheVariables"] for preset in presets if preset["name"] == "dev")
    options.append("--config-settings=cmake.build-type=" + dev.pop("CMAKE_BUILD_TYPE"))
    options += [f"--config-settings=cmake.define.{name}={value}" for name, value in dev.items()]
    # As in scripts/wheel: the plugins find the MPI library when they are loaded.
    options.append("--config-settings=cmake.define.SYNCLINE_LINK_MPI=OFF")
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "-w", folder, ROOT], check=True, timeout=1500)
    return next(folder.glob("syncline-*.whl"))


def test_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"syncline", "syncline_command.py"}
    sources = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python" / "syncline").rglob("*.py")}
    assert sources | {"syncline/py.typed", "syncline/_core.pyi"} <= set(names)
    templates = {"training_job.sh", "slurm/train.sbatch", "pbs/train.pbs"}
    assert {f"syncline/share/syncline/scripts/{name}" for name in templates} <= set(names)
    binaries = {"_core.abi3.so", "syncline", "libsyncline.so", "libsyncline_mpi_openmpi.so"}
    assert {f"syncline/{name}" for name in binaries} <= set(names)
    assert sum(name.startswith("syncline/_core.") and name.endswith(".so") for name in names) == 1
    assert "-cp311-abi3-" in wheel.name


def licenses(wheel):
    """What tests/portability/wheel_licenses.py finds wrong with the wheel."""
    check = [sys.executable, ROOT / "tests" / "portability" / "wheel_licenses.py", wheel]
    done = subprocess.run(check, capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0) == bool(done.stderr), done.stderr
    return [line.removeprefix("wheel_licenses: ") for line in done.stderr.splitlines()]


def test_lists_its_license(wheel):
    assert licenses(wheel) == []


@pytest.mark.parametrize(
    "listed, text, problems",
    [
        (["a.txt", "common-licenses/GPL-2"], "in `/usr/share/common-licenses/GPL-2'.", []),
        (["a.txt"], "", ["METADATA does not list common-licenses/GPL-2"]),
        (
            ["a.txt", "b.txt", "common-licenses/GPL-2"],
            "",
            ["METADATA lists b.txt, which is not in the folder of licences"],
        ),
        (
            ["a.txt", "common-licenses/GPL-2"],
            "in /usr/share/common-licenses/GPL.",
            ["a.txt refers to common-licenses/GPL, which is missing"],
        ),
        (
            ["a.txt", "common-licenses/GPL-2"],
            "in `/usr/share/common-licenses/{MPL-1.1,GPL-2}'.",
            ["a.txt refers to common-licenses/MPL-1.1, which is missing"],
        ),
    ],
)
def test_missing_licenses_are_found(tmp_path, listed, text, problems):
    with zipfile.ZipFile(tmp_path / "some.whl", "w") as archive:
        head = "".join(f"License-File: {name}\n" for name in listed)
        archive.writestr("some-1.dist-info/METADATA", f"Metadata-Version: 2.4\n{head}\nLicense-File: of the text\n")
        archive.writestr("some-1.dist-info/licenses/a.txt", text)
        archive.writestr("some-1.dist-info/licenses/common-licenses/GPL-2", "")
    assert licenses(tmp_path / "some.whl") == problems


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder into which the wheel is installed."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", folder, wheel]
    subprocess.run(command, check=True, timeout=120)
    return folder


def run(folder, script, *launcher):
    """What the script prints, with the installed package, outside the repository."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "KERAS_BACKEND": "syncline", "KERAS_HOME": str(folder)}
    done = subprocess.run(
        [*launcher, sys.executable, "-c", script], env=environment, cwd=folder, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_works_installed(installed):
    script = "import keras, syncline; assert syncline.__file__.startswith(%r); print(keras.backend.eval(syncline.ones((2,))))"
    assert run(installed, script % str(installed)) == "[1. 1.]\n"
    script = (
        "import importlib.metadata, syncline; print(syncline.__version__ == importlib.metadata.version('syncline'))"
    )
    assert run(installed, script) == "True\n"


def test_finds_its_plugin_on_two_ranks(installed):
    script = "from syncline import distributed as d; print(d.size(), d.all_reduce(1.0))"
    assert run(installed, script, ROOT / "scripts" / "launch", "2") == "2 2.0\n"


def test_has_the_command(installed):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    printed = subprocess.run(
        [installed / "bin" / "syncline", "--version"], env=environment, check=True, capture_output=True, timeout=60
    ).stdout.decode()
    assert printed.startswith("Syncline ") and "Open MPI " in printed, printed


def test_the_command_keeps_the_exit_status_and_a_path_may_have_a_space(wheel, tmp_path):
    environment = tmp_path / "my venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=60)
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True, timeout=120)
    command = environment / "bin" / "syncline"
    printed = subprocess.run([command, "--version"], check=True, capture_output=True, timeout=60).stdout
    assert printed.startswith(b"Syncline "), printed
    (native,) = environment.glob("lib/python*/site-packages/syncline/syncline")
    ours, wanted = (
        subprocess.run([path, "ls", tmp_path / "missing"], capture_output=True, timeout=60)
        for path in (command, native)
    )
    assert (ours.returncode, ours.stderr) == (wanted.returncode, wanted.stderr) and wanted.returncode != 0


def test_serves_cxx_programs(installed, tmp_path):
    project = ROOT / "examples" / "cmake_project"
    configure = ["cmake", "-G", "Ninja", "-S", project, "-B", tmp_path, f"-DSyncline_ROOT={installed / 'syncline'}"]
    subprocess.run(configure, check=True, timeout=60)
    subprocess.run(["cmake", "--build", tmp_path], check=True, timeout=120)
    alone = subprocess.run([tmp_path / "spirals"], check=True, capture_output=True, timeout=60).stdout.decode()
    ranks = [ROOT / "scripts" / "launch", "2", tmp_path / "spirals"]
    together = subprocess.run(ranks, check=True, capture_output=True, timeout=60).stdout.decode()
    for printed in (alone, together):
        assert "epoch 20/20" in printed, printed
