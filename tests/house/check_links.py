#!/usr/bin/env python3
"""Fails on a broken link in a document, and on a named file that does not exist.

usage: check_links.py ROOT

It checks in every .md file outside build folders: relative links with their #anchors, and `folder/file.ext` in backquotes
if the folder is one of ours.
"""

import os
import re
import sys

FOLDERS = "base|benchmarks|comm|docs|examples|include|io|ops|python|runtime|scripts|tests|tools"
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]+\.(?:cc|h|py|md|txt|json|tsv))`")
SKIPPED = {".git", "build", "CHANGELOG.md"}  # a change log names files that no longer exist


def documents(root):
    for where, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith(".venv"))
        for name in sorted(files):
            if name.endswith(".md") and name not in SKIPPED:
                yield os.path.relpath(os.path.join(where, name), root)


def anchors(text):
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def problems(root, path):
    """Yields what is wrong with one document."""
    text = read(os.path.join(root, path))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(root, os.path.dirname(path), name)) if name else os.path.join(root, path)
        if not os.path.exists(file):
            yield f"{target} leads nowhere"
        elif anchor and file.endswith(".md") and anchor not in anchors(read(file)):
            yield f"{target}: there is no such heading"
    for name in NAMED.findall(text):
        if not os.path.exists(os.path.join(root, name)):
            yield f"`{name}` does not exist"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    found = [(path, problem) for path in documents(root) for problem in problems(root, path)]
    for path, problem in found:
        print(f"{path}: {problem}")
    print(f"check_links: {len(found)} problems")
    if not any(documents(root)):
        sys.exit(f"check_links: no document below {root}: is that the repository's root?")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
