"""Draws `docs/fleet.svg` from `outage.csv` and `address.csv`: python3 plot.py FOLDER [SVG]."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable
from pathlib import Path

FIGURE = Path(__file__).resolve().parents[2] / "docs" / "fleet.svg"

WIDTH, HEIGHT = 860, 330
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 34, 44
COLOURS = {
    "fixed": "#b3261e",
    "silent": "#1f6feb",
    "unavailable": "#0b7a75",
    "announced": "#8250df",
    "library": "#1f6feb",
}
Rows = list[dict[str, float]]


def read(path: Path) -> Rows:
    """Return the rows of a table of numbers."""
    with path.open() as file:
        return [{name: float(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def text(x: float, y: float, words: str, anchor: str = "start", extra: str = "") -> str:
    """Return a line of text as SVG."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """Return a straight line as SVG."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


class Panel:
    """A diagram: minutes on the x axis, a rate on a logarithmic y axis."""

    def __init__(self, top: float, minutes: float, least: float, most: float, title: str) -> None:
        self.top = top
        self.minutes = minutes
        self.least, self.most = math.log10(least), math.log10(most)
        self.parts = [text(LEFT, top + 18, title, extra=' font-weight="600"')]
        self._axes()

    def x(self, second: float) -> float:
        """Return the x coordinate of a second."""
        return LEFT + second / 60 / self.minutes * (WIDTH - LEFT - RIGHT)

    def y(self, rate: float) -> float:
        """Return the y coordinate of a rate; rates below the axis are drawn on it."""
        part = (math.log10(max(rate, 10**self.least)) - self.least) / (self.most - self.least)
        return self.top + HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    def _axes(self) -> None:
        grid = 'stroke="#d0d7de" stroke-width="0.7"'
        exponent = math.ceil(self.least)
        while exponent <= self.most:
            y = self.y(10**exponent)
            self.parts += [
                line(LEFT, y, WIDTH - RIGHT, y, grid),
                text(LEFT - 8, y + 4, f"{10**exponent:,g}", "end"),
            ]
            exponent += 1
        step = 10 if self.minutes > 40 else 5
        bottom = self.top + HEIGHT - BOTTOM
        for minute in range(0, int(self.minutes) + 1, step):
            x = self.x(minute * 60)
            self.parts += [
                line(x, bottom, x, bottom + 4, grid),
                text(x, bottom + 18, str(minute), "middle"),
            ]
        self.parts.append(text(WIDTH - RIGHT, bottom + 34, "minutes", "end"))

    def level(self, rate: float, words: str) -> None:
        """Draw a labelled horizontal line."""
        y = self.y(rate)
        self.parts += [
            line(LEFT, y, WIDTH - RIGHT, y, 'stroke="#57606a" stroke-dasharray="5 4"'),
            text(LEFT + 6, y - 5, words, extra=' fill="#57606a"'),
        ]

    def span(self, start: float, end: float, words: str) -> None:
        """Draw a labelled span of time."""
        x = self.x(start)
        self.parts += [
            (
                f'<rect x="{x:.1f}" y="{self.top + TOP}" width="{self.x(end) - x:.1f}"'
                f' height="{HEIGHT - TOP - BOTTOM}" fill="#eaeef2" fill-opacity="0.6"/>'
            ),
            text(x + 6, self.top + HEIGHT - BOTTOM - 8, words, extra=' fill="#57606a"'),
        ]

    def curve(self, rows: Rows, name: str) -> None:
        """Draw one column of the table as a curve."""
        points = " ".join(f"{self.x(row['second']):.1f},{self.y(row[name]):.1f}" for row in rows)
        self.parts.append(
            f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" stroke-width="1.4"/>'
        )

    def legend(self, names: dict[str, str]) -> None:
        """Draw the legend above the diagram."""
        x = float(WIDTH - RIGHT)
        for name, words in reversed(list(names.items())):
            x -= 6.2 * len(words) + 30
            y = self.top + 14
            style = f'stroke="{COLOURS[name]}" stroke-width="2.5"'
            self.parts += [line(x, y, x + 16, y, style), text(x + 21, y + 4, words)]


def draw(folder: Path) -> str:
    """Return the figure as SVG."""
    with (folder / "summary.csv").open() as file:
        free_us = {row["scenario"]: float(row["free"]) for row in csv.DictReader(file)}["silent"]
    free = free_us / 1_000_000
    outage, address = read(folder / "outage.csv"), read(folder / "address.csv")
    first = Panel(0, 90, 0.03, 100, "100,000 devices: cores that their requests need")
    first.span(300, 3900, "the backend is down")
    first.level(2 * free, "2 x the cores that are free")
    first.level(free, "the cores that are free")
    add: Callable[[Rows, str], None] = first.curve
    for name in ("fixed", "silent", "unavailable", "announced"):
        add(outage, name)
    first.legend(
        {
            "fixed": "every 5 s",
            "silent": "no answer",
            "unavailable": "503",
            "announced": "503, Retry-After",
        }
    )
    second = Panel(HEIGHT, 30, 0.1, 100, "300 devices, one address: requests a second")
    second.level(0.5, "what GoTrue's bucket lets in, after a burst of 30")
    second.curve(address, "fixed")
    second.curve(address, "library")
    second.legend({"fixed": "every 5 s", "library": "the library"})
    parts = "\n".join(first.parts + second.parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {2 * HEIGHT}"'
        ' font-family="system-ui, sans-serif" font-size="12" fill="#1f2328">\n'
        f'<rect width="{WIDTH}" height="{2 * HEIGHT}" fill="#ffffff"/>\n{parts}\n</svg>\n'
    )


if __name__ == "__main__":
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else FIGURE
    target.write_text(draw(Path(sys.argv[1])))
