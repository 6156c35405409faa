#!/usr/bin/env python3
"""Fails on an include that crosses the layers of the architecture.

usage: check_layers.py ROOT

Checked: which folder includes which, which files may include a library's headers, that includes of our own are written
from the root and exist, that a source includes its own header first, that a header has #pragma once.
"""

import os
import re
import sys

# Folder, or room within one -> what it may include: folders, rooms, or single files.
EDGES = {
    "base": {"base"},
    "ops": {"base", "ops"},
    "comm": {"base", "comm"},
    "io": {"base", "io"},
    "runtime": {"base", "ops", "runtime", "comm/communicator.h", "comm/settings.h"},
    # Stands upon the runtime, which does not see it.
    "runtime/training": {"base", "ops", "runtime", "runtime/training", "io", "comm/communicator.h", "comm/settings.h"},
}
# These see everything.
OUTER = ("tools", "examples", "tests", "benchmarks", "python")
FOLDERS = (*EDGES, *OUTER)

# A library's headers -> the files, or folders, that may include them.
LIBRARIES = [
    (r"(cblas|lapacke|openblas_config)\.h$|^openblas/", ("ops/kernels/gemm.cc",)),
    # benchmarks/allreduce sets us beside raw MPI, so it needs it raw.
    (r"^mpi(-ext|_ext)?\.h$|^openmpi/", ("comm/mpi/", "benchmarks/allreduce_contenders.cc")),
    (r"^nccl", ("comm/nccl/",)),
    (r"^cuda|^driver_types\.h$", ("comm/nccl/",)),
    (r"^H5|^hdf5", ("io/",)),
    (r"^zlib\.h$", ("io/",)),
    (r"^gd", ("tools/histogram_picture.cc", "tests/tools/histogram_picture_test.cc")),
    (r"^zip\.h$", ("io/",)),
    (r"^csv\.h$", ("io/",)),
    (r"^(oneapi/)?tbb[/.]", ("ops/kernels/parallel.h", "ops/kernels/parallel.cc")),
    (r"^hwy/", ("ops/", "comm/sum.cc")),
    (r"^xxhash\.h$", ("ops/kernels/digest.cc", "io/digest.cc")),
    (r"^omp\.h$", ()),
    (r"^(nanobind/|Python\.h$)", ("python/",)),
    (r"^(gtest|gmock)/", ("tests/",)),
    (r"^benchmark/", ("benchmarks/",)),
]

INCLUDE = re.compile(r"^\s*#\s*include(?:_next)?\b\s*(.*?)\s*(?://.*|/\*.*)?$")


def sources(root):
    """Paths, relative to root, of all C++ files of the layers."""
    for folder in FOLDERS:
        for where, folders, files in os.walk(os.path.join(root, folder)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".h", ".cc", ".cpp", ".hpp", ".inc")):
                    yield os.path.relpath(os.path.join(where, name), root)


def room_of(path):
    """The innermost room that a file of ours lies in."""
    folder = "/".join(path.split("/")[:2])
    return folder if folder in EDGES else path.split("/")[0]


def allowed(path, target):
    """True if the file `path` may include `target`, a file of ours; both are relative to the root."""
    edges = EDGES.get(room_of(path))
    return edges is None or target in edges or room_of(target) in edges


def check_include(root, path, written):
    """What is wrong with one include, or None. `written` is the text after #include."""
    if len(written) < 2 or written[0] not in '<"':
        return f"#include {written}: write the file's name, not a macro"
    name = written[1:-1]
    if name.split("/")[0] in FOLDERS and "/" in name and (written[0] == '"' or os.path.exists(os.path.join(root, name))):
        if not os.path.exists(os.path.join(root, name)):
            return f'"{name}" does not exist'
        if not allowed(path, name):
            may = ", ".join(sorted(EDGES[room_of(path)]))
            return f'"{name}" is a forbidden edge: {room_of(path)} may include {may}'
        return None
    if written[0] == '"':
        return f'"{name}": write includes of our own from the root, and libraries in <>'
    for pattern, places in LIBRARIES:
        if re.search(pattern, name) and not path.startswith(places):
            return f"<{name}> may be included by {', '.join(places) or 'no file'} only"
    return None


def check_file(root, path):
    """Yields (line, what is wrong)."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = file.read().split("\n")
    includes = []
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            includes.append(match[1])
            problem = check_include(root, path, match[1])
            if problem:
                yield number, problem
    # Highway compiles such a file once a target and wants its own header, or its own guard, in the first place.
    highway = path.endswith("-inl.h") or "<hwy/foreach_target.h>" in includes
    if path.endswith(".h") and not highway and "#pragma once" not in lines:
        yield 1, "a header needs #pragma once"
    own = re.sub(r"\.cc$", ".h", path)
    if own != path and not highway and os.path.exists(os.path.join(root, own)) and includes[:1] != [f'"{own}"']:
        yield 1, f'include the own header "{own}" first'


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    checked = problems = 0
    for path in sources(root):
        checked += 1
        for line, problem in check_file(root, path):
            problems += 1
            print(f"{path}:{line}: {problem}")
    print(f"check_layers: {checked} files, {problems} problems")
    if checked == 0:
        sys.exit(f"check_layers: no C++ file below {root}: is that the repository's root?")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
