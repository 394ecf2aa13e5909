"""What version 7 of the world adds: what is registered is changed and taken back."""

from __future__ import annotations

import random

from memory_supabase.database import SERVICE
from memory_supabase.schema import TABLES

from ..corrections import ELSEWHERE
from ..network import Fate
from ..process import Process
from ..world import World
from . import steps
from .correcting import change, overwrite, take_back
from .more_behaviours import DOUBTS, LOST
from .registry import HOUR, MINUTE, SECOND, Json, action

#: How long the hosts work after a correction.
PAUSES = (0, 0, 20, 200, SECOND, 5 * SECOND, MINUTE)


def pick(world: World, process: Process, chance: random.Random) -> str | None:
    """One of the user's own items, queued or stored, registered here or elsewhere."""
    user = process.device.user
    rows = [i for i, row in world.server.database.stored.items() if row["user_id"] == user]
    held = [e.id for e in world.ledger.of(process.device.name, user) if e.kind == "activity"]
    items = list(dict.fromkeys([*rows[-12:], *held[-12:]])) if user is not None else []
    return chance.choice(items) if items else None


@action(40, since=7)
def correct(world: World, process: Process, chance: random.Random) -> None:
    """Change an item of the user's own, once or a few times."""
    item = pick(world, process, chance) if world.corrects else None
    if item is None:
        return
    for _ in range(chance.choice((1, 1, 1, 3))):
        change(world, process, chance, item)
        world.run(chance.choice(PAUSES), chance)
        if not process.is_open:
            return


@action(14, since=7)
def delete(world: World, process: Process, chance: random.Random) -> None:
    """Take an item of the user's own back, and perhaps change it after all."""
    item = pick(world, process, chance) if world.corrects else None
    if item is None:
        return
    take_back(world, process, chance, item, force=chance.random() < 0.1)
    world.run(chance.choice(PAUSES), chance)
    if process.is_open and chance.random() < 0.3:
        change(world, process, chance, item)


@action(24, since=7)
def change_elsewhere(world: World, process: Process, chance: random.Random) -> None:
    """The user at another device, or a coordinator, changes or deletes a few stored rows."""
    database = world.server.database
    rows = [row for row in database.rows["activities"].values() if row["deleted_at"] is None]
    if not rows or not world.corrects:
        return
    for row in {
        r["id"]: r for r in chance.choices(rows[-12:], k=chance.choice((1, 1, 3)))
    }.values():
        if chance.random() < 0.15:
            values: Json = {"deleted_at": database.now()}
        else:
            values = {}
            if chance.random() < 0.6:
                values["minutes"] = chance.randrange(1, 1441)
            if not values or chance.random() < 0.3:
                values["note"] = f"notat {chance.getrandbits(64):x}"
            if chance.random() < 0.2:
                # As another of the user's devices would, with the value that it may have had.
                values["minutes"] = chance.choice(
                    [v.row["minutes"] for v in world.corrections.versions[str(row["id"])]]
                )
        database.update(TABLES["activities"], row, values, SERVICE)
        world.corrections.noted(str(row["id"]), ELSEWHERE)


@action(24, since=7)
def correct_in_flight(world: World, process: Process, chance: random.Random) -> None:
    """An item is changed or taken back while a request with it is on its way, or in doubt."""
    if not world.corrects:
        return
    device = process.device
    if chance.random() < 0.5 and not steps.add(world, process, chance):
        return
    item = pick(world, process, chance)
    if item is None:
        return
    if chance.random() < 0.6:
        change(world, process, chance, item)
    device.fates = [
        *chance.choice((*DOUBTS, (Fate(50, 50),), (Fate(50, 2000),))),
        *chance.choice(((), (LOST, LOST))),
    ]
    for _ in range(chance.choice((1, 2, 2))):
        world.run(chance.choice((10, 60, 150, SECOND, 5 * SECOND)), chance)
        if not process.is_open:
            break
        if chance.random() < 0.7:
            change(world, process, chance, item)
        else:
            take_back(world, process, chance, item)
    device.fates = []
    world.run(chance.choice((0, SECOND, MINUTE)), chance)


@action(14, since=7)
def decide(world: World, process: Process, chance: random.Random) -> None:
    """The user decides about corrections that are parked: overwrite, retry, or leave the row."""
    listed = (
        process.ask("queue_list", {"state": "parked", "limit": 100}) if world.corrects else None
    )
    for item in (listed or {"items": []})["items"]:
        if item["operation"] == "insert" or chance.random() < 0.3:
            continue
        settle(world, process, chance, item)
        world.run(chance.choice(PAUSES), chance)
        if not process.is_open:
            return


def settle(world: World, process: Process, chance: random.Random, item: Json) -> None:
    """Decide about one correction that is parked."""
    draw = chance.random()
    if item["conflict"] is not None and draw < 0.6:
        overwrite(world, process, chance, item)
    elif draw < 0.8:
        take_back(world, process, chance, item["id"])
    else:
        process.ask("queue_retry", {"id": item["id"]})


@action(8, since=7)
def correct_without_a_membership(world: World, process: Process, chance: random.Random) -> None:
    """A membership ends before a correction is sent: until it is restored no row is visible."""
    device = process.device
    item = pick(world, process, chance) if world.corrects else None
    row = world.server.database.stored.get(item or "")
    if item is None or row is None or device.user is None or row["user_id"] != device.user:
        return
    place = (device.user, str(row["org_id"]))
    role = world.memberships[place]
    device.fates = [LOST, LOST]
    if not chance.choice((change, take_back))(world, process, chance, item):
        device.fates = []
        return
    world.access_changes += 1
    world.end(*place, role)
    device.fates = []
    world.run(chance.choice((SECOND, MINUTE, 20 * MINUTE)), chance)
    world.server.control.set_membership(*place, role=role, status="active")
    process.ask("sync_now")
    world.run(chance.choice((SECOND, MINUTE)), chance)
    if (process.shown or {}).get("screen") == "select_org":
        process.ask("org_select", {"org_id": row["org_id"]})


@action(2, since=7)
def go_on_for_an_hour(world: World, process: Process, chance: random.Random) -> None:
    """An hour passes in the foreground: own rows are pulled and reconciled."""
    if world.corrects:
        process.ask("sync_now")
        world.run(chance.choice((MINUTE, HOUR)), chance)


#: What a user does at the end, when the world is healthy again.
ALL = (
    *(correct, correct, delete, change_elsewhere, correct_in_flight, decide, go_on_for_an_hour),
    correct_without_a_membership,
)
