#!/usr/bin/env python3
"""Makes Sources/CPlatform/letters.h, the tables by which names are folded, from Unicode's own data.

Without arguments it writes the file; with --check it fails if the file is not what it would write,
and passes if this Python has another version of Unicode. What is in no table (ideographs with a
second code, parts of letters beyond plane 0) folds to itself.
"""

from __future__ import annotations

import re
import sys
import textwrap
import unicodedata
from pathlib import Path

FILE = Path(__file__).parents[1] / "Sources/CPlatform/letters.h"
VERSION = unicodedata.unidata_version
PLANE = 0x10000
#: Planes 0 and 1 have all letters of people's names; surrogates are no characters.
ALL = [code for code in range(0x80, 2 * PLANE) if not 0xD800 <= code < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)
IDEOGRAPHS = range(0xF900, 0xFB00)

#: Digraphs and ligatures, which Unicode calls compatible with their letters, and the bar of ŉ.
TWO_LETTERS = [*range(0x132, 0x134), 0x149, *range(0x1C7, 0x1CD), *range(0x1F1, 0x1F4),
               *range(0xFB00, 0xFB03), *range(0xFB05, 0xFB07)]  # fmt: skip
#: Digraphs and ligatures of three parts, as one of two and a part: ǆ, ﬃ, ﬄ.
THREE_PARTS = {0x1C4: [0x1F1, 0x30C], 0x1C5: [0x1F2, 0x30C], 0x1C6: [0x1F3, 0x30C],
               0xFB03: [0xFB00, ord("i")], 0xFB04: [0xFB00, ord("l")]}  # fmt: skip
#: Small letters that are variants of another one, and do not have that letter in their name.
VARIANTS = {"ð": "d", "ŋ": "n", "\N{LATIN SMALL LETTER DOTLESS I}": "i", "ĸ": "k"}


def parts(code: int) -> list[int]:
    """The two parts of a character, or the other character that it is."""
    letter = chr(code)
    if code in HANGUL or code in IDEOGRAPHS or code >= PLANE:
        return []
    if code in THREE_PARTS:
        return THREE_PARTS[code]
    named = unicodedata.decomposition(letter).split()
    if code in TWO_LETTERS:
        named = [each for each in named if not each.startswith("<")]
    if named and not named[0].startswith("<"):
        return [int(each, 16) for each in named]
    folded = letter.casefold()
    return [ord(each) for each in folded] if len(folded) == 2 else []


def base(code: int) -> str:
    """The letter that another one is without its stroke, hook or bar, from its name."""
    letter = chr(code)
    if letter in VARIANTS:
        return VARIANTS[letter]
    name = unicodedata.name(letter, "")
    plain = re.match(r"(LATIN SMALL LETTER [A-Z]|CYRILLIC SMALL LETTER [A-Z]+) WITH ", name)
    is_one = plain and not parts(code) and code < PLANE
    return unicodedata.lookup(plain[1]) if plain and is_one else letter


def kind(code: int) -> str:
    """unseen: marks, and what shows no letter; gap: what ends a word; else letter."""
    category = unicodedata.category(chr(code))
    if unicodedata.combining(chr(code)):
        return "mark"
    # Apostrophes, the lengthening stroke of Arabic, the grapheme joiner, variation selectors.
    apostrophes = {0xB4, 0x34F, 0x5F3, 0x5F4, 0x640, *range(0x2B9, 0x2C0), *range(0x2018, 0x201C)}
    if code in apostrophes or 0x180B <= code <= 0x180F or 0xFE00 <= code <= 0xFE0F:
        return "unseen"
    if category in {"Cf", "Me"} or (category == "Sk" and code > 0xFF):
        return "unseen"
    is_sign = category in {"Sm", "Sc", "Sk", "Cc"} or (category == "So" and code <= 0xFF)
    return "gap" if is_sign or category[0] in "PZ" else "letter"


def ranges(wanted: str) -> list[tuple[int, int]]:
    """The first and last code of each run of this kind; codes that stand for nothing end none."""
    found: list[tuple[int, int]] = []
    is_open = False
    for code in ALL:
        if kind(code) == wanted:
            is_next = is_open and found[-1][0] // PLANE == code // PLANE
            found[-1:] = [(found[-1][0], code)] if is_next else [*found[-1:], (code, code)]
            is_open = True
        elif unicodedata.category(chr(code)) != "Cn":
            is_open = False
    return found


