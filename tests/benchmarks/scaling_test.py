#!/usr/bin/env python3
"""Compares benchmarks/scaling/prediction.py with simulations of single messages and with sums computed by hand.

usage: scaling_test.py SIMULATE, the program of benchmarks/scaling/simulate.cc
"""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benchmarks", "scaling"))
import prediction  # noqa: E402
from prediction import Cluster, Link  # noqa: E402

SLOW, FAST, ALL_TO_ALL = Link(30e-6, 1e9), Link(1e-6, 10e9), Link(40e-6, 0.5e9, gap=3e-6)


def cluster(ranks_a_node=1, **options):
    return Cluster(inside=FAST, between=SLOW, exchange=ALL_TO_ALL, meeting=2e-6, memory=20e9, ranks_a_node=ranks_a_node, **options)


def send_ring(ranks, link_of, size):
    """Simulates each message of a ring all-reduce: a rank sends its next chunk when it has the previous one and its link is free."""
    ready = [0.0] * ranks
    for _ in range(2 * (ranks - 1)):
        sent = [ready[r] + link_of(r).message(size / ranks) for r in range(ranks)]
        ready = [max(sent[r], sent[r - 1]) for r in range(ranks)]
    return max(ready)


def send_chain_of_levels(levels, pieces, size):
    """Simulates pieces that pass the levels in order; a level handles one piece of each child at a time. Down takes as long as up."""
    free = [0.0] * len(levels)
    for _ in range(pieces):
        arrived = 0.0
        for i, (link, children) in enumerate(levels):
            arrived = free[i] = max(arrived, free[i]) + children * link.message(size / pieces)
    return 2 * arrived


class Schedules(unittest.TestCase):
    def test_ring_is_what_its_messages_take(self):
        for nodes, ranks_a_node in ((2, 1), (5, 1), (2, 2), (3, 4), (1, 4)):
            ranks = nodes * ranks_a_node
            last_of_node = lambda r: nodes > 1 and (r + 1) % ranks_a_node == 0  # noqa: E731
            for size in (4, 1 << 20, 100 << 20):
                want = send_ring(ranks, lambda r: SLOW if last_of_node(r) else FAST, size)
                got = prediction.ring(cluster(ranks_a_node), nodes, size)
                # The ring is faster than its slowest link only at its start and end.
                self.assertAlmostEqual(got / want, 1, delta=0.5 / (ranks - 1) if ranks_a_node > 1 and nodes > 1 else 1e-9)

    def test_ring_moves_twice_the_buffer_but_for_a_share(self):
        n, size = 1000, 1 << 30
        got = prediction.ring(cluster(), n, size)
        self.assertAlmostEqual(got, 2 * (n - 1) * 30e-6 + 2 * (n - 1) / n * size / 1e9, places=9)

    def test_tree_is_what_its_messages_take(self):
        for nodes, ranks_a_node, levels in (
            (2, 1, [(SLOW, 1)]),
            (8, 1, [(SLOW, 2)] * 3),
            (8, 4, [(SLOW, 2)] * 3 + [(FAST, 2)] * 2),
            (5, 2, [(SLOW, 2)] * 2 + [(FAST, 1)]),
            (1, 3, [(FAST, 2)]),
        ):
            for size, pieces in ((4, 1), (1 << 20, 1), (10 << 20, 10)):
                got = prediction.tree(cluster(ranks_a_node), nodes, size)
                self.assertAlmostEqual(got, send_chain_of_levels(levels, pieces, size), places=12)

    def test_small_buffers_go_by_the_tree_large_ones_by_the_ring(self):
        self.assertLess(prediction.tree(cluster(), 64, 4), prediction.ring(cluster(), 64, 4))
        self.assertLess(prediction.ring(cluster(), 64, 1 << 30), prediction.tree(cluster(), 64, 1 << 30))

    def test_hierarchical_adds_the_node_and_the_rounds(self):
        size = 8 << 20
        node = 2e-6 + 2 * 4 * size / (4 * 20e9)
        self.assertAlmostEqual(prediction.hierarchical(cluster(4), 1, size), node, places=12)
        # Three nodes agree, then each adds up a third and sends it, in four chunks. Each of four ranks sends its slice.
        exchange = 3 * 40e-6 + (2 + 4 * 4 * 4) * 3e-6 + 2 * (2 * size / 3) / 0.5e9
        self.assertAlmostEqual(prediction.hierarchical(cluster(4), 3, size) / (node + exchange), 1, delta=0.005)

    def test_the_model_of_the_rounds_is_what_the_wire_does(self):
        link = Link(5e-6, 11e9, gap=0.5e-6)
        of_one_rank = ((2, 0.01), (3, 0.01), (8, 0.01), (9, 0.04), (16, 0.01), (33, 0.04), (64, 0.01), (100, 0.02))
        cases = [(nodes, 1, most) for nodes, most in of_one_rank] + [(2, 4, 0.01), (9, 4, 0.05), (5, 6, 0.01), (16, 6, 0.05), (16, 8, 0.01)]
        sizes = ",".join(str(size) for size in (4, 64 << 10, 1 << 20, 25 << 20))
        for nodes, ranks, most in cases:
            for line in prediction.simulate((nodes,), link, "--bytes", sizes, "--ranks-a-node", str(ranks)):
                self.assertAlmostEqual(line["model"] / line["simulated"], 1, delta=most, msg=line)
                self.assertGreater(line["simulated"], line["limit"])

    def test_cores_bound_the_memory_that_ranks_move(self):
        size = 8 << 20
        few, many = prediction.node_sum(cluster(cores=2), 2, size), prediction.node_sum(cluster(cores=2), 8, size)
        self.assertAlmostEqual((many - 2e-6) / (few - 2e-6), 4)

    def test_one_rank_sends_nothing(self):
        for schedule in prediction.SCHEDULES.values():
            self.assertEqual(schedule(cluster(), 1, 1 << 20), 0)


