"""scripts/slurm/train.sbatch and scripts/pbs/train.pbs with fake scheduler commands, which are on PATH and log their arguments.
tests/slurm uses a real Slurm."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.path.join(ROOT, "scripts", "training_job.sh")
TEMPLATES = {
    "slurm": os.path.join(ROOT, "scripts", "slurm", "train.sbatch"),
    "pbs": os.path.join(ROOT, "scripts", "pbs", "train.pbs"),
}
LIMIT = 120  # seconds for a job
AS_ROOT = " --allow-run-as-root" if os.geteuid() == 0 else ""

# Logs its arguments, then runs the command after the options.
LAUNCHER = """#!/bin/bash
echo "$(basename "$0") $*" >>"$CALLS"
while [[ $1 == -* ]]; do
  case $1 in
    --mca) shift 2 ;;
    --map-by | --bind-to | --hostfile | -n | -x) shift ;;
  esac
  shift
done
exec "$@"
"""
# Logs its arguments and exits with the value of NAME_CODE, or 0.
COMMAND = """#!/bin/bash
name=$(basename "$0")
echo "$name $*" >>"$CALLS"
code=${name^^}_CODE
exit "${!code:-0}"
"""
QSTAT = """#!/bin/bash
echo "Job Id: $2"
[[ -z $WALLTIME ]] || echo "    Resource_List.walltime = $WALLTIME"
"""


class Scheduler:
    """A folder to submit from, with fake scheduler commands."""

    def __init__(self, kind, folder):
        self.kind, self.folder, self.calls, self.template = kind, folder, folder / "calls", TEMPLATES[kind]
        self.calls.touch()
        commands = {"mpirun": LAUNCHER, "srun": LAUNCHER, "qstat": QSTAT}
        commands |= dict.fromkeys(("scontrol", "qrerun", "qsub"), COMMAND)
        for name, text in commands.items():
            self.write(f"bin/{name}", text)
        self.write("nodes", "a\nb\n")
        if kind == "slurm":
            self.variables = {"SLURM_JOB_ID": "17", "SLURM_CPUS_PER_TASK": "3", "SLURM_SUBMIT_DIR": str(folder)}
            self.requeued = "scontrol requeue 17"
        else:
            self.variables = {
                "PBS_JOBID": "17.server", "NCPUS": "3", "PBS_O_WORKDIR": str(folder), "PBS_NODEFILE": str(folder / "nodes"),
                "WALLTIME": "10:00:00",
            }  # fmt: skip
            self.requeued = "qrerun 17.server"

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def start(self, *arguments, **variables):
        scheduling = ("SLURM_", "PBS_", "OMPI_", "PMI", "CHECKPOINT", "LAUNCHER", "COMMAND", "RESUME_OPTIONS")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(scheduling)}
        environment |= {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "CALLS": str(self.calls), "PYTHON": sys.executable,
            "SYNCLINE_ROOT": ROOT, "KERAS_HOME": str(self.folder / "keras_home"), **self.variables,
        }  # fmt: skip
        if self.kind == "pbs" and arguments:
            environment["COMMAND"], arguments = " ".join(arguments), ()
        environment = {name: value for name, value in (environment | variables).items() if value is not None}
        return subprocess.Popen(
            ["bash", self.template, *arguments],
            env=environment,
            cwd="/",
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def finish(self, process):
        try:
            output, errors = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
        return process.returncode, output, errors

    def run(self, *arguments, **variables):
        return self.finish(self.start(*arguments, **variables))

    def interrupt(self, number, *arguments, **variables):
        """Runs a job and sends it a signal once its program has made the file `started`."""
        process = self.start(*arguments, **variables)
        self.wait_for("started")
        process.send_signal(number)
        return self.finish(process)

    def noted(self):
        return self.calls.read_text().splitlines()

    def wait_for(self, name):
        for _ in range(LIMIT * 20):
            if (self.folder / name).exists():
                return
            time.sleep(0.05)
        raise AssertionError(f"{name} was not made")


@pytest.fixture(params=TEMPLATES)
def scheduler(request, tmp_path):
    return Scheduler(request.param, tmp_path)


@pytest.fixture
def slurm(tmp_path):
    return Scheduler("slurm", tmp_path)


@pytest.fixture
def pbs(tmp_path):
    return Scheduler("pbs", tmp_path)


@pytest.mark.parametrize("script", [SHARED, *TEMPLATES.values()])
def test_syntax(script):
    subprocess.run(["bash", "-n", script], check=True, timeout=LIMIT)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck():
    command = ["shellcheck", "--external-sources", SHARED, *TEMPLATES.values()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind, mark, needed", [
    ("slurm", "#SBATCH", {"#SBATCH --requeue", "#SBATCH --open-mode=append", "#SBATCH --signal=B:USR1@120"}),
    ("pbs", "#PBS", {"#PBS -r y"}),
])  # fmt: skip
def test_options_come_before_the_first_command(kind, mark, needed):
    with open(TEMPLATES[kind], encoding="utf-8") as file:
        lines = file.read().splitlines()
    options = [i for i, line in enumerate(lines) if line.startswith(mark)]
    first_command = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    assert max(options) < first_command
    assert needed <= set(lines)


MPIRUN = f"mpirun --map-by slot:PE=3 --bind-to core --mca odls_base_sigkill_timeout 5 -x CHECKPOINT{{}}{AS_ROOT} "
SAVED_AT = "./program --model mlp --checkpoint checkpoints/job-17 --resume"


def test_programs_under_slurm(slurm):
    slurm.write("program", "#!/bin/bash\necho ran $KERAS_BACKEND\n")
    code, output, errors = slurm.run("./program", "--model", "mlp", KERAS_BACKEND=None)
    assert (code, output, errors) == (0, "ran\n", "")
    assert slurm.noted() == [MPIRUN.format("") + SAVED_AT]
    assert os.path.isdir(slurm.folder / "checkpoints")


def test_programs_under_srun(slurm):
    slurm.write("program", "#!/bin/bash\n")
    assert slurm.run("./program", LAUNCHER="srun", CHECKPOINT="kept/here", SLURM_CPUS_PER_TASK=None)[0] == 0
    options = "--mpi=pmix --cpus-per-task=1 --cpu-bind=cores --kill-on-bad-exit=1"
    assert slurm.noted() == [f"srun {options} ./program --checkpoint kept/here --resume"]


def test_programs_under_pbs(pbs):
    pbs.write("program", "#!/bin/bash\necho ran\n")
    assert pbs.run("./program", "--model", "mlp") == (0, "ran\n", "")
    assert pbs.noted() == [MPIRUN.format(f" --hostfile {pbs.folder}/nodes -n 2") + SAVED_AT]


def test_exit_code_is_the_programs(scheduler):
    scheduler.write("program", "#!/bin/bash\nexit 7\n")
    assert scheduler.run("./program")[0] == 7
    assert len(scheduler.noted()) == 1  # it is not requeued, because it would fail again


@pytest.mark.parametrize("kind, arguments, variables, complaint", [
    ("slurm", ["./program"], {"SLURM_JOB_ID": None}, "SLURM_JOB_ID is not set"),
    ("slurm", ["./program"], {"LAUNCHER": "aprun"}, "LAUNCHER is 'aprun'; give mpirun or srun"),
    ("slurm", ["./other"], {}, "'./other' is not there"),
    ("slurm", [], {}, "'build/release/examples/fashion_mnist' is not there"),
    ("pbs", ["./program"], {"PBS_JOBID": None}, "PBS_JOBID is not set"),
    ("pbs", [], {}, "'build/release/examples/fashion_mnist' is not there"),
])  # fmt: skip
def test_errors(kind, arguments, variables, complaint, tmp_path):
    scheduler = Scheduler(kind, tmp_path)
    scheduler.write("program", "#!/bin/bash\n")
    code, _, errors = scheduler.run(*arguments, **variables)
    assert code == 2 and complaint in errors and len(errors.splitlines()) == 1
    assert scheduler.noted() == []


# A training that saves when it is warned. The file `place` holds the step for its status; CODE is the launcher's exit code in place of 75.
TRAINS = """#!/bin/bash
mkdir -p "$CHECKPOINT"
trap 'echo "{\\"state\\": \\"saved\\", \\"global_step\\": $(cat place)}" >"$CHECKPOINT/status.json"; exit "${CODE:-75}"' USR1
touch started
for ((i = 0; i < 600; ++i)); do sleep 0.1; done
"""


def train(scheduler, step=40):
    scheduler.write("program", TRAINS)
    (scheduler.folder / "place").write_text(f"{step}\n")
    (scheduler.folder / "started").unlink(missing_ok=True)


@pytest.mark.parametrize("launchers_code", ["75", "1", "137"])
def test_goes_back_to_the_queue_when_warned(scheduler, launchers_code):
    train(scheduler)
    code, output, errors = scheduler.interrupt(signal.SIGUSR1, "./program", CHECKPOINT="kept", CODE=launchers_code)
    assert code == 75, errors
    assert "job 17 goes back to the queue at step 40" in output
    assert scheduler.noted()[1:] == [scheduler.requeued]
    train(scheduler, 50)
    output = scheduler.interrupt(signal.SIGUSR1, "./program", CHECKPOINT="kept")[1]
    assert "job 17, restart 1, from step 40" in output and "goes back to the queue at step 50" in output


def test_goes_back_to_the_queue_without_a_warning(scheduler):
    """Ranks may exit with 75 without a warning of the scheduler."""
    scheduler.write("program", "#!/bin/bash\nexit 75\n")
    assert scheduler.run("./program")[0] == 75
    assert scheduler.noted()[1:] == [scheduler.requeued]


def test_a_program_that_does_not_know_the_warning(scheduler):
    scheduler.write("program", "#!/bin/bash\ntouch started\nexec sleep 60\n")
    code, output, _ = scheduler.interrupt(signal.SIGUSR1, "./program")
    assert code == 75 and "'./program' was ended by the warning; it goes on from its last checkpoint" in output
    assert scheduler.noted()[1:] == [scheduler.requeued]


def test_leaves_it_to_a_scheduler_that_ends_the_job(scheduler):
    train(scheduler)
    code, output, _ = scheduler.interrupt(signal.SIGTERM, "./program", CHECKPOINT="kept")
    assert code == 75 and "job 17 is ended by its scheduler at step 40; CHECKPOINT=kept goes on from there" in output
    assert len(scheduler.noted()) == 1


def test_what_an_earlier_run_saved_counts_for_nothing(scheduler):
    train(scheduler)
    scheduler.interrupt(signal.SIGUSR1, "./program", CHECKPOINT="kept")
    scheduler.write("program", "#!/bin/bash\nexit 7\n")
    assert scheduler.run("./program", CHECKPOINT="kept")[0] == 7


def test_where_the_queue_refuses(slurm):
    train(slurm)
    code, _, errors = slurm.interrupt(signal.SIGUSR1, "./program", CHECKPOINT="kept", SCONTROL_CODE="1")
    assert code == 75 and errors == "train.sbatch: job 17 cannot go back to the queue; submit it again with CHECKPOINT=kept\n"


def test_pbs_submits_anew_what_it_may_not_requeue(pbs):
    """It submits the user's copy of the template with the variables and arguments of the first submission."""
    with open(TEMPLATES["pbs"], encoding="utf-8") as file:
        mine = pbs.write("mine.pbs", file.read().replace("select=4:", "select=2:"))
    train(pbs)
    pbs.template = mine
    options = {"WARNING": "60", "QRERUN_CODE": "1", "RESUME_OPTIONS": "--folder {}"}
    code, output, _ = pbs.interrupt(signal.SIGUSR1, "./program", "-x", "1,2 'a'", CHECKPOINT="kept", **options)
    assert code == 75 and "goes back to the queue" in output
    assert pbs.noted()[2:] == ["qsub -v CHECKPOINT kept.pbs"]
    assert ROOT in (pbs.folder / "kept.variables").read_text()
    assert "select=2:" in (pbs.folder / "kept.pbs").read_text()
    os.remove(mine)  # as PBS does with its copy
    # In the new job, qsub passes CHECKPOINT only.
    pbs.template = str(pbs.folder / "kept.pbs")
    pbs.write("program", "#!/bin/bash\necho \"$PYTHON $WARNING $*\"\n")
    code, output, errors = pbs.run(CHECKPOINT="kept", PYTHON=None, SYNCLINE_ROOT=None)
    assert code == 0, errors
    assert output.splitlines()[-1] == f"{sys.executable} 60 -x 1,2 'a' --folder kept"
    assert sorted(path.name for path in pbs.folder.glob("kept*")) == ["kept"]


