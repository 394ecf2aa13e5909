"""What may happen: everything a user, a host, a device and the world can do.

An action is a name and a number. All its choices follow from the number and from how the world
stands, so that any list of actions can be carried out, also one from which some were struck out.
"""

from __future__ import annotations

import datetime
import json
import random
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local_supabase.messages import Request

from memory_supabase.database import SERVICE
from memory_supabase.schema import TABLES

from .device import Device
from .invariants import Violation
from .ledger import HELD, TAKEN_BACK, Entry
from .process import Process
from .world import PASSWORD, ROLES, URL, World

Json = dict[str, Any]
Body = Callable[[World, Process, random.Random], None]

#: More minutes than a day has: the server's rule refuses it.
BAD_MINUTES = 100_000
OUTCOMES = (
    "success", "failed", "cancelled", "lockout", "lockout_permanent", "not_enrolled",
    "invalidated", "unavailable",
)  # fmt: skip
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


@dataclass(frozen=True)
class Action:
    """One step of a run."""

    name: str
    number: int

    def __str__(self) -> str:
        """As it is shown."""
        return f"{self.name} {self.number}"


_BODIES: dict[str, Body] = {}
_WEIGHTS: dict[str, int] = {}


def _action(weight: int) -> Callable[[Body], Body]:
    def register(body: Body) -> Body:
        _BODIES[body.__name__] = body
        _WEIGHTS[body.__name__] = weight
        return body

    return register


def draw(seed: int, count: int) -> list[Action]:
    """The actions of a seed."""
    chance = random.Random(f"actions {seed}")
    names = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=count)
    return [Action(name, chance.getrandbits(32)) for name in names]


def perform(world: World, action: Action) -> None:
    """Carry it out, by a process that lives; one is started where there is none."""
    chance = random.Random(f"{action.name} {action.number}")
    device = chance.choice(world.devices)
    world.trace.note(f"-- {action} on {device.name} at {world.now_ms}")
    if not device.alive and device.start() is None:
        return
    process = chance.choice(device.alive)
    _BODIES[action.name](world, process, chance)


# The user ----------------------------------------------------------------------------------------


@_action(60)
def react(world: World, process: Process, chance: random.Random) -> None:
    """Do what the screen asks for, then let the host work a little."""
    screen = "resume" if process.shown is None else process.shown["screen"]
    if screen == "resume":
        process.ask("session_resume")
    elif screen == "unlock":
        process.device.keychain.present_finger()
        process.ask("session_unlock", {"outcome": "success"})
    elif screen == "sign_in":
        _sign_in(world, process, chance, chance.choice(list(world.people)))
    elif screen == "select_org":
        orgs = [o["org_id"] for o in (process.shown or {})["orgs"] if o["status"] == "active"]
        if orgs:
            process.ask("org_select", {"org_id": chance.choice(orgs)})
    elif screen == "home":
        _add(world, process, chance)
    world.run(chance.choice((0, 50, 500, 5 * SECOND)), chance)


def _sign_in(world: World, process: Process, chance: random.Random, user: str) -> None:
    way = chance.choice(("start", "start", "password", "pkce", "id_token"))
    email = world.people[user]
    if way == "start":
        session = _token(world, email)
        if session is not None:
            process.ask("session_start", {"session": session})
    elif way == "password":
        process.ask("sign_in_begin", {"method": "email"})
        secret = PASSWORD if chance.random() < 0.9 else "wrong"
        process.ask("sign_in_complete", {"email": email, "password": secret})
    elif way == "id_token":
        begun = process.ask("sign_in_begin", {"method": "app"})
        if begun is not None:
            nonce = begun["nonce"] if chance.random() < 0.9 else "another"
            token = world.server.control.identity_token(email, nonce=nonce)
            process.ask("sign_in_complete", {"id_token": token, "nonce": begun["nonce"]})
    else:
        _browser(world, process, chance, email)


