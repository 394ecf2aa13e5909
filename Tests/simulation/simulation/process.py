"""A process of the app: an open handle whose every call is checked and traced."""

from __future__ import annotations

import json
import select
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from holdfast import Holdfast, HoldfastError
from holdfast.handle import encode
from holdfast.library import ALL, NEWS, REQUESTS
from holdfast.library import Answer as Answered

from support.loop import SCREEN_CALLS, event

from . import numbers
from .network import Answer, InFlightRequest

if TYPE_CHECKING:
    from .device import Device

Json = dict[str, Any]


class Process(Holdfast):
    """Holds what a host knows: the requests in flight, when to ask again, the present screen."""

    def __init__(self, device: Device) -> None:
        """Open the device's folder in a process of its own."""
        self.device = device
        self.world = device.world
        self.pid = self.world.machine.new_process()
        self.in_flight: list[InFlightRequest] = []
        self.shown: Json | None = None
        #: When its user came, by the monotonic clock, until they are in.
        self.returned_ms: int | None = None
        #: The present `wait` screen: its start and its longest duration, by the monotonic clock.
        self.waiting: tuple[int, int] | None = None
        #: When to ask again, by the monotonic clock; None: only when the descriptor signals.
        self.due: int | None = None
        #: After how many notices the host asks for no more news in a round; None: it reads all.
        self.patience: int | None = None
        #: The queue's configuration (`device.QUEUES`).
        self.queue = device.queue
        #: Live reads without an answer: request -> when it was made, by the monotonic clock.
        self.live: dict[int, int] = {}
        #: Rounds since the oldest of them should have been answered.
        self.rounds_too_late = 0
        #: How many times `sync_completed` came.
        self.completed = 0
        #: How many uploads the service judged, as far as this process was told.
        self.judged_uploads = 0
        self.is_open = False
        #: Consecutive rounds that brought nothing although `wake_in_ms` was 0.
        self.rounds_in_a_row = 0
        self._clock_ms: tuple[int, int, str] | None = None
        self._poller = select.poll()
        with self._inside():
            config: Any = {**device.config, "role": "worker"}
            super().__init__(config, device.keychain, library=self.world.library)
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
        """Make a call; the reply of one whose purpose is a screen is that screen."""
        encoded = None if request is None else numbers.encode(encode(request))
        given = dict(request or {})
        value = self._checked(
            name,
            given,
            (encoded or b"").decode(),
            lambda: self.library.call(name, self._handle, encoded),
        )
        if name not in SCREEN_CALLS:
            return value
        screen = self.next_thing(NEWS)["screen"]
        self.world.invariants.shown(self, name, screen)
        return screen

    def next_thing(self, what: int = ALL) -> Json:
        """What the library gives next."""
        return self._checked(
            "next", {}, str(what), lambda: self.library.next(self._handle, what, 0)
        )

    def _checked(self, name: str, request: Json, sent: str, call: Callable[[], Answered]) -> Json:
        self._set_clock()
        invariants = self.world.invariants
        invariants.before(self, name, request)
        with self._inside():
            status, reply = call()
        self.world.calls += 1
        text = (reply or b"").decode()
        self.world.trace.note(f"{self} @{self.world.now_ms} {name} {sent} -> {status} {text}")
        try:
            value = self._decode(name, status, reply)
        except HoldfastError as error:
            invariants.refused(self, name, error, request)
            raise
        invariants.answered(self, name, request, value)
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

    def round(self) -> None:
        """Take what there is, and put the requests in flight."""
        now = self.device.monotonic_ms
        try:
            polled = self.collect()
        except HoldfastError:
            # The invariants checked the error.
            self.due = now + 1000
            return
        wake = polled["wake_in_ms"]
        self.due = None if wake is None else now + wake
        for request in polled["requests"]:
            files = len(self.device.set_aside)
            sent = InFlightRequest(request["id"], request, self.world.now_ms, files)
            self.in_flight.append(sent)
        self.world.invariants.polled(self, polled)

    def collect(self) -> Json:
        """All that the library gives now: `requests`, `events`, `wake_in_ms`."""
        requests: list[Json] = []
        events: list[Json] = []
        what, notices = ALL, 0
        while True:
            thing = self.next_thing(what)
            if "wake_in_ms" in thing:
                wake = thing["wake_in_ms"]
                # A host that has left news comes back for them.
                late = wake if what == ALL else min(wake or 1000, 1000)
                return {"requests": requests, "events": events, "wake_in_ms": late}
            if "request" in thing:
                requests.append(thing["request"])
                continue
            events.append(event(thing))
            notices += "notice" in thing
            if self.patience is not None and notices > self.patience:
                what = REQUESTS

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
