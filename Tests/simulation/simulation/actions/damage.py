"""What version 5 of the world adds: flipped bits, and a device key that is away for a moment."""

from __future__ import annotations

import random

from holdfast.keystore import KEY_INVALIDATED, KEY_NOT_FOUND

from ..damage import damage
from ..process import Process
from ..world import World
from . import steps
from .registry import action

#: Damaged copies of one state of a device: most flips cost nothing.
CASES = 3


@action(4, since=5)
def flip_bits(world: World, process: Process, chance: random.Random) -> None:
    """Bits of the database or its log flip, also of its indexes (A3)."""
    for _ in range(chance.choice((0, 1, 4))):
        steps.add(world, process, chance)
    holding = [device for device in world.devices if device.stored.queued]
    for _ in range(CASES):
        damage(chance.choice(holding or world.devices), chance)


@action(2, since=5)
def device_key_vanishes(world: World, process: Process, chance: random.Random) -> None:
    """The key store reports the device key as lost at a start, once or for good."""
    device = process.device
    if chance.random() < 0.5:
        device.kill(process)
    else:
        device.close(process)
    answers = [chance.choice((KEY_NOT_FOUND, KEY_INVALIDATED))] * chance.choice((1, 1, 1, 2, 4))
    device.script("load", "device", answers)
    steps.restart(device, chance)
