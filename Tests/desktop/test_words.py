"""LAB-1, for the app's own words: each of them is in three languages."""

from __future__ import annotations

import pathlib
import re

from pictures import words

APP = pathlib.Path(__file__).resolve().parents[2] / "examples/desktop"


def used() -> set[str]:
    """Every text of a .ui file that is marked, and every literal that the code looks up."""
    marked = (
        re.findall(r'translatable="yes">([^<]+)<', ui.read_text()) for ui in APP.rglob("*.ui")
    )
    code = "".join(file.read_text() for file in (APP / "src").glob("*.c"))
    joined = re.sub(r'"\s*\n\s*"', "", code)  # a literal over several lines
    looked_up = re.findall(r'word\((?:\w+ == 1 \? )?"([^"]+)"(?: : "([^"]+)")?', joined)
    types = re.findall(r'\{"[a-z]+", "([^"]+)"\}', joined)
    return (
        {text for texts in marked for text in texts}
        | {text for pair in looked_up for text in pair if text}
        | (set(types) & {"Visit", "Phone call", "Meeting", "Walk"})
    )


def test_LAB_1_every_word_is_in_bokmal_and_nynorsk() -> None:
    bokmal, nynorsk = words("nb"), words("nn")
    missing = {text for text in used() if text not in bokmal}
    assert len(used()) > 80
    assert missing == set()
    places = re.compile(r"%[ds]")
    for english in bokmal:
        for other in (bokmal[english], nynorsk[english]):
            assert other
            assert places.findall(other) == places.findall(english), english


#: What a volunteer does not say, in each language.
NOT_SAID = ("needs a look", "need a look", "never kept", "together", "trenger et blikk", "treng eit blikk",
            "lagres aldri", "aldri lagra")  # fmt: skip


def test_the_words_are_a_volunteers() -> None:
    text = (APP / "src/words.inc").read_text().lower()
    assert [phrase for phrase in NOT_SAID if phrase in text] == []
