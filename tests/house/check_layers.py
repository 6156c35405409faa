#!/usr/bin/env python3
"""Fails on an include that violates the order of layers or rooms, and on a folder with too many units.

usage: check_layers.py ROOT

The checks: which room includes which; which files include a library's headers; our own includes are written from the root
(public headers: from include/) and exist; a source includes its own header first; a header has #pragma once; a public header
exports its names; a source folder has at most 16 units (a header and its source are one); the Python
package imports from its lower rooms only.
"""

import ast
import os
import re
import sys

UNITS = 16

# Layer -> the layers, or single headers, that it may include beside itself; a layer includes its public headers.
LAYERS = {
    "base": set(),
    "ops": {"base"},
    "comm": {"base"},
    "io": {"base"},
    "runtime": {"base", "ops", "syncline/distributed/communicator.h", "syncline/distributed/settings.h"},
    # Above the runtime, which must not include it.
    "runtime/training": {
        "base",
        "ops",
        "io",
        "runtime",
        "syncline/distributed/communicator.h",
        "syncline/distributed/exit_codes.h",
        "syncline/distributed/settings.h",
    },
}
# The rooms of a layer, lowest first: a room may include itself and those before it.
ROOMS = {
    "base": ["base"],
    "ops": [
        "ops/graph",
        "ops/kernels",
        "ops/kernels/copy",
        "ops/kernels/fused",
        "ops/kernels/product",
        "ops/kernels/convolution",
        "ops/control",
        "ops/random",
        "ops/reduce",
        "ops/sparse",
        "ops/core",
        "ops/shape",
        "ops/ctc",
        "ops/nn",
        "ops/linalg",
        "ops/math",
        "ops/convolution",
    ],
    "comm": ["comm/rounds", "comm/worker", "comm/shared", "comm/local", "comm/nccl", "comm/mpi", "comm"],
    "io": ["io/files", "io/hdf5", "io/checkpoint", "io/arrays", "io/data"],
    "runtime": [
        "runtime/placement",
        "runtime/graph",
        "runtime/plan",
        "runtime/schedule",
        "runtime/passes",
        "runtime/passes/transfers",
        "runtime/execution",
        "runtime/session",
    ],
    "runtime/training": ["runtime/training", "runtime/training/callbacks"],
}
# The public headers of a layer, below include/: folders or single headers.
PUBLIC = {
    "base": ["syncline/" + name for name in ("array.h", "dtype.h", "error.h", "float16.h", "shape.h", "sparse_array.h", "timeline.h")],
    "ops": ["syncline/axes.h", "syncline/config.h", "syncline/dims.h", "syncline/expr.h", "syncline/threads.h", "syncline/backend/"],
    "comm": ["syncline/distributed/"],
    "io": ["syncline/checkpoint/", "syncline/data/"],
    "runtime": [
        "syncline/backend.h",
        "syncline/feed.h",
        "syncline/session.h",
        *("syncline/backend/" + name for name in ("config.h", "function.h", "sparse_variable.h", "variable.h")),
        *("syncline/distributed/" + name for name in ("data_parallel.h", "keras_json.h")),
    ],
    "runtime/training": ["syncline/training/"],
}
# The rooms of the Python package, lowest first, as modules and packages; other modules of the package are above them all.
PYTHON_ROOMS = [
    ["syncline._core", *("syncline." + name for name in ("error_names", "loading", "plain_values", "random_states", "types"))],
    ["syncline.keras_support"],
    ["syncline.distribution"],
    ["syncline.functions"],
    ["syncline.checkpoint"],
]
# Folders that may include everything.
OUTER = ("tools", "examples", "tests", "benchmarks", "python")
FOLDERS = ("include/syncline", "base", "ops", "comm", "io", "runtime", *OUTER)

