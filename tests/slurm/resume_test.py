"""Jobs of scripts/slurm/train.sbatch on a real Slurm: a job that is preempted or reaches its time limit restarts by itself and
ends with the bits of an undisturbed job.

usage: cluster resume_test.py PROGRAM DATA, with PROGRAM the example fashion_mnist and DATA a folder of its files
"""

import json
import os
import re
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEMPLATE = os.path.join(ROOT, "scripts", "slurm", "train.sbatch")
FOLDER = os.environ["CLUSTER"]
LIMIT = 60  # seconds for each command and each wait

PROGRAM, DATA = sys.argv.pop(1), sys.argv.pop(1)
TRAINING = [
    PROGRAM, "--data", DATA, "--model", "mlp", "--samples", "1200", "--batch", "40", "--epochs", "12", "--threads", "1",
    "--save-every", "1000", "--digest",
]  # fmt: skip
# Rank 1 sleeps for a second in each of 40 steps from its 250th on (a training has 360), so that the disturbance comes during
# the training on a machine of any speed: Slurm checks time limits twice a minute. The restarted job does not sleep, because
# it makes fewer than 250 steps.
SLOW = {
    "SYNCLINE_ALLOW_FAULTS": "1",
    "SYNCLINE_FAULT": ",".join(f"1:{step}:sleep:1000" for step in range(250, 290)),
}
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE")


def call(*command, **variables):
    done = subprocess.run(
        command,
        env=os.environ | {"SYNCLINE_ROOT": ROOT} | variables,
        cwd=FOLDER,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT,
    )
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def submit(*options, command=(), **variables):
    return call("sbatch", "--parsable", "--ntasks=2", *options, *command, **variables).strip()


class Job:
    def __init__(self, *options, **variables):
        self.number = submit("--cpus-per-task=1", *options, command=[TEMPLATE, *TRAINING], **variables)

    @property
    def output(self):
        path = os.path.join(FOLDER, f"syncline-{self.number}.out")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as file:
            return file.read()

    @property
    def status(self):
        with open(os.path.join(FOLDER, "checkpoints", f"job-{self.number}", "status.json"), encoding="utf-8") as file:
            return json.load(file)

    def field(self, name):
        return re.search(rf"\b{name}=(\S*)", call("scontrol", "show", "job", self.number))[1]

    def wait(self, what, condition):
        for _ in range(LIMIT * 10):
            if condition():
                return
            time.sleep(0.1)
        job = call("scontrol", "show", "job", self.number)
        raise AssertionError(f"job {self.number}: {what} did not come\n{job}{self.output}")

    def wait_until_training(self):
        self.wait("an epoch", lambda: "epoch 8" in self.output)

    def wait_for_the_end(self):
        self.wait("its end", lambda: self.field("JobState") in ENDED)

    def digests(self):
        return set(re.findall(r"rank \d+ digest ([0-9a-f]{16})", self.output))


class Resume(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        job = Job("--partition=low")
        job.wait_for_the_end()
        cls.undisturbed = job.digests()
        if job.field("JobState") != "COMPLETED" or len(cls.undisturbed) != 1:
            raise AssertionError(f"the undisturbed job: {job.field('JobState')}\n{job.output}")

    def check(self, job, said):
        job.wait_for_the_end()
        self.assertEqual(job.field("JobState"), "COMPLETED", job.output)
        self.assertGreaterEqual(int(job.field("Restarts")), 1, job.output)
        self.assertIn(said, job.output)
        # It resumed from the step at which it was stopped, neither from the beginning nor from the end.
        step = re.search(rf"job {job.number}, restart 1, from step (\d+)", job.output)
        self.assertIsNotNone(step, job.output)
        self.assertTrue(0 < int(step[1]) < job.status["global_step"], job.output)
        self.assertEqual(job.digests(), self.undisturbed, job.output)
        self.assertEqual(job.status["state"], "finished")

    def preempt(self, job):
        job.wait_until_training()
        submit("--partition=high", "--output=/dev/null", "--wrap", "true")

    def test_preempted_with_a_warning(self):
        job = Job("--partition=low", **SLOW)
        self.preempt(job)
        self.check(job, "goes back to the queue at step")

    def test_preempted_with_a_warning_under_srun(self):
        job = Job("--partition=low", LAUNCHER="srun", **SLOW)
        self.preempt(job)
        self.check(job, "goes back to the queue at step")

    def test_preempted_at_once(self):
        job = Job("--partition=abrupt", **SLOW)
        self.preempt(job)
        self.check(job, "is ended by its scheduler at step")

    def test_before_its_time_is_over(self):
        job = Job("--partition=low", "--time=1", "--signal=B:USR1@55", **SLOW)
        self.check(job, "goes back to the queue at step")


if __name__ == "__main__":
    unittest.main(verbosity=2)
