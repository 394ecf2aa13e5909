"""The rewriter and the scanner, on small sources."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mutants.faults import Fault, number_places, scan
from mutants.paths import HERE
from mutants.rewrite import IMPORT, rewrite
from mutants.switch import VARIABLE, Switch

SAMPLE = """\
struct Limits {
  var most: Int { 10 }
  func isOver(_ count: Int) -> Bool { count > most }
  func check(_ count: Int, _ name: String?) -> String? {
    guard count >= 0, let name else { return nil }
    if isOver(count) { return "over" }
    var left = most - count
    left -= 1
    note(left, count)
    return left == 0 ? "none" : name
  }
  func note(_ a: Int, _ b: Int) { if a < b { Log.line("\\(a + b)") } }
}
"""


def fault(source: str, before: str, after: str, form: str = "choice", at: int = 0) -> Fault:
    """A fault of the first such text behind `at`."""
    start = source.encode().index(before.encode(), at)
    end = start + len(before.encode())
    return Fault("A.swift", "f", "kind", form, start, end, 1, before, after, 1)


@pytest.fixture
def found(tmp_path: Path) -> list[Fault]:
    """Every fault of the sample."""
    (tmp_path / "A.swift").write_text(SAMPLE)
    return scan(tmp_path, ["A.swift"])


def test_an_expression_becomes_a_choice() -> None:
    source = "let a = b < c\n"
    result = rewrite(source.encode(), {7: fault(source, "b < c", "b <= c")})
    assert result.text == IMPORT + b"let a = (holdfast_mutant(7) ? (b <= c) : (b < c))\n"


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("drop", b"if !holdfast_mutant(7) { go() }"),
        ("either", b"if holdfast_mutant(7) { stop() } else { go() }"),
    ],
)
def test_a_statement_is_dropped_or_exchanged(form: str, expected: bytes) -> None:
    result = rewrite(b"go()", {7: fault("go()", "go()", "stop()", form)})
    assert result.text == IMPORT + expected


def test_a_fault_inside_another_stays_in_what_was_before() -> None:
    source = "æ(a < b || c)"
    faults = {1: fault(source, "a < b || c", "a < b && c"), 2: fault(source, "a < b", "a <= b")}
    text = rewrite(source.encode(), faults).text.removeprefix(IMPORT).decode()
    inner = "(holdfast_mutant(2) ? (a <= b) : (a < b))"
    assert text == f"æ((holdfast_mutant(1) ? (a < b && c) : ({inner} || c)))"


def test_a_source_without_faults_is_the_same() -> None:
    assert rewrite(b"let a = 1\n", {}).text == b"let a = 1\n"


def test_a_complaint_concerns_the_innermost_fault_or_the_line() -> None:
    source = "f(a < b || c)\ng(x)\nh()\n"
    faults = {
        1: fault(source, "a < b || c", "a"),
        2: fault(source, "a < b", "a"),
        3: fault(source, "x", "y"),
    }
    result = rewrite(source.encode(), faults)
    lines = result.text.decode().splitlines()
    assert result.at(1, lines[0].index("a < b)") + 1) == {2}
    assert result.at(1, lines[0].index("|| c") + 1) == {1}
    assert result.at(2, 1) == {3}
    assert result.at(3, 1) == {3}, "the nearest before it"


def test_places_are_numbered_within_their_function(found: list[Fault]) -> None:
    keys = [fault.key for fault in found]
    assert len(set(keys)) == len(keys)
    assert "A.swift Limits.check compare 1" in keys
    # A function before it changes none of them.
    again = number_places(
        {k: v for k, v in vars(one).items() if k != "ordinal"}
        for one in found
        if one.scope == "Limits.check"
    )
    assert [one.key for one in again] == [key for key in keys if "Limits.check" in key]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("constant", "10 → 11"),
        ("compare", "count > most → count >= most"),
        ("result", "count > most → !(count > most)"),
        ("guard", "count >= 0 → true"),
        ("never", "isOver(count) → false"),
        ("always", "isOver(count) → true"),
        ("exit", 'return "over" → (nothing)'),
        ("arithmetic", "most - count → most + count"),
        ("arithmetic", "left -= 1 → left += 1"),
        ("assign", "left -= 1 → (nothing)"),
        ("drop", "note(left, count) → (nothing)"),
        ("swap", "note(left, count) → note(count, left)"),
        ("equal", "left == 0 → left != 0"),
        ("ternary", 'left == 0 ? "none" : name → left == 0 ? name : "none"'),
    ],
)
def test_the_syntax_tree_gives_faults(found: list[Fault], kind: str, change: str) -> None:
    assert (kind, change) in [(fault.kind, fault.change) for fault in found]


def test_the_log_has_none(found: list[Fault]) -> None:
    assert not [fault for fault in found if fault.scope == "Limits.note"]


def test_each_fault_is_compiled_and_switched_by_number(found: list[Fault], tmp_path: Path) -> None:
    """The program prints what the sample returns: as written, or with one fault."""
    faults = {n: one for n, one in enumerate(found, start=1) if one.kind != "swap"}
    text = rewrite(SAMPLE.encode(), faults).text.decode().replace(IMPORT.decode(), "")
    (tmp_path / "A.swift").write_text(text + "enum Log { static func line(_ text: String) {} }\n")
    (tmp_path / "main.swift").write_text('print(Limits().check(10, "ten") ?? "nil")\n')
    build = ["clang", "-c", "-fPIC", str(HERE / "switch/mutants.c"), "-o", "switch.o"]
    subprocess.run(build, cwd=tmp_path, check=True)
    header = ["-import-objc-header", str(HERE / "switch/mutants.h")]
    build = ["swiftc", "A.swift", "main.swift", "switch.o", *header, "-o", "program"]
    subprocess.run(build, cwd=tmp_path, check=True)
    switch = Switch(tmp_path / "switch")

    def output(number: int) -> str:
        switch.turn_on(number)
        environment = {VARIABLE: str(switch.path)}
        return subprocess.run(
            [str(tmp_path / "program")], env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    def number(change: str) -> int:
        return next(n for n, one in faults.items() if one.change == change)

    assert output(0) == "ten"
    assert number("count > most → count >= most") in switch.reached()
    assert output(number("count > most → count >= most")) == "over"
    assert output(number("left -= 1 → (nothing)")) == "none"
    assert output(number("count >= 0 → true")) == "ten"
    switch.forget()
    assert switch.reached() == []
