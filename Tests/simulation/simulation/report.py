"""Runs seeds in this process and reports the results."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from holdfast import Library

from .actions import Action
from .run import Outcome, planned, play
from .shrink import shrink

#: Worlds between two collections of garbage.
COLLECT = 20


class Runner:
    """One library, many seeds."""

    def __init__(self, path: Path, flavour: str, *, as_json: bool, version: int) -> None:
        """Load the library at `path`."""
        self.library = Library(path)
        self.flavour = flavour
        self.as_json = as_json
        self.version = version

    def run(self, seeds: Iterable[int], *, go_on: bool) -> int:
        """Run each seed; shrink and show one that fails. Return 1 if any failed."""
        started, count, failed, calls = time.monotonic(), 0, 0, 0
        # Most objects live as long as their world: automatic collections would find nothing. What
        # was loaded before the first world lives on.
        gc.disable()
        gc.freeze()
        for seed in seeds:
            if count % COLLECT == 0:
                gc.collect()
            outcome = play(seed, self.library, version=self.version)
            count += 1
            calls += outcome.calls
            if self.as_json:
                self._line(outcome)
            if outcome.rule is not None:
                failed += 1
                self._explain(outcome)
                if not go_on:
                    break
        if not self.as_json:
            took = time.monotonic() - started
            print(f"{count} seeds, {failed} failed, {calls} calls, {took:.1f} s ({self.flavour})")
        return 1 if failed else 0

    def _line(self, outcome: Outcome) -> None:
        value = {
            "seed": outcome.seed, "digest": outcome.digest, "rule": outcome.rule,
            "calls": outcome.calls, "actions": len(outcome.actions),
        }  # fmt: skip
        print(json.dumps(value), flush=True)

    def _explain(self, outcome: Outcome) -> None:
        steps = list(enumerate(outcome.actions))

        def fails(kept: list[tuple[int, Action]]) -> bool:
            return self._again(outcome.seed, kept).rule == outcome.rule

        few = shrink(steps, fails)
        last = self._again(outcome.seed, few)
        print(f"\nseed {outcome.seed} fails: {last.detail}", file=sys.stderr)
        print(f"{len(few)} of {len(steps)} actions are enough:", file=sys.stderr)
        for number, step in few:
            print(f"  {number}: {step}", file=sys.stderr)
        keep = ",".join(str(number) for number, _ in few)
        print(
            f"replay: make replay SEED={outcome.seed} WORLD={self.version} KEEP={keep} "
            f"FLAVOUR={self.flavour}\n",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    def _again(self, seed: int, kept: list[tuple[int, Action]]) -> Outcome:
        steps = [step for _, step in kept]
        return play(seed, self.library, steps, version=self.version)

    def replay(self, seed: int, keep: list[int] | None) -> int:
        """Run one seed, or some of its actions, and print the trace."""
        steps = planned(seed, self.version)
        chosen = steps if keep is None else [steps[number] for number in keep]
        outcome = play(seed, self.library, chosen, keep=True, version=self.version)
        print("\n".join(outcome.lines or []))
        print(outcome.detail or "no invariant was broken")
        print(f"digest {outcome.digest}")
        return 1 if outcome.rule else 0
