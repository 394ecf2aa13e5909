"""Random histories of a queue on the real backend: no item is lost, duplicated or stuck.

After all faults have passed, every item that was acknowledged and not cancelled is on the server
once, as last edited, or parked with a reason.
"""

from __future__ import annotations

import itertools
import uuid
from pathlib import Path
from typing import Any

from holdfast import HoldfastError, Library
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from local_supabase import LocalSupabase

from support.directory_fixtures import DirectoryFixtures
from support.phone import App, Phone
from support.queue import BAD_MINUTES, RPC, UPLOADS
from support.sizes import sized

EXAMPLES = sized(6, 30)
STEPS = 40
#: Reasons that only a decision of the user resolves.
FINAL = {"server_rule", "dependency_parked", "missing_parent", "unknown_outcome"}

pick = st.integers(0, 1000)
minutes = st.sampled_from([5, 10, 15, 20, BAD_MINUTES])
#: Faults of one upload; none of them is caused by an item.
faults = st.sampled_from(
    [
        ("drop_before", {}),
        ("drop_after", {}),
        ("drop_after", {"times": 3}),
        ("truncate_rows", {"keep_rows": 0}),
        ("truncate_rows", {"keep_rows": 1}),
        ("respond", {"status": 503, "retry_after_s": 120}),
        ("respond", {"status": 429, "retry_after_date_s": 30}),
        ("respond", {"status": 400, "body": {"code": ""}}),
        ("respond", {"status": 500, "body": {"code": "57014"}}),
        ("respond", {"status": 500, "body": {"code": "XX000"}, "times": 2}),
        ("respond", {"status": 404, "body": {"code": "PGRST205"}}),
        ("respond", {"status": 413, "body": "<html>"}),
        ("respond", {"status": 401, "body": {"code": "PGRST303"}}),
        ("respond", {"status": 200, "body": "<html>portal</html>"}),
    ]
)


