#!/usr/bin/env python3
"""Tests benchmarks/compare.py (intervals against exact probabilities and random times), the rows that interleave.py chooses, and the
tables of nets.py."""

import itertools
import math
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benchmarks"))
import compare  # noqa: E402
import interleave  # noqa: E402
import nets  # noqa: E402
import report  # noqa: E402


class Interval(unittest.TestCase):
    def test_holds_the_median_as_often_as_promised(self):
        # Each of n ratios is above or below the median with equal probability: counts all 2**n cases.
        for n in range(6, 15):
            low, high = compare.interval([*range(n)])
            held = sum(low < sum(coins) <= high for coins in itertools.product((0, 1), repeat=n)) / 2**n
            self.assertGreaterEqual(held, 0.95)
            # The next narrower interval is too narrow.
            narrower = sum(low + 1 < sum(coins) <= high - 1 for coins in itertools.product((0, 1), repeat=n)) / 2**n
            self.assertLess(narrower, 0.95)

    def test_nine_ratios_leave_out_one_at_each_end(self):
        self.assertEqual(compare.interval([9, 1, 8, 2, 7, 3, 6, 4, 5]), (2, 8))

    def test_too_few_ratios_say_nothing(self):
        self.assertEqual(compare.interval([1, 1, 1, 1, 1]), (0, math.inf))


class Ratio(unittest.TestCase):
    def drawn(self, generator, slower, pairs=9):
        """Pairs of times with noise of each process and a drift of the machine that affects both sides."""
        drift = [1 + 0.3 * math.sin(i / 3) for i in range(pairs)]
        return [(slower * d * generator.lognormvariate(0, 0.02), d * generator.lognormvariate(0, 0.02)) for d in drift]

    def test_holds_the_true_ratio_in_19_of_20_draws(self):
        generator = random.Random(1)
        held = 0
        for _ in range(2000):
            found = compare.Comparison(self.drawn(generator, 1.1))
            held += found.low <= 1.1 <= found.high
        self.assertGreater(held, 1880)

    def test_finds_what_is_slower_and_spares_what_is_not(self):
        generator = random.Random(2)
        self.assertTrue(all(compare.Comparison(self.drawn(generator, 1.15)).low > 1.03 for _ in range(100)))
        self.assertFalse(any(compare.Comparison(self.drawn(generator, 1.0)).low > 1.03 for _ in range(100)))

    def test_more_of_a_rate_is_less_time(self):
        pairs = [(50.0, 100.0 + i) for i in range(9)]
        found = compare.Comparison(pairs, higher_is_better=True)
        self.assertAlmostEqual(found.ratio, 104 / 50)
        self.assertGreater(found.low, 2)

    def test_interval_holds_the_ratio_itself(self):
        generator = random.Random(3)
        for _ in range(500):
            pairs = [(generator.uniform(1, 3), generator.uniform(1, 3)) for _ in range(9)]
            found = compare.Comparison(pairs)
            self.assertTrue(found.low <= found.ratio <= found.high)


class Rows(unittest.TestCase):
    def test_another_commit_is_the_only_peer_of_every_row(self):
        contenders, tables = interleave.load_rows("", "other/build")
        for row in (row for table in tables for row in table["rows"]):
            self.assertEqual(row["against"], ["before"])
            here, there = (
                interleave.command(interleave.run_key(row, name, contenders), contenders) for name in ("syncline", "before")
            )
            self.assertEqual([word.replace("other/build", "build/release") for word in there], here)
            self.assertTrue(any("build/release" in word for word in here), here)
            self.assertNotEqual(here, there)

    def test_every_row_is_compared_beside_peers_too(self):
        with_peers, alone = interleave.load_rows("")[1], interleave.load_rows("", "other")[1]
        names = [[(table["title"], row["name"], row["threads"]) for table in t for row in table["rows"]] for t in (with_peers, alone)]
        self.assertEqual(*names)
        self.assertGreater(len(names[0]), 50)

    def test_only_chooses_by_name_and_leaves_no_empty_table(self):
        tables = interleave.load_rows("^softmax|^4 B, 4 ranks")[1]
        self.assertEqual({row["name"] for table in tables for row in table["rows"]}, {"softmax, 4096x1024", "4 B, 4 ranks"})
        self.assertTrue(all(table["rows"] for table in tables))
        self.assertEqual(interleave.load_rows("no such row")[1], [])

    def test_rates_are_marked(self):
        for table in interleave.load_rows("")[1]:
            self.assertEqual(table["unit"].endswith("/s"), table.get("better") == "higher", table["title"])

    def test_kernels_are_rows_by_the_names_they_list(self):
        table = interleave.kernel_table("gemm/8x8x8/real_time\ngemm/8x8x9\nconv/3x3\n", "gemm")
        self.assertEqual([row["name"] for row in table["rows"]], ["gemm/8x8x8/real_time", "gemm/8x8x9"])
        contenders = interleave.load_rows("", "other")[0]
        words = interleave.command(interleave.run_key(table["rows"][0], "before", contenders), contenders)
        self.assertEqual(words[:2], ["other/benchmarks/kernel_bench", "--benchmark_filter=^gemm/8x8x8/real_time$"])
        said = '{"context": {}, "benchmarks": [{"name": "gemm", "real_time": 1500.0, "time_unit": "us"}]}'
        self.assertEqual(interleave.read_line("kernel", said), {"step_ms": 1.5})
        self.assertIsNone(interleave.read_line("kernel", ""))

    def test_several_ranks_are_launched(self):
        contenders, tables = interleave.load_rows("", "other")
        for row in (row for table in tables for row in table["rows"]):
            words = interleave.command(interleave.run_key(row, "before", contenders), contenders)
            ranks = row.get("ranks", 1)
            self.assertEqual(words[:2] == ["scripts/launch", str(ranks)], ranks > 1)


