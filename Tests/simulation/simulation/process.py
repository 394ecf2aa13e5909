"""A process of the app: an open handle whose every call is checked and traced."""

from __future__ import annotations

import json
import select
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from holdfast import Holdfast, HoldfastError
from holdfast.handle import encode

from . import numbers
from .network import Answer, InFlightRequest

if TYPE_CHECKING:
    from .device import Device

Json = dict[str, Any]


class Process(Holdfast):
    """Holds what a host knows: the requests in flight, the next poll, the present screen."""

    def __init__(self, device: Device) -> None:
        """Open the device's folder in a process of its own."""
        self.device = device
        self.world = device.world
        self.pid = self.world.machine.new_process()
        self.in_flight: list[InFlightRequest] = []
        self.shown: Json | None = None
        #: The present `wait` screen: its start and its longest duration, by the monotonic clock.
        self.waiting: tuple[int, int] | None = None
        #: When to poll again, by the monotonic clock; None: only when the descriptor signals.
        self.due: int | None = None
        self.ack: int | None = None
        #: How many of a poll's events the host acknowledges; None: all.
        self.acknowledges: int | None = None
        #: The queue's configuration (`device.QUEUES`).
        self.queue = device.queue
        #: The highest number that a poll acknowledged.
        self.acknowledged: int | None = None
        #: Owner -> the highest number that was acknowledged while they were signed in.
        self.acknowledged_of: dict[bytes | None, int] = {}
        #: Numbers of events that a poll returned, the highest of them, and whose events they are.
        self.seen_events: set[int] = set()
        self.last_event = 0
        self.events_of: bytes | None = None
        #: At the last poll, the key store did not give the device key.
        self.was_keyless = False
        #: Live reads without an answer: request -> when it was made, by the monotonic clock.
        self.live: dict[int, int] = {}
        #: Polls since the oldest of them should have been answered.
        self.polls_too_late = 0
        #: How many times `sync_completed` came.
        self.completed = 0
        #: Numbers of the events that told of an item that is blocked.
        self.seen_blocks: set[int] = set()
        #: How many uploads the service judged, as far as this process was told.
        self.judged_uploads = 0
        self.is_open = False
        #: Consecutive polls that returned nothing although `wake_in_ms` was 0.
        self.polls_in_a_row = 0
        self._clock_ms: tuple[int, int, str] | None = None
        self._poller = select.poll()
        with self._inside():
            super().__init__(cast(Any, device.config), device.keychain, library=self.world.library)
            self._poller.register(self.wake_fd(), select.POLLIN)
        self.is_open = True
        self.due = device.monotonic_ms
        self.world.trace.note(f"{self} open {json.dumps(self.opened)}")

    @classmethod
    def start(cls, device: Device) -> Self | None:
        """Open the device's folder; None when the library refuses."""
        try:
            return cls(device)
        except HoldfastError as error:
            device.world.trace.note(f"{device.name} open: {error.code}")
            device.world.invariants.refused(None, "open", error)
            return None

    def __str__(self) -> str:
        """Return a name that is the same in every run."""
        return f"{self.device.name}.{self.pid % 1000}"

    def _inside(self) -> Any:  # noqa: ANN401 - a context manager
        device = self.device
        return self.world.machine.inside(self.pid, device.wall_ms, device.monotonic_ms, device.boot)

    # Calls ----------------------------------------------------------------------------------------

    def _call(self, name: str, request: Mapping[str, Any] | None) -> object:
        self._set_clock()
        encoded = None if request is None else numbers.encode(encode(request))
        invariants = self.world.invariants
        invariants.before(self, name, dict(request or {}))
        with self._inside():
            status, reply = self.library.call(name, self._handle, encoded)
        self.world.calls += 1
        text = (reply or b"").decode()
        self.world.trace.note(
            f"{self} @{self.world.now_ms} {name} {(encoded or b'').decode()} -> {status} {text}"
        )
        try:
            value = self._decode(name, status, reply)
        except HoldfastError as error:
            invariants.refused(self, name, error, dict(request or {}))
            raise
        invariants.answered(self, name, dict(request or {}), value)
        return value

    def _set_clock(self) -> None:
        device = self.device
        time = (device.wall_ms, device.monotonic_ms, device.boot)
        if time != self._clock_ms:
            self._clock_ms = time
            now, monotonic, boot = time
            request = f'{{"now_ms":{now},"monotonic_ms":{monotonic},"boot_id":"{boot}"}}'
            # No invariant concerns this call: it is not checked and not traced.
            with self._inside():
                status, reply = self.library.call("clock_set", self._handle, request.encode())
            if status:
                self._decode("clock_set", status, reply)

    def ask(self, name: str, request: Json | None = None) -> Json | None:
        """Call an operation by name; None when it failed (the invariants checked the error)."""
        try:
            return cast(Json, self._call(name, request))
        except HoldfastError:
            return None

    # The host's loop ------------------------------------------------------------------------------

    def is_signalled(self) -> bool:
        """Whether the descriptor is readable."""
        return bool(self._poller.poll(0))

    def wait_is_over(self) -> bool:
        """Call holdfast_wait() with a timeout of 0, as a worker thread would."""
        with self._inside():
            return self.wait(0)

    def round(self) -> None:
        """Poll once and put the requests in flight."""
        self._set_clock()
        polled = self.ask("poll", None if self.ack is None else {"ack": self.ack})
        now = self.device.monotonic_ms
        if polled is None:
            self.due = now + 1000
            return
        wake = polled["wake_in_ms"]
        self.due = None if wake is None else now + wake
        self.acknowledged = self.ack
        for event in polled["events"][: self.acknowledges]:
            self.ack = max(self.ack or 0, event["seq"])
        for request in polled["requests"]:
            files = len(self.device.set_aside)
            sent = InFlightRequest(request["id"], request, self.world.now_ms, files)
            self.in_flight.append(sent)
        self.world.invariants.polled(self, polled)

    def hand_over(self, sent: InFlightRequest, answer: Answer) -> None:
        """Complete a request with its answer."""
        sent.answered += 1
        self.world.invariants.handed(self, sent.request, answer)
        self.ask("complete", {"id": sent.number, **answer})

    # The end --------------------------------------------------------------------------------------

    def die(self) -> None:
        """Stop making calls, as a killed process does. `give_back` frees the handle later."""
        self.is_open = False
        self.world.machine.end_process(self.pid)
        self.world.trace.note(f"{self} killed")

    def give_back(self) -> None:
        """Free the handle, as its own process."""
        with self._inside():
            self.close()

    def end(self) -> None:
        """Close the app in an orderly way."""
        self.is_open = False
        self.give_back()
        self.world.machine.end_process(self.pid)
        self.world.trace.note(f"{self} closed")
