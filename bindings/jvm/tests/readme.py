"""Writes the programs of README.md into files that compile. Usage: readme.py FOLDER"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def block(language: str) -> str:
    """The page's only program in a language, which takes the place of its address from a test."""
    found = re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    if len(found) != 1:
        raise ValueError(f"the page has {len(found)} programs in {language}")
    text = str(found[0])
    for shown, place in (("https://PROJECT.supabase.co", 0), ("KEY", 1), ("app-data", 2)):
        text = text.replace(f'"{shown}"', f"given[{place}]")
    return text


def main() -> None:
    """Write both programs."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, language in (("FirstVisit.java", "java"), ("FirstVisitKotlin.kt", "kotlin")):
        (folder / name).write_text(block(language), "utf-8")


if __name__ == "__main__":
    main()
