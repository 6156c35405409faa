#!/usr/bin/env python3
"""Tests of the house checks on small made-up trees: each rule must accept a right tree and reject a wrong one."""

import os
import platform
import subprocess
import sys
import tempfile
import unittest

import check_tiles

HERE = os.path.dirname(os.path.abspath(__file__))

GOOD_TREE = {
    "include/syncline/error.h": "#pragma once\n#include <string>\n",
    "include/syncline/backend/nn.h": '#pragma once\n#include "syncline/error.h"\n',
    "include/syncline/backend/variable.h": '#pragma once\n#include "syncline/backend/nn.h"\n',
    "include/syncline/distributed/communicator.h": '#pragma once\n#include "syncline/error.h"\n',
    "base/digest.h": "#pragma once\n",
    "ops/nn/softmax.cc": '#include <hwy/highway.h>\n#include "syncline/backend/nn.h"\n#include "ops/graph/op.h"\n',
    "ops/graph/op.h": '#pragma once\n#include "base/digest.h"\n',
    "ops/kernels/product/gemm.h": "#pragma once\n",
    "ops/kernels/product/gemm.cc": '#include "ops/kernels/product/gemm.h"\n\n#include <string>\n',
    "ops/kernels/parallel.h": "#pragma once\n#include <tbb/parallel_for.h>\n",
    "comm/mpi/plugin.cc": '#include <mpi.h>\n#include "syncline/distributed/communicator.h"\n#include "comm/worker/worker.h"\n',
    "comm/worker/worker.h": "#pragma once\n",
    "io/hdf5/file.h": "#pragma once\n",
    "io/hdf5/file.cc": '#include "io/hdf5/file.h"\n#include <hdf5.h>\n#include "syncline/error.h"\n',
    "runtime/plan/plan.h": "#pragma once\n",
    "runtime/plan/plan.cc": '#include "runtime/plan/plan.h"\n#include "syncline/distributed/communicator.h"\n',
    "runtime/passes/fuse.cc": '#include "runtime/plan/plan.h"\n#include "ops/graph/op.h"\n',
    "runtime/passes/passes.h": "#pragma once\n",
    "runtime/training/fit.cc": '#include "io/hdf5/file.h"\n#include "runtime/plan/plan.h"\n',
    "tests/ops/nn_test.cc": '#include <gtest/gtest.h>\n#include "runtime/plan/plan.h"\n',
    "tools/main.cc": '#include "io/hdf5/file.h"\n#include "runtime/plan/plan.h"\n',
    "tools/inspect.h": "#pragma once\n",
}

STATEMENT = "  work();\n"
LONG = "void f(int x) {\n" + STATEMENT * 59 + "}\n"  # 61 lines
FITTING = "void f(int x) {\n" + STATEMENT * 58 + "}\n"