def test_programs_without_the_options_to_resume(scheduler):
    scheduler.write("program", '#!/bin/bash\necho "$CHECKPOINT $*"\n')
    assert scheduler.run("./program", "-x", CHECKPOINT="kept", RESUME_OPTIONS="")[1] == "kept -x\n"
    assert scheduler.run("./program", CHECKPOINT="kept", RESUME_OPTIONS="--into={} --on")[1] == "kept --into=kept --on\n"
    scheduler.write("program", "#!/bin/bash\nexit 2\n")
    code, _, errors = scheduler.run("./program")
    assert code == 2 and "was given --checkpoint and --resume; if it does not know them, set RESUME_OPTIONS" in errors


def test_pbs_jobs_warn_themselves(pbs):
    """The fake `sleep` writes down how long the job would wait, and ends once the program can be warned."""
    train(pbs)
    sleep = shutil.which("sleep")
    pbs.write("bin/sleep", f"""#!/bin/bash
[[ $1 != 0.* ]] || exec {sleep} "$1"
echo "$1" >until_the_warning
until [[ -e started ]]; do {sleep} 0.05; done
""")  # fmt: skip
    code, output, errors = pbs.run("./program", CHECKPOINT="kept", WALLTIME="10:02:03", WARNING="60")
    assert code == 75, errors
    assert "goes back to the queue at step 40" in output
    assert 0 <= 10 * 3600 + 2 * 60 + 3 - 60 - int((pbs.folder / "until_the_warning").read_text()) <= LIMIT
    pbs.write("program", "#!/bin/bash\n")
    assert "qstat does not tell the job's walltime" in pbs.run("./program", WALLTIME=None)[1]


