#!/usr/bin/env python3
"""Fails on a tile of a product or convolution that keeps its accumulators in memory.

usage: check_tiles.py OBJECT...

A tile holds its sums in registers through a loop of multiply-adds. If the compiler does not keep the array of vectors in
registers, it stores each vector to the stack in each iteration, and the tile runs at a third of its speed with the same
results. This script reads the object files and rejects a loop without branches that has at least four vector
multiplications and stores a vector to the stack. It knows x86-64's instructions only; on other processors it does nothing.
It does not read winograd_transforms.cc, whose 36 values do not fit 16 registers.
"""

import os
import platform
import re
import subprocess
import sys

TILES = {"product/blocked_product", "convolution/direct", "convolution/depthwise"}
MULTIPLIES = re.compile(r"v?(fn?m(add|sub)\w*|mul)p[sd]$")
STORES = re.compile(r"v?mov[au]p[sd]$")
TO_STACK = re.compile(r"%[xyz]mm\d+,.*\(%r[sb]p")
HEAD = re.compile(r"^[0-9a-f]+ <(.*)>:$")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")


def functions(disassembly):
    """(name, [(address, operation, operands)]) of each function in what `objdump -d` prints."""
    name, body = None, []
    for line in disassembly.splitlines():
        if head := HEAD.match(line):
            if name:
                yield name, body
            name, body = head[1], []
        elif found := LINE.match(line):
            body.append((int(found[1], 16), found[2], found[3]))
    if name:
        yield name, body


def loops(body):
    """The bodies of loops that hold no branch but the one back to their start."""
    place = {address: i for i, (address, _, _) in enumerate(body)}
    start = 0  # after the last branch
    for i, (_, operation, operands) in enumerate(body):
        if not operation.startswith("j"):
            continue
        target = re.match(r"[0-9a-f]+", operands)
        first = place.get(int(target[0], 16)) if target else None
        if first is not None and start <= first <= i:
            yield body[first : i + 1]
        start = i + 1


def spills(disassembly):
    for name, body in functions(disassembly):
        for loop in loops(body):
            multiplies = sum(1 for _, operation, _ in loop if MULTIPLIES.match(operation))
            stores = sum(1 for _, operation, to in loop if STORES.match(operation) and TO_STACK.search(to))
            if multiplies >= 4 and stores:
                yield f"{name} at {loop[0][0]:x}: {stores} vectors stored to the stack for {multiplies} multiplications"


def main(paths):
    tiles = [path for path in paths if re.sub(r"\.cc\.o$", "", "/".join(path.split("/")[-2:])) in TILES]
    if not tiles:
        sys.exit("check_tiles.py: none of the object files holds a tile: " + " ".join(paths[:3]))
    failed = False
    for path in tiles:
        printed = subprocess.run(
            ["objdump", "-d", "-C", "--no-show-raw-insn", path], capture_output=True, text=True, check=True, timeout=100
        ).stdout
        for line in spills(printed):
            print(f"{path}: {line}; unroll the loop over the accumulators (#pragma GCC unroll)")
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if platform.machine() == "x86_64":
        main(sys.argv[1:])
