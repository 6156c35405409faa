"""Other programs read the files of callbacks: TensorBoard, the OpenMetrics and Prometheus parsers, a CSV reader."""

import csv
import glob
import json
import os
import subprocess
import tempfile
import time
import unittest

import numpy as np
from prometheus_client import parser as prometheus
from prometheus_client.openmetrics import parser as openmetrics
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

PROGRAM = os.environ["OBSERVED_TRAINING"]
STEPS_OF_EPOCH, EPOCHS = 6, 3
ODD_NAME = 'an "odd", \\ name'


class ForeignReaders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = cls.scratch.name
        os.symlink("epochs.csv", os.path.join(cls.folder, "latest"))  # stands for a checkpoint
        cls.began = time.time()
        done = subprocess.run([PROGRAM, cls.folder], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        cls.wanted = json.loads(done.stdout)
        assert len(cls.wanted["steps"]) == STEPS_OF_EPOCH * EPOCHS and len(cls.wanted["epochs"]) == EPOCHS

    def events(self, run):
        reader = EventAccumulator(os.path.join(self.folder, run))
        reader.Reload()
        return reader

    def assert_scalars(self, reader, tag, wanted):
        """`wanted`: (step, value) pairs; the file holds float32."""
        got = reader.Scalars(tag)
        self.assertEqual([(e.step, e.value) for e in got], [(step, float(np.float32(v))) for step, v in wanted], tag)
        times = [e.wall_time for e in got]
        self.assertEqual(times, sorted(times))
        self.assertTrue(self.began - 1 <= times[0] <= time.time())

    def test_tensorboard_reads_steps_and_drops_those_done_again(self):
        reader = self.events("train")
        self.assertEqual(len(glob.glob(os.path.join(self.folder, "train", "*"))), 2)
        for name in ("loss", "error"):
            self.assert_scalars(
                reader, "batch_" + name, [(step["step"], step["logs"][name]) for step in self.wanted["steps"]]
            )

    def test_tensorboard_reads_epochs(self):
        for run, prefix in (("train", ""), ("validation", "val_")):
            reader = self.events(run)
            for name in ("loss", "error"):
                self.assert_scalars(
                    reader, "epoch_" + name, [(e["step"], e["logs"][prefix + name]) for e in self.wanted["epochs"]]
                )
        names = {"batch_loss", "batch_error", "epoch_loss", "epoch_error", "epoch_lr", "epoch_" + ODD_NAME}
        self.assertEqual(set(self.events("train").Tags()["scalars"]), names)

    def test_the_server_of_tensorboard_finds_both_runs(self):
        server = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(self.folder)
        server.Reload()
        self.assertEqual(set(server.Runs()), {"train", "validation"})
        steps = [event.step for event in server.Tensors("train", "batch_loss")]
        self.assertEqual(steps, list(range(1, STEPS_OF_EPOCH * EPOCHS + 1)))

    def test_metrics(self):
        with open(os.path.join(self.folder, "training.prom"), encoding="utf-8") as file:
            text = file.read()
        last = self.wanted["epochs"][-1]["logs"]
        for parse in (openmetrics.text_string_to_metric_families, prometheus.text_string_to_metric_families):
            families = {family.name: family for family in parse(text)}
            self.assertEqual({family.type for family in families.values()}, {"gauge"})
            values = {name: family.samples[0].value for name, family in families.items()}
            self.assertEqual(values["syncline_epochs"], EPOCHS)
            self.assertEqual(values["syncline_epochs_wanted"], EPOCHS)
            self.assertEqual(values["syncline_steps"], STEPS_OF_EPOCH * EPOCHS)
            self.assertEqual(values["syncline_ranks"], 1)
            self.assertGreater(values["syncline_samples_per_second"], 0)
            for stamp in ("syncline_written_timestamp_seconds", "syncline_checkpoint_timestamp_seconds"):
                self.assertTrue(self.began - 1 <= values[stamp] <= time.time(), stamp)
            logs = {sample.labels["name"]: sample.value for sample in families["syncline_log"].samples}
            self.assertEqual(logs, last)
            states = {sample.labels["state"]: sample.value for sample in families["syncline_state"].samples}
            self.assertEqual(states, {"running": 0, "finished": 1, "saved": 0, "failed": 0})

    def test_table(self):
        with open(os.path.join(self.folder, "epochs.csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["epoch", *sorted(self.wanted["epochs"][0]["logs"])])
        got = [{name: float(value) for name, value in row.items()} for row in rows]
        self.assertEqual(got, [{"epoch": e["epoch"], **e["logs"]} for e in self.wanted["epochs"]])


if __name__ == "__main__":
    unittest.main()