def test_gives_up_when_restarts_do_not_get_further(scheduler):
    scheduler.write("program", "#!/bin/bash\nexit 75\n")
    status = scheduler.folder / "kept" / "status.json"
    status.parent.mkdir()
    # Step 40 occurs before and after step 50: only consecutive starts at the same step count.
    for step in (0, 40, 40, 50, 40, 40, 40):
        status.write_text(json.dumps({"state": "failed", "global_step": step}, indent=2))
        assert scheduler.run("./program", CHECKPOINT="kept")[0] == 75
    calls = len(scheduler.noted())
    code, _, errors = scheduler.run("./program", CHECKPOINT="kept")
    assert code == 1 and "job 17 has not come further than step 40 in 3 restarts" in errors and len(errors.splitlines()) == 1
    assert len(scheduler.noted()) == calls
    assert scheduler.run("./program", CHECKPOINT="kept")[0] == 75  # a submission by hand resets the count


def test_programs_without_a_status_file_get_further_by_their_checkpoints(slurm):
    slurm.write("program", "#!/bin/bash\nmkdir -p kept\ntouch kept/epoch-$(ls kept | wc -l).h5\nexit 75\n")
    for start in range(6):
        code, output, _ = slurm.run("./program", CHECKPOINT="kept")
        assert code == 75
    assert f"restart {start}, from checkpoint epoch-{start - 1}.h5" in output


def test_a_keras_script_goes_on_after_a_restart(slurm):
    """Runs the example itself on two ranks: the fake mpirun passes its command to scripts/launch."""
    launch = os.path.join(ROOT, "scripts", "launch")
    slurm.write("bin/mpirun", f"""#!/bin/bash
export PATH=${{PATH#*:}}
for name in ${{!SLURM_@}}; do unset "$name"; done
while [[ $1 != {sys.executable} ]]; do shift; done
exec {launch} 2 "$@"
""")  # fmt: skip
    script, options = os.path.join(ROOT, "examples", "text_lstm.py"), ["--samples", "64", "--epochs"]
    code, output, errors = slurm.run(script, *options, "1")
    assert code == 0 and "test accuracy" in output and "resumed" not in output, errors
    code, output, errors = slurm.run(script, *options, "2")
    assert code == 0, errors
    assert "resumed checkpoints/job-17 after epoch 1" in output
    assert (slurm.folder / "checkpoints" / "job-17" / "epoch-0002.h5").exists()
