"""What the library asks of the device: system calls, wake-ups, syncs to the disk, and memory.

The counts of calls, wake-ups and syncs are the same on every machine.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import programs

#: What an app does in the hour that hour.c counts.
HOURS = {
    "open": "open and idle",
    "background": "in the background and idle",
    "ten": "ten items sent",
}
#: Call -> the host's mode and its arguments after the number of calls.
CALLED = {
    "next": ("next", []),
    "session_status": ("status", []),
    "queue_add": ("add", ["1"]),
    "contact_search": ("search", []),
}
#: So many calls more make the difference that is counted.
CALLS = 100
#: The shapes of answers.c.
SHAPES = (
    "objects", "few objects", "arrays", "numbers", "nested", "members", "one text", "one member",
    "escapes", "contacts", "ids",
)  # fmt: skip


def in_copy(name: str, flavour: str, template: Path, first: str) -> dict[str, Any]:
    """Run a program whose last argument is a folder, on a copy; return the JSON that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(template, f"{folder}/copy")
        command = [str(programs.path(name)), first, f"{folder}/copy"]
        return programs.result(programs.output(command, flavour))


def hour(flavour: str, template: Path) -> dict[str, int]:
    """Count an hour of each kind; see hour.c."""
    return {
        f"{title}: {what}": count
        for mode, title in HOURS.items()
        for what, count in in_copy("hour", flavour, template, mode).items()
    }


def system_calls(flavour: str, template: Path) -> dict[str, float]:
    """Count the system calls of one call, of those in CALLED: the difference of two runs."""
    result = {}
    for call, (mode, more) in CALLED.items():
        few, many = (traced(flavour, template, mode, [str(n), *more]) for n in (10, 10 + CALLS))
        result[call] = round((many - few) / CALLS, 1)
    return result


def traced(flavour: str, template: Path, mode: str, arguments: list[str]) -> int:
    """Count the system calls of a run of the host."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(template, f"{folder}/copy")
        summary = Path(folder, "summary")
        command = ["strace", "-f", "-c", "-o", str(summary), str(programs.path("host"))]
        done = subprocess.run(
            [*command, mode, f"{folder}/copy", *arguments],
            env=programs.environment(flavour),
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.search(r"^100\.00.*?(\d+)(?: +\d+)? total$", summary.read_text(), re.MULTILINE)
        if done.returncode != 0 or found is None:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        return int(found[1])


def answers(flavour: str, template: Path) -> dict[str, tuple[int, float]]:
    """Return the bytes that an answer of each shape costs, and how many times its size that is."""
    result = {}
    for shape in SHAPES:
        found = in_copy("answers", flavour, template, shape)
        result[shape] = (found["bytes"], found["bytes"] / found["size"])
    return result


if __name__ == "__main__":
    # device.py FLAVOUR FOLDER: print all of it, for a folder that `host prepare` made.
    given, place = sys.argv[1], Path(sys.argv[2])
    programs.build()
    print(json.dumps(hour(given, place), indent=1))
    print(json.dumps(system_calls(given, place), indent=1))
    print(json.dumps(answers(given, place), indent=1))
