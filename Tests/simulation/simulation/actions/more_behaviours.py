"""What version 3 of the world adds: firewalls, wrong clocks, doubtful uploads, many events."""

from __future__ import annotations

import random

from .. import network
from ..ledger import TAKEN_BACK
from ..network import Fate
from ..process import Process
from ..world import World
from . import correcting, steps
from .registry import DAY, HOUR, MINUTE, SECOND, Json, action

#: More notices than a host takes at once.
MANY = 210
#: Answers after which it is unknown whether the server stored an upload (B5, B6): it is lost, or
#: names too few rows; then the question about it is answered, refused, or lost.
DOUBTS: tuple[tuple[Fate, ...], ...] = (
    (Fate(50, 50, {"error": "timeout"}),),
    (Fate(50, 50, distortion="fewer rows"),),
    (Fate(50, 50, distortion="fewer rows"), Fate(None, 50, network.REFUSED_TOKEN)),
    (Fate(50, 50, distortion="fewer rows"), Fate(None, 50, {"error": "timeout"})),
    (Fate(50, 50, {"error": "timeout"}), Fate(None, 50, network.REFUSED_TOKEN)),
    (Fate(50, None),),
)
#: The doubt lasts: nothing reaches the server.
LOST = Fate(None, 50, {"error": "offline"})


@action(5, since=3)
def firewall_changes(world: World, process: Process, chance: random.Random) -> None:
    """A firewall refuses items for what is in them, or every item, or nothing (B2)."""
    world.firewall = chance.choice(("words", "words", "words", "all", None))
    world.firewall_answer = chance.choice(network.FIREWALLS)


@action(1, since=3)
def wait_for_the_firewall(world: World, process: Process, chance: random.Random) -> None:
    """Hours pass in the foreground: what a firewall refuses is parked."""
    world.run(chance.choice((HOUR, 5 * HOUR)), chance)


@action(3, since=3)
def set_clock_a_month_wrong(world: World, process: Process, chance: random.Random) -> None:
    """The clock is wrong by up to 30 days, both ways, or right again."""
    process.device.set_ahead(chance.choice((-30 * DAY, 12 * DAY, 30 * DAY, 0, 0)))


@action(3, since=3)
def sign_in_under_a_wrong_clock(world: World, process: Process, chance: random.Random) -> None:
    """The clock is wrong while a user signs in and queues items, and right afterwards (A6, B3)."""
    device = process.device
    device.set_ahead(chance.choice((-30 * DAY, -5 * HOUR, 5 * HOUR, 12 * DAY, 30 * DAY)))
    steps.sign_in(world, process, chance, chance.choice(list(world.people)))
    world.run(chance.choice((SECOND, MINUTE)), chance)
    if not process.is_open:
        return
    for _ in range(chance.choice((0, 1, 3))):
        steps.add(world, process, chance)
    world.run(chance.choice((0, SECOND, 20 * MINUTE)), chance)
    if chance.random() < 0.3:
        device.reboot()
        steps.restart(device, chance)
    device.set_ahead(0)
    world.run(chance.choice((0, SECOND, MINUTE)), chance)


@action(3, since=3)
def suspend_under_a_wrong_clock(world: World, process: Process, chance: random.Random) -> None:
    """The clock is wrong while the app is suspended, or is corrected then (B3)."""
    device = process.device
    before = device.ahead_ms
    device.set_ahead(chance.choice((-30 * DAY, -HOUR, HOUR, 30 * DAY, 0)))
    if process.ask("session_background") is not None and device.session is not None:
        device.away = (device.monotonic_ms, device.boot)
    world.sleep(chance.choice((SECOND, 4 * MINUTE, 6 * MINUTE, 3 * HOUR)))
    device.set_ahead(chance.choice((before, 0)))
    if process.ask("session_foreground") is not None:
        device.away = None
    world.run(chance.choice((0, SECOND, MINUTE)), chance)


@action(6, since=3)
def change_a_doubtful_item(world: World, process: Process, chance: random.Random) -> None:
    """An item is edited or cancelled after it may have been stored (B5, B6)."""
    device = process.device
    for _ in range(chance.choice((1, 1, 4))):
        steps.add(world, process, chance)
    device.fates = [*chance.choice(DOUBTS), LOST, LOST, LOST]
    world.run(chance.choice((150, SECOND, 5 * SECOND)), chance)
    if process.is_open:
        listed = process.ask("queue_list", {"limit": 100})
        tried = [item for item in (listed or {"items": []})["items"] if item["attempts"]]
        if tried:
            _change(world, process, chance, chance.choice(tried))
    device.fates = []
    world.run(chance.choice((0, SECOND, MINUTE)), chance)


def _change(world: World, process: Process, chance: random.Random, item: Json) -> None:
    entry = world.ledger.get(process.device.name, process.device.user, item["id"])
    if entry is None:
        return
    if world.corrects and item["kind"] == "activity":
        if chance.random() < 0.6:
            correcting.change(world, process, chance, item["id"])
        else:
            correcting.take_back(world, process, chance, item["id"], force=chance.random() < 0.3)
        return
    if item["kind"] == "activity" and chance.random() < 0.6:
        payload = {**item["payload"], "minutes": chance.randrange(1, 300)}
        if process.ask("queue_edit", {"id": item["id"], "payload": payload}) is not None:
            entry.edit(payload)
        return
    force = chance.random() < 0.3
    with world.in_doubt():
        reply = process.ask("queue_cancel", {"id": item["id"], "force": force})
    if reply is None:
        return
    if reply["state"] is None:
        if not force and item["state"] != "parked":
            world.invariants.cancelled(process, entry)
        entry.state = TAKEN_BACK
    else:
        entry.cancel()


@action(1, since=3)
def many_events(world: World, process: Process, chance: random.Random) -> None:
    """Many items are parked, and the host reads slowly (A5).

    Seldom, and only where one request rejects them all: it costs time.
    """
    if chance.random() < 0.7 or not process.device.uploads_by_function:
        return
    for _ in range(MANY):
        if not steps.add(world, process, chance, bad=True):
            return
    process.patience = chance.choice((1, 50, None))
    world.run(MINUTE, chance)
