"""Writes numbered faults into a source file, each behind a switch.

choice   an expression:        `(holdfast_mutant(7) ? (after) : (before))`
drop     a statement:          `if !holdfast_mutant(7) { before }`
either   one of two statements: `if holdfast_mutant(7) { after } else { before }`

A fault inside another's text stays in its `before`; its `after` is the text of the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .faults import Fault

#: On the first line, so that lines keep their numbers.
IMPORT = b"import CPlatform; "


@dataclass
class Rewritten:
    """The new text, and where each fault stands in it."""

    text: bytes
    #: (start, end, number), in bytes.
    regions: list[tuple[int, int, int]] = field(default_factory=list)

    def at(self, line: int, column: int) -> set[int]:
        """The numbers of the faults that a compiler's complaint about this position concerns.

        That is the innermost fault around the position, else every fault that touches the line,
        else the nearest one before it (a value may be missing now).
        """
        starts = [0]
        for row in self.text.splitlines(keepends=True):
            starts.append(starts[-1] + len(row))
        first, last = starts[line - 1], starts[min(line, len(starts) - 1)]
        position = first + column - 1
        around = [r for r in self.regions if r[0] <= position < r[1]]
        if around:
            return {min(around, key=lambda r: r[1] - r[0])[2]}
        touching = {r[2] for r in self.regions if r[0] < last and r[1] > first}
        if touching:
            return touching
        before = [r for r in self.regions if r[1] <= first]
        return {max(before)[2]} if before else set()


def rewrite(source: bytes, faults: Mapping[int, Fault]) -> Rewritten:
    """The source with these faults, by number."""
    if not faults:
        return Rewritten(source)
    # Outer faults first; of two with the same text, the one with the lower number is the outer one.
    order = sorted(faults.items(), key=lambda f: (f[1].start, -f[1].end, f[0]))
    body, regions = _render(source, 0, len(source), order)
    moved = [(a + len(IMPORT), b + len(IMPORT), number) for a, b, number in regions]
    return Rewritten(IMPORT + body, moved)


def _render(
    source: bytes, start: int, end: int, faults: list[tuple[int, Fault]]
) -> tuple[bytes, list[tuple[int, int, int]]]:
    """The text of [start, end) with faults that lie inside it."""
    text, regions, position, rest = b"", [], start, faults
    while rest:
        (number, fault), rest = rest[0], rest[1:]
        inside = [f for f in rest if f[1].end <= fault.end]
        rest = rest[len(inside) :]
        text += source[position : fault.start]
        inner, found = _render(source, fault.start, fault.end, inside)
        before, after = _around(number, fault)
        begin = len(text) + len(before)
        regions += [(begin + a, begin + b, n) for a, b, n in found]
        regions.append((len(text), begin + len(inner) + len(after), number))
        text += before + inner + after
        position = fault.end
    return text + source[position:end], regions


def _around(number: int, fault: Fault) -> tuple[bytes, bytes]:
    """What stands before and after the original text."""
    switch = f"holdfast_mutant({number})"
    if fault.form == "choice":
        return f"({switch} ? ({fault.after}) : (".encode(), b"))"
    if fault.form == "drop":
        return f"if !{switch} {{ ".encode(), b" }"
    if fault.form == "either":
        return f"if {switch} {{ {fault.after} }} else {{ ".encode(), b" }"
    raise ValueError(fault.form)