def _browser(world: World, process: Process, chance: random.Random, email: str) -> None:
    """The dialogue in the browser; the app may be killed meanwhile, or the answer come twice."""
    begun = process.ask("sign_in_begin", {"method": chance.choice(("bankid", "vipps"))})
    if begun is None:
        return
    parts = urllib.parse.urlsplit(begun["url"])
    query = f"{parts.query}&user={urllib.parse.quote(email)}"
    query += "&cancel=1" if chance.random() < 0.1 else ""
    reply = world.server.handle(Request("GET", parts.path, query, (), b"", URL))
    callback = reply.headers["Location"]
    if chance.random() < 0.15:
        callback = callback.replace("state=", "state=x")
    if chance.random() < 0.1:
        process.device.kill(process)
        started = process.device.start()
        if started is None:
            return
        process = started
        process.ask("session_resume")
    if chance.random() < 0.1:
        world.sleep(chance.choice((2 * MINUTE, 6 * MINUTE, 20 * MINUTE)))
    process.ask("sign_in_complete", {"callback_url": callback})
    if chance.random() < 0.1:
        process.ask("sign_in_complete", {"callback_url": callback})


def _token(world: World, email: str) -> Json | None:
    """A session that the host obtained itself."""
    user = world.server.auth.by_email(email)
    assert user is not None
    if world.server.auth.sessions.is_banned(user):
        return None
    sent = {"email": email, "password": PASSWORD}
    answer = world.serve(
        {
            "method": "POST", "url": f"{URL}/auth/v1/token?grant_type=password",
            "headers": {"apikey": world.server.anon_key}, "body": json.dumps(sent),
        }
    )  # fmt: skip
    value: Json | None = json.loads(answer["body"]) if answer["status"] == 200 else None
    return value


@_action(8)
def sign_in_as_another(world: World, process: Process, chance: random.Random) -> None:
    """Somebody else takes the phone, whoever is signed in."""
    _sign_in(world, process, chance, chance.choice(list(world.people)))


@_action(6)
def prompt_ends(world: World, process: Process, chance: random.Random) -> None:
    """The biometric prompt ends somehow; the host may claim what is not true."""
    if chance.random() < 0.5:
        process.device.keychain.present_finger()
    else:
        process.device.keychain.take_finger_away()
    process.ask("session_unlock", {"outcome": chance.choice(OUTCOMES)})


@_action(6)
def lock(world: World, process: Process, chance: random.Random) -> None:
    """Lock now."""
    had_session = process.device.stored.owner is not None
    if process.ask("session_lock") is not None and had_session:
        process.device.locked_by_user = process.device.stored.owner is not None


@_action(10)
def go_away(world: World, process: Process, chance: random.Random) -> None:
    """The app leaves the screen, and perhaps is suspended."""
    device = process.device
    if process.ask("session_background") is not None and device.session is not None:
        device.away = (device.monotonic_ms, device.boot)
    if chance.random() < 0.6:
        world.sleep(chance.choice((SECOND, MINUTE, 4 * MINUTE, 6 * MINUTE, HOUR)))


@_action(10)
def come_back(world: World, process: Process, chance: random.Random) -> None:
    """The app is on the screen again."""
    if process.ask("session_foreground") is not None:
        process.device.away = None


@_action(5)
def log_out(world: World, process: Process, chance: random.Random) -> None:
    """Log out, here or everywhere; perhaps give up what is unsent."""
    device = process.device
    request: Json = {"scope": chance.choice(("local", "local", "global"))}
    user = device.user
    unsent = device.stored.queued.get(device.stored.owner or b"", 0)
    if chance.random() < 0.3:
        request |= {"discard": True, "confirm_unsent": unsent + chance.choice((0, 0, 1))}
    with world.in_doubt(10_000):
        reply = process.ask("session_logout", request)
    if reply is not None and request.get("discard") and user is not None:
        for entry in world.ledger.of(device.name, user):
            entry.state = TAKEN_BACK


@_action(8)
def choose(world: World, process: Process, chance: random.Random) -> None:
    """Another organisation, one's own or not."""
    process.ask("org_list")
    process.ask("org_select", {"org_id": chance.choice(world.orgs)})


@_action(30)
def register(world: World, process: Process, chance: random.Random) -> None:
    """Register one or several visits."""
    for _ in range(chance.choice((1, 1, 3, 8))):
        _add(world, process, chance)


