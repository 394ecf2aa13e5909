"""Every test and file that a page names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages import ROOT, pages, prose

DOCS = [
    page for page in pages() if page.parent in (ROOT, ROOT / "docs") or page.name == "README.md"
]


def known() -> set[str]:
    """Return the names of all Python tests, and of the files, suites and folders that hold tests."""
    found = set()
    for folder in ("Tests", "bindings"):
        for file in (ROOT / folder).glob("**/*.py"):
            found |= {
                file.name,
                *re.findall(r"^def (test_\w+)", file.read_text("utf-8"), flags=re.MULTILINE),
            }
            found |= set(
                re.findall(r"^async def (test_\w+)", file.read_text("utf-8"), flags=re.MULTILINE)
            )
        for file in (ROOT / folder).glob("**/*.swift"):
            found |= {file.name, file.stem, file.parent.name}
    return found


ALL = known()


def missing(text: str, folder: Path = ROOT) -> list[str]:
    """Return the names of tests and paths in a page that do not exist."""
    found = []
    for name in re.findall(r"`(\w*(?:test_|Tests)[\w.]*…?)`", prose(text)):
        if not (
            name in ALL or (name.endswith("…") and any(one.startswith(name[:-1]) for one in ALL))
        ):
            found.append(name)
    for path in re.findall(
        r"`((?:Tests|Sources|docs|examples|bindings|include|\.ci)/[\w./+-]*)`", prose(text)
    ):
        if not ((ROOT / path).exists() or (folder / path).exists()):
            found.append(path)
    return found


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_name_on_a_page_exists(page) -> None:
    assert missing(page.read_text("utf-8"), page.parent) == []


def test_an_unknown_name_is_found() -> None:
    text = "`test_links.py` `test_QUE_1_…` `test_nothing_of_the_kind` `Tests/docs/pages.py` `Tests/none`"
    assert missing(text) == ["test_nothing_of_the_kind", "Tests/none"]
