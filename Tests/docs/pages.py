"""The project's pages: their links, anchors and examples, as GitHub reads them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", flags=re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Every page that a newcomer may read."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for folder in ("bindings", "examples", "Tests"):
        found += (ROOT / folder).glob("**/README.md")
    # What lies in an environment or a build is not the project's.
    return sorted(
        page
        for page in found
        if not any(part[0] == "." or part == "build" for part in page.relative_to(ROOT).parts)
    )


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", text)


def anchors(text: str) -> set[str]:
    """The anchors of the headings: lower case, spaces as dashes, punctuation gone; a second one is numbered."""
    found: dict[str, int] = {}
    for title in re.findall(r"^#{1,6} +(.*?)\s*#*$", prose(text), flags=re.MULTILINE):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        if count:
            found[f"{slug}-{count}"] = 1
    return set(found)


def links(text: str) -> list[str]:
    """The targets of links and pictures, those of code aside."""
    plain = re.sub(r"`[^`\n]*`", "", prose(text))
    return re.findall(r"\]\(([^)\s]+)\)", plain)


def block(page: str, language: str, number: int = 0) -> str:
    """One of a page's blocks in a language."""
    text = (ROOT / page).read_text("utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert len(found) > number, f"{page} has {len(found)} blocks of {language}"
    return found[number]