def _add(world: World, process: Process, chance: random.Random) -> None:
    device = process.device
    tokens = device.stored.tokens
    kind = "contact" if chance.random() < 0.15 else "activity"
    payload = _payload(world, process, chance, kind)
    request: Json = {"kind": kind, "payload": payload}
    if kind == "activity":
        request["occurred_at_ms"] = device.wall_ms
    if chance.random() < 0.8:
        request["id"] = _new_id(chance)
    elif chance.random() < 0.1:
        # Somebody else's: it exists with other content, here or at the server.
        strangers = [e.id for e in world.ledger.all() if tokens is None or e.owner != tokens.user]
        if strangers:
            request["id"] = chance.choice(strangers)
    mine = world.ledger.of(device.name, tokens.user if tokens else None)
    if mine and chance.random() < 0.2:
        request["depends_on"] = [chance.choice(mine).id]
        if request["depends_on"][0] == request.get("id"):
            del request["depends_on"]
    with world.in_doubt():
        reply = process.ask("queue_add", request)
        if reply is None or device.stored.tokens is None:
            return
        known = world.ledger.get(device.name, device.stored.tokens.user, reply["id"])
        if known is not None and known.state == HELD:
            return
        item = (process.ask("queue_get", {"id": reply["id"]}) or {"item": None})["item"]
        if item is None:
            raise Violation("nothing acknowledged is lost", f"{process} {reply['id']}")
        world.ledger.add(
            Entry(
                reply["id"], device.name, device.stored.tokens.user, item["org_id"], kind,
                [payload], request.get("depends_on", []),
            )
        )  # fmt: skip


def _new_id(chance: random.Random) -> str:
    digits = f"{chance.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-7{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def _payload(world: World, process: Process, chance: random.Random, kind: str) -> Json:
    device = process.device
    if kind == "contact":
        return {"name": f"Ny kontakt {chance.getrandbits(40):x}", "municipality": "Ås"}
    payload: Json = {
        "type": "besøk",
        "minutes": BAD_MINUTES if chance.random() < 0.06 else chance.randrange(1, 300),
        "note": f"notat {chance.getrandbits(64):x}",
    }
    tokens = device.stored.tokens
    mine = world.ledger.of(device.name, tokens.user if tokens else None)
    visits = [e for e in mine if e.kind == "activity"]
    contacts = [e for e in mine if e.kind == "contact"]
    if visits and chance.random() < 0.15:
        payload["follows"] = chance.choice(visits).id
    if contacts and chance.random() < 0.3:
        payload["contact_id"] = chance.choice(contacts).id
    return payload


def _pick(process: Process, chance: random.Random) -> Json | None:
    listed = process.ask("queue_list", {"limit": chance.choice((3, 100))})
    return chance.choice(listed["items"]) if listed and listed["items"] else None


@_action(10)
def edit(world: World, process: Process, chance: random.Random) -> None:
    """Change one that waits."""
    item = _pick(process, chance)
    if item is None or item["kind"] != "activity":
        return
    payload = {
        **{k: v for k, v in item["payload"].items() if k != "occurred_at"},
        "minutes": chance.randrange(1, 300),
        "occurred_at": item["payload"].get("occurred_at"),
    }
    entry = world.ledger.get(process.device.name, process.device.user, item["id"])
    reply = process.ask("queue_edit", {"id": item["id"], "payload": payload})
    if reply is not None and entry is not None:
        entry.payloads.append(payload)


@_action(6)
def cancel(world: World, process: Process, chance: random.Random) -> None:
    """Take one back."""
    item = _pick(process, chance)
    if item is None:
        return
    with world.in_doubt():
        reply = process.ask("queue_cancel", {"id": item["id"]})
    entry = world.ledger.get(process.device.name, process.device.user, item["id"])
    if reply is not None and entry is not None:
        entry.state = TAKEN_BACK


@_action(5)
def retry(world: World, process: Process, chance: random.Random) -> None:
    """Try all again, or one."""
    item = _pick(process, chance) if chance.random() < 0.5 else None
    process.ask("queue_retry", {} if item is None else {"id": item["id"]})


@_action(4)
def carry_over(world: World, process: Process, chance: random.Random) -> None:
    """What one device exports, its user adds on another: the same items, twice under way."""
    exported = process.ask("queue_export")
    other = chance.choice([d for d in world.devices if d is not process.device])
    if not exported or not exported["items"] or not other.alive:
        return
    tokens, here = process.device.stored.tokens, other.stored.tokens
    if tokens is None or here is None or tokens.user != here.user or not other.stored.usable:
        return
    item = chance.choice(exported["items"])
    with world.in_doubt():
        reply = other.alive[0].ask("queue_add", item)
    source = world.ledger.get(process.device.name, tokens.user, item["id"])
    if reply is not None and source is not None:
        known = world.ledger.get(other.name, here.user, item["id"])
        if known is None or known.state != HELD:
            copy = Entry(
                item["id"], other.name, here.user, item["org_id"], item["kind"],
                list(source.payloads), list(source.parents),
            )  # fmt: skip
            world.ledger.add(copy)


