"""What version 6 of the world adds: a schema, and a key store, that is of no use for a while."""

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
    world.policy_refused |= world.refusal[1] == "42501"
    world.refusals.append(world.refusal[2])
    for _ in range(chance.choice((0, 1, 1, 5))):
        steps.add(world, process, chance)
    world.run(chance.choice((0, MINUTE, 10 * MINUTE, HOUR + MINUTE)), chance)


@action(2, since=6)
def key_store_finds_nothing(world: World, process: Process, chance: random.Random) -> None:
    """A key store that is being restored says "not found" at starts for a while (FIX-6)."""
    device = process.device
    device.kill(process)
    device.hide_keys(world.now_ms + chance.choice((5000, MINUTE, MINUTE, 20 * MINUTE)))
    steps.restart(device, chance)
    world.run(chance.choice((0, 5000, MINUTE, MINUTE)), chance)
