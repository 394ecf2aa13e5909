"""The table of actions: an action is drawn from it by a seed and performed from its number."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..process import Process
from ..world import World

Json = dict[str, Any]
Body = Callable[[World, Process, random.Random], None]

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


@dataclass(frozen=True)
class Action:
    """One step of a run."""

    name: str
    number: int

    def __str__(self) -> str:
        """Return the action as the trace shows it."""
        return f"{self.name} {self.number}"


_BODIES: dict[str, Body] = {}
#: Name -> (weight, the first version of the world that has the action).
_WEIGHTS: dict[str, tuple[int, int]] = {}


def action(weight: int, *, since: int = 1) -> Callable[[Body], Body]:
    def register(body: Body) -> Body:
        _BODIES[body.__name__] = body
        _WEIGHTS[body.__name__] = (weight, since)
        return body

    return register


def draw(seed: int, count: int, version: int) -> list[Action]:
    """Return the actions of a seed in this version of the world."""
    chance = random.Random(f"actions {seed}")
    known = {name: weight for name, (weight, since) in _WEIGHTS.items() if since <= version}
    names = chance.choices(list(known), list(known.values()), k=count)
    return [Action(name, chance.getrandbits(32)) for name in names]


def perform(world: World, action: Action) -> None:
    """Perform the action with a living process; start one if there is none."""
    chance = random.Random(f"{action.name} {action.number}")
    device = chance.choice(world.devices)
    world.trace.note(f"-- {action} on {device.name} at {world.now_ms}")
    if not device.alive and device.start() is None:
        return
    process = chance.choice(device.alive)
    _BODIES[action.name](world, process, chance)