@_action(14)
def look_around(world: World, process: Process, chance: random.Random) -> None:
    """Read something, or several things."""
    names = chance.choices((
        "session_status", "org_list", "queue_list", "queue_explain", "summary_get", "sync_status",
        "contact_search", "contact_get", "route_check", "queue_export", "queue_get",
    ), k=chance.choice((1, 1, 4)))  # fmt: skip
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
        request = {"id": _new_id(chance)}
    process.ask(name, request)


@_action(6)
def sync(world: World, process: Process, chance: random.Random) -> None:
    """Pull to refresh."""
    process.ask("sync_now")


# The host ----------------------------------------------------------------------------------------


@_action(50)
def run(world: World, process: Process, chance: random.Random) -> None:
    """The hosts work for a while."""
    duration = chance.choice((0, 20, 200, SECOND, 3 * SECOND, 10 * SECOND, 90 * SECOND))
    world.run(duration, chance)


@_action(8)
def run_long(world: World, process: Process, chance: random.Random) -> None:
    """The hosts work for long."""
    world.run(chance.choice((5 * MINUTE, 20 * MINUTE, 70 * MINUTE)), chance)


@_action(6)
def wait(world: World, process: Process, chance: random.Random) -> None:
    """A worker thread asks whether it is to wait."""
    process.wait_is_over()


@_action(10)
def flip_network(world: World, process: Process, chance: random.Random) -> None:
    """The network goes or comes; the host may learn of it or not."""
    device = process.device
    device.online = not device.online
    if chance.random() < 0.8:
        for told in device.alive:
            told.ask("network_set", {"online": device.online})


@_action(5)
def tell_network(world: World, process: Process, chance: random.Random) -> None:
    """The host tells what it knows of the network."""
    process.ask("network_set", {"online": process.device.online})


@_action(8)
def second_process(world: World, process: Process, chance: random.Random) -> None:
    """An extension, or a service, opens the same folder."""
    device = process.device
    if len(device.alive) < 2:
        started = device.start()
        if started is not None and chance.random() < 0.7:
            started.ask("session_resume")


@_action(10)
def kill(world: World, process: Process, chance: random.Random) -> None:
    """A process dies at once, and perhaps a new one is started."""
    process.device.kill(process)
    if chance.random() < 0.7:
        _restart(process.device, chance)


@_action(4)
def close(world: World, process: Process, chance: random.Random) -> None:
    """A process ends in order, and perhaps a new one is started."""
    process.device.close(process)
    if chance.random() < 0.7:
        _restart(process.device, chance)


def _restart(device: Device, chance: random.Random) -> None:
    started = device.start()
    if started is None:
        return
    if not device.online and chance.random() < 0.8:
        started.ask("network_set", {"online": False})
    if chance.random() < 0.9:
        started.ask("session_resume")


# The device --------------------------------------------------------------------------------------


@_action(8)
def sleep(world: World, process: Process, chance: random.Random) -> None:
    """Time passes, and no app runs."""
    world.sleep(chance.choice((SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR, 5 * HOUR)))


@_action(1)
def sleep_long(world: World, process: Process, chance: random.Random) -> None:
    """Days pass."""
    world.sleep(chance.choice((13 * HOUR, 3 * DAY, 15 * DAY)))


@_action(4)
def set_clock(world: World, process: Process, chance: random.Random) -> None:
    """Somebody changes the date and time."""
    hours = chance.choice((-48, -5, -1, 1, 5, 48))
    process.device.set_ahead(hours * HOUR if chance.random() < 0.6 else 0)


@_action(2)
def reboot(world: World, process: Process, chance: random.Random) -> None:
    """The phone is switched off and on; until it is unlocked, its keys cannot be read."""
    device = process.device
    device.reboot()
    device.keychain.unlocked_since_boot = chance.random() < 0.7
    _restart(device, chance)


