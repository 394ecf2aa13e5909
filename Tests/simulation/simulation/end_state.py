"""The end of every run: heal the world, let every device drain, and compare the end states."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from memory_supabase.schema import TABLES
from support.scan import Scanner, files_below

from . import numbers
from .actions import BAD_MINUTES, DAY, HOUR, MINUTE, correcting, corrections, steps
from .actions.behaviours import READS
from .corrections import COLUMNS, plain, stored
from .device import Device
from .invariants import MIN_REFUSALS, Violation
from .ledger import HELD, TAKEN_BACK, Entry
from .network import OUTAGES
from .process import Process
from .screens import why
from .world import PASSWORD, World

Json = dict[str, Any]

#: Longer than any pause that a server asks for.
PATIENCE_MS = 4 * HOUR
#: A stored pause lasts at most a day, also when the clock was set back since.
LONG_PATIENCE_MS = 26 * HOUR
ROUND_MS = 10 * MINUTE
#: Items wait for a check of the memberships at most this long after one that failed.
OUTAGE_PATIENCE_MS = HOUR
#: In one seed of this many, a firewall stays.
FIREWALL_STAYS = 5
#: Others are sent at once, though a refused item waits.
FIREWALL_PATIENCE_MS = 10 * MINUTE
#: A refused item is parked after at most half a day, and pauses have jitter.
REFUSED_PATIENCE_MS = 20 * HOUR
#: About corrections that are parked with these reasons the user decides, a few times at most.
DECIDED = {"changed_elsewhere", "deleted_elsewhere"}
DECISIONS = 4
#: In one seed of this many, all users sign in on all devices.
ALL_ARRIVE = 8


def check_end_state(world: World) -> None:
    """Heal the world, drain every device for every user, and compare devices and server."""
    chance = random.Random(f"finish {world.seed}")
    _search_for_secrets(world)
    for device in world.devices:
        world.invariants.set_aside_check(device)
    _heal(world)
    for device in world.devices:
        process = _fresh_start(device)
        for user in _arriving(world, device):
            _drain(world, process, user, chance)
        _a_day_later(world, process, user, chance)
        device.close(process)
    _compare(world)
    _search_for_secrets(world)


def _arriving(world: World, device: Device) -> list[str]:
    """Return the users who sign in on the device; all of them take a third of a seed's time."""
    people = list(world.people)
    if world.version < 2 or world.seed % ALL_ARRIVE == 0:
        return people
    back = {entry.owner for entry in device.returning()}
    holding = [u for u in people if u in back or world.ledger.of(device.name, u)]
    return holding or people[-1:]


def _heal(world: World) -> None:
    control = world.server.control
    if world.version >= 2:
        world.deliver_late_requests()
    world.healed = True
    world.roughness = 0
    control.set(
        jwt_lifetime=3600, reuse_interval=10, single_session=False, rate_limit_burst=None,
        max_rows=1000, max_body_rows=None, date_offset_s=0,
    )  # fmt: skip
    for user in world.people:
        control.unban(user)
    for org in world.orgs:
        control.set_org(org, "active")
    for (user, org), role in world.memberships.items():
        control.set_membership(user, org, role=role, status="active")
    world.outages.clear()
    world.lists = None
    world.refusal = None
    # In one seed of a few a firewall stays, which refuses some items.
    stays = world.version >= 3 and world.seed % FIREWALL_STAYS == 0
    world.firewall = "words" if stays else None
    for device in world.devices:
        device.fates = []
        device.set_queue("whole")
        device.online = True
        device.set_ahead(0)
        device.keychain.forget_script()
        device.keychain.enrolled = device.keychain.unlocked_since_boot = True
        for process in list(device.alive):
            device.kill(process)


def _patience(device: Device) -> int:
    # Since version 3 of the world: what is put off does not follow the clock.
    follows = device.clock_went_back and device.world.version < 3
    return LONG_PATIENCE_MS if follows else PATIENCE_MS


def _fresh_start(device: Device) -> Process:
    process = device.start()
    if process is None:
        raise Violation("a healthy device opens its files", device.name)
    process.ask("session_resume")
    return process


