"""What version 6 of the world adds: a schema that refuses every insert for an hour."""

from __future__ import annotations

import random

from ..network import REFUSALS
from ..process import Process
from ..world import World
from . import steps
from .registry import HOUR, MINUTE, action


@action(5, since=6)
def schema_refuses(world: World, process: Process, chance: random.Random) -> None:
    """Every insert is refused for what no user can mend, and then none is (FIX-4, FIX-5)."""
    until = world.now_ms + chance.choice((MINUTE, 20 * MINUTE, HOUR, HOUR))
    world.refusal = (until, *chance.choice(REFUSALS))
    for _ in range(chance.choice((0, 1, 1, 5))):
        steps.add(world, process, chance)
    world.run(chance.choice((0, MINUTE, 10 * MINUTE, HOUR + MINUTE)), chance)
