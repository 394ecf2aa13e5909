"""The invariants: what must be true after every call, request, answer and stored row.

`InvariantChecker` compares the files of the devices, the rows at the server and everything that the
library shows with the ledger, and raises `Violation` with the name of the broken rule.
"""

from __future__ import annotations

import functools
import json
import re
import urllib.parse
from collections import deque
from typing import TYPE_CHECKING, Any

from local_supabase import jwt

from . import corrections, network, numbers, observer
from .ledger import HELD, SET_ASIDE
from .screens import why

if TYPE_CHECKING:
    from holdfast import HoldfastError

    from .device import Device
    from .ledger import Entry
    from .network import Answer
    from .process import Process
    from .world import World

Json = dict[str, Any]

#: Codes that prove the end of a session, by endpoint.
TERMINAL_REFRESH = {
    "refresh_token_not_found", "refresh_token_already_used", "session_not_found",
    "session_expired", "user_banned",
}  # fmt: skip
TERMINAL_USER = {"session_not_found", "user_not_found", "user_banned"}
#: Calls that show or change data: they must fail while the session is locked.
DATA = {
    "org_list", "org_select", "queue_add", "queue_list", "queue_get", "queue_edit", "queue_cancel",
    "queue_retry", "queue_export", "contact_search", "contact_get", "summary_get", "sync_now",
    "session_token", "sync_status", "item_list",
}  # fmt: skip
#: Errors that a host must handle; any other is a defect.
EXPECTED = {
    "clock.not_manual", "keystore.failed", "keystore.key_lost", "keystore.locked",
    "org.disabled", "org.none", "org.not_a_member", "org.revoked", "org.unknown_role",
    "queue.changed", "queue.id_taken", "queue.in_flight", "queue.not_found",
    "queue.unknown_dependency", "session.confirm_unsent", "session.locked", "session.none",
    "session.refreshing", "sign_in.expired", "sign_in.foreign_callback", "sign_in.state_mismatch",
    "contact.not_found",
}  # fmt: skip
#: More polls than this within a minute are a busy loop.
MAX_POLLS = 400
MAX_REFRESHES = 12
MINUTE = 60_000
#: Also expected from a version of the app that does not know every kind and column.
OF_AN_OTHER_VERSION = {"queue.unknown_kind", "queue.unknown_column"}
#: A live read is answered within 30 s; the host may poll a little late.
LIVE_MS = 31_000
#: Calls whose changes other handles on the folder must learn of.
WAKING = {
    "queue_add", "queue_edit", "queue_cancel", "session_adopt", "session_lock", "session_logout",
}  # fmt: skip
#: Shorter than `offline_limit_s`.
LONG_MS = 1_000_000_000
#: An item is parked as `blocked` after at least this many refusals of it alone, over this time.
MIN_REFUSALS = 7
MIN_REFUSED_MS = 3 * 3_600_000
#: Reasons of a screen that is shown while the key store does not give the device key.
#: An item's id in a request body. Other ids have other names there.
ID = r'"id": ?"([0-9a-f-]{36})"'


class Violation(AssertionError):  # noqa: N818 - the term of the field
    """An invariant does not hold."""

    def __init__(self, rule: str, detail: str) -> None:
        """`rule` names the invariant; shrinking keeps runs that break the same rule."""
        super().__init__(f"{rule}: {detail}")
        self.rule = rule