def _drain(world: World, process: Process, user: str, chance: random.Random) -> None:
    """Sign the user in and send all their items, driven by descriptor and timer alone."""
    device = process.device
    _arrive(world, process, user, chance)
    if device.returning(user):
        process.ask("session_background")
        process.ask("session_foreground")
        if left := device.returning(user):
            raise Violation("items return with their key", f"{process} {len(left)}")
    if not world.corrects and not world.ledger.of(device.name, user):
        return

    def is_unsettled() -> bool:
        if process.shown is not None and process.shown["screen"] in {"unlock", "sign_in"}:
            raise Violation("everything drains", f"{process} shows {process.shown['message']}")
        return _unsettled(world, process)

    _wait_while(process, chance, is_unsettled, "everything drains", ROUND_MS, _patience(device))
    if world.firewall is not None:
        _wait_for_the_firewall(world, process, user, chance)
    if world.version >= 2:
        _drain_while_reads_fail(world, process, user)
    if world.corrects:
        _correct(world, process, user)
    _judge(world, process, user)
    _last_chance(world, process, user, chance)


def _wait_while(
    process: Process,
    chance: random.Random,
    holds: Callable[[], bool],
    rule: str,
    step_ms: int,
    patience_ms: int,
) -> None:
    """Let the hosts work while something holds; for longer than the patience breaks the rule."""
    waited = 0
    while holds():
        if waited > patience_ms:
            raise Violation(rule, _why(process))
        process.world.run(step_ms, chance)
        waited += step_ms


def _wait_for_the_firewall(
    world: World, process: Process, user: str, chance: random.Random
) -> None:
    """What a firewall refuses holds up nothing else, and is parked after hours."""
    if any(_is_refused(item) for item in _items(process)):
        completed, stored = process.completed, _count_stored(world)
        mine = random.Random(f"firewall {world.seed} {process} {user}")
        steps.add(world, process, mine)
        _wait_while(
            process, chance, lambda: _unsettled(world, process),
            "a refused item holds up nothing else", MINUTE, FIREWALL_PATIENCE_MS,
        )  # fmt: skip
        if process.completed == completed and _count_stored(world) > stored:
            raise Violation("a run ends without what is refused", _why(process))
    # (one that is being tried waits again when its answer comes)
    _wait_while(
        process, chance,
        lambda: any(_is_undecided(item) for item in _items(process)),
        "a refused item is parked in the end", ROUND_MS, REFUSED_PATIENCE_MS,
    )  # fmt: skip
    world.firewall = None


def _count_stored(world: World) -> int:
    return len(world.stored_ids("activity")) + len(world.stored_ids("contact"))


def _is_in_doubt(world: World, item: Json) -> bool:
    code = (item["reason"] or {}).get("code")
    # A membership list that the server has no table for is named as that.
    waits = code in {"waiting_organisation", "schema_not_ready"}
    return waits and item["id"] in world.stored_ids(item["kind"])


def _is_refused(item: Json) -> bool:
    return (item["reason"] or {}).get("code") == "waiting_blocked"


def _is_undecided(item: Json) -> bool:
    """A refused item, or one whose answer is still to come."""
    return _is_refused(item) or item["state"] == "sending"


def _drain_while_reads_fail(world: World, process: Process, user: str) -> None:
    """Reads fail, and what the user registers is sent all the same, under the cached membership."""
    chance = random.Random(f"outage {world.seed} {process} {user}")
    if process.shown is None or process.shown["screen"] != "home":
        return
    answer = chance.choice(OUTAGES)
    failing = chance.sample(READS, chance.choice((1, 2, 4)))
    world.outages = dict.fromkeys(failing, (world.now_ms + DAY, answer))
    for _ in range(chance.choice((1, 3))):
        steps.add(world, process, chance)
    _wait_while(
        process, chance, lambda: _unsettled(world, process, in_outage=True),
        "a failing read holds up nothing else", MINUTE, OUTAGE_PATIENCE_MS,
    )  # fmt: skip
    world.outages.clear()
    _wait_while(
        process, chance, lambda: _unsettled(world, process),
        "everything drains", MINUTE, OUTAGE_PATIENCE_MS,
    )  # fmt: skip