@_action(4)
def unlock_device(world: World, process: Process, chance: random.Random) -> None:
    """The device is unlocked for the first time since it was switched on."""
    process.device.keychain.unlocked_since_boot = True


@_action(5)
def key_store_fails(world: World, process: Process, chance: random.Random) -> None:
    """The key store gives one of its answers, once or a few times."""
    call = chance.choice(("load", "load", "save", "erase"))
    name = chance.choice(("device", "biometric"))
    answers = [2, 3, 4, 5, 6, 7, 9]
    # That the key is lost for good is said rarely: the files are set aside then.
    if name == "biometric" or chance.random() < 0.05:
        answers += [1, 8]
    script = [chance.choice(answers)] * chance.choice((1, 1, 2, 4))
    process.device.script(call, name, script)


@_action(1)
def enrol_anew(world: World, process: Process, chance: random.Random) -> None:
    """A finger was added, or the last one removed."""
    process.device.keychain.change_enrolment()
    process.device.keychain.enrolled = chance.random() < 0.8


# The server --------------------------------------------------------------------------------------


@_action(10)
def weather(world: World, process: Process, chance: random.Random) -> None:
    """Something goes wrong more often, or less."""
    world.roughness = chance.choice((0, 0, 0.1, 0.3, 0.7, 1))


@_action(6)
def change_membership(world: World, process: Process, chance: random.Random) -> None:
    """An organisation lets somebody go, takes them back, or gives them another role."""
    user, org = chance.choice(list(world.memberships))
    world.access_changes += 1
    world.server.control.set_membership(
        user, org, role=chance.choice(ROLES), status=chance.choice(("active", "ended"))
    )


@_action(3)
def change_organisation(world: World, process: Process, chance: random.Random) -> None:
    """An organisation is disabled, or opened again."""
    world.access_changes += 1
    world.server.control.set_org(chance.choice(world.orgs), chance.choice(("active", "disabled")))


@_action(6)
def administrate(world: World, process: Process, chance: random.Random) -> None:
    """Something happens to somebody's sessions."""
    control, user = world.server.control, chance.choice(list(world.people))
    what = chance.randrange(5)
    if what == 0:
        control.ban(user, chance.choice((600, 86_400)))
    elif what == 1:
        control.unban(user)
    elif what == 2:
        control.revoke_sessions(user)
    elif what == 3:
        control.expire_sessions(user)
    else:
        # A sign-in elsewhere.
        _token(world, world.people[user])


@_action(4)
def change_settings(world: World, process: Process, chance: random.Random) -> None:
    """The project's settings change."""
    world.server.control.set(
        jwt_lifetime=chance.choice((120, 300, 3600)),
        reuse_interval=chance.choice((0, 10)),
        single_session=chance.random() < 0.1,
        rate_limit_burst=chance.choice((None, None, 2)),
        max_rows=chance.choice((1000, 1000, 2)),
        max_body_rows=chance.choice((None, None, 2)),
        date_offset_s=chance.choice((0, 0, 3)),
    )


@_action(6)
def change_contacts(world: World, process: Process, chance: random.Random) -> None:
    """Contacts come, change and go."""
    database = world.server.database
    table, rows = TABLES["contacts"], database.rows["contacts"]
    org = chance.choice(world.orgs)
    here = [row for row in rows.values() if row["org_id"] == org]
    what = chance.randrange(4)
    if what == 0 or not here:
        name = f"Kontakt {chance.getrandbits(32):x} Øyås"
        made, _ = database.insert(table, {"org_id": org, "name": name}, SERVICE, None)
        if made is not None and chance.random() < 0.3:
            # Of a transaction that began earlier and commits only now.
            earlier = datetime.timedelta(seconds=chance.choice((1, 8, 50)))
            rows[made["id"]]["updated_at"] = database.now() - earlier
        return
    row = chance.choice(here)
    if what == 1:
        database.update(table, row, {"name": f"Endret {chance.getrandbits(32):x}"}, SERVICE)
    elif what == 2:
        database.update(table, row, {"deleted_at": database.now()}, SERVICE)
    elif not world.ledger.with_id(str(row["id"])) and not any(
        a["contact_id"] == row["id"] for a in database.rows["activities"].values()
    ):
        # Without a tombstone: only the reconcile finds it.
        del rows[row["id"]]
