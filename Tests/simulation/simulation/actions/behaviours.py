"""What version 2 of the world adds: endpoints fail one by one, apps change, readers are slow."""

from __future__ import annotations

import random

from ..device import QUEUES
from ..network import OUTAGES
from ..process import Process
from ..world import World
from . import steps
from .registry import DAY, HOUR, MINUTE, SECOND, action

#: Requests that can fail while everything else works.
READS = ("guard", "pull", "summary", "live")


@action(5, since=2)
def endpoint_fails(world: World, process: Process, chance: random.Random) -> None:
    """One endpoint fails for minutes to a day, and the others work (attack A1)."""
    purpose = chance.choice((*READS, "guard", "validate", "upload"))
    until = world.now_ms + chance.choice((MINUTE, 20 * MINUTE, 5 * HOUR, DAY))
    world.outages[purpose] = (until, chance.choice(OUTAGES))


@action(4, since=2)
def app_changes(world: World, process: Process, chance: random.Random) -> None:
    """Another version of the app: columns and kinds are missing or come back (A2, B9).

    Processes that run keep their version; two versions may run side by side.
    """
    device = process.device
    device.set_queue(chance.choice(list(QUEUES)))
    if chance.random() < 0.6:
        device.close(process)
        steps.restart(device, chance)


@action(4, since=2)
def read_slowly(world: World, process: Process, chance: random.Random) -> None:
    """The host asks for few notices at a time, or for all again (A5)."""
    process.patience = chance.choice((0, 1, 3, None))


@action(2, since=2)
def set_clock_far(world: World, process: Process, chance: random.Random) -> None:
    """The clock is wrong by days, or right again (A6). It stays in the year of the figures."""
    process.device.set_ahead(chance.choice((-12 * DAY, -12 * DAY, 0, 0)))


@action(4, since=2)
def read_live(world: World, process: Process, chance: random.Random) -> None:
    """Read the network-only columns of a contact, across a refresh or a lost answer (B7)."""
    found = process.ask("contact_search", {"query": ""})
    if found and found["contacts"]:
        process.ask("contact_get", {"id": chance.choice(found["contacts"])["id"], "live": True})
    world.run(chance.choice((SECOND, 40 * SECOND, 3 * MINUTE)), chance)