def _correct(world: World, process: Process, user: str) -> None:
    """At home the user corrects what is stored, over a network that is good or bad."""
    chance = random.Random(f"correct {world.seed} {process} {user}")
    if process.shown is None or process.shown["screen"] != "home":
        return
    for _ in range(chance.choice((1, 2))):
        steps.add(world, process, chance)
    world.run(MINUTE, chance)
    world.roughness = chance.choice((0, 0.2, 0.6))
    for _ in range(chance.choice((2, 5, 9))):
        chance.choice(corrections.ALL)(world, process, chance)
    world.roughness = 0
    _wait_while(
        process, chance, lambda: _unsettled(world, process),
        "everything drains", ROUND_MS, _patience(process.device),
    )  # fmt: skip


def _arrive(world: World, process: Process, user: str, chance: random.Random) -> None:
    email = world.people[user]
    session = world.serve(
        {
            "method": "POST", "url": f"{world.url}/auth/v1/token?grant_type=password",
            "headers": {"apikey": world.server.anon_key},
            "body": f'{{"email":"{email}","password":"{PASSWORD}"}}',
        }
    )  # fmt: skip
    if process.ask("session_adopt", {"session": json.loads(session["body"])}) is None:
        raise Violation("a healthy user signs in", str(process))
    world.run(MINUTE, chance)
    waited = 0
    while _waits_for_memberships(process) and waited < _patience(process.device):
        world.run(MINUTE, chance)
        waited += MINUTE
    _choose(world, process, chance)
    if waited and process.shown and why(process.shown) == "session_window":
        # The wait was longer than the session window: the user must sign in again.
        _arrive(world, process, user, chance)
    elif (process.shown or {}).get("screen") != "home":
        raise Violation("a healthy user reaches home", f"{process} {str(process.shown)[:300]}")


def _choose(world: World, process: Process, chance: random.Random) -> None:
    shown = process.shown or {}
    if shown.get("screen") != "select_org":
        return
    orgs = [o["org_id"] for o in shown["orgs"] if o["status"] == "active"]
    if not orgs:
        raise Violation("a healthy member has an organisation", f"{process} {shown}")
    process.ask("org_select", {"org_id": orgs[0]})
    world.run(1000, chance)


def _waits_for_memberships(process: Process) -> bool:
    """Whether the list is still to come: meanwhile a cached one without a usable one may show."""
    shown = process.shown or {}
    usable = [org for org in shown.get("orgs", []) if org["status"] == "active"]
    return shown.get("screen") == "wait" or (shown.get("screen") == "select_org" and not usable)


def _items(process: Process) -> list[Json]:
    found: list[Json] = []
    after = 0
    while True:
        page = process.ask("queue_list", {"after": after, "limit": 500})
        if page is None:
            raise Violation("the queue can be listed", str(process))
        found += page["items"]
        if page["next"] is None:
            return found
        after = page["next"]


def _unsettled(world: World, process: Process, *, in_outage: bool = False) -> bool:
    """Whether an item should still move without further user action.

    What a firewall refuses, and what depends on it, moves too, but takes hours. In an outage, while
    the memberships cannot be listed, an item whose id the server has waits for them if the user
    cannot read the row: it is another user's, or the membership has ended.
    """
    items = _items(process)
    slow = {"dependency_parked"}
    if in_outage and any(_is_in_doubt(world, item) for item in items):
        items = [item for item in items if not _is_in_doubt(world, item)]
        slow |= {"dependency", "dependency_waiting"}
    if world.firewall is not None and any(_is_refused(item) for item in items):
        slow |= {"waiting_blocked", "dependency", "dependency_waiting"}
    return any(
        item["state"] != "parked" and (item["reason"] or {}).get("code") not in slow
        for item in items
    )


def _why(process: Process) -> str:
    explained = process.ask("queue_explain") or {}
    codes = [(r["code"], r["count"], r["until_ms"]) for r in explained.get("reasons", [])]
    left = [
        (i["id"], i["state"], (i["reason"] or {}).get("code"), i["attempts"])
        for i in _items(process)
    ]
    return f"{process} due {process.due}: {codes} {left[:5]}"