# A library's headers -> the files, or folders, that may include them.
LIBRARIES = [
    # ops/kernels/product/blas.cc declares what it needs, because the header's name differs between libraries.
    (r"(cblas|lapacke|openblas_config)\.h$|^openblas/", ()),
    # benchmarks/allreduce compares our wire with plain MPI.
    (r"^mpi(-ext|_ext)?\.h$|^openmpi/", ("comm/mpi/plugin.cc", "benchmarks/collectives/contenders.cc", "tests/mpi/stuck_end.cc")),
    (r"^nccl", ("comm/nccl/",)),
    (r"^cuda|^driver_types\.h$", ("comm/nccl/",)),
    (r"^H5|^hdf5", ("io/",)),
    (r"^zlib\.h$", ("io/",)),
    (r"^gd", ("tools/histogram_picture.cc", "tests/tools/histogram_picture_test.cc")),
    (r"^zip\.h$", ("io/",)),
    (r"^csv\.h$", ("io/",)),
    (r"^(oneapi/)?tbb[/.]", ("ops/kernels/parallel.h", "ops/kernels/parallel.cc")),
    (r"^hwy/", ("ops/", "comm/shared/sum.cc")),
    (r"^xxhash\.h$", ("ops/kernels/digest.cc", "io/files/digest.cc")),
    (r"^omp\.h$", ()),
    (r"^ranges$", ()),  # Debian 12's clang does not compile the views of its libstdc++
    (r"^(nanobind/|Python\.h$)", ("python/",)),
    (r"^(gtest|gmock)/", ("tests/",)),
    (r"^benchmark/", ("benchmarks/",)),
]

PUSH, POP = "#pragma GCC visibility push(default)", "#pragma GCC visibility pop"
INCLUDE = re.compile(r"^\s*#\s*include(?:_next)?\b\s*(.*?)\s*(?://.*|/\*.*)?$")


def sources(root):
    """Paths, relative to root, of all C++ files of the layers."""
    for folder in FOLDERS:
        for where, folders, files in os.walk(os.path.join(root, folder)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".h", ".cc", ".cpp", ".hpp", ".inc")):
                    yield os.path.relpath(os.path.join(where, name), root)


def innermost(path, places):
    """The longest of `places`, files or folders, that is `path` or contains it; None if there is none."""
    fitting = [place for place in places if path == place or path.startswith(place.rstrip("/") + "/")]
    return max(fitting, key=len, default=None)


def place_of(path):
    """(layer, room) of a path as an include writes it; a public header has no room, a file of OUTER has neither."""
    public = {place: layer for layer, places in PUBLIC.items() for place in places}
    if place := innermost(path, public):
        return public[place], None
    rooms = {room: layer for layer, names in ROOMS.items() for room in names}
    room = innermost(path, rooms)
    return rooms.get(room), room


def check_edge(path, target):
    """The reason why `path` may not include `target`, both as an include writes them; None if it may."""
    layer, room = place_of(path)
    to_layer, to_room = place_of(target)
    if layer is None:
        return None
    if to_layer != layer and to_layer not in LAYERS[layer] and target not in LAYERS[layer]:
        return f"{layer} may include {', '.join(sorted(LAYERS[layer])) or 'nothing else'}"
    if to_room is None:
        return None
    if room is None:
        return "a public header includes public headers only"
    if to_layer == layer and ROOMS[layer].index(to_room) > ROOMS[layer].index(room):
        return f"{room} stands below {to_room}"
    return None


def check_include(root, path, written):
    """What is wrong with one include, or None. `written` is the text after #include."""
    if len(written) < 2 or written[0] not in '<"':
        return f"#include {written}: write the file's name, not a macro"
    name = written[1:-1]
    folder = name.split("/")[0]
    file = os.path.join("include", name) if folder == "syncline" else name
    ours = "/" in name and folder in ("syncline", *(f.split("/")[0] for f in FOLDERS[1:]))
    if ours and (written[0] == '"' or os.path.exists(os.path.join(root, file))):
        if not os.path.exists(os.path.join(root, file)):
            return f'"{name}" does not exist'
        why = check_edge(path.removeprefix("include/"), name)
        return f'"{name}" is a forbidden edge: {why}' if why else None
    if written[0] == '"':
        return f'"{name}": write includes of our own from the root, and libraries in <>'
    for pattern, places in LIBRARIES:
        if re.search(pattern, name) and not path.startswith(places):
            return f"<{name}> may be included by {', '.join(places) or 'no file'} only"
    return None


