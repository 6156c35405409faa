#!/usr/bin/env python3
"""Fails if METADATA and the wheel's folder of licences list different files, and if one of them refers to a licence that is missing.

usage: wheel_licenses.py WHEEL

Debian's copyright files refer to /usr/share/common-licenses, which other systems lack; the folder must hold the same names.
"""

import email
import re
import sys
import zipfile

# One name, which a full stop may follow, or several: {MPL-1.1,GPL-2}.
REFERENCE = re.compile(r"/usr/share/(common-licenses/)(?:\{([^}\s]+)\}|([\w.+-]*\w))")


def problems(wheel):
    """Yields what is wrong with the wheel's licences."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        folder = metadata.replace("METADATA", "licenses/")
        texts = {
            name.removeprefix(folder): archive.read(name).decode(errors="replace")
            for name in archive.namelist()
            if name.startswith(folder)
        }
        listed = set(email.message_from_bytes(archive.read(metadata)).get_all("License-File", []))
    for name in sorted(texts.keys() - listed):
        yield f"METADATA does not list {name}"
    for name in sorted(listed - texts.keys()):
        yield f"METADATA lists {name}, which is not in the folder of licences"
    for name, text in sorted(texts.items()):
        for place, several, one in REFERENCE.findall(text):
            for wanted in (several or one).split(","):
                if place + wanted not in texts:
                    yield f"{name} refers to {place}{wanted}, which is missing"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(problems(sys.argv[1]))
    for problem in found:
        print(f"wheel_licenses: {problem}", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
