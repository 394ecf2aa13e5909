"""Mutation test of the invariants: each one reports every violation that is injected against it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "simulation"
#: The name of a rule where the code checks it.
RULE = re.compile(r"""(?:Violation\(\s*|_bounded\([^"\n]*|_wait_while\([^"]*)"([^"]+)\"""")
PARTS = 8


def rules() -> list[str]:
    """The names of all invariants, read from the code."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(SOURCES.rglob("*.py")))
    return sorted({rule for text in texts for rule in RULE.findall(text)})


def test_the_rules_are_found() -> None:
    found = rules()
    assert len(found) > 40
    assert {"no refresh storm", "everything drains", "no home while locked"} <= set(found)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_invariant_kills_its_mutants(environment: dict[str, str], part: int) -> None:
    # Given the mutants of a share of the rules, each one as a defect would look
    some = rules()[part::PARTS]
    # When worlds run with one mutant at a time
    command = [sys.executable, "-m", "simulation.mutants", *some]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Then the rule that each mutant violates reports it
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["rule"] for one in results} == set(some)
    assert [one["mutant"] for one in results if one["seed"] is None] == []
