"""A page is read to its end: it has a limit of words, as `wc -w` counts them, and none grows past it unnoticed."""

from __future__ import annotations

from pages import ROOT

MOST = 2_500
#: Pages with another limit.
LIMITS: dict[str, int] = {
    "README.md": 900,
}
#: Made from the schema and from the policies, and read entry by entry.
GENERATED = {"docs/reference.md", "docs/uploads.md"}


def too_long(name: str, text: str) -> bool:
    return len(text.split()) > LIMITS.get(name, MOST)


def test_no_page_is_too_long() -> None:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    texts = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in found}
    assert LIMITS.keys() <= texts.keys()
    assert [
        name for name, text in texts.items() if name not in GENERATED and too_long(name, text)
    ] == []


def test_a_page_that_is_too_long_is_found() -> None:
    for name, most in {"docs/sync.md": MOST, **LIMITS}.items():
        assert not too_long(name, "word " * most)
        assert too_long(name, "word " * (most + 1))
