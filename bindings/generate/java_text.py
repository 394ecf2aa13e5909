"""Java as text: names, literals and doc comments."""

from __future__ import annotations

import html
import json
import re
import textwrap

#: Of a text before the types are indented into their class.
WIDTH = 98


def constant(code: str) -> str:
    """The name of a constant: queue.not_found is QUEUE_NOT_FOUND."""
    return code.replace(".", "_").upper()


def literal(value: str) -> str:
    """A string literal."""
    return json.dumps(value)


def javadoc(text: str, indent: int = 0) -> str:
    """A doc comment, or nothing; each line of the text begins on a line of its own."""
    if not text:
        return ""
    margin = " " * indent
    width = WIDTH - indent - 3
    lines: list[str] = []
    safe = html.escape(text, quote=False).replace("*/", "*&#47;").replace("\\", "&#92;")
    safe = re.sub("`([^`{}]+)`", r"{@code \1}", safe)
    for part in safe.strip().split("\n"):
        item = part.startswith(("- ", "@param"))
        lines += textwrap.wrap(
            part,
            width,
            subsequent_indent="    " if item else "",
            break_on_hyphens=False,
            break_long_words=False,
        ) or [""]
    listed = mark_lists(lines)
    if len(listed) == 1 and len(listed[0]) + indent + 7 <= WIDTH:
        return f"{margin}/** {listed[0]} */\n"
    body = "".join(f"{margin} *{' ' + line if line else ''}\n" for line in listed)
    return f"{margin}/**\n{body}{margin} */\n"


def mark_lists(lines: list[str]) -> list[str]:
    """Lines that begin with a dash as an HTML list; a paragraph after an empty line."""
    marked: list[str] = []
    inside = False
    for number, line in enumerate(lines):
        if line.startswith("- "):
            marked += [] if inside else ["<ul>"]
            inside = True
            marked.append(f"  <li>{line[2:]}")
            continue
        if inside and not line.startswith("    "):
            marked.append("</ul>")
            inside = False
        after_gap = number and not lines[number - 1] and line and not line.startswith("@")
        marked.append(f"<p>{line}" if after_gap else line)
    return [*marked, "</ul>"] if inside else marked
