"""Measures contenders side by side: rounds, samples, and ratios of rounds."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

import programs


@dataclass
class Series:
    """The samples of one contender, in seconds, by round."""

    rounds: list[list[float]] = field(default_factory=list)

    def figure(self, quantile: float) -> float:
        samples = sorted(sample for samples in self.rounds for sample in samples)
        return samples[min(len(samples) - 1, int(quantile * len(samples)))]

    @property
    def p50(self) -> float:
        return self.figure(0.5)

    @property
    def p99(self) -> float:
        return self.figure(0.99)


Contender = Callable[[], list[float]]


def contest(rounds: int, contenders: dict[str, Contender]) -> dict[str, Series]:
    """Run the contenders in turn for `rounds` rounds after a warm-up; rotate the first one."""
    found = {name: Series() for name in contenders}
    order = list(contenders)
    for number in range(rounds + 1):
        for name in order:
            samples = contenders[name]()
            if number > 0:
                found[name].rounds.append(samples)
        order.append(order.pop(0))
    return found


def take_turns(
    rounds: int, calls: int, commands: dict[str, tuple[list[str], str]]
) -> dict[str, Series]:
    """Like `contest`, but with long-lived processes that take turns call by call."""
    processes = {name: programs.Turns(*command) for name, command in commands.items()}
    found = {name: Series() for name in commands}
    order = list(commands)
    for number in range(rounds + 1):
        taken: dict[str, list[float]] = {name: [] for name in order}
        for _ in range(calls):
            for name in order:
                taken[name].append(processes[name].take())
            order.append(order.pop(0))
        for name in order:
            if number > 0:
                found[name].rounds.append(taken[name])
    for process in processes.values():
        process.end()
    return found


def ratio(ours: Series, theirs: Series, figure: Callable[[list[float]], float]) -> float:
    """Return the median of the rounds' ratios."""
    return statistics.median(
        figure(mine) / figure(its) for mine, its in zip(ours.rounds, theirs.rounds, strict=True)
    )
