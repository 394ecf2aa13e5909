"""What a user does: signs in, locks, chooses an organisation, registers and reads."""

from __future__ import annotations

import random

from holdfast.keystore import (
    KEY_CANCELLED,
    KEY_FAILED,
    KEY_INVALIDATED,
    KEY_LOCKOUT,
    KEY_LOCKOUT_PERMANENT,
    KEY_NOT_ENROLLED,
    KEY_OK,
    KEY_UNAVAILABLE,
)

from ..ledger import HELD, TAKEN_BACK, Entry
from ..process import Process
from ..world import World
from . import correcting, steps
from .registry import HOUR, MINUTE, SECOND, Json, action

#: What the key store answers to a prompt.
OUTCOMES = (
    KEY_OK, KEY_FAILED, KEY_CANCELLED, KEY_LOCKOUT, KEY_LOCKOUT_PERMANENT, KEY_NOT_ENROLLED,
    KEY_INVALIDATED, KEY_UNAVAILABLE,
)  # fmt: skip


@action(60)
def react(world: World, process: Process, chance: random.Random) -> None:
    """Do what the screen asks for, then let the hosts work briefly."""
    screen = "resume" if process.shown is None else process.shown["screen"]
    if screen == "resume":
        process.ask("session_resume")
    elif screen == "unlock":
        process.device.keychain.present_finger()
        process.ask("session_unlock")
    elif screen == "sign_in":
        steps.sign_in(world, process, chance, chance.choice(list(world.people)))
    elif screen == "select_org":
        orgs = [o["org_id"] for o in (process.shown or {})["orgs"] if o["status"] == "active"]
        if orgs:
            process.ask("org_select", {"org_id": chance.choice(orgs)})
    elif screen == "home":
        steps.add(world, process, chance)
    world.run(chance.choice((0, 50, 500, 5 * SECOND)), chance)


@action(8)
def sign_in_as_another(world: World, process: Process, chance: random.Random) -> None:
    """A user signs in, also over another user's session."""
    steps.sign_in(world, process, chance, chance.choice(list(world.people)))


@action(6)
def prompt_ends(world: World, process: Process, chance: random.Random) -> None:
    """The biometric prompt ends; the host may unlock without a finger."""
    if chance.random() < 0.5:
        process.device.keychain.present_finger()
    else:
        process.device.keychain.take_finger_away()
    process.device.keychain.answer("load", "biometric", chance.choice(OUTCOMES))
    process.ask("session_unlock")


@action(6)
def lock(world: World, process: Process, chance: random.Random) -> None:
    """Lock the app."""
    had_session = process.device.stored.owner is not None
    if process.ask("session_lock") is not None and had_session:
        process.device.locked_by_user = process.device.stored.owner is not None


@action(10)
def go_away(world: World, process: Process, chance: random.Random) -> None:
    """The app goes to the background and may be suspended."""
    device = process.device
    if process.ask("session_background") is not None and device.session is not None:
        device.away = (device.monotonic_ms, device.boot)
    if chance.random() < 0.6:
        world.sleep(chance.choice((SECOND, MINUTE, 4 * MINUTE, 6 * MINUTE, HOUR)))


@action(10)
def come_back(world: World, process: Process, chance: random.Random) -> None:
    """The app returns to the foreground."""
    if process.ask("session_foreground") is not None:
        process.device.away = None


@action(5)
def log_out(world: World, process: Process, chance: random.Random) -> None:
    """Log out, locally or globally, and perhaps discard unsent items."""
    device = process.device
    request: Json = {"scope": chance.choice(("local", "local", "global"))}
    user = device.user
    unsent = device.stored.queued.get(device.stored.owner or b"", 0)
    if chance.random() < 0.3:
        request |= {"unsent": "discard", "confirm_unsent": unsent + chance.choice((0, 0, 1))}
    else:
        request["unsent"] = "keep"
    with world.in_doubt(10_000):
        reply = process.ask("session_logout", request)
    if reply is not None and request["unsent"] == "discard" and user is not None:
        for entry in world.ledger.of(device.name, user):
            entry.state = TAKEN_BACK
            world.corrections.dropped(entry)


@action(8)
def choose(world: World, process: Process, chance: random.Random) -> None:
    """Select an organisation, one of the user's or not."""
    process.ask("org_list")
    process.ask("org_select", {"org_id": chance.choice(world.orgs)})


@action(30)
def register(world: World, process: Process, chance: random.Random) -> None:
    """Register one or several visits."""
    for _ in range(chance.choice((1, 1, 3, 8))):
        steps.add(world, process, chance)