def measured(rows, here, there):
    """The output of interleave.py for all `rows`. `here` and `there` list the fields of the processes of each side."""
    contenders, tables = interleave.load_rows(rows, "other")
    runs = []
    for row in (row for table in tables for row in table["rows"]):
        for name, values in (("syncline", here), ("before", there)):
            key = interleave.run_key(row, name, contenders)
            runs += [{"key": list(key), "measured": value | {"others_cores": 0}} for value in values]
    machine = {"date": "now", "commit": "c", "compiler": "g++", "cpu": "x", "cores": 2, "kernel": "6"}
    return {"machine": machine, "rounds": 9, "only": rows, "before": "other", "tables": tables, "load": [0], "runs": runs}


class Table(unittest.TestCase):
    STEPS = [{"step_ms": 1.0 + i / 100} for i in range(9)]
    SLOWER = [{"step_ms": 1.1 + i / 100} for i in range(9)]

    def test_a_slower_row_fails_and_is_named(self):
        text, failed = compare.comparison(measured("^softmax", self.SLOWER, self.STEPS), 1.03)
        self.assertEqual(len(failed), 2)
        self.assertIn("softmax, 4096x1024, 1 threads", failed[0])
        self.assertIn("**slower**", text)
        self.assertEqual(compare.comparison(measured("^softmax", self.SLOWER, self.STEPS), 1.2)[1], [])
        self.assertEqual(compare.comparison(measured("^softmax", self.STEPS, self.SLOWER), 1.03)[1], [])

    def test_a_lower_rate_fails(self):
        rates = [[{"samples_per_s": 1000 / value["step_ms"]} for value in side] for side in (self.SLOWER, self.STEPS)]
        rows = "^MLP 1024-2048"
        self.assertEqual(len(compare.comparison(measured(rows, *rates), 1.03)[1]), 1)
        self.assertEqual(compare.comparison(measured(rows, *rates[::-1]), 1.03)[1], [])

    def test_a_row_that_breaks_here_fails_and_a_new_one_passes(self):
        broken = [{"error": "exit status 1: no such model"}] * 9
        text, failed = compare.comparison(measured("^softmax", broken, self.STEPS), 1.03)
        self.assertEqual(len(failed), 2)
        self.assertIn("**does not run**: exit status 1", text)
        text, failed = compare.comparison(measured("^softmax", self.STEPS, broken), 1.03)
        self.assertEqual(failed, [])
        self.assertIn("not there: exit status 1", text)

    def test_a_row_with_too_few_pairs_fails(self):
        text, failed = compare.comparison(measured("^softmax", self.STEPS[:5], self.STEPS[:5]), 1.03)
        self.assertEqual(len(failed), 2)
        self.assertIn("**too few pairs**", text)
        self.assertEqual(compare.comparison(measured("^softmax", self.STEPS[:6], self.STEPS[:6]), 1.03)[1], [])

    def test_a_failed_process_leaves_its_pair_out(self):
        here = [*self.SLOWER[:4], {"error": "killed"}, *self.SLOWER[4:]]
        there = [*self.STEPS[:4], {"step_ms": 1000.0}, *self.STEPS[4:]]
        result = report.Measured(measured("^softmax", here, there))
        contenders, tables = interleave.load_rows("^softmax", "other")
        keys = [interleave.run_key(tables[0]["rows"][0], name, contenders) for name in ("syncline", "before")]
        pairs = compare.pairs_of(result, keys, ["step_ms", "step_ms"])
        self.assertEqual(pairs, [(a["step_ms"], b["step_ms"]) for a, b in zip(self.SLOWER, self.STEPS)])


def net_runs(**measured):
    return [{"key": nets.key_of(name, "tcn", 1), "measured": m} for name, m in measured.items()]


class Nets(unittest.TestCase):
    RUNS = net_runs(
        syncline={"train_ms": 10.0, "predict_ms": 4.0},
        tensorflow={"train_ms": 12.9, "predict_ms": 9.0},
        torch={"train_ms": 13.1, "predict_ms": 5.3},
        tensorflow_jit={"train_ms": 14.0, "predict_ms": 5.0},
        openvino={"predict_ms": 5.1},
        keras_jax={"error": "killed"},
    )

    def test_contenders_that_are_slow_in_each_mode_drop_out(self):
        fast = [run["key"][0] for run in self.RUNS if nets.is_fast(run["key"][0], self.RUNS)]
        self.assertEqual(fast, ["syncline", "tensorflow", "tensorflow_jit", "openvino"])

    def test_failures_are_said(self):
        self.assertEqual(nets.failures({"runs": self.RUNS}), ["- not measured: keras_jax, tcn, 1 threads: killed"])

    def test_a_table_leaves_out_what_was_not_measured(self):
        contenders = interleave.load_spec()["contenders"]
        contenders = {run["key"][0]: contenders[run["key"][0]] for run in self.RUNS}
        result = {"rounds": 2, "runs": [*self.RUNS, *net_runs(syncline={"train_ms": 10.0, "predict_ms": 4.0})]}
        train, predict = (
            "\n".join(nets.table_lines("", field, "ms", result, contenders)) for field in ("train_ms", "predict_ms")
        )
        self.assertIn("| tcn | 1 | 10 | 12.9 (1) | 13.1 (1) | 14 (1) | - | - | 0.78 | 0.78 |", train)
        self.assertIn("| tcn | 1 | 4 | 9 (1) | 5.3 (1) | 5 (1) | 5.1 (1) | - | 0.44 | 0.80 |", predict)


if __name__ == "__main__":
    unittest.main()