class InvariantChecker:
    """Sees every call, request, answer and stored row."""

    def __init__(self, world: World) -> None:
        """Start with nothing observed."""
        self.world = world
        self._before: observer.Stored = observer.Stored()
        self.biometric_loads = 0
        self._notes: dict[str, str] = {}
        self.seen_rows = 0
        self._polls: dict[str, deque[int]] = {}
        self._refreshes: dict[str, deque[int]] = {}
        #: Tokens that a device received, for the search for secrets.
        self.secrets: dict[str, None] = {}

    # Calls ----------------------------------------------------------------------------------------

    def before(self, process: Process, name: str, request: Json) -> None:
        """Record the state before a call."""
        device = process.device
        self._before = device.stored
        self.biometric_loads = device.keychain.calls["load", "biometric"]

    def answered(self, process: Process, name: str, request: Json, reply: Json) -> None:
        """Check a call that succeeded."""
        after = self._look(process, name, request, reply)
        if name in DATA and not self._before.usable and not after.usable:
            raise Violation("no data is shown while locked", f"{process} {name} answered")
        released = process.device.keychain.calls["load", "biometric"] > self.biometric_loads
        if name == "session_unlock" and released and after.usable:
            process.device.locked_by_user = False
            process.device.away = None
        if name == "contact_get" and reply["request"] is not None:
            process.live[reply["request"]] = process.device.monotonic_ms
        if name == "summary_get":
            self._figures(process, reply)
        if name == "contact_search":
            self._contacts(process, reply["contacts"])
        if name in {"queue_add", "queue_edit"} and not numbers.is_held(request["payload"]):
            raise Violation("a number that no double holds is refused", f"{process} {request}")
        if self.world.version >= 3 and name in WAKING:
            self._others_wake(process, name, after)
        if name == "route_check" and not reply["allow"]:
            self._shown(process, name, reply["screen"], after)

    def shown(self, process: Process, name: str, decision: Json) -> None:
        """Check the screen that a call has led to."""
        if name in {"session_resume", "session_foreground"}:
            if process.returned_ms is None:
                process.returned_ms = process.device.monotonic_ms
        elif name == "session_background":
            process.returned_ms = None
        self._shown(process, name, decision, process.device.stored)

    def refused(
        self, process: Process | None, name: str, error: HoldfastError, request: Json | None = None
    ) -> None:
        """Check a call that failed."""
        if process is not None:
            self._look(process, name, request or {}, None)
        other = process is not None and process.queue != "whole"
        payload = (request or {}).get("payload", {})
        if error.code == "queue.invalid_payload" and not numbers.is_held(payload):
            return
        if error.code not in EXPECTED and not (other and error.code in OF_AN_OTHER_VERSION):
            raise Violation("no unexpected error", f"{process} {name}: {error.code} {error}")

    def _look(
        self, process: Process, name: str, request: Json, reply: Json | None
    ) -> observer.Stored:
        device = process.device
        before = self._before
        is_new_file = device.has_new_file() and self.set_aside_check(device)
        if is_new_file:
            device.stored = before = observer.Stored()
        after = device.look()
        self._carried_over(device, after)
        self._session_changed(process, name, request, before, after, is_new_file)
        self._queue(device, after)
        return after

    def _others_wake(self, process: Process, name: str, after: observer.Stored) -> None:
        """A change by one handle wakes the others on the folder, which may wait without limit."""
        before = self._before
        if (before.generation, before.queued) == (after.generation, after.queued):
            return
        for other in process.device.alive:
            if other is not process and not other.is_signalled():
                raise Violation("a change wakes the other handles", f"{process} {name} {other}")

    def set_aside_check(self, device: Device) -> bool:
        """Check the databases that were set aside since the last check; False: there are none."""
        aside = [path for path in device.keyless_files() if path.name not in device.set_aside]
        if aside:
            self._quarantined(device, [path.name for path in aside], aside)
        return bool(aside)

    def _quarantined(self, device: Device, names: list[str], paths: list[Any]) -> None:
        if not device.key_was_denied:
            raise Violation("no file is set aside without a lost key", f"{device.name}: {names}")
        device.set_aside |= set(names)
        waiting = device.world.ledger.of(device.name)
        kept = sum(observer.queued_in(path) for path in paths)
        # A cancelled item is gone when the server has said that it does not have it.
        unsent = [e for e in waiting if self._is_owed(e)]
        if kept < len(unsent):
            raise Violation("nothing acknowledged is lost", f"{kept} of {len(unsent)} set aside")
        for entry in waiting:
            entry.state = SET_ASIDE
        device.aside[names[-1]] = waiting
        self._leave(device)

    def _carried_over(self, device: Device, after: observer.Stored) -> None:
        """A user's items of a file that was set aside are here once the main file says so."""
        for name, waiting in device.aside.items():
            users = {device.users.get(owner) for owner in after.carried.get(name, ())}
            for entry in waiting:
                if entry.state == SET_ASIDE and entry.owner in users:
                    entry.state = HELD

    # The session ----------------------------------------------------------------------------------

    def _session_changed(
        self, process: Process, name: str, request: Json,
        before: observer.Stored, after: observer.Stored, is_new_file: bool,
    ) -> None:  # fmt: skip
        device = process.device
        if before.owner and not after.owner and not is_new_file and name != "session_logout":
            self._ended(process, name, request, before, after)
        if after.owner is None:
            self._leave(device)
        if after.tokens is None or after.tokens is before.tokens:
            return
        if not before.usable and before.owner == after.owner and name == "session_unlock":
            loads = device.keychain.calls["load", "biometric"]
            if not before.readable and loads == self.biometric_loads:
                raise Violation("only the biometric key unlocks", str(process))
        claims = claims_of(after.tokens.access)
        self.secrets |= {after.tokens.access: None, after.tokens.refresh: None}
        assert after.owner is not None
        device.users[after.owner] = after.tokens.user
        if claims["sub"] != after.tokens.user:
            raise Violation("a session belongs to its user", f"{claims['sub']} {after.tokens.user}")
        if claims["session_id"] != device.session:
            self._leave(device)
            device.session = claims["session_id"]
            device.former.discard(claims["session_id"])
            device.locked_by_user = False
            device.away = None

    def _leave(self, device: Device) -> None:
        if device.session is not None:
            device.former.add(device.session)
        device.session = None
        device.locked_by_user = False
        device.away = None

    def _ended(
        self,
        process: Process,
        name: str,
        request: Json,
        before: observer.Stored,
        after: observer.Stored,
    ) -> None:
        """Check the proof for a session that was cleared without a logout."""
        device = process.device
        sent = next((f for f in process.in_flight if f.number == request.get("id")), None)
        if name != "complete" or sent is None or not is_terminal(sent.request, request):
            detail = f"{process} {name} {json.dumps(request)[:400]}"
            raise Violation("no sign-out without a terminal answer", detail)
        about = self.world.session_of(sent.request)
        if about != device.session:
            raise Violation(
                "a late answer does not end another session", f"{about} {device.session}"
            )
        used = json.loads(sent.request["body"] or "{}").get("refresh_token")
        if used is not None and before.tokens is not None and used != before.tokens.refresh:
            raise Violation("the refusal of an older token ends no session", str(process))
        if after.ended is None:
            raise Violation("the reason for the end of a session is stored", str(process))

    # The queue ------------------------------------------------------------------------------------

    def _queue(self, device: Device, after: observer.Stored) -> None:
        """Every acknowledged item is in the queue or at the server; nothing else is queued."""
        by_user: dict[str, int] = {}
        for owner, count in after.queued.items():
            user = device.users.get(owner)
            if user is None:
                raise Violation("nothing unknown is queued", f"{device.name}: {count} items")
            by_user[user] = by_user.get(user, 0) + count
        for user in self.world.people:
            held = self.world.ledger.of(device.name, user)
            unsent = sum(self._is_owed(entry) for entry in held)
            there = by_user.get(user, 0)
            # A call that adds or cancels items is in progress: the counts may differ by `slack`.
            if not unsent - self.world.slack <= there <= len(held) + self.world.slack:
                detail = f"{device.name}: {there} queued, {unsent} unsent of {len(held)} held"
                raise Violation("nothing acknowledged is lost", detail)

    def _is_owed(self, entry: Entry) -> bool:
        """Whether an item must be queued."""
        if self.world.corrects:
            return not entry.is_cancelled and self.world.corrections.is_owed(entry)
        return not entry.is_cancelled and entry.id not in self.world.stored_ids(entry.kind)

    def row_check(self) -> None:
        """Compare each row that was stored since the last check with the ledger."""
        stored = self.world.server.database.stored
        rows = list(stored.items())
        if len(rows) < self.seen_rows:
            raise Violation("stored rows never disappear", "the server has fewer rows than before")
        for item, row in rows[self.seen_rows :]:
            self._row(str(item), row)
        self.seen_rows = len(rows)

    def _row(self, item: str, row: Json) -> None:
        entries = [e for e in self.world.ledger.with_id(item) if e.owner == row["user_id"]]
        if not entries:
            raise Violation("only what was acknowledged is stored", f"{item} {row['user_id']}")
        if not any(e.org == row["org_id"] for e in entries):
            raise Violation("a row belongs to its organisation", f"{item} {row['org_id']}")
        payloads = [payload for e in entries for payload in e.payloads]
        fits = any(
            p["minutes"] == row["minutes"] and p.get("note") == row["note"] for p in payloads
        )
        if not fits:
            raise Violation("a row is as the user wrote it", item)
        if self.world.version >= 3:
            fitting = [p for p in payloads if p.get("note") == row["note"]]
            if not any(numbers.are_stored(p, row) for p in fitting):
                raise Violation("a number is stored as the host wrote it", f"{row} {fitting}")
        other = self._notes.setdefault(str(row["note"]), item)
        if other != item and row["note"] is not None:
            raise Violation("no item is stored twice", f"{other} {item}")

    # Screens --------------------------------------------------------------------------------------

    def _shown(self, process: Process, name: str, decision: Json, after: observer.Stored) -> None:
        device = process.device
        screen, reason = decision["screen"], why(decision)
        if screen in {"home", "select_org"} and not after.usable:
            raise Violation("no home while locked", f"{process} {name}: {screen} {reason}")
        if screen == "home" and device.locked_by_user:
            raise Violation("no home while locked", f"{process} {name}: the user has locked")
        if reason in {"session_ended", "offline_limit"} and after.owner is not None:
            self._past_limit(device)
        if screen == "home":
            org = decision["org"]["id"]
            if (device.stored.tokens is not None) and org not in self.world.orgs_of(
                device.stored.tokens.user
            ):
                raise Violation("home shows an organisation of the user", f"{process} {org}")
        if name == "route_check" and screen == "home":
            # The route is allowed: the user stays on the present screen.
            return
        process.shown = decision
        if process.returned_ms is not None:
            self._returned(process, decision, process.returned_ms)
        process.waiting = None
        if screen == "wait" and reason in {"guard_pending", "signing_in"}:
            deadline = decision["deadline_ms"]
            if deadline is not None:
                process.waiting = (device.monotonic_ms, deadline - device.wall_ms)

    def _past_limit(self, device: Device) -> None:
        """An expired offline limit asks for a sign-in without ending the session.

        A clock that is ahead by as much as that looks the same after a restart of the phone, until
        the server has answered. One that was wrong before and is right now does not.
        """
        is_ahead = self.world.version >= 3 and device.ahead_ms > LONG_MS
        if self.world.longest_sleep_ms < LONG_MS and not is_ahead:
            raise Violation(
                "no sign-out without a terminal answer", f"{device.name}: shown as ended"
            )

    def _returned(self, process: Process, decision: Json, returned_ms: int) -> None:
        """A user who has come back in time comes in, also when that is shown long after."""
        device = process.device
        is_in = decision["screen"] in {"home", "select_org"}
        if is_in:
            process.returned_ms = None
        if device.away is not None:
            since, boot = device.away
            is_late = boot == device.boot and returned_ms - since > 300_000
            if is_in and is_late and device.session is not None:
                raise Violation("the background time-out locks", f"{process}: {why(decision)}")
            # Who waits for an answer on the screen is back, too, and may restart the app.
            if is_in or (decision["screen"] == "wait" and not is_late):
                device.away = None

    # The loop -------------------------------------------------------------------------------------

    def polled(self, process: Process, polled: Json) -> None:
        """Check what a host was given in a round."""
        device = process.device
        for event in polled["events"]:
            self._event(process, event)
        self._live_answers(process)
        for request in polled["requests"]:
            self._request(process, request)
        now = device.monotonic_ms
        if process.waiting is not None:
            since, limit = process.waiting
            if now - since > max(limit, 0) + 1000:
                raise Violation(
                    "every wait is resolved", f"{process} {json.dumps(process.shown)[:300]}"
                )
        wake = polled["wake_in_ms"]
        if wake is not None and wake < 0:
            raise Violation("wake_in_ms is never in the past", f"{process} {wake}")
        if not polled["events"] and not polled["requests"] and wake == 0:
            process.rounds_in_a_row += 1
        else:
            process.rounds_in_a_row = 0
        if process.rounds_in_a_row > 3:
            raise Violation("wake_in_ms is never in the past", f"{process} is busy for nothing")
        self._bounded(self._polls, str(process), MAX_POLLS, "no busy loop")

    def _bounded(self, table: dict[str, deque[int]], who: str, most: int, rule: str) -> None:
        seen = table.setdefault(who, deque())
        seen.append(self.world.now_ms)
        while seen[0] < self.world.now_ms - MINUTE:
            seen.popleft()
        if len(seen) > most:
            raise Violation(rule, f"{who}: {len(seen)} within a minute")

    def _live_answers(self, process: Process) -> None:
        """Every live read is answered by an event."""
        if any(process.device.monotonic_ms - since > LIVE_MS for since in process.live.values()):
            process.rounds_too_late += 1
        else:
            process.rounds_too_late = 0
        if process.rounds_too_late > 1:
            raise Violation("every live read is answered", f"{process} {process.live}")

    def _event(self, process: Process, event: Json) -> None:
        if event["type"] == "contact":
            process.live.pop(event["request"], None)
        if event["type"] == "sync_completed":
            process.completed += 1
        if event["type"] == "item_parked":
            self._parked(process, event)
        if event["type"] == "screen":
            self._shown(process, "event", event["screen"], process.device.stored)
        if event["type"] == "contact" and event["contact"] is not None:
            if not process.device.stored.usable:
                raise Violation("no data is shown while locked", f"{process}: a contact")
            self._own(process, [event])
        if event.get("reason") == "membership_revoked" and self.world.ends == 0:
            raise Violation("no membership ends without proof", f"{process}: event")
        if event["type"] == "session_ended" and process.device.world.terminal_answers == 0:
            raise Violation("no sign-out without a terminal answer", f"{process}: event")

    def _parked(self, process: Process, event: Json) -> None:
        """An item is parked as refused on the way after many refusals, which take hours."""
        device = process.device
        entry = self.world.ledger.get(device.name, device.user, event["id"])
        if entry is None:
            return
        entry.is_open_again = entry.is_cancelled
        if event["reason"] != "blocked":
            return
        is_fair = entry.refusals >= MIN_REFUSALS
        took = self.world.now_ms - entry.first_refused_ms
        if not device.clock_jumped:
            is_fair = is_fair and took >= MIN_REFUSED_MS
        # An item that was edited since has a new count, and the event is of the old one.
        if not is_fair and len(entry.payloads) == 1:
            detail = f"{process} {event['id']}: {entry.refusals} in {took} ms"
            raise Violation("an item is blocked after many refusals", detail)

    def cancelled(self, process: Process, entry: Entry) -> None:
        """Check a cancel after which the item is gone at once, without asking the server."""
        alone = len(self.world.ledger.with_id(entry.id)) == 1
        if alone and entry.id in self.world.stored_ids(entry.kind):
            raise Violation("a cancel asks when the server may have the item", str(process))

    def _request(self, process: Process, request: Json) -> None:
        device, stored = process.device, process.device.stored
        purpose = request["purpose"]
        session = self.world.session_of(request)
        if purpose == "refresh":
            self._bounded(self._refreshes, device.name, MAX_REFRESHES, "no refresh storm")
            self._alone(process, request)
        if purpose == "sign_in":
            return
        if purpose == "revoke":
            self._revocation(process, request, session)
            return
        if not stored.usable:
            raise Violation("no request is made while locked", f"{process} {purpose}")
        if session is None or session != device.session:
            raise Violation("no request with another session's token", f"{process} {purpose}")
        bearer = bearer_of(request)
        if bearer is not None:
            self._owner(process, request, claims_of(bearer)["sub"])

    def _revocation(self, process: Process, request: Json, session: str | None) -> None:
        """A logout ends a former session, or all others with the present one's token."""
        device, bearer = process.device, bearer_of(request)
        spares = request["url"].endswith("scope=others")
        if (session == device.session) is not spares:
            raise Violation("only a former session is revoked", f"{process} {session}")
        user = None if bearer is None else claims_of(bearer)["sub"]
        if request["url"].endswith("scope=global") and user == device.user:
            raise Violation("a late logout spares the newer session", f"{process} {session}")

    def _alone(self, process: Process, request: Json, ids: frozenset[str] = frozenset()) -> None:
        """No other living process of the device has the same request in flight.

        The leases of a file go with it when it is set aside: what was sent before is sent again.
        """
        device = process.device
        if device.clock_jumped and self.world.version < 3:
            return
        for other in device.alive:
            for sent in () if other is process else other.in_flight:
                same = sent.request["purpose"] == request["purpose"]
                same = same and sent.files == len(device.set_aside)
                age = self.world.now_ms - sent.since_ms
                if not same or sent.answered or age >= sent.request["timeout_ms"]:
                    continue
                if ids and not ids & set(corrections.ids_of(sent.request)):
                    continue
                raise Violation(
                    "two processes never do the same work",
                    f"{process} {other} {request['purpose']}",
                )

    def _owner(self, process: Process, request: Json, user: str) -> None:
        """Everything that is sent with this user's token must belong to this user."""
        device = process.device
        stored = device.stored.tokens
        if stored is not None and stored.user != user:
            raise Violation("no request with the wrong user's token", f"{process} {user}")
        url = urllib.parse.unquote(request["url"])
        named = re.search(r"user_id=eq\.([0-9a-f-]{36})", url)
        if named and named[1] != user:
            raise Violation("no request with the wrong user's token", f"{process} {url}")
        if request["purpose"] != "upload":
            return
        if corrections.is_correction(request):
            self._alone(process, request, frozenset(corrections.ids_of(request)))
            self.world.corrections.requested(process, request, user)
            return
        if request["method"] == "GET":
            asked = re.sub(r"&user_id=eq\.[0-9a-f-]{36}", "", url)
            rows = [{"id": item} for item in re.findall(r"[0-9a-f-]{36}", asked)]
        else:
            body = json.loads(request["body"])
            rows = body["items"] if isinstance(body, dict) else body
        ids = [row["id"] for row in rows]
        if ids != sorted(ids):
            raise Violation("a batch is sorted by id", f"{process}")
        if request["method"] == "POST":
            self._alone(process, request, frozenset(ids))
        for row in rows:
            entry = self.world.ledger.get(device.name, user, row["id"])
            if rows == [{"id": row["id"]}] and not self.world.ledger.with_id(row["id"]):
                # A question about an id that nobody has: whether anything is answered.
                continue
            if entry is None or row.get("user_id", user) != user:
                raise Violation("no request with the wrong user's token", f"{process} {row}")
            if row.get("org_id", entry.org) != entry.org:
                raise Violation("a row belongs to its organisation", f"{process} {row}")
            is_doubtful = request["method"] == "GET" or entry.id in self.world.stored_ids(
                entry.kind
            )
            if entry.state != HELD or (entry.is_cancelled and not is_doubtful):
                raise Violation("a cancelled item is not sent", f"{process} {row}")

    def _contacts(self, process: Process, found: list[Json]) -> None:
        """A search finds no columns that the cache must withhold."""
        self._own(process, found)
        for contact in found:
            if {"phone", "address", "national_id"} & set(contact):
                raise Violation("network-only columns are not cached", f"{process} {contact}")

    def _own(self, process: Process, found: list[Json]) -> None:
        """Contacts belong to organisations of which the user is or was a member."""
        tokens = process.device.stored.tokens
        orgs = self.world.orgs_of(tokens.user) if tokens else []
        rows = self.world.server.database.rows["contacts"]
        for contact in found:
            row = rows.get(contact["id"])
            if row is not None and row["org_id"] not in orgs:
                raise Violation(
                    "contacts belong to the user's organisations", f"{process} {contact}"
                )

    def _figures(self, process: Process, reply: Json) -> None:
        """The summary never counts more items than were registered in the organisation."""
        tokens = process.device.stored.tokens
        if tokens is None or reply["summary"] is None:
            return
        if "org_id" not in reply["summary"]:
            raise Violation("the summary follows the server", f"{process} {reply}")
        org = reply["summary"]["org_id"]
        entries = [
            entry
            for entry in self.world.ledger.all()
            if (entry.owner, entry.org, entry.kind) == (tokens.user, org, "activity")
        ]
        # An item on two devices is two entries: a device cannot know that the other one sent it.
        known = len(entries)
        total = sum(reply[part]["activities"] for part in ("summary", "sent", "queued"))
        if total > known:
            raise Violation("nothing is counted twice", f"{process} {reply} of {known}")

    # Answers --------------------------------------------------------------------------------------

    def handed(self, process: Process, request: Json, answer: Answer) -> None:
        """Count an answer that proves the end of a session."""
        if is_terminal(request, answer):
            self.world.terminal_answers += 1
        device = process.device
        if self.world.corrects:
            self.world.corrections.handed(device, request, answer)
        if request["purpose"] != "upload" or request["method"] == "GET":
            return
        ids = corrections.ids_of(request)
        is_of_the_service = network.is_of_the_data_service(answer)
        if is_of_the_service and (answer.get("status") or 0) < 500:
            process.judged_uploads += 1
        elif len(ids) == 1:
            bearer = bearer_of(request)
            user = None if bearer is None else claims_of(bearer)["sub"]
            entry = self.world.ledger.get(device.name, user, ids[0])
            if entry is None:
                return
            # What an outage answers, too, says something of the item if others got through since.
            judged_before = entry.judged_before.get(str(process), 0)
            others_got_through = process.judged_uploads > judged_before
            if network.is_refused_on_the_way(answer) or is_of_the_service or others_got_through:
                entry.note_refusal(self.world.now_ms)
                entry.judged_before[str(process)] = process.judged_uploads


def bearer_of(request: Json) -> str | None:
    """Return the access token of a request."""
    headers = {name.lower(): value for name, value in request["headers"].items()}
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token if scheme == "Bearer" else None


def claims_of(token: str) -> Json:
    """Return the claims of an access token."""
    return dict(_claims_of(token))


@functools.lru_cache(maxsize=256)
def _claims_of(token: str) -> Json:
    return dict(json.loads(jwt.decode_bytes(token.split(".")[1])))


def is_terminal(request: Json, answer: Answer) -> bool:
    """Whether the answer proves the end of a session. Independent of the library's own list."""
    try:
        body = json.loads(answer.get("body") or "")
    except (TypeError, ValueError):
        return False
    if not isinstance(body, dict):
        return False
    code = body.get("error_code") or body.get("code")
    if "/token?grant_type=refresh_token" in request["url"]:
        old = body.get("error") == "invalid_grant"
        return answer["status"] == 400 and (code in TERMINAL_REFRESH or old)
    if request["url"].endswith("/auth/v1/user"):
        return answer["status"] == 403 and code in TERMINAL_USER
    return False
