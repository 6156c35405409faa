"""Compares the shapes of random calls with those of an independent model.

    shapes.py [--first SEED] [--count CALLS | --seconds S] [--only FUNCTION]

Each call is drawn from the tables of array_rules.py, operand_rules.py and window_rules.py. About a third of
the calls are wrong: the backend must reject the calls that the model rejects, with a plain error, and accept the others. The
calls run in a child process, so a crash is a finding too. The exit status is 1 if there are findings.
"""

import argparse
import faulthandler
import json
import os
import signal
import subprocess
import sys
import time

MOST_SECONDS = 20  # of one call


def entries():
    import array_rules
    import operand_rules
    import window_rules

    return array_rules.ENTRIES + operand_rules.ENTRIES + window_rules.ENTRIES


def models():
    return {name: entry.model for entry in entries() for name in entry.names}


def drawn(seed, table):
    """The call of a seed; the seed modulo the size of the table selects the entry."""
    from calls import Call
    from draw import Draw

    d = Draw(seed)
    entry = table[seed % len(table)]
    call = Call(d.choice(entry.names), *entry.draw(d))
    if d.chance(0.6):
        call = d.opened(call)
    call.gradient = d.chance(0.3)
    return call


def call_of(seed, table):
    """The call of a seed; seeds below 0 are the calls of cases.py."""
    import cases

    return cases.CALLS[seed] if seed < 0 else drawn(seed, table)


def child(first, end, seconds, only):
    """Prints a line of JSON before each call, and one after it."""
    import syncline as K

    from check import check

    faulthandler.enable()
    start, table, model = time.time(), entries(), models()
    table = [entry for entry in table if not only or only in entry.names]
    for seed in range(first, end):
        if time.time() - start > seconds:
            break
        call = call_of(seed, table)
        print(json.dumps({"seed": seed, "call": repr(call)}), flush=True)
        signal.alarm(MOST_SECONDS)
        found, accepted = check(K, model[call.function], call)
        signal.alarm(0)
        print(json.dumps({"seed": seed, "function": call.function, "accepted": accepted, "found": found}))
    K.clear_session()


class Tally:
    """Counts the calls, the accepted calls and the findings."""

    def __init__(self):
        self.calls, self.accepted, self.findings, self.last = {}, {}, 0, None

    def read(self, line):
        if "call" in line:
            self.last = line
            return
        name = line["function"]
        self.calls[name] = self.calls.get(name, 0) + 1
        self.accepted[name] = self.accepted.get(name, 0) + line["accepted"]
        for found in line["found"]:
            self.report(found)

    def report(self, found):
        self.findings += 1
        print(f"seed {self.last['seed']}: {self.last['call']}\n    {found}", flush=True)

    def share(self):
        return sum(self.accepted.values()) / max(1, sum(self.calls.values()))


def run(tally, first, end, seconds, only):
    """Runs child processes until one reaches the end or the time is over."""
    start = time.time()
    while first < end and time.time() - start < seconds:
        remaining = seconds - (time.time() - start)
        arguments = ["--child", str(first), str(end), str(remaining), only or ""]
        command = [sys.executable, os.path.abspath(__file__), *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line.startswith("{"):
                tally.read(json.loads(line))
        error = process.stderr.read()
        if process.wait() == 0:
            return
        if tally.last is None:
            sys.exit(f"no call ran: {error}")
        tally.report(f"the process ended with {process.returncode}\n{error[-1500:]}")
        first = tally.last["seed"] + 1


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        return child(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=10**9)
    parser.add_argument("--only")
    options = parser.parse_args()
    import cases

    start, tally = time.time(), Tally()
    if not options.only:
        run(tally, -len(cases.CALLS), 0, options.seconds, None)
    run(tally, options.first, options.first + options.count, options.seconds, options.only)
    calls, share = sum(tally.calls.values()), tally.share()
    print(f"{calls} calls of {len(tally.calls)} functions in {time.time() - start:.0f} s,", end=" ")
    print(f"{100 * (1 - share):.0f} % of them wrong, {tally.findings} findings")
    if calls > 1000 and not options.only and not 0.6 < share < 0.75:
        sys.exit("the calls are no fair mixture: between a quarter and two fifths should be wrong")
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
