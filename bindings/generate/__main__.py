"""Writes the types and operations of every binding from include/holdfast.schema.json.

`--built` leaves out those that are in git: every run of make does that after a change of the
schema, and `make contract` writes all. README.md says how to add a language.
"""

from __future__ import annotations

import sys

import java
import python
import swift
import typescript
from model import ROOT, SCHEMA, Model


def files(model: Model, *, built: bool = False) -> dict[str, str]:
    """The files, as paths below the root of the repository, and their texts."""
    writers = [python, typescript, java]
    # In git, because SwiftPM builds a package from its repository as it stands.
    writers += [] if built else [swift]
    return {name: text for writer in writers for name, text in writer.files(model).items()}


def main() -> None:
    """Write the files that have changed."""
    model = Model.load(SCHEMA)
    for name, text in files(model, built="--built" in sys.argv).items():
        path = ROOT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
