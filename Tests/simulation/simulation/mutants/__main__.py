"""`python -m simulation.mutants [RULE ...]`: which seed kills each mutant."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from holdfast import Library

from .. import __main__ as program
from ..run import play
from . import MUTANTS
from .injection import STEPS, Mutant

#: A mutant that survives this many seeds counts as not killed.
MAX_SEEDS = 160


def find(make: Callable[[], Mutant], rule: str, library: Library) -> int | None:
    """The first seed that reports this violation; None when no seed does."""
    step = STEPS[make]
    for seed in range(0, MAX_SEEDS * step, step):
        with make():
            noticed = play(seed, library).rule
        if noticed == rule:
            return seed
    return None


def main() -> int:
    """Run the mutants of the given rules, or all; print a line of JSON for each."""
    library = Library(program.ROOT / "build" / "lib" / "libholdfast.so")
    wanted = sys.argv[1:] or list(MUTANTS)
    for rule in wanted:
        for make in MUTANTS[rule]:
            line = {"rule": rule, "mutant": make.__name__, "seed": find(make, rule, library)}
            print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
