"""The file status.json in the folder of a training, which batch scripts read (docs/jobs.md)."""

import datetime
import errno
import json
import os
import sys

from syncline.checkpoint.whole_files import replace_in_place, write_atomically


def _path(folder):
    return os.path.join(folder, "status.json")


def read_status(folder):
    """The fields of the file; none if it is missing or damaged."""
    try:
        if not os.path.isfile(_path(folder)):
            return {}
        with open(_path(folder), encoding="utf-8") as file:
            status = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}


def read_setting(folder):
    """The lines of `setting`. None if the file has none: it is missing, damaged, or of an earlier version."""
    lines = read_status(folder).get("setting")
    sound = isinstance(lines, list) and all(isinstance(line, str) and line.isprintable() for line in lines)
    return lines if sound else None


def write_status(folder, writer, fields):
    """Writes the fields, the name of the newest checkpoint and the time. `writer` is the number of the rank that writes. Prints errors."""
    latest, path = os.path.join(folder, "latest"), _path(folder)
    fields["checkpoint"] = os.readlink(latest) if os.path.islink(latest) else None
    fields["time"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = json.dumps(fields, indent=2) + "\n"
    try:
        try:
            write_atomically(path, lambda file: file.write(text.encode()), f"{path}.tmp{writer or ''}")
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not os.path.isfile(path):
                raise
            replace_in_place(path, text.encode())
    except OSError as error:
        print(f"syncline: cannot write '{path}': {error}", file=sys.stderr)
