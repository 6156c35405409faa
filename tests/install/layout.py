"""The sizes of the public classes: layout.py INCLUDE prints a C++ program, which prints a line "class size" for each class that a header in
the folder INCLUDE defines outside of other classes."""

import pathlib
import re
import sys


def classes(header):
    """The classes of a header, with their namespaces."""
    namespace = ""
    for line in header.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"namespace (\S+) \{", line):
            namespace = found[1]
        elif found := re.match(r"(?:class|struct)(?: \[\[.*?\]\])? (\w+)[^;]*\{", line):
            yield f"{namespace}::{found[1]}"


def main():
    include = pathlib.Path(sys.argv[1])
    headers = sorted(include.rglob("*.h"))
    print('#include <cstdio>')
    for header in headers:
        print(f'#include "{header.relative_to(include)}"')
    print("int main() {")
    for name in sorted({name for header in headers for name in classes(header)}):
        print(f'  std::printf("{name} %zu\\n", sizeof({name}));')
    print("}")


if __name__ == "__main__":
    main()
