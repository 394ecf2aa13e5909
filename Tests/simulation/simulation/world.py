"""The world: people, organisations, devices, a server, and their common time."""

from __future__ import annotations

import json
import random
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast import Library
from local_supabase.messages import Request

from memory_supabase import MemoryServer

from . import corrections, network, numbers
from .device import Device
from .invariants import InvariantChecker, Violation, bearer_of, claims_of
from .ledger import Ledger
from .machine import Machine
from .network import Answer, InFlightRequest
from .process import Process
from .trace import Trace

Json = dict[str, Any]

#: The newest version of the world. A change to what is drawn is a new version, so that a seed that
#: failed in an older one still means the same actions (test_seeds.py names the version of each).
#: 2: `actions/behaviours.py`; portals answer in JSON; at the end the requests on their way arrive,
#: only those users sign in on a device who have items there, and they register more while the reads
#: fail.
#: 3: `actions/more_behaviours.py`; firewalls, numbers of every form, clocks that are wrong by a
#: month; at the end a firewall may stay.
#: 4: `look_around` asks for the access token, too.
#: 5: `actions/damage.py`.
#: 6: `actions/lists.py` and `actions/refusals.py`.
#: 7: `actions/corrections.py`; in most worlds stored activities are kept, changed and taken back.
VERSION = 7
#: In one seed of this many, nothing is corrected.
WITHOUT_CORRECTIONS = 6
#: When every world begins: 2027-01-15T08:00:00Z.
BEGIN_MS = 1_800_000_000_000
URL = "https://backend.example"
PASSWORD = "correct-horse-battery"
PEOPLE = 3
ORGANIZATIONS = 3
DEVICES = 2
ROLES = ("peer_mentor", "coordinator", "org_admin")
#: More rounds than this within an hour are a busy loop. (While one process refreshes, another
#: polls every second.)
MAX_ROUNDS = 3000
HOUR_MS = 3_600_000


