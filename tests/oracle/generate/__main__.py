"""Writes tests/oracle/fixtures.

usage: python -m generate [--check] [FUNCTION...]     (in tests/oracle; all functions unless named)

--check writes nothing and fails if a fixture would change.
"""

import importlib
import os
import pkgutil
import sys

from generate import oracle

LAST = ("batches", "edges")  # they add to the lists of the other modules


def main(arguments):
    check = "--check" in arguments
    names = [a for a in arguments if a != "--check"]
    found = [m.name for m in pkgutil.iter_modules([os.path.dirname(__file__)])]
    for module in sorted(found, key=lambda name: (name in LAST, name)):
        if module != "__main__":
            importlib.import_module(f"generate.{module}")
    unknown = sorted(set(names) - set(oracle.cases))
    if unknown:
        sys.exit(f"no cases of {', '.join(unknown)}")
    os.makedirs(oracle.FIXTURES, exist_ok=True)
    changed, failed = [], []
    for function in names or sorted(oracle.cases):
        path = os.path.join(oracle.FIXTURES, function + ".json")
        text = oracle.fixture_text(function, failed)
        old = open(path, encoding="ascii").read() if os.path.exists(path) else None
        if text == old:
            continue
        changed.append(function)
        if not check:
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
    stale = [] if names else sorted(set(os.listdir(oracle.FIXTURES)) - {f + ".json" for f in oracle.cases})
    total = sum(len(rows) for rows in oracle.cases.values())
    print(f"{len(oracle.cases)} functions, {total} cases; changed: {', '.join(changed) or 'none'}")
    if stale:
        sys.exit(f"fixtures of no function: {', '.join(stale)}")
    if failed:
        sys.exit("\n".join(failed))
    if check and changed:
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
