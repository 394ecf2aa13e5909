"""The project's Markdown pages: their links, anchors and code blocks, as GitHub renders them."""

from __future__ import annotations

import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", flags=re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return every page for readers."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for folder in ("bindings", "examples", "Tests"):
        found += (ROOT / folder).glob("**/README.md")
    # Skip pages in environments and builds.
    return sorted(
        page
        for page in found
        if not any(part[0] == "." or part == "build" for part in page.relative_to(ROOT).parts)
    )


def prose(text: str) -> str:
    """Return a page without its code blocks."""
    return FENCE.sub("", text)


@functools.cache
def anchors(text: str) -> frozenset[str]:
    """Return the anchors of the headings: lower case, dashes for spaces, no punctuation, numbered if repeated."""
    found: dict[str, int] = {}
    for title in re.findall(r"^#{1,6} +(.*?)\s*#*$", prose(text), flags=re.MULTILINE):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        if count:
            found[f"{slug}-{count}"] = 1
    return frozenset(found)


def links(text: str) -> list[str]:
    """Return the targets of links and pictures, except those in code."""
    plain = re.sub(r"`[^`\n]*`", "", prose(text))
    return re.findall(r"\]\(([^)\s]+)\)", plain)


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in a language."""
    text = (ROOT / page).read_text("utf-8")
    found: list[str] = re.findall(
        rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL
    )
    return found


def block(page: str, language: str, number: int = 0) -> str:
    """Return the n-th code block of a page in a language."""
    found = blocks(page, language)
    assert len(found) > number, f"{page} has {len(found)} blocks of {language}"
    return found[number]