def _pick(process: Process, chance: random.Random) -> Json | None:
    listed = process.ask("queue_list", {"limit": chance.choice((3, 100))})
    return chance.choice(listed["items"]) if listed and listed["items"] else None


@action(10)
def edit(world: World, process: Process, chance: random.Random) -> None:
    """Edit a queued item."""
    item = _pick(process, chance)
    if item is None or item["kind"] != "activity":
        return
    if world.corrects:
        correcting.change(world, process, chance, item["id"])
        return
    payload = {
        **{k: v for k, v in item["payload"].items() if k != "occurred_at"},
        "minutes": chance.randrange(1, 300),
        "occurred_at": item["payload"].get("occurred_at"),
    }
    entry = world.ledger.get(process.device.name, process.device.user, item["id"])
    reply = process.ask("queue_edit", {"id": item["id"], "payload": payload})
    if reply is not None and entry is not None:
        entry.edit(payload)


@action(6)
def cancel(world: World, process: Process, chance: random.Random) -> None:
    """Cancel a queued item, whether or not the server may have it."""
    item = _pick(process, chance)
    if item is None:
        return
    if world.corrects:
        correcting.take_back(world, process, chance, item["id"], force=True)
        return
    with world.in_doubt():
        reply = process.ask("queue_cancel", {"id": item["id"], "force": True})
    entry = world.ledger.get(process.device.name, process.device.user, item["id"])
    if reply is not None and entry is not None:
        entry.state = TAKEN_BACK


@action(5)
def retry(world: World, process: Process, chance: random.Random) -> None:
    """Retry all items, or one, which takes a cancel of it back."""
    item = _pick(process, chance) if chance.random() < 0.5 else None
    reply = process.ask("queue_retry", {} if item is None else {"id": item["id"]})
    if item is None or reply is None:
        return
    entry = world.ledger.get(process.device.name, process.device.user, item["id"])
    # A deletion of a stored row goes on.
    if entry is not None and item["operation"] != "delete":
        entry.is_cancelled = False


@action(4)
def carry_over(world: World, process: Process, chance: random.Random) -> None:
    """Export items on one device and add them on another: both may send the same item."""
    exported = process.ask("queue_export")
    other = chance.choice([d for d in world.devices if d is not process.device])
    if not exported or not exported["items"] or not other.alive:
        return
    tokens, here = process.device.stored.tokens, other.stored.tokens
    if tokens is None or here is None or tokens.user != here.user or not other.stored.usable:
        return
    item = chance.choice(exported["items"])
    if "operation" in item:
        # Corrections stay where they were made.
        return
    with world.in_doubt():
        reply = other.alive[0].ask("queue_add", item)
    source = world.ledger.get(process.device.name, tokens.user, item["id"])
    if reply is not None and source is not None:
        known = world.ledger.get(other.name, here.user, item["id"])
        if known is not None:
            known.is_cancelled = False
            if known.payload.get("minutes") != source.payload.get("minutes"):
                # It was sent from there and is accepted anew, as it was edited here meanwhile.
                known.edit(source.payload)
        if known is None or known.state != HELD:
            copy = Entry(
                item["id"], other.name, here.user, item["org_id"], item["kind"],
                list(source.payloads), list(source.parents),
            )  # fmt: skip
            world.ledger.add(copy)
            world.corrections.added(copy, item["payload"])
        elif known is not None:
            world.corrections.told(known, item["payload"])


@action(14)
def look_around(world: World, process: Process, chance: random.Random) -> None:
    """Make one or several read-only calls."""
    names = [
        "session_status", "org_list", "queue_list", "queue_explain", "summary_get", "sync_status",
        "contact_search", "contact_get", "route_check", "queue_export", "queue_get",
    ]  # fmt: skip
    if world.version >= 4:
        names.append("session_token")
    names = chance.choices(names, k=chance.choice((1, 1, 4)))
    for name in names:
        _look_at(world, process, chance, name)


def _look_at(world: World, process: Process, chance: random.Random, name: str) -> None:
    request: Json = {}
    if name == "contact_search":
        request = {"query": chance.choice(("", "a", "Ås", "ø"))}
    elif name == "contact_get":
        contacts = list(world.server.database.rows["contacts"])
        if not contacts:
            return
        request = {"id": chance.choice(contacts), "live": chance.random() < 0.5}
    elif name == "route_check":
        request = {"route": chance.choice(("/mentor", "/contacts/1", "/admin", "/reports/x"))}
    elif name == "queue_get":
        request = {"id": steps.new_id(chance)}
    process.ask(name, request)


@action(6)
def sync(world: World, process: Process, chance: random.Random) -> None:
    """Pull to refresh."""
    process.ask("sync_now")
