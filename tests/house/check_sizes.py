#!/usr/bin/env python3
"""Fails on files and functions that are too long, and on names without meaning.

usage: check_sizes.py ROOT

Limits: 400 lines a file, 60 lines a function. Rejected are also names that contain the words utils, common or misc, and an
#if inside a function: optional code belongs into its own file, which is linked or not.
"""

import ast
import os
import re
import sys

FILE_LINES = 400
FUNCTION_LINES = 60
REFUSED_WORDS = {"util", "utils", "utility", "utilities", "common", "misc"}
FOLDERS = ("include", "base", "ops", "runtime", "comm", "io", "python", "tools", "tests", "examples", "benchmarks", "scripts", ".ci")
CPP = (".h", ".cc", ".cpp", ".hpp")

TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'""",
    re.S,
)
TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>")
SCOPE = re.compile(r"^[^()=]*\b(namespace|class|struct|union|enum)\b|\bextern\s*$|\b(class|struct|namespace)\b[^()=]*$")
FUNCTION = re.compile(
    r"\)\s*(const|noexcept|override|final|mutable|try|&&?|noexcept\s*\([^()]*\)|->\s*[\w:<>,&*\s]+|\s)*$"  # f() const {
    r"|\)\s*(noexcept\s*)?:[^;]*\{\}$"  # f() : member_{} {
    r"|\]\s*(mutable\s*)?$"  # a lambda without parameters
)


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def without_text(source):
    """The source with comments, strings and preprocessor lines blanked, line for line."""
    source = TOKENS.sub(blank, source)
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", blank, source, flags=re.M)


def cpp_functions(source):
    """(first line, last line) of each outermost function, from its head to the end of its body."""
    stack = []  # 'scope', 'function', 'braces'
    head = ""  # text since the last statement, with braced parts as {}
    head_line = line = 1
    found = []
    for char in without_text(source):
        if char == "\n":
            line += 1
        inside = "function" in stack
        if char == "{":
            text = TEMPLATE.sub("", head).strip()
            kind = "braces"
            if not inside and stack[-1:] != ["braces"]:
                kind = "scope" if SCOPE.search(text) else "function" if FUNCTION.search(text) else "braces"
            stack.append(kind)
            if kind == "function":
                found.append([head_line, line])
            if kind == "scope":
                head = ""
        elif char == "}" and stack:
            kind = stack.pop()
            if kind == "function":
                found[-1][1] = line
            head = head + "{}" if kind == "braces" and not inside else ""
        elif char == ";" and not inside:
            head = ""
        elif not inside:
            if not head.strip():
                head_line = line
            head += char
    return found


def python_functions(source):
    tree = ast.parse(source)
    return [
        (node.lineno, node.end_lineno)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def files(root):
    """Paths, relative to root, of all files written by hand."""
    for folder in FOLDERS:
        for where, folders, names in os.walk(os.path.join(root, folder)):
            folders[:] = sorted(f for f in folders if f not in ("__pycache__", "corpus") and not f.startswith("written_by_"))
            for name in sorted(names):
                if not name.endswith((".pyc", ".json", ".tsv", ".csv", ".supp")):
                    yield os.path.relpath(os.path.join(where, name), root)


def check_file(root, path):
    """Yields (line, what is wrong)."""
    for part in path.split("/"):
        words = set(re.split(r"[^a-z]+", part.lower())) & REFUSED_WORDS
        if words:
            yield 1, f"'{part}' says nothing: name it after what it does"
    with open(os.path.join(root, path), encoding="utf-8") as file:
        source = file.read()
    lines = source.count("\n")
    if lines > FILE_LINES:
        yield 1, f"{lines} lines: {FILE_LINES} a file; split it by meaning"
    functions = []
    if path.endswith(CPP):
        functions = cpp_functions(source)
    elif path.endswith(".py"):
        functions = python_functions(source)
    for first, last in functions:
        if last - first + 1 > FUNCTION_LINES:
            yield first, f"{last - first + 1} lines: {FUNCTION_LINES} a function; split it by meaning"
    if path.endswith(CPP):
        for number, line in enumerate(TOKENS.sub(blank, source).split("\n"), 1):
            if re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else)\b", line) and any(a < number < b for a, b in functions):
                yield number, "conditional compilation inside a function: make it a file that is linked or not"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    checked = problems = 0
    for path in files(root):
        checked += 1
        for line, problem in check_file(root, path):
            problems += 1
            print(f"{path}:{line}: {problem}")
    print(f"check_sizes: {checked} files, {problems} problems")
    if checked == 0:
        sys.exit(f"check_sizes: no file below {root}: is that the repository's root?")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
