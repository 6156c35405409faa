#!/usr/bin/env python3
"""Kills a training again and again, resumes it, and fails if anything was lost.

Each kill hits one rank, or all processes at once like a power cut, at a random time or while a checkpoint is being
written, in one file or in shards. After each kill every checkpoint in the folder must be whole, and `latest` must be
one of them and no older than before. A training on a fixed number of ranks must end with the bits of an undisturbed one
on that number. A training whose number of ranks changes has parts of the batch, and must end with the bits of an
undisturbed one on one rank. A failure ends the run with exit status 1 and keeps the folder.
"""

import argparse
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

MOST_RANKS = 3
RUN_LIMIT = 120  # seconds, for each process
END_LIMIT = 20  # from the kill to the job's end
STATES = {"running", "saved", "finished", "failed"}
PARTS = 8
TRAINING = ("--model", "mlp", "--optimizer", "sgd", "--batch", "48", "--save-every", "7", "--threads", "1", "--digest")


class Lost(Exception):
    """A loss of data or another failure that the test looks for."""


def write_small_data(folder, rng):
    """Writes four IDX files of noise."""
    os.mkdir(folder)
    for name, rows in (("train", 960), ("t10k", 96)):
        with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as out:
            out.write(struct.pack(">4i", 0x803, rows, 28, 28) + rng.randbytes(rows * 784))
        with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as out:
            out.write(struct.pack(">2i", 0x801, rows) + bytes(rng.randrange(10) for _ in range(rows)))


def parents():
    """{process: its parent} for all processes."""
    result = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="latin-1") as stat:
                    result[int(entry)] = int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                pass
    return result


def descendants(process):
    parent = parents()
    found = [process]
    for ancestor in found:
        found += [child for child, above in parent.items() if above == ancestor]
    return found[1:]


def rank_of(process):
    """A process's rank, or None for the launcher's own processes."""
    try:
        with open(f"/proc/{process}/environ", "rb") as environment:
            for variable in environment.read().split(b"\0"):
                if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
                    return int(variable.partition(b"=")[2])
    except OSError:
        pass
    return None