def run(check, tree):
    """(exit status, output) of a check on a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run(
            [sys.executable, os.path.join(HERE, check), root], capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout + done.stderr


class CheckLayers(unittest.TestCase):
    def assert_refused(self, path, text, why):
        status, output = run("check_layers.py", GOOD_TREE | {path: text})
        self.assertEqual(status, 1, output)
        self.assertIn(path + ":", output)
        self.assertIn(why, output)

    def test_accepts_the_allowed_edges(self):
        status, output = run("check_layers.py", GOOD_TREE)
        self.assertEqual(status, 0, output)

    def test_refuses_each_forbidden_edge(self):
        for path, target in [
            ("base/array.cc", "syncline/backend/nn.h"),
            ("base/array.cc", "ops/graph/op.h"),
            ("include/syncline/array.h", "base/digest.h"),
            ("include/syncline/array.h", "syncline/backend/nn.h"),
            ("ops/nn/relu.cc", "syncline/backend/variable.h"),
            ("ops/nn/relu.cc", "runtime/plan/plan.h"),
            ("ops/nn/relu.cc", "syncline/distributed/communicator.h"),
            ("ops/nn/relu.cc", "io/hdf5/file.h"),
            ("ops/graph/leaf.cc", "ops/kernels/parallel.h"),
            ("comm/local/ranks.cc", "syncline/backend/nn.h"),
            ("comm/worker/collective.cc", "comm/mpi/wire.h"),
            ("io/data/dataset.cc", "syncline/backend/nn.h"),
            ("io/data/dataset.cc", "syncline/distributed/communicator.h"),
            ("runtime/session/session.cc", "io/hdf5/file.h"),
            ("runtime/session/session.cc", "runtime/training/fit.h"),
            ("runtime/session/session.cc", "tools/inspect.h"),
            ("runtime/plan/plan_text.cc", "runtime/passes/passes.h"),
            ("runtime/session/session.cc", "comm/worker/worker.h"),
        ]:
            with self.subTest(path=path, target=target):
                tree = {"comm/mpi/wire.h": "#pragma once\n", "runtime/training/fit.h": "#pragma once\n"}
                status, output = run("check_layers.py", GOOD_TREE | tree | {path: f'#pragma once\n#include "{target}"\n'})
                self.assertEqual(status, 1, output)
                self.assertIn(f'"{target}" is a forbidden edge', output)

    def test_refuses_a_full_folder(self):
        def folder(units):
            return {f"ops/nn/op_{i}.{end}": "#pragma once\n" if end == "h" else f'#include "ops/nn/op_{i}.h"\n' for i in range(units) for end in ("h", "cc")}

        self.assertEqual(run("check_layers.py", GOOD_TREE | folder(15))[0], 0)
        status, output = run("check_layers.py", GOOD_TREE | folder(16))
        self.assertEqual(status, 1, output)
        self.assertIn("ops/nn: 17 units", output)

    def test_angle_brackets_hide_no_edge(self):
        self.assert_refused("ops/nn/relu.cc", "#include <runtime/plan/plan.h>\n", "forbidden edge")

    def test_refuses_libraries_in_the_wrong_place(self):
        for path, header in [
            ("ops/kernels/product/gemm.cc", "cblas.h"),
            ("comm/mpi/network.cc", "mpi.h"),
            ("tests/comm/mpi_test.cc", "mpi.h"),
            ("runtime/session.cc", "hdf5.h"),
            ("ops/kernels/conv.cc", "tbb/parallel_for.h"),
            ("ops/kernels/conv.cc", "oneapi/tbb/task_arena.h"),
            ("runtime/executor.cc", "tbb/task_arena.h"),
            ("runtime/executor.cc", "hwy/highway.h"),
            ("comm/mpi/device.cc", "nccl.h"),
            ("ops/kernels/conv.cc", "omp.h"),
            ("ops/kernels/conv.cc", "ranges"),
            ("base/array.cc", "gtest/gtest.h"),
        ]:
            with self.subTest(path=path, header=header):
                self.assert_refused(path, f"# include <{header}>  // why\n", f"<{header}> may be included by")

    def test_refuses_careless_includes(self):
        self.assert_refused("ops/a.cc", '#include "nn.h"\n', "from the root")
        self.assert_refused("ops/a.cc", '#include "../base/digest.h"\n', "from the root")
        self.assert_refused("ops/a.cc", '#include "base/nothing.h"\n', "does not exist")
        self.assert_refused("ops/a.cc", "#define X <mpi.h>\n#include X\n", "not a macro")
        self.assert_refused("ops/a.h", "#include <string>\n", "#pragma once")
        self.assert_refused("ops/kernels/product/gemm.cc", '#include <string>\n#include "ops/kernels/product/gemm.h"\n', "own header")

    def test_a_public_header_exports_its_names(self):
        push, pop, names = "#pragma GCC visibility push(default)\n", "#pragma GCC visibility pop\n", "namespace syncline {}\n"
        path = "include/syncline/axes.h"
        self.assertEqual(run("check_layers.py", GOOD_TREE | {path: "#pragma once\n" + push + names + pop})[0], 0)
        for text in (names, push + names, names + pop, push + "#include <string>\n" + names + pop, push + names + pop + names):
            self.assert_refused(path, "#pragma once\n" + text, "visibility")

    def test_a_source_includes_its_public_header_first(self):
        header = '#include "syncline/distributed/communicator.h"\n'
        self.assert_refused("comm/mpi/communicator.cc", '#include "comm/worker/worker.h"\n' + header, "own header")
        status, output = run("check_layers.py", GOOD_TREE | {"comm/mpi/communicator.cc": header})
        self.assertEqual(status, 0, output)

    def test_refuses_a_full_folder_of_python(self):
        tree = {f"python/syncline/functions/f{i}.py": "" for i in range(17)}
        status, output = run("check_layers.py", GOOD_TREE | tree)
        self.assertEqual(status, 1, output)
        self.assertIn("python/syncline/functions: 17 units", output)

    def test_the_rooms_of_python_import_one_way(self):
        good = {
            "python/syncline/__init__.py": "from syncline import _core\nfrom syncline.functions.a import f\n",
            "python/syncline/types.py": "import syncline._core\n",
            "python/syncline/functions/a.py": "from syncline.distribution import ranks\n",
            "python/syncline/distribution/ranks.py": "from syncline import _core, types\n",
            "python/syncline/jobs.py": "import syncline\nimport os.path\n",
        }
        status, output = run("check_layers.py", GOOD_TREE | good)
        self.assertEqual(status, 0, output)
        low = "python/syncline/distribution/ranks.py"
        for path, text, why in [
            (low, "def f():\n    from syncline.functions import a\n", "syncline.distribution.ranks stands below syncline.functions"),
            ("python/syncline/functions/a.py", "from syncline import jobs\n", "syncline.functions.a stands below syncline.jobs"),
            ("python/syncline/functions/a.py", "import syncline\n", "syncline.functions.a stands below syncline"),
            ("python/syncline/types.py", "from . import jobs\n", "not a relative import"),
        ]:
            with self.subTest(path=path, text=text):
                status, output = run("check_layers.py", GOOD_TREE | good | {path: text})
                self.assertEqual(status, 1, output)
                self.assertIn(path + ":", output)
                self.assertIn(why, output)

    def test_an_empty_tree_is_an_error(self):
        status, output = run("check_layers.py", {"notes/a.cc": ""})
        self.assertNotEqual(status, 0, output)


class CheckMessages(unittest.TestCase):
    PAGE = "| text | cause |\n| --- | --- |\n| `cannot save 'it': ` | no `room` |\n"

    def check(self, source):
        return run("check_messages.py", {"docs/troubleshooting.md": self.PAGE, "io/a.cc": source})

    def test_accepts_a_text_in_one_literal_or_in_adjacent_ones(self):
        self.assertEqual(self.check("fail(\"file: cannot save 'it': \", reason);\n")[0], 0)
        self.assertEqual(self.check("fail(\"cannot save \"\n     \"'it': \", reason);\n")[0], 0)

    def test_refuses_a_text_that_no_source_has(self):
        for source in ("// cannot save 'it': \n", "fail(\"cannot save \", \"'it': \");\n", "fail(\"cannot load 'it': \");\n"):
            status, output = self.check(source)
            self.assertEqual(status, 1, output)
            self.assertIn("no program prints 'cannot save 'it': '", output)

    def test_checks_each_text_of_a_row_also_in_cmake_and_shell(self):
        page = "| `missing: `, `goes on at` | no `room` |\n"
        tree = {"docs/troubleshooting.md": page, "CMakeLists.txt": 'message(FATAL_ERROR "missing: ${all}")\n'}
        self.assertEqual(run("check_messages.py", tree | {"scripts/job.sh": 'say "goes on at $step"\n'})[0], 0)
        status, output = run("check_messages.py", tree)
        self.assertEqual(status, 1, output)
        self.assertIn("no program prints 'goes on at'", output)

    def test_a_page_without_texts_is_an_error(self):
        self.assertEqual(run("check_messages.py", {"docs/troubleshooting.md": "nothing\n", "io/a.cc": ""})[0], 1)


class CheckLinks(unittest.TestCase):
    TREE = {"README.md": "# Top\n", "docs/a.md": "# A page\n\n## Two words\n", "ops/op.cc": ""}

    def assert_refused(self, text, why):
        status, output = run("check_links.py", self.TREE | {"docs/b.md": text})
        self.assertEqual(status, 1, output)
        self.assertIn("docs/b.md: " + why, output)

    def test_accepts_what_exists(self):
        text = "[a](a.md#two-words) [up](../README.md) [web](https://example.org/x) [here](#b) `ops/op.cc`\n# B\n"
        status, output = run("check_links.py", self.TREE | {"docs/b.md": text})
        self.assertEqual(status, 0, output)

    def test_refuses_what_does_not(self):
        self.assert_refused("[a](c.md)", "c.md leads nowhere")
        self.assert_refused("[a](a.md#three)", "a.md#three: there is no such heading")
        self.assert_refused("[b](#b)", "#b: there is no such heading")
        self.assert_refused("`ops/gone.cc`", "`ops/gone.cc` does not exist")

    def test_an_empty_tree_is_an_error(self):
        status, output = run("check_links.py", {"notes/a.cc": ""})
        self.assertNotEqual(status, 0, output)


class CheckSizes(unittest.TestCase):
    def assert_refused(self, path, text, why):
        status, output = run("check_sizes.py", {path: text})
        self.assertEqual(status, 1, output)
        self.assertIn(path + ":", output)
        self.assertIn(why, output)

    def assert_accepted(self, path, text):
        status, output = run("check_sizes.py", {path: text})
        self.assertEqual(status, 0, output)

    def test_lines_of_a_file(self):
        self.assert_accepted("ops/a.cc", "int x;\n" * 400)
        self.assert_refused("ops/a.cc", "int x;\n" * 401, "401 lines")
        self.assert_refused("scripts/run", "true\n" * 401, "401 lines")

    def test_lines_of_a_function(self):
        self.assert_accepted("ops/a.cc", FITTING + FITTING)
        self.assert_refused("ops/a.cc", LONG, "61 lines")
        body = "{\n" + STATEMENT * 60 + "}\n"
        for head in [
            "template <class T, class U = std::vector<int>>\nT f(U x) ",
            "auto A::f(int x) const noexcept -> std::vector<int> ",
            "A::A(int x) : a_(x), b_{x} ",
            "A::A(int x) noexcept : a_{x}, b_(x) ",
            "const auto f = [] ",
            "TEST(A, B) ",
            "bool operator<(A a, A b) ",
        ]:
            with self.subTest(head=head):
                self.assert_refused("ops/a.cc", head + body, "lines: 60 a function")

    def test_scopes_and_tables_are_no_functions(self):
        self.assert_accepted("ops/a.cc", "namespace a {\nnamespace {\n" + "int x;\n" * 90 + "}\n}\n")
        self.assert_accepted("ops/a.cc", "struct A final : B<int> {\n" + "int x;\n" * 90 + "};\n")
        self.assert_accepted("ops/a.cc", "template <class T>\nstruct A {\n" + "int f() { return 1; }\n" * 90 + "};\n")
        self.assert_accepted("ops/a.cc", "const Row kRows[] = {\n" + "{1, f(2)},\n" * 90 + "};\n")
        self.assert_accepted("ops/a.cc", "REGISTER(A)\nstruct B {\n" + "int x;\n" * 90 + "};\n")

    def test_text_is_not_code(self):
        self.assert_accepted("ops/a.cc", "// {\nconst char* a = \"{\"; char b = '{'; int c = 1'000;\n" + "int x;\n" * 90)
        self.assert_accepted("ops/a.cc", 'const char* a = R"(void f() {)";\n' + "int x;\n" * 90)
        self.assert_accepted("ops/a.h", "#define BEGIN void f() { \\\n  while (true) {\n" + "int x;\n" * 90)

    def test_python_functions(self):
        self.assert_refused("benchmarks/a.py", "def f():\n" + "    g()\n" * 60, "61 lines")

    def test_names(self):
        for path in ["base/utils.h", "ops/common/a.h", "io/misc.cc", "runtime/string_util.cc", "tests/test_common.cc"]:
            with self.subTest(path=path):
                self.assert_refused(path, "int x;\n", "says nothing")
        self.assert_accepted("comm/communicator.h", "int x;\n")

    def test_conditional_compilation(self):
        self.assert_refused("ops/a.cc", "void f() {\n#ifdef GPU\n  g();\n#endif\n}\n", "inside a function")
        self.assert_accepted("ops/a.h", "#ifdef A\n#undef A\n#endif\nvoid f() {\n}\n")


class CheckTiles(unittest.TestCase):
    @staticmethod
    def tile(*extra, branch=""):
        loop = ["vmovups (%rax),%ymm1", *["vfmadd231ps %ymm0,%ymm1,%ymm2"] * 4, *extra, "add $0x20,%rax", branch, "jne 4"]
        lines = ["ret", *[line for line in loop if line]]
        return "0000000000000000 <tile>:\n" + "".join(
            f"   {4 * i:x}:\t{line.replace(' ', chr(9), 1)}\n" for i, line in enumerate(lines)
        )

    def test_a_spilled_sum_is_found(self):
        self.assertEqual(list(check_tiles.spills(self.tile())), [])
        (found,) = check_tiles.spills(self.tile("vmovaps %ymm2,0x20(%rsp)"))
        self.assertIn("tile at 4: 1 vectors stored to the stack for 4 multiplications", found)

    def test_other_stores_and_loops_are_none(self):
        self.assertEqual(list(check_tiles.spills(self.tile("vmovaps %ymm2,0x20(%rdi)"))), [])
        self.assertEqual(list(check_tiles.spills(self.tile("vmovaps %ymm2,0x20(%rsp)", branch="je 1000"))), [])

    def test_no_tile_among_the_objects_is_refused(self):
        check = os.path.join(HERE, "check_tiles.py")
        done = subprocess.run([sys.executable, check, "a.o"], capture_output=True, text=True, timeout=60)
        if platform.machine() == "x86_64":
            self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
