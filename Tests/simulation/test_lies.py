"""Every invariant can be broken: something is falsified for each, and the run notices it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "simulation"
#: The name of a rule where it is judged.
RULE = re.compile(r"""(?:Violation\(\s*|_bounded\([^"\n]*)"([^"]+)\"""")
PARTS = 8


def rules() -> list[str]:
    """The names of all invariants, as they stand in the code."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.py")))
    return sorted({rule for text in texts for rule in RULE.findall(text)})


def test_the_rules_are_found() -> None:
    found = rules()
    assert len(found) > 40
    assert {"no refresh storm", "everything drains", "no home while locked"} <= set(found)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_invariant_notices_a_lie(environment: dict[str, str], part: int) -> None:
    # Given lies against a share of the rules, each as a defect would tell it
    some = rules()[part::PARTS]
    # When worlds are played with one of them at a time
    command = [sys.executable, "-m", "simulation.lies", *some]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Then each is noticed, by the rule that it is against
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["rule"] for one in told} == set(some)
    assert [one["lie"] for one in told if one["seed"] is None] == []
