"""Every link has an existing target: a file of the project, and a heading in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import ROOT, anchors, links, pages


def broken(page: Path, text: str) -> list[str]:
    """Return the links of a page without a target."""
    found = []
    for link in links(text):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if (
            not target.exists()
            or not target.is_relative_to(ROOT)
            or (
                anchor
                and (
                    target.suffix != ".md"
                    or anchor not in anchors(text if target == page else target.read_text("utf-8"))
                )
            )
        ):
            found.append(link)
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page: Path) -> None:
    assert broken(page, page.read_text("utf-8")) == []


def test_every_page_of_docs_can_be_reached_from_the_readme() -> None:
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        for link in links(page.read_text("utf-8")):
            target = (page.parent / link.partition("#")[0]).resolve()
            if "://" not in link and target.is_file():
                ahead.append(target)
    assert set((ROOT / "docs").glob("*.md")) - reached == set()


def test_a_broken_link_is_found() -> None:
    page = ROOT / "README.md"
    text = "# One\n## Two words, `code`!\n[a](#two-words-code) [b](docs/hosts.md) [c](#three) [d](docs/none.md) `[e](no)`\n"
    assert broken(page, text) == ["#three", "docs/none.md"]