def _judge(world: World, process: Process, user: str) -> None:
    """Every item that is left is parked for a true reason."""
    device = process.device
    left = _items(process)
    parked = {item["id"] for item in left}
    for item in left:
        entry = world.ledger.get(device.name, user, item["id"])
        if entry is None or entry.state != HELD:
            raise Violation("nothing unknown is queued", f"{device.name} {item['id']}")
        if world.corrects and item["kind"] == "activity":
            world.corrections.shown(entry, item)
        elif world.version >= 3 and not numbers.are_shown(entry.payload, item["payload"]):
            raise Violation("a number is shown as the host wrote it", f"{item} {entry.payload}")
        is_insert = item["operation"] == "insert"
        if is_insert and item["payload"].get("minutes") != entry.payload.get("minutes"):
            raise Violation("an item is as the user wrote it", f"{device.name} {item['id']}")
        code = (item["reason"] or {}).get("code")
        if _is_of_outages(world, item):
            continue
        if not _is_true(world, entry, code, parked, item["conflict"]):
            raise Violation("an item is parked for a true reason", f"{item['id']} {code} {item}")


def _is_of_outages(world: World, item: Json) -> bool:
    """Whether the item was refused in one outage of the schema and in the next one.

    Seed 8112616: others were stored in between, so to a device that looks like the item's fault.
    """
    said = str((item["reason"] or {}).get("message"))
    return len(world.refusals) > 1 and said in [
        refusal.replace("$id", item["id"]) for refusal in world.refusals
    ]


def _is_true(
    world: World, entry: Entry, code: str | None, left: set[str], conflict: Json | None = None
) -> bool:
    corrections = world.corrections
    if code == "changed_elsewhere":
        return corrections.is_changed_elsewhere(entry, conflict)
    if code == "deleted_elsewhere":
        return corrections.is_deleted(entry.id)
    row = world.stored_ids(entry.kind).get(entry.id)
    parents = [entry.payload.get("follows"), entry.payload.get("contact_id"), *entry.parents]
    if code == "server_rule":
        wanted = corrections.wanted(entry, "minutes") == BAD_MINUTES
        return wanted or any(p.get("minutes") == BAD_MINUTES for p in entry.payloads)
    if code == "conflict":
        if row is None:
            return False
        if entry.kind == "contact" and row["name"] not in [p["name"] for p in entry.payloads]:
            # Somebody renamed the contact before the device knew that it is stored.
            return True
        if corrections.is_of_others(entry):
            # Others changed the row before the device knew that it is stored.
            return True
        if len(world.ledger.with_id(entry.id)) > 1 and row.get("minutes") != entry.payload.get(
            "minutes"
        ):
            # Another device stored the item before it was edited there and copied here.
            return True
        return bool(row.get("user_id", entry.owner) != entry.owner or row["org_id"] != entry.org)
    if code == "unknown_outcome":
        return row is not None and (len(entry.payloads) > 1 or entry.is_cancelled)
    if code == "blocked":
        return entry.refusals >= MIN_REFUSALS
    if code == "dependency_parked":
        return any(parent in left for parent in parents)
    if code == "missing_parent":
        return (
            _lacks_parent(world, entry)
            or _crosses(world, entry)
            or any(p and _is_of_another_device(world, entry, p) for p in parents)
            or any(p and _was_taken_back(world, entry, p) for p in parents)
        )
    if code == "parent_deleted":
        return any(parent and corrections.is_deleted(str(parent)) for parent in parents)
    if code == "not_allowed" and world.policy_refused:
        return True
    # The policy denied the row twice, with a confirmed membership in between.
    denied = code in {"rejected", "not_allowed"} and world.access_changes > 1
    return denied or code == "too_long"


def _is_of_another_device(world: World, entry: Entry, parent: str) -> bool:
    """Whether only another device sent the parent: it may have done so after the rejection.

    Seeds 8128, 11509 and 14738: an item is copied to another device while its parent is still
    queued on the first one. The copy arrives first, and the server rejects it for a true reason.
    """
    return world.ledger.get(
        entry.device, entry.owner, parent
    ) is None and world.ledger.holds_elsewhere(entry.device, entry.owner, parent)


def _was_taken_back(world: World, entry: Entry, parent: str) -> bool:
    """Whether the parent was cancelled here, so that only a later row of another device has its id.

    Seed 8308587: the item was sent meanwhile, and refused for a true reason.
    """
    known = world.ledger.get(entry.device, entry.owner, parent)
    return known is not None and known.state == TAKEN_BACK