class Step(unittest.TestCase):
    PROFILE = [
        ("compute", 3.0, 0), ("submit", 0, 10), ("compute", 2.0, 0), ("submit", 1, 40), ("compute", 1.0, 0), ("wait", 0, 10),
        ("compute", 0.5, 0), ("wait", 1, 40), ("compute", 0.5, 0),
    ]  # fmt: skip

    def test_buckets_hide_behind_the_computation(self):
        # Bucket 0 is transferred from 3 to 4, bucket 1 from 5 to 9. The step waits from 6.5 to 9.
        self.assertAlmostEqual(prediction.step_seconds(self.PROFILE, lambda size: size / 10), 9.5)

    def test_a_bucket_waits_for_the_one_before(self):
        # Bucket 0 is transferred from 3 to 7, bucket 1 from 7 to 23.
        self.assertAlmostEqual(prediction.step_seconds(self.PROFILE, lambda size: size / 2.5), 23.5)

    def test_without_overlap_transfers_begin_at_the_wait(self):
        # Computes until 6, bucket 0 until 7, computes until 7.5, bucket 1 until 11.5.
        self.assertAlmostEqual(prediction.step_seconds(self.PROFILE, lambda size: size / 10, overlap=False), 12)

    def test_a_wire_without_cost_costs_nothing(self):
        self.assertAlmostEqual(prediction.compute_seconds(self.PROFILE), 7)
        self.assertAlmostEqual(prediction.step_seconds(self.PROFILE, lambda size: 0, slower=2), 14)

    def test_a_simulated_step_waits_for_simulated_sums(self):
        for nodes, ranks in ((9, 1), (16, 4)):
            layout = cluster(ranks)

            def transfer(size):
                (line,) = prediction.simulate((nodes,), layout.exchange, "--bytes", str(size), "--ranks-a-node", str(ranks))
                return line["simulated"]

            for milliseconds in (1, 40):  # of computation, less and more than the sums need
                pause = ("compute", milliseconds * 1e-3, 0)
                first, second = ("submit", 7, 1 << 20), ("submit", 3, 4 << 20)
                profile = [pause, first, pause, second, pause, ("wait", 7, 0), pause, ("wait", 3, 0), pause]
                expected = prediction.compute_seconds(profile) / prediction.step_seconds(profile, transfer)
                self.assertAlmostEqual(prediction.simulated_efficiency(profile, layout, nodes), expected, delta=0.01)

    def test_efficiency_falls_with_ranks(self):
        profile = [("compute", 5e-3, 0), ("submit", 0, 1 << 20), ("wait", 0, 1 << 20)]
        values = [prediction.efficiency(profile, cluster(), n, "hierarchical") for n in (1, 2, 8, 64, 512, 4096)]
        self.assertEqual(values[0], 1)
        self.assertEqual(values, sorted(values, reverse=True))
        self.assertAlmostEqual(values[1] / (5e-3 / (5e-3 + 3 * 40e-6 + 2 * (1 << 19) / 0.5e9)), 1, delta=0.005)


class Measurements(unittest.TestCase):
    def test_fit_finds_what_made_the_points(self):
        points = [(size, 5e-6 + 0.5 * size / 2e9) for size in (4, 4096, 1 << 20, 64 << 20)]
        latency, bandwidth = prediction.fit(points, share=0.5)
        self.assertAlmostEqual(latency, 5e-6, places=12)
        self.assertAlmostEqual(bandwidth / 2e9, 1)

    def test_fit_has_no_negative_latency(self):
        latency, bandwidth = prediction.fit([(1000, 1e-6), (2000, 3e-6)])
        self.assertEqual(latency, 0)
        self.assertGreater(bandwidth, 0)

    def test_profile_of_a_timeline(self):
        lines = ["["]
        for step in range(3):
            begin = 1000.0 * step
            for i, (bucket, us) in enumerate(((0, 50), (1, 20), (0, 5), (1, 4), (None, 3))):
                args = {"plan": "ab", "step": step} | ({} if bucket is None else {"bucket": bucket})
                lines.append(json.dumps({"cat": "compute", "ts": begin + 100 * i, "dur": us + step, "args": args}) + ",")
            for bucket, size in ((0, 400), (1, 800)):
                args = {"plan": "ab", "step": step, "bucket": bucket, "bytes": size}
                lines.append(json.dumps({"cat": "transfer", "ts": begin, "dur": 9, "args": args}) + ",")
        profile = prediction.profile_of_trace(lines, skip=0)
        self.assertEqual([action for action, _, _ in profile],
                         ["compute", "submit", "compute", "submit", "compute", "wait", "compute", "wait", "compute"])  # fmt: skip
        self.assertEqual([round(value * 1e6) for action, value, _ in profile if action == "compute"], [51, 21, 6, 5, 4])
        self.assertEqual([size for action, _, size in profile if action == "wait"], [400, 800])


if __name__ == "__main__":
    prediction.SIMULATE = sys.argv.pop(1)
    unittest.main()
