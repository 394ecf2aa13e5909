"""Writes the programs of README.md into files that compile. Usage: readme.py FOLDER"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, language in (("FirstVisit.java", "java"), ("FirstVisitKotlin.kt", "kotlin")):
    [text] = re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    # The test passes what a reader fills in.
    for place, shown in enumerate(("https://PROJECT.supabase.co", "KEY", "app-data")):
        text = text.replace(f'"{shown}"', f"given[{place}]")
    (folder / name).write_text(text, "utf-8")