def python_modules(root):
    """{module: its path relative to root} of the Python package."""
    found = {}
    for where, _, files in os.walk(os.path.join(root, "python/syncline")):
        for name in files:
            if name.endswith(".py"):
                path = os.path.relpath(os.path.join(where, name), root)
                module = path.removeprefix("python/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                found[module] = path
    return found


def python_room(module):
    """The index of a module's room in PYTHON_ROOMS; the length of PYTHON_ROOMS for the modules above."""
    fits = (i for i, room in enumerate(PYTHON_ROOMS) if any((module + ".").startswith(place + ".") for place in room))
    return next(fits, len(PYTHON_ROOMS))


def python_imports(node, modules):
    """The package's modules that an import statement loads."""
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        names = [name if name in modules or name == "syncline._core" else node.module for name in names]
    else:
        names = [alias.name for alias in node.names]
    return [name for name in names if (name + ".").startswith("syncline.")]


def python_problems(root):
    """Yields (path, line, what is wrong) of imports within the Python package, also of those in functions."""
    modules = python_modules(root)
    for module, path in sorted(modules.items()):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level > 0:
                yield path, node.lineno, "write `from syncline.x import y`, not a relative import"
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for target in python_imports(node, modules):
                    if python_room(target) > python_room(module):
                        yield path, node.lineno, f"{module} stands below {target}"


def full_folders(root):
    """Yields (folder, how many units) of folders that hold more than UNITS."""
    units = {}
    for path in sources(root):
        if not path.startswith(("tests/", "benchmarks/")):
            units.setdefault(os.path.dirname(path), set()).add(re.sub(r"(-inl)?\.\w+$", "", path))
    for folder in ("python/syncline", "scripts"):
        for where, _, files in os.walk(os.path.join(root, folder)):
            found = {name for name in files if not name.endswith((".md", ".pyc"))}
            units.setdefault(os.path.relpath(where, root), set()).update(found)
    for folder, found in sorted(units.items()):
        if len(found) > UNITS:
            yield folder, len(found)


def public_header_of(path, includes):
    """The public header of a layer's source: it has the source's name and layer, and the source includes it. Else None."""
    layer, room = place_of(path)
    name = os.path.basename(path).replace(".cc", ".h")
    for written in includes:
        header = written[1:-1]
        if room and os.path.basename(header) == name and place_of(header) == (layer, None):
            return header
    return None


def exports_names(lines):
    """Whether the shared library exports what a public header declares. A header of includes only has nothing to export."""
    first = next((i for i, line in enumerate(lines) if line.startswith("namespace ")), None)
    return first is None or (lines[first - 1] == PUSH and [line for line in lines if line][-1] == POP)


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
    # Highway compiles such a file once for each target, so its first include is Highway's or it has Highway's guard.
    highway = path.endswith("-inl.h") or "<hwy/foreach_target.h>" in includes
    if path.endswith(".h") and not highway and "#pragma once" not in lines:
        yield 1, "a header needs #pragma once"
    if path.startswith("include/") and not exports_names(lines):
        yield 1, f"a public header has {PUSH} in the line before its namespace, {POP} in the last line"
    own = re.sub(r"\.cc$", ".h", path)
    if own != path and not highway:
        if not os.path.exists(os.path.join(root, own)):
            own = public_header_of(path, includes)
        if own and includes[:1] != [f'"{own}"']:
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
    for path, line, problem in python_problems(root):
        problems += 1
        print(f"{path}:{line}: {problem}")
    for folder, units in full_folders(root):
        problems += 1
        print(f"{folder}: {units} units; divide it, a folder has at most {UNITS}")
    print(f"check_layers: {checked} files, {problems} problems")
    if checked == 0:
        sys.exit(f"check_layers: no C++ file below {root}: is that the repository's root?")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