def _lacks_parent(world: World, entry: Entry) -> bool:
    """Whether a row that the item refers to is not in the table that the column refers to.

    Seed 3004201: a contact was added on another device under the id of a cancelled visit, which the
    item was to follow.
    """
    visits, contacts = world.stored_ids("activity"), world.stored_ids("contact")
    follows, contact = entry.payload.get("follows"), entry.payload.get("contact_id")
    return (
        bool(follows and follows not in visits)
        or bool(contact and contact not in contacts)
        or any(parent not in {**visits, **contacts} for parent in entry.parents)
    )


def _crosses(world: World, entry: Entry) -> bool:
    """Whether the item refers to a row of another organisation, which the server rejects."""
    for column, kind in (("follows", "activity"), ("contact_id", "contact")):
        row = world.stored_ids(kind).get(str(entry.payload.get(column)))
        if row is not None and row["org_id"] != entry.org:
            return True
    return False


def _last_chance(world: World, process: Process, user: str, chance: random.Random) -> None:
    """Retry all in a healthy world: only items that the server really rejects are left."""
    process.ask("queue_retry")
    world.run(ROUND_MS, chance)
    _wait_while(
        process, chance, lambda: _unsettled(world, process),
        "everything drains", ROUND_MS, _patience(process.device),
    )  # fmt: skip
    if world.corrects:
        _decide(world, process, user, chance)
    left = {item["id"]: (item["reason"] or {}).get("code") for item in _items(process)}
    for item, code in left.items():
        entry = world.ledger.get(process.device.name, user, item)
        assert entry is not None
        if code in {"rejected", "too_long", "blocked", "not_allowed"}:
            raise Violation("an item that a healthy server accepts is not parked", f"{item} {code}")
        if not _is_true(world, entry, code, set(left)):
            raise Violation("an item is parked for a true reason", f"{item} {code}")
    for entry in world.ledger.of(process.device.name, user):
        if entry.id in left:
            continue
        row = world.stored_ids(entry.kind).get(entry.id)
        if row is None and entry.is_cancelled:
            continue
        if row is None:
            raise Violation("nothing acknowledged is lost", f"{process} {entry.id}")
        alone = len(world.ledger.with_id(entry.id)) == 1
        if world.corrects and entry.kind == "activity":
            if not entry.is_cancelled and not world.corrections.is_done(entry):
                raise Violation("an acknowledged correction is not lost", f"{process} {entry.id}")
            is_cancelled = entry.is_cancelled and not entry.is_open_again
            if alone and is_cancelled and row["deleted_at"] is None:
                raise Violation("what is taken back is deleted", f"{process} {entry.id}")
            continue
        if alone and entry.kind == "activity" and row["minutes"] != entry.payload["minutes"]:
            raise Violation("an edit is not lost", f"{entry.id} {row['minutes']} {entry.payload}")


def _decide(world: World, process: Process, user: str, chance: random.Random) -> None:
    """The user decides about every correction that is parked, and then it is done."""
    for _ in range(DECISIONS):
        parked = [i for i in _items(process) if (i["reason"] or {}).get("code") in DECIDED]
        if not parked:
            return
        for item in parked:
            if item["conflict"] is not None and chance.random() < 0.7:
                correcting.overwrite(world, process, chance, item)
            else:
                correcting.take_back(world, process, chance, item["id"])
        world.run(MINUTE, chance)
        _wait_while(
            process, chance, lambda: _unsettled(world, process),
            "everything drains", ROUND_MS, _patience(process.device),
        )  # fmt: skip
    raise Violation("everything drains", _why(process))


# The cache ----------------------------------------------------------------------------------------


def _a_day_later(world: World, process: Process, user: str, chance: random.Random) -> None:
    """After the longest pause and a reconcile the cache equals the server."""
    world.sleep(LONG_PATIENCE_MS)
    world.run(ROUND_MS, chance)
    if world.corrects:
        # A membership ended among the corrections.
        _choose(world, process, chance)
        world.run(ROUND_MS, chance)
    org = ((process.shown or {}).get("org") or {}).get("id")
    if org is None:
        raise Violation("a healthy user stays", f"{process} {str(process.shown)[:300]}")
    _contacts(world, process, user, org)
    if world.corrects:
        _own_items(world, process, user, org)
    _figures(world, process, user, org)


