"""Steps that several actions share: signing in, registering a visit, restarting the app."""

from __future__ import annotations

import json
import random
import urllib.parse

from local_supabase.messages import Request

from .. import numbers
from ..device import Device
from ..invariants import Violation
from ..ledger import HELD, Entry
from ..network import WORDS
from ..process import Process
from ..world import PASSWORD, URL, World
from .registry import MINUTE, Json

#: More minutes than a day has: the server's check rejects it.
BAD_MINUTES = 100_000


def sign_in(world: World, process: Process, chance: random.Random, user: str) -> None:
    way = chance.choice(("start", "start", "password", "pkce", "id_token"))
    email = world.people[user]
    if way == "start":
        session = host_session(world, email)
        if session is not None:
            process.ask("session_adopt", {"session": session})
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
        browser(world, process, chance, email)


def browser(world: World, process: Process, chance: random.Random, email: str) -> None:
    """Sign in by the browser; the app may be killed meanwhile, or the callback arrive twice."""
    begun = process.ask("sign_in_begin", {"method": chance.choice(("bankid", "vipps"))})
    if begun is None:
        return
    parts = urllib.parse.urlsplit(begun["url"])
    query = f"{parts.query}&user={urllib.parse.quote(email)}"
    query += "&cancel=1" if chance.random() < 0.1 else ""
    reply = world.server.handle(Request("GET", parts.path, query, (), b"", URL))
    callback = reply.headers["Location"]
    if chance.random() < 0.15:
        callback = callback.replace("code=", "code=0")
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


def host_session(world: World, email: str) -> Json | None:
    """Return a session that the host obtained without the library."""
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


def add(world: World, process: Process, chance: random.Random, *, bad: bool = False) -> bool:
    """Register one item; False when the library refuses. `bad`: a visit that the server rejects."""
    device = process.device
    tokens = device.stored.tokens
    kind = "contact" if not bad and chance.random() < 0.15 else "activity"
    payload = make_payload(world, process, chance, kind)
    if bad:
        payload["minutes"] = BAD_MINUTES
    request: Json = {"kind": kind, "payload": payload}
    if kind == "activity":
        # The figures are those of a year, so the visit is in it whatever the device's clock says.
        request["occurred_at_ms"] = device.wall_ms if world.version < 3 else world.now_ms
    if chance.random() < 0.8:
        request["id"] = new_id(chance)
    elif chance.random() < 0.1:
        # The id of another user's item: it exists with other content, here or at the server.
        strangers = [e.id for e in world.ledger.all() if tokens is None or e.owner != tokens.user]
        if strangers:
            request["id"] = chance.choice(strangers)
            own = [
                e for e in world.ledger.with_id(request["id"]) if tokens and e.owner == tokens.user
            ]
            if world.version >= 3 and own:
                # The user has it, too: the ledger knows one item of each id.
                del request["id"]
    mine = world.ledger.of(device.name, tokens.user if tokens else None)
    if mine and chance.random() < 0.2:
        request["depends_on"] = [chance.choice(mine).id]
        if request["depends_on"][0] == request.get("id"):
            del request["depends_on"]
    with world.in_doubt():
        reply = process.ask("queue_add", request)
        if reply is None or device.stored.tokens is None:
            return False
        known = world.ledger.get(device.name, device.stored.tokens.user, reply["id"])
        if known is not None and known.state == HELD:
            return True
        item = (process.ask("queue_get", {"id": reply["id"]}) or {}).get("item")
        if item is None:
            raise Violation("nothing acknowledged is lost", f"{process} {reply['id']}")
        entry = Entry(
            reply["id"], device.name, device.stored.tokens.user, item["org_id"], kind,
            [payload], request.get("depends_on", []),
        )  # fmt: skip
        world.ledger.add(entry)
        if world.corrects and kind == "activity":
            world.corrections.added(entry, item["payload"])
    return True


def new_id(chance: random.Random) -> str:
    digits = f"{chance.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-7{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def make_payload(world: World, process: Process, chance: random.Random, kind: str) -> Json:
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
    if world.version >= 3 and chance.random() < 0.25:
        payload |= numbers.draw(chance, wide=not world.corrects)
    if world.version >= 3 and chance.random() < 0.1:
        payload["note"] = f"{payload['note']} {WORDS}"
    if visits and chance.random() < 0.15:
        payload["follows"] = chance.choice(visits).id
    if contacts and chance.random() < 0.3:
        payload["contact_id"] = chance.choice(contacts).id
    return payload


def restart(device: Device, chance: random.Random) -> None:
    started = device.start()
    if started is None:
        return
    if not device.online and chance.random() < 0.8:
        started.ask("network_report", {"online": False})
    if chance.random() < 0.9:
        started.ask("session_resume")