class World:
    """Everything in a run. All randomness comes from `seed`."""

    url = URL

    def __init__(
        self,
        seed: int,
        library: Library,
        folder: Path,
        trace: Trace,
        first_file: bytes | None = None,
        version: int = VERSION,
    ) -> None:
        """Create a world in which nobody has signed in yet.

        `first_file`: the database that a first start makes; without it each device makes its own.
        """
        self.seed = seed
        self.version = version
        self.library = library
        self.folder = folder
        self.trace = trace
        self.machine = Machine()
        self.machine.seed(seed)
        self.live_before = library.live()
        self.now_ms = BEGIN_MS
        self.calls = 0
        self.slack = 0
        #: The probability of a network fault, from 0 to 1.
        self.roughness = 0.1
        self.longest_sleep_ms = 0
        #: Purpose -> until when its requests get this answer instead of the server's.
        self.outages: dict[str, tuple[int, Answer]] = {}
        #: Until when the schema refuses every insert, with this code and message.
        self.refusal: tuple[int, str, str] | None = None
        #: A policy refused every row for a while: a correction is parked then, and an insert waits.
        self.policy_refused = False
        #: What the schema has said while it refused every insert, once for each such time.
        self.refusals: list[str] = []
        #: What a firewall between the devices and the server refuses: uploads with `WORDS`
        #: ("words"), every upload ("all"), or nothing (None), and what it answers.
        self.firewall: str | None = None
        self.firewall_answer: Answer = network.FIREWALLS[0]
        #: What becomes of lists of memberships and contacts on their way (`network.LISTS`).
        self.lists: str | None = None
        self.terminal_answers = 0
        #: The run is at its end: no more faults.
        self.healed = False
        #: The number of changes to memberships and organisations.
        self.access_changes = 0
        #: The number of memberships that the server has ended.
        self.ends = 0
        if version >= 3:
            numbers.add_columns()
        #: Stored activities are kept on the devices, changed and taken back.
        self.corrects = version >= 7 and seed % WITHOUT_CORRECTIONS != 0
        if self.corrects:
            corrections.add_columns()
        self.corrections = corrections.Corrections(self)
        self.ledger = Ledger()
        self.invariants = InvariantChecker(self)
        chance = random.Random(f"world {seed}")
        self.server = MemoryServer(lambda: self.now_ms / 1000, random.Random(f"server {seed}"))
        control = self.server.control
        control.set(jwt_lifetime=chance.choice((300, 3600)))
        self.orgs = [control.add_org(f"Forening {n} {seed:x}") for n in range(ORGANIZATIONS)]
        self.people: dict[str, str] = {}
        self.memberships: dict[tuple[str, str], str] = {}
        #: When each of them ended last.
        self.ended_ms: dict[tuple[str, str], int] = {}
        for number in range(PEOPLE):
            email = f"person{number}@example.org"
            user = control.add_user(email, PASSWORD)
            self.people[user] = email
            for org in self.orgs:
                if chance.random() < 0.6 or org == self.orgs[number]:
                    role = chance.choice(ROLES)
                    self.memberships[user, org] = role
                    control.set_membership(user, org, role=role)
        for org in self.orgs:
            control.seed_contacts(org, chance.randrange(0, 4))
        self.devices = [Device(self, f"phone{n}", chance) for n in range(DEVICES)]
        for device in self.devices:
            if first_file is not None:
                device.install(first_file)
            device.start()

    # Queries --------------------------------------------------------------------------------------

    def stored_ids(self, kind: str) -> dict[str, Any]:
        """Return the rows at the server, by id."""
        return self.server.database.rows["activities" if kind == "activity" else "contacts"]

    def orgs_of(self, user: str) -> list[str]:
        """Return every organisation of which the user is or was a member."""
        return [org for (who, org) in self.memberships if who == user]

    def end(self, user: str, org: str, role: str) -> bool:
        """End a membership; False: it did so within the hour.

        A correction counts a row as gone that is absent, and absent again after the membership was
        confirmed. One that ends twice around the confirmation looks the same: no answer tells.
        """
        last = self.ended_ms.get((user, org))
        if self.corrects and last is not None and self.now_ms - last < HOUR_MS:
            return False
        self.ended_ms[user, org] = self.now_ms
        self.ends += 1
        self.server.control.set_membership(user, org, role=role, status="ended")
        return True

    def session_of(self, request: Json) -> str | None:
        """Return the session whose token a request carries."""
        bearer = bearer_of(request)
        if bearer is not None:
            return str(claims_of(bearer)["session_id"])
        if "grant_type=refresh_token" in request["url"]:
            token = json.loads(request["body"])["refresh_token"]
            return self.server.auth.sessions.of_token.get(token)
        return None

    @contextmanager
    def in_doubt(self, items: int = 1) -> Iterator[None]:
        """During a call that adds or cancels items, the ledger may be behind by this many."""
        self.slack = items
        try:
            yield
        finally:
            self.slack = 0

    def processes(self) -> list[Process]:
        """Return the living processes of all devices."""
        return [process for device in self.devices for process in device.alive]

    # The network ----------------------------------------------------------------------------------

    def serve(self, request: Json, online: bool = True) -> Answer:
        """Let the server process a request; return its answer."""
        parts = urllib.parse.urlsplit(request["url"])
        headers = tuple((name.lower(), value) for name, value in request["headers"].items())
        body = (request["body"] or "").encode()
        reply = self.server.handle(
            Request(request["method"], parts.path, parts.query, headers, body, URL)
        )
        self.invariants.row_check()
        self.trace.note(f"server {request['method']} {parts.path} -> {reply.status}")
        return {
            "status": reply.status,
            "headers": {name.lower(): value for name, value in reply.headers.items()},
            "body": reply.body.decode(),
        }

    def _plan(self, process: Process, sent: InFlightRequest, chance: random.Random) -> None:
        """Draw the outcome of a request."""
        device = process.device
        if not device.online:
            sent.fate = network.Fate(None, 20, {"error": "offline"})
        elif device.fates and sent.request["purpose"] == "upload":
            sent.fate = device.fates.pop(0)
        else:
            sent.fate = network.fate(
                chance, sent.request["purpose"], self.roughness, self.now_ms / 1000, self.version
            )
        start = max(sent.since_ms, self.now_ms)
        there, back = sent.fate.there, sent.fate.back
        sent.reaches_ms = None if there is None else start + there
        if back is not None:
            sent.returns_ms = start + (there or 0) + back
        elif chance.random() < 0.7:
            # The host's own timeout.
            sent.returns_ms = start + sent.request["timeout_ms"]
            sent.answer = {"error": "timeout"}

    def _reach(self, process: Process, sent: InFlightRequest) -> None:
        sent.reached = True
        assert sent.fate is not None
        until, instead = self.outages.get(sent.request["purpose"], (0, {}))
        if self.now_ms < until:
            sent.answer = sent.answer or instead
            return
        if self._is_refused(sent.request):
            sent.answer = sent.answer or self.firewall_answer
            return
        refused = self._is_refused_by_schema(sent.request)
        served = network.refused(sent.request, *refused) if refused else self.serve(sent.request)
        if self.corrects:
            self.corrections.processed(process.device, sent)
        answer = network.changed_list(served, sent.request, self.lists)
        answer = network.distorted(answer, sent.fate.distortion)
        if sent.answer is None:
            sent.answer = sent.fate.instead or answer

    def _is_refused_by_schema(self, request: Json) -> tuple[str, str] | None:
        """The code and the message with which the schema refuses the insert."""
        if self.refusal is None or (request["purpose"], request["method"]) != ("upload", "POST"):
            return None
        until, code, message = self.refusal
        return (code, message) if self.now_ms < until else None

    def _is_refused(self, request: Json) -> bool:
        """Whether the firewall refuses the request."""
        methods = {"POST", "PATCH"} if self.version >= 7 else {"POST"}
        if self.firewall is None or request["purpose"] != "upload":
            return False
        if request["method"] not in methods:
            return False
        return self.firewall == "all" or network.WORDS in request["body"]

    def _return(self, process: Process, sent: InFlightRequest) -> None:
        assert sent.fate is not None
        answer = sent.answer or sent.fate.instead or {"error": "timeout"}
        process.hand_over(sent, answer)
        if sent.fate.again is not None and sent.answered == 1:
            sent.returns_ms = self.now_ms + sent.fate.again
        else:
            process.in_flight.remove(sent)

    # Time -----------------------------------------------------------------------------------------

    def sleep(self, duration_ms: int) -> None:
        """Let time pass while no app runs. Requests in flight arrive late."""
        self.longest_sleep_ms = max(self.longest_sleep_ms, duration_ms)
        self.now_ms += duration_ms

    def run(self, duration_ms: int, chance: random.Random) -> None:
        """Let the hosts work for this long, driven by descriptor and `wake_in_ms` alone."""
        end = self.now_ms + duration_ms
        most = MAX_ROUNDS * (1 + duration_ms // HOUR_MS)
        for _ in range(most):
            if self._work_now(chance):
                continue
            upcoming = self._next_event()
            if upcoming is None or upcoming > end:
                break
            self.now_ms = max(self.now_ms, upcoming)
        else:
            raise Violation("no busy loop", f"{most} rounds in {duration_ms} ms")
        self.now_ms = max(self.now_ms, end)

    def _work_now(self, chance: random.Random) -> bool:
        """Do one thing that is due now; False when nothing is due."""
        for process in self.processes():
            for sent in process.in_flight:
                if sent.fate is None:
                    self._plan(process, sent, chance)
        for process in [p for d in self.devices for p in (*d.alive, *d.killed)]:
            for sent in process.in_flight:
                if sent.reaches_ms is not None and not sent.reached:
                    if self._is_past(sent.reaches_ms):
                        self._reach(process, sent)
                        return True
                elif process.is_open and self._is_past(sent.returns_ms):
                    self._return(process, sent)
                    return True
        for process in self.processes():
            is_due = process.due is not None and process.due <= process.device.monotonic_ms
            if is_due or process.is_signalled():
                process.round()
                return True
        return False

    def _is_past(self, moment_ms: int | None) -> bool:
        return moment_ms is not None and moment_ms <= self.now_ms

    def _next_event(self) -> int | None:
        times = []
        for process in self.processes():
            if process.due is not None:
                times.append(process.device.booted_ms + process.due)
        for process in [p for d in self.devices for p in (*d.alive, *d.killed)]:
            for sent in process.in_flight:
                if sent.reaches_ms is not None and not sent.reached:
                    times.append(sent.reaches_ms)
                elif process.is_open and sent.returns_ms is not None:
                    times.append(sent.returns_ms)
        return min(times, default=None)

    def deliver_late_requests(self) -> None:
        """Let what is on its way reach the server: seed 467's logout would end a new session."""
        processes = [p for d in self.devices for p in (*d.alive, *d.killed)]
        late = [
            (sent.reaches_ms, process, sent)
            for process in processes
            for sent in process.in_flight
            if sent.reaches_ms is not None and not sent.reached
        ]
        for reaches_ms, process, sent in sorted(late, key=lambda one: one[0]):
            self.now_ms = max(self.now_ms, reaches_ms)
            self._reach(process, sent)

    # The end --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free every handle, also those of killed processes."""
        for device in self.devices:
            device.give_back()
        live = self.library.live() - self.live_before
        if live != 0:
            raise Violation("every handle and reply is freed", f"{live} handles or replies")