def _contacts(world: World, process: Process, user: str, org: str) -> None:
    """The cache holds exactly the contacts that the server shows, column by column."""
    found = process.ask("contact_search", {"query": "", "limit": 200})
    if found is None or found["total"] > 200:
        raise Violation("the cache follows the server", f"{process} found {found}")
    cached = {contact["id"]: contact for contact in found["contacts"]}
    for row in world.server.database.visible(TABLES["contacts"], user):
        if row["org_id"] != org or row["deleted_at"] is not None:
            continue
        contact = cached.pop(row["id"], None)
        if contact is None:
            raise Violation("the cache follows the server", f"{process} {row['id']} is missing")
        if any(contact[name] != row[name] for name in ("name", "municipality", "relation")):
            raise Violation("the cache follows the server", f"{process} {contact} for {row}")
    if cached:
        raise Violation("the cache follows the server", f"{process} still has {list(cached)}")


def _own_items(world: World, process: Process, user: str, org: str) -> None:
    """The list of the user's own items is what the server has, with what is queued over it."""
    shown: dict[str, dict[str, Any]] = {}
    for item in correcting.own_items(process):
        if item["id"] in shown:
            raise Violation("the list follows the server", f"{process} {item['id']} twice")
        shown[item["id"]] = item["payload"]
    queued = {item["id"] for item in _items(process) if item["kind"] == "activity"}
    for row in world.server.database.visible(TABLES["activities"], user):
        known = str(row["id"])
        if (row["org_id"], row["user_id"], row["deleted_at"]) != (org, user, None):
            continue
        found = shown.pop(known, None)
        if known in queued:
            continue
        if found is None:
            raise Violation("the list follows the server", f"{process} {known} is missing")
        for name in COLUMNS:
            if plain(name, found.get(name)) != stored(name, row):
                raise Violation("the list follows the server", f"{process} {found} for {row}")
    if left := [item for item in shown if item not in queued]:
        raise Violation("the list follows the server", f"{process} still has {left}")


def _figures(world: World, process: Process, user: str, org: str) -> None:
    """The summary counts every stored or queued item once, and no parked items."""
    shown = process.ask("summary_get")
    if shown is None or shown["summary"] is None:
        raise Violation("the summary follows the server", f"{process} {shown}")
    counted = {
        str(row["id"]): int(str(row["minutes"]))
        for row in world.server.database.visible(TABLES["activities"], user)
        if row["org_id"] == org and row["user_id"] == user and row["deleted_at"] is None
    }
    for item in _items(process):
        if item["kind"] != "activity" or item["org_id"] != org or item["state"] == "parked":
            continue
        if item["operation"] == "delete":
            counted.pop(item["id"], None)
        elif "minutes" in item["payload"]:
            counted[item["id"]] = item["payload"]["minutes"]
    minutes = list(counted.values())
    parts = [shown[name] for name in ("summary", "sent", "queued")]
    total = [sum(part[name] for part in parts) for name in ("activities", "minutes")]
    if total != [len(minutes), sum(minutes)]:
        raise Violation("every item is counted exactly once", f"{process} {shown} {minutes}")


def _compare(world: World) -> None:
    """No visit is stored under two ids."""
    notes: dict[str, str] = {}
    for item, row in world.stored_ids("activity").items():
        other = notes.setdefault(str(row["note"]), item)
        # A correction may empty the note.
        if other != item and row["note"] is not None:
            raise Violation("no item is stored twice", f"{other} {item}")


def _search_for_secrets(world: World) -> None:
    """Search every file of every device for every secret of the run."""
    secrets: dict[str | bytes, str] = dict.fromkeys(world.invariants.secrets, "a token")
    for user, email in world.people.items():
        secrets |= {user: "a user", email: "an address"}
    for org in world.server.database.rows["organizations"].values():
        secrets |= {str(org["id"]): "an organisation", str(org["name"]): "its name"}
    for contact in world.server.database.rows["contacts"].values():
        secrets |= {str(contact["id"]): "a contact", str(contact["name"]): "a contact's name"}
    for entry in world.ledger.all():
        secrets[entry.id] = "an item"
        secrets |= {str(p.get("note") or p.get("name")): "a text" for p in entry.payloads}
    for device in world.devices:
        secrets |= dict.fromkeys(device.keys(), "a key")
    scanner = Scanner(secrets)
    for device in world.devices:
        finds = scanner.find_in_files(files_below(device.folder))
        if finds:
            raise Violation("no secret is in the files", f"{device.name}: {finds[:3]}")
