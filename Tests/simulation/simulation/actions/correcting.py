"""Changing an item and taking it back, whether it is queued or stored, as several actions do."""

from __future__ import annotations

import datetime
import random

from .. import numbers
from ..ledger import HELD, TAKEN_BACK, Entry
from ..network import WORDS
from ..process import Process
from ..world import World
from . import steps
from .registry import MINUTE, SECOND, Json


def item_of(process: Process, item: str) -> Json | None:
    """The item as it is queued; None: it is not."""
    return (process.ask("queue_get", {"id": item}) or {}).get("item")


def listed(process: Process, item: str) -> Json | None:
    """What the list of the user's own items shows of one; None: it is not there."""
    for shown in own_items(process):
        if shown["id"] == item:
            return dict(shown["payload"])
    return None


def own_items(process: Process) -> list[Json]:
    """The list of the user's own activities, all pages of it."""
    found: list[Json] = []
    request: Json = {"kind": "activity", "limit": 200}
    while True:
        page = process.ask("item_list", request)
        found += page["items"] if page is not None else []
        if page is None or page["next"] is None:
            return found
        request = {**request, "after": page["next"]}


def change(world: World, process: Process, chance: random.Random, item: str) -> bool:
    """Change one or several columns of an item, whether it is queued or stored."""
    request = _form(world, process, chance, item)
    before, shown = item_of(process, item), request.get("base") or listed(process, item)
    payload = _new_values(world, chance)
    if before is not None and before["operation"] == "insert":
        payload = {**before["payload"], **payload}
    with world.in_doubt():
        reply = process.ask("queue_edit", {**request, "payload": payload})
        if reply is None:
            return False
        entry = _entry(world, process, item)
        if entry is None:
            return False
        if before is not None and before["operation"] == "insert":
            entry.edit(payload)
        entry.is_cancelled = False
        after = None if reply["state"] == "stored" else item_of(process, item)
        world.corrections.edited(entry, payload, (before, after), shown)
    return True


def take_back(
    world: World, process: Process, chance: random.Random, item: str, *, force: bool = False
) -> bool:
    """Take an item back, whether it is queued or stored."""
    request = {} if force else _form(world, process, chance, item)
    queued, shown = item_of(process, item), request.get("base") or listed(process, item)
    with world.in_doubt():
        reply = process.ask("queue_cancel", {**request, "id": item, "force": force})
        if reply is None:
            return False
        entry = _entry(world, process, item)
        if entry is None:
            return False
        if queued is not None and queued["operation"] == "insert":
            if reply["state"] is None:
                if not force and queued["state"] != "parked":
                    world.invariants.cancelled(process, entry)
                entry.state = TAKEN_BACK
                world.corrections.dropped(entry)
            else:
                entry.cancel()
                world.corrections.cancelled(entry, shown)
        elif reply["state"] in {None, "stored"}:
            entry.is_cancelled = False
            world.corrections.dropped(entry)
        else:
            world.corrections.taken_back(entry, shown)
    return True


def _form(world: World, process: Process, chance: random.Random, item: str) -> Json:
    """Open a form with what the list shows; meanwhile a pull may bring something else."""
    if chance.random() < 0.7:
        return {"id": item}
    base = listed(process, item)
    world.run(chance.choice((SECOND, MINUTE)), chance)
    return {"id": item} if base is None else {"id": item, "base": base}


def overwrite(world: World, process: Process, chance: random.Random, item: Json) -> bool:
    """Send the user's values over those that the conflict shows."""
    entry = _entry(world, process, item["id"])
    if entry is not None and item["conflict"] is not None:
        world.corrections.overwritten(entry, item["conflict"])
    return process.ask("queue_retry", {"id": item["id"], "overwrite": True}) is not None


def _new_values(world: World, chance: random.Random) -> Json:
    values: Json = {}
    names = chance.sample(
        ("minutes", "note", "type", "occurred_at", "numbers"), chance.choice((1, 1, 2))
    )
    if "minutes" in names:
        bad = chance.random() < 0.05
        values["minutes"] = steps.BAD_MINUTES if bad else chance.randrange(1, 1441)
    if "note" in names:
        values["note"] = f"notat {chance.getrandbits(64):x}"
        if chance.random() < 0.1:
            values["note"] = f"{values['note']} {WORDS}"
        elif chance.random() < 0.1:
            values["note"] = None
    if "type" in names:
        values["type"] = chance.choice(("besøk", "samtale", "tur"))
    if "occurred_at" in names:
        moment = world.server.database.now() - datetime.timedelta(minutes=chance.randrange(1, 600))
        zone = datetime.timezone(datetime.timedelta(hours=chance.choice((0, 1, -3))))
        values["occurred_at"] = moment.astimezone(zone).isoformat(timespec="seconds")
    if "numbers" in names or not values:
        drawn: dict[str, object] = {**numbers.draw(chance, few=0, wide=False)}
        values |= drawn or {"minutes": chance.randrange(1, 1441)}
    return values


def _entry(world: World, process: Process, item: str) -> Entry | None:
    """The device's entry of the item; a new one for a stored row that another device registered."""
    device = process.device
    user = device.user
    if user is None:
        return None
    entry = world.ledger.get(device.name, user, item)
    if entry is not None and entry.state == HELD:
        return entry
    row = world.server.database.stored.get(item)
    if row is None:
        return entry
    if entry is not None:
        # What was wanted of it went with the file that was set aside, or with the logout.
        world.corrections.dropped(entry)
    payload = {"minutes": row["minutes"], "note": row["note"]}
    entry = Entry(item, device.name, user, str(row["org_id"]), "activity", [payload])
    world.ledger.add(entry)
    return entry
