"""Writes the types and operations of every binding from include/holdfast.schema.json.

`--built` writes those that are not in git, which every run of make does after a change of the
schema. Without an option it also writes those that are (`make contract`); `--check` only reports
which of them are stale, and `--list` names all. README.md says how to add a language.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import java
import kotlin
import python
import swift
import typescript
from model import Model

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "include" / "holdfast.schema.json"

#: The languages: modules with `files(model)`, which maps paths below the root to texts.
BUILT = (python, typescript, java, kotlin)
#: In git, because SwiftPM builds a package from its repository as it stands.
COMMITTED = (swift,)


def main() -> int:
    """Write the files, or check whether they are current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", action="store_true", help="only files that are not in git")
    parser.add_argument("--check", action="store_true", help="write nothing, report stale files")
    parser.add_argument("--list", action="store_true", help="write nothing, name the files")
    parser.add_argument("--schema", type=Path, default=SCHEMA, help="another schema")
    parser.add_argument("--root", type=Path, default=ROOT, help="another folder to write in")
    arguments = parser.parse_args()
    writers = BUILT if arguments.built else COMMITTED if arguments.check else BUILT + COMMITTED
    model = Model.load(arguments.schema)
    stale = 0
    for name, text in (item for writer in writers for item in writer.files(model).items()):
        path = arguments.root / name
        if arguments.list:
            print(name)
            continue
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if arguments.check:
            print(f"{name} is not current: run make contract", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if arguments.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