def folded(code: int) -> list[int]:
    """The small letters and marks of a character."""
    if parts(code):
        return [each for part in parts(code) for each in folded(part)]
    small = chr(code).casefold()
    return [ord(small)] if len(small) == 1 else [code]


def is_capital(code: int) -> bool:
    """Whether a small letter has the same parts."""
    small = chr(code).casefold()
    if kind(code) != "letter" or small == chr(code) or len(small) > 1:
        return False
    return ord(small) // PLANE == code // PLANE and folded(code) == folded(ord(small))


def capitals() -> list[tuple[int, int, int, int]]:
    """Runs of capitals: first, how many, the distance between two, and to the small letters."""
    left = {
        code: ord(chr(code).casefold()) - code
        for code in ALL
        if chr(code).casefold() != chr(code)
        and (is_capital(code) or (kind(code) == "letter" and not parts(code)))
    }
    runs: list[tuple[int, int, int, int]] = []
    while left:
        first = min(left)
        counts = {}
        for step in (1, 2):
            code = first
            while left.get(code + step) == left[first] and code // PLANE == first // PLANE:
                if step == 2 and code + 1 in left:
                    break
                code += step
            counts[step] = (code - first) // step + 1
        step = 1 if counts[1] > 1 else 2
        runs.append((first, counts[step], step, left[first]))
        for code in range(first, first + counts[step] * step, step):
            del left[code]
    return runs


def table(kind_of_number: str, name: str, numbers: list[int]) -> str:
    """A table in C."""
    text = ", ".join(f"{number % PLANE}" for number in numbers)
    lines = textwrap.wrap(text, 98, initial_indent="  ", subsequent_indent="  ")
    return f"static const {kind_of_number} {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


def text() -> str:
    """The file."""
    whole = {code: parts(code) for code in ALL if parts(code) and not is_capital(code)}
    seconds = sorted({each[1] for each in whole.values() if len(each) == 2})
    bases = {code: ord(base(code)) for code in ALL if base(code) != chr(code)}
    runs = capitals()
    made = [
        f"/* Made by mk/letters.py from Unicode {VERSION}. Codes are those within their plane. */\n"
        "/* clang-format off */\n#include <stdint.h>\n",
        "/* Characters with parts: the first part, and the number of the second one, or 0.\n"
        " * Capitals have those of their small letters. */",
        table("uint16_t", "part_codes", list(whole)),
        table("uint16_t", "part_firsts", [each[0] for each in whole.values()]),
        table(
            "uint8_t",
            "part_seconds",
            [seconds.index(each[1]) + 1 if len(each) == 2 else 0 for each in whole.values()],
        ),
        table("uint16_t", "seconds", seconds),
        "/* Runs of capitals, by plane: the first one, how many, the distance between two, and to\n"
        " * the small letters. */",
    ]
    for plane in (0, 1):
        of_plane = [each for run in runs if run[0] // PLANE == plane for each in run]
        made.append(table("uint16_t", f"capitals_{plane}", of_plane))
    made.append("/* Letters with a stroke, hook or bar, and without. */")
    made.append(table("uint16_t", "bases", [each for pair in bases.items() for each in pair]))
    made.append("/* Runs of marks, of what is not seen, and of what ends a word: first, last. */")
    for wanted, plane in (("mark", 0), ("mark", 1), ("unseen", 0), ("unseen", 1), ("gap", 0)):
        of_plane = [each for run in ranges(wanted) if run[0] // PLANE == plane for each in run]
        made.append(table("uint16_t", f"{wanted}s_{plane}", of_plane))
    return "\n".join(made)


def main() -> None:
    """Write or check the file."""
    if sys.argv[1:] != ["--check"]:
        FILE.write_text(text())
    elif f"from Unicode {VERSION}." in FILE.read_text() and FILE.read_text() != text():
        sys.exit(f"{FILE} is not what mk/letters.py makes: run mk/letters.py")


if __name__ == "__main__":
    main()