def kill(processes):
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Job:
    """One launch of the training."""

    def __init__(self, arguments, data, ranks, folder, parts, shards=1):
        self.ranks = ranks
        launch = [arguments.mpirun, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        if os.geteuid() == 0:
            launch.append("--allow-run-as-root")
        command = [*launch, arguments.program, *TRAINING, "--data", data, "--epochs", str(arguments.epochs)]
        self.output = open(folder + ".out", "a+b")
        self.begin = self.output.seek(0, os.SEEK_END)
        command += ["--parts", str(parts), "--shards", str(shards), "--checkpoint", folder, "--resume"]
        streams = {"stdout": self.output, "stderr": self.output, "stdin": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, **streams)

    def ended(self):
        return self.process.poll() is not None

    def wait(self, limit):
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            kill([*descendants(self.process.pid), self.process.pid])
            raise Lost(f"a job of {self.ranks} ranks still ran after {limit} s") from None

    def victims(self, rng):
        """The processes to kill: one rank's, or in a quarter of the cases all."""
        processes = descendants(self.process.pid)
        ranks = [process for process in processes if rank_of(process) is not None]
        if not ranks or rng.random() < 0.25:
            return [self.process.pid, *processes]
        return [rng.choice(ranks)]

    def text(self):
        self.output.seek(self.begin)
        return self.output.read().decode(errors="replace")


class Torture:
    def __init__(self, arguments, work):
        self.arguments, self.work = arguments, work
        self.rng = random.Random(arguments.seed)
        self.data = work + "/data"
        write_small_data(self.data, self.rng)
        self.references = {}  # (ranks, parts) -> folder, digest, seconds
        self.kills = self.during_saves = self.trainings = 0

    def tool(self, *words):
        done = subprocess.run(
            [self.arguments.tool, *words], capture_output=True, text=True, timeout=RUN_LIMIT, check=False
        )
        return done.returncode, (done.stdout + done.stderr).strip()

    def finish(self, job):
        """Waits for a job that is not killed. Returns its final digest, which must be equal on all ranks."""
        code = job.wait(RUN_LIMIT)
        if code != 0:
            raise Lost(f"a job that nobody killed ended with {code}:\n{job.text()}")
        said = [line.split() for line in job.text().splitlines()]
        digests = {words[3] for words in said if words[:1] == ["rank"] and words[2:3] == ["digest"]}
        if len(digests) != 1:
            raise Lost(f"the ranks end with the digests {sorted(digests)}:\n{job.text()}")
        return digests.pop()

    def reference(self, ranks, parts):
        """(folder, digest, seconds) of an undisturbed training."""
        if (ranks, parts) not in self.references:
            folder = f"{self.work}/undisturbed-{ranks}-{parts}"
            begin = time.monotonic()
            digest = self.finish(Job(self.arguments, self.data, ranks, folder, parts))
            self.references[ranks, parts] = folder, digest, time.monotonic() - begin
        return self.references[ranks, parts]

    def check_folder(self, folder, step):
        """Checks the folder's files. Returns the step of `latest`, which must not be before `step`."""
        if not os.path.isdir(folder):
            return 0
        files = sorted(name for name in os.listdir(folder) if name.endswith(".h5") and ".shard-" not in name)
        if files:
            code, text = self.tool("verify", *(f"{folder}/{name}" for name in files))
            if code != 0:
                raise Lost(f"a checkpoint is broken:\n{text}")
        latest = f"{folder}/latest"
        found = 0
        if os.path.lexists(latest):
            target = os.readlink(latest)
            if target not in files:
                raise Lost(f"'latest' points at '{target}', which is not there; there are {files}")
            found = int(target.removeprefix("step-").removesuffix(".h5"))
        if found < step:
            raise Lost(f"'latest' is at step {found}; it was at {step}")
        status = f"{folder}/status.json"
        if os.path.exists(status):
            with open(status, encoding="utf-8") as text:
                state = json.load(text)["state"]
            if state not in STATES:
                raise Lost(f"status.json says '{state}'")
        return found

    def wait_for_a_moment(self, job, folder, seconds):
        """Waits for a random time, in half of the cases also for a save. Returns True if a save is under way."""
        while_saving = self.rng.random() < 0.5
        end = time.monotonic() + self.rng.uniform(0, seconds)
        while time.monotonic() < end and not job.ended():
            time.sleep(0.005)
        end = time.monotonic() + seconds
        while while_saving and time.monotonic() < end and not job.ended():
            try:
                if any(name.endswith(".h5.tmp") for name in os.listdir(folder)):
                    return True
            except FileNotFoundError:
                pass
        return False

    def train(self, fixed):
        """One training, killed and resumed until it ends or the kills are used up; in the latter case it runs to its end.
        `fixed`: its number of ranks; 0: another one after each kill, with parts of the batch.
        """
        self.trainings += 1
        folder = f"{self.work}/training-{self.trainings}"
        step, parts = 0, 0 if fixed else PARTS
        while True:
            ranks = fixed or self.rng.randint(1, MOST_RANKS)
            whole, expected, seconds = self.reference(fixed or 1, parts)
            job = Job(self.arguments, self.data, ranks, folder, parts, self.rng.randint(1, ranks))
            if self.kills < self.arguments.kills:
                saving = self.wait_for_a_moment(job, folder, seconds)
                if not job.ended():
                    kill(job.victims(self.rng))
                    self.kills += 1
                    self.during_saves += saving
                    job.wait(END_LIMIT)
                    step = self.check_folder(folder, step)
                    print(f"kill {self.kills}: training {self.trainings}, {ranks} ranks, step {step}", flush=True)
                    continue
            digest = self.finish(job)
            self.check_folder(folder, step)
            if digest != expected:
                raise Lost(f"ended with digest {digest} on {ranks} ranks; undisturbed, {fixed or 1} ranks end with {expected}")
            code, text = self.tool("diff", f"{folder}/latest", f"{whole}/latest")
            if code != 0:
                raise Lost(f"saved other values than {fixed or 1} undisturbed ranks:\n{text}")
            shutil.rmtree(folder)
            return

    def run(self):
        while self.kills < self.arguments.kills:
            self.train(fixed=0 if self.trainings % 2 else self.rng.randint(1, MOST_RANKS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--program", required=True, help="the fashion_mnist example")
    parser.add_argument("--tool", required=True, help="the syncline command")
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=40, help="of a training")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="of what is killed when")
    arguments = parser.parse_args()
    work = tempfile.mkdtemp(prefix="torture-")
    torture = Torture(arguments, work)
    try:
        torture.run()
    except Lost as found:
        print(f"torture: after {torture.kills} kills: {found}", file=sys.stderr)
        print(f"(--seed {arguments.seed}; files are in {work})", file=sys.stderr)
        return 1
    shutil.rmtree(work)
    print(
        f"torture: {torture.kills} kills, {torture.during_saves} of them during a save, "
        f"in {torture.trainings} trainings: nothing lost"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
