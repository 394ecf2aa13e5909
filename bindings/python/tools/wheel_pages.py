"""Puts the documentation into the folder that the wheel is built from.

Usage: wheel_pages.py FOLDER. The pages of docs/ and the files of include/ go into the package, as
`holdfast/docs`. Links of these pages and of README.md, which becomes the wheel's description, point
to files of the wheel; a link to any other file of the source tree becomes plain text.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
README = ROOT / "bindings" / "python" / "README.md"

#: Where each file of the source tree is in the wheel.
IN_WHEEL = {
    path: Path("holdfast", "docs", path.name)
    for path in [
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "include" / "holdfast.h",
        ROOT / "include" / "holdfast.schema.json",
    ]
}

#: Code, whose brackets are no links, or a link or picture.
CODE_OR_LINK = re.compile(
    r"(?P<code>^```.*?^```|``.+?``|`[^`\n]+`)"
    r"|!?\[(?P<text>(?:[^\]`]|`[^`]*`)*)\]\((?P<target>[^)\s]+)\)",
    flags=re.MULTILINE | re.DOTALL,
)


def for_wheel(page: Path, folder: Path) -> str:
    """The text of a page that is in `folder` of the wheel."""

    def link(match: re.Match[str]) -> str:
        if match["code"] is not None:
            return match[0]
        path, hash_sign, anchor = match["target"].partition("#")
        if "://" in path or path.startswith("mailto:") or not path:
            return match[0]
        inside = IN_WHEEL.get((page.parent / path).resolve())
        if inside is None:
            return match["text"]
        return f"[{match['text']}]({os.path.relpath(inside, folder)}{hash_sign}{anchor})"

    return CODE_OR_LINK.sub(link, page.read_text("utf-8"))


def main(folder: Path) -> None:
    """Write the pages."""
    for source, inside in IN_WHEEL.items():
        target = folder / "src" / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(for_wheel(source, inside.parent), "utf-8")
        else:
            shutil.copy(source, target)
    (folder / "README.md").write_text(for_wheel(README, Path()), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
