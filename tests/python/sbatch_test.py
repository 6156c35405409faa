"""examples/train.sbatch under a made-up Slurm: mpirun, srun and scontrol on the path note how they are called."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "examples", "train.sbatch")
LIMIT = 120  # seconds for a job

# Notes its arguments, then runs what comes after the options.
LAUNCHER = """#!/bin/bash
echo "$(basename "$0") $*" >>"$CALLS"
while [[ $1 == -* ]]; do
  [[ $1 != --map-by && $1 != --bind-to ]] || shift
  shift
done
exec "$@"
"""
SCONTROL = """#!/bin/bash
echo "scontrol $*" >>"$CALLS"
exit "${SCONTROL_CODE:-0}"
"""


class Slurm:
    """A folder to submit from, with made-up commands."""

    def __init__(self, folder):
        self.folder, self.calls = folder, folder / "calls"
        self.calls.touch()
        for name, text in (("mpirun", LAUNCHER), ("srun", LAUNCHER), ("scontrol", SCONTROL)):
            self.write(f"bin/{name}", text)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def start(self, *arguments, **variables):
        launchers = ("SLURM_", "OMPI_", "PMI")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(launchers)}
        environment |= {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "CALLS": str(self.calls), "PYTHON": sys.executable,
            "SLURM_JOB_ID": "17", "SLURM_NTASKS": "2", "SLURM_CPUS_PER_TASK": "3", "SLURM_SUBMIT_DIR": str(self.folder),
            "KERAS_HOME": str(self.folder / "keras_home"), **variables,
        }  # fmt: skip
        environment = {name: value for name, value in environment.items() if value is not None}
        return subprocess.Popen(
            ["bash", SCRIPT, *arguments],
            env=environment,
            cwd="/",
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments, **variables):
        process = self.start(*arguments, **variables)
        try:
            output, errors = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
        return process.returncode, output, errors

    def noted(self):
        return self.calls.read_text().splitlines()

    def wait_for(self, name):
        for _ in range(LIMIT * 20):
            if (self.folder / name).exists():
                return
            time.sleep(0.05)
        raise AssertionError(f"{name} was not made")


@pytest.fixture
def slurm(tmp_path):
    return Slurm(tmp_path)


def test_syntax():
    subprocess.run(["bash", "-n", SCRIPT], check=True, timeout=LIMIT)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck():
    done = subprocess.run(["shellcheck", SCRIPT], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout


def test_options_of_sbatch_come_before_the_first_command():
    with open(SCRIPT, encoding="utf-8") as file:
        lines = file.read().splitlines()
    options = [i for i, line in enumerate(lines) if line.startswith("#SBATCH")]
    first_command = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    assert options and max(options) < first_command
    assert {"#SBATCH --requeue", "#SBATCH --open-mode=append", "#SBATCH --signal=B:USR1@120"} <= set(lines)


def test_programs_under_mpirun(slurm):
    program = slurm.write("program", "#!/bin/bash\necho ran $KERAS_BACKEND\n")
    code, output, errors = slurm.run("./program", "--model", "mlp", KERAS_BACKEND=None)
    assert (code, output, errors) == (0, "ran\n", "")
    options = "--map-by slot:PE=3 --bind-to core"
    assert slurm.noted() == [f"mpirun {options} ./program --model mlp --checkpoint checkpoints/job-17.h5 --resume"]
    assert os.path.isdir(slurm.folder / "checkpoints") and program


def test_programs_under_srun(slurm):
    slurm.write("program", "#!/bin/bash\n")
    assert slurm.run("./program", LAUNCHER="srun", CHECKPOINT="kept/here.h5", SLURM_CPUS_PER_TASK=None)[0] == 0
    options = "--mpi=pmix --cpus-per-task=1 --cpu-bind=cores --kill-on-bad-exit=1"
    assert slurm.noted() == [f"srun {options} ./program --checkpoint kept/here.h5 --resume"]


def test_exit_code_is_the_programs(slurm):
    slurm.write("program", "#!/bin/bash\nexit 7\n")
    assert slurm.run("./program")[0] == 7
    assert all("scontrol" not in call for call in slurm.noted())  # what fails by itself would fail again


@pytest.mark.parametrize("arguments, variables, complaint", [
    (["./program"], {"SLURM_JOB_ID": None}, "SLURM_JOB_ID is not set"),
    (["./program"], {"LAUNCHER": "aprun"}, "LAUNCHER is 'aprun'; give mpirun or srun"),
    (["./other"], {}, "'./other' is not there"),
    ([], {}, "'build/release/examples/fashion_mnist' is not there"),
])  # fmt: skip
def test_errors(slurm, arguments, variables, complaint):
    slurm.write("program", "#!/bin/bash\n")
    code, _, errors = slurm.run(*arguments, **variables)
    assert code == 2 and complaint in errors and len(errors.splitlines()) == 1
    assert slurm.noted() == []


WAITS = """#!/bin/bash
trap 'echo terminated; exit 143' TERM
touch started
for ((i = 0; i < 600; ++i)); do sleep 0.1; done
"""


def test_requeued_before_its_time_is_over(slurm):
    slurm.write("program", WAITS)
    process = slurm.start("./program")
    slurm.wait_for("started")
    process.send_signal(signal.SIGUSR1)
    output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0
    assert "job 17 goes back to the queue" in output and "terminated" in output
    assert slurm.noted()[1:] == ["scontrol requeue 17"]


def test_goes_on_where_the_queue_refuses(slurm):
    slurm.write("program", "#!/bin/bash\ntouch started\nfor ((i = 0; i < 20; ++i)); do sleep 0.1; done\nexit 3\n")
    process = slurm.start("./program", SCONTROL_CODE="1")
    slurm.wait_for("started")
    process.send_signal(signal.SIGUSR1)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 3 and "cannot go back to the queue" in errors


def test_a_keras_script_goes_on_after_a_restart(slurm):
    """The example itself, on two ranks: what the made-up mpirun starts, scripts/launch starts in earnest."""
    launch = os.path.join(ROOT, "scripts", "launch")
    slurm.write("bin/mpirun", f"""#!/bin/bash
export PATH=${{PATH#*:}}
for name in ${{!SLURM_@}}; do unset "$name"; done
exec {launch} 2 "${{@:5}}"
""")  # fmt: skip
    script, options = os.path.join(ROOT, "examples", "text_lstm.py"), ["--samples", "64", "--epochs"]
    code, output, errors = slurm.run(script, *options, "1")
    assert code == 0 and "test accuracy" in output and "resumed" not in output, errors
    code, output, errors = slurm.run(script, *options, "2", SLURM_RESTART_COUNT="1")
    assert code == 0, errors
    assert "job 17, restart 1" in output and "resumed checkpoints/job-17/epoch-0001.h5" in output
    assert (slurm.folder / "checkpoints" / "job-17" / "epoch-0002.h5").exists()
