#!/usr/bin/env python3
"""Fails on a text in docs/troubleshooting.md that no program of ours prints.

usage: check_messages.py ROOT

The texts are the code in the first column of the page's tables. A text must be part of one string literal of the sources, which are
C++, Python, CMake and shell files; literals that follow each other count as one.
"""

import os
import re
import sys

PAGE = "docs/troubleshooting.md"
FOLDERS = ("base", "comm", "include", "io", "ops", "runtime", "tools", "python", "scripts")
ENDINGS = (".cc", ".h", ".py", ".sh", "CMakeLists.txt")
ROW = re.compile(r"^\| (`[^|]+`) \|")
TEXT = re.compile("`([^`]+)`")
# A string literal with its escapes.
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def literals(text):
    """The string literals of a source; adjacent ones are joined."""
    joined, last = [], None
    for match in LITERAL.finditer(text):
        value = match[1].replace('\\"', '"')
        if last is not None and not text[last : match.start()].strip(" \n"):
            joined[-1] += value
        else:
            joined.append(value)
        last = match.end()
    return joined


def sources(root):
    """Paths of the sources: in FOLDERS, and those beside the folders."""
    paths = [os.path.join(root, name) for name in os.listdir(root)]
    for folder in FOLDERS:
        for where, _, files in os.walk(os.path.join(root, folder)):
            paths += [os.path.join(where, name) for name in files]
    return [path for path in paths if path.endswith(ENDINGS)]


def printed(root):
    """All string literals of the sources, one a line."""
    lines = []
    for path in sources(root):
        with open(path, encoding="utf-8") as file:
            lines += literals(file.read())
    return "\n".join(lines)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    with open(os.path.join(root, PAGE), encoding="utf-8") as file:
        texts = [text for row in map(ROW.match, file) if row for text in TEXT.findall(row[1])]
    known = printed(root)
    missing = [text for text in texts if text not in known]
    for text in missing:
        print(f"{PAGE}: no program prints '{text}'")
    print(f"check_messages: {len(texts)} texts, {len(missing)} problems")
    sys.exit(1 if missing or not texts else 0)


if __name__ == "__main__":
    main()