class QueueMachine(RuleBasedStateMachine):
    """One phone, one user, and random faults."""

    library: Library
    backend: LocalSupabase
    folder: Path
    numbers = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        #: The expected minutes of each acknowledged item.
        self.wanted: dict[str, int] = {}
        self.cancelled: set[str] = set()
        self.old: list[App] = []
        self.member = True

    @property
    def app(self) -> App:
        """The open app."""
        assert self.phone.app is not None
        return self.phone.app

    @initialize(upload=st.sampled_from(list(UPLOADS)))
    def begin(self, upload: str) -> None:
        """Sign a user in."""
        self.backend.control.clear_faults()
        folder = self.folder / f"phone-{next(self.numbers)}"
        tables = RPC if upload == "rpc" else None
        self.phone = Phone(folder, self.library, self.backend, tables=tables)
        self.directory = self.phone.directory
        self.org = self.directory.organisation()
        self.person = self.directory.person(self.org)
        self.phone.start().sign_in(self.person)
        self.path = UPLOADS[upload]

    # The user -------------------------------------------------------------------------------------

    def ready(self) -> bool:
        """Whether the app is at home, so that the user can register."""
        return self.app.screen["screen"] == "home"

    @rule(minutes=minutes, count=st.integers(1, 6), parent=st.none() | pick)
    def add(self, minutes: int, count: int, parent: int | None) -> None:
        """Add some items, possibly with a reference to an earlier one."""
        if not self.ready():
            return
        known = list(self.wanted)
        for _ in range(count):
            item = str(uuid.uuid4())
            payload: dict[str, Any] = {"type": "visit", "minutes": minutes}
            if parent is not None and known:
                payload["follows"] = known[parent % len(known)]
            request: Any = {"kind": "activity", "id": item, "payload": payload}
            request["occurred_at_ms"] = 1_790_000_000_000
            try:
                self.app.queue_add(request)
            except HoldfastError as error:
                # The screen does not show the ended membership yet.
                assert error.code == "org.revoked"
            else:
                self.wanted[item] = minutes

    def listed(self) -> list[dict[str, Any]]:
        """The items that the user sees."""
        if not self.ready():
            return []
        return [dict(item) for item in self.app.queue_list({"limit": 500})["items"]]

    @rule(which=pick, minutes=minutes)
    def edit(self, which: int, minutes: int) -> None:
        """Edit a queued item."""
        items = self.listed()
        if not items:
            return
        item = items[which % len(items)]
        payload = {**item["payload"], "minutes": minutes}
        try:
            self.app.queue_edit({"id": item["id"], "payload": payload})
        except HoldfastError as error:
            assert error.code == "queue.in_flight"
            assert item["state"] == "sending"
        else:
            self.wanted[item["id"]] = minutes

    @rule(which=pick)
    def cancel(self, which: int) -> None:
        """Cancel a queued item."""
        items = self.listed()
        if not items:
            return
        item = items[which % len(items)]
        try:
            self.app.queue_cancel({"id": item["id"]})
        except HoldfastError as error:
            assert error.code == "queue.in_flight"
        else:
            self.cancelled.add(item["id"])

    @rule()
    def retry(self) -> None:
        """Retry all items."""
        if self.ready():
            self.app.queue_retry()

    # Environment ----------------------------------------------------------------------------------

    @rule()
    def flip_network(self) -> None:
        """Switch the network off or on."""
        if self.phone.network.up:
            self.app.go_offline()
        else:
            self.app.go_online()

    @rule(fault=faults)
    def trouble(self, fault: tuple[str, dict[str, Any]]) -> None:
        """Make the next upload fail."""
        action, details = fault
        self.backend.control.add_fault(action, path=self.path, method="POST", **details)

    @rule()
    def flip_membership(self) -> None:
        """End or restore the membership."""
        self.member = not self.member
        status = "active" if self.member else "ended"
        self.backend.control.set_membership(self.person.id, self.org.id, status=status)

    @rule(answered=st.booleans())
    def one_poll(self, answered: bool) -> None:
        """One poll; its answers may get lost."""
        for request in self.app.poll()["requests"]:
            answer = self.phone.network(request)
            if answered:
                self.app.complete({"id": request["id"], **answer})

    @rule()
    def settle(self) -> None:
        """Poll, send and complete until idle."""
        self.app.settle()

    @rule(seconds=st.sampled_from([1, 5, 80, 400, 4000]))
    def pass_time(self, seconds: int) -> None:
        """Advance the time."""
        self.phone.pass_time(seconds)

    @rule(killed=st.booleans())
    def restart(self, killed: bool) -> None:
        """Start the app again; a killed one does not close its handle."""
        if killed:
            self.old.append(self.app)
            self.phone.app = None
        self.phone.start(online=self.phone.network.up)
        if self.app.screen["screen"] == "unlock":
            self.app.touch()

    # The end --------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Remove all faults, send the queue, and check the final state."""
        if not hasattr(self, "phone"):
            return
        try:
            self.backend.control.clear_faults()
            self.backend.control.set_membership(self.person.id, self.org.id, status="active")
            if not self.phone.network.up:
                self.app.go_online()
            # Coming to the foreground starts a new membership check.
            self.app.session_background()
            self.app.session_foreground()
            # After 12 hours the session window has passed, which shows the prompt.
            if self.app.screen["screen"] == "unlock":
                self.app.touch()
            self.drain()
            self.judge()
        finally:
            self.phone.close()
            for app in self.old:
                app.close()

    def drain(self) -> None:
        """Follow `wake_in_ms` alone until only the user can act."""
        for _ in range(500):
            step = self.app.step()
            if self.ready() and not step.requests and not self.unsettled():
                return
            if step.idle:
                assert step.wake_in_ms is not None, "items wait, and wake_in_ms is null"
                self.phone.pass_time(step.wake_in_ms / 1000)
        raise AssertionError(f"stuck: {self.app.screen['reason']}, {self.listed()}")

    def unsettled(self) -> list[str]:
        """Items that the library should still send by itself."""
        counts = self.app.queue_list({"limit": 1})["counts"]
        if counts["pending"] + counts["sending"] > 0:
            return ["being sent"]
        return [
            item["id"]
            for item in self.listed()
            if item["reason"] is None or item["reason"]["code"] not in FINAL
        ]

    def judge(self) -> None:
        """Check that every item is where it should be, with the expected content."""
        rows = {str(row["id"]): row["minutes"] for row in self.directory.activities(self.person)}
        left = {item["id"]: item for item in self.listed()}
        assert set(rows) <= set(self.wanted)
        for item, wanted in self.wanted.items():
            if item in self.cancelled and item not in left:
                continue
            if item in left:
                code = left[item]["reason"]["code"]
                assert left[item]["payload"]["minutes"] == wanted
                if left[item]["state"] == "parked" and code == "server_rule":
                    assert wanted == BAD_MINUTES or item in rows
                assert (item in rows) <= (code != "dependency_parked")
            else:
                assert rows[item] == wanted, (item, rows[item], wanted)


def test_QUE_1_random_faults_lose_or_duplicate_no_item(
    library: Library, backend: LocalSupabase, tmp_path: Path
) -> None:
    made = type(
        "Machine", (QueueMachine,), {"library": library, "backend": backend, "folder": tmp_path}
    )
    run_state_machine_as_test(
        made,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert DirectoryFixtures(backend).control.faults() == []
