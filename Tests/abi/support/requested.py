"""The third way of a key store: the host serves key requests, here from the phone's keychain.

`RequestedApp` answers them at once, so that a test sees what it sees with function pointers: a call
that needs a key returns when the key is there. With HOLDFAST_KEY_STORE=host in the environment
every phone of the suite works this way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast import HoldfastError
from holdfast.key_requests import serve

if TYPE_CHECKING:
    from holdfast.types import PollReply

    from .phone import Phone

#: After these no key is served: they only set or read what the test gives.
QUIET = {"clock_set", "key_complete", "poll", "complete"}


class Requests:
    """Serves the key requests of a handle between its other calls."""

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        #: What polls returned besides key requests, for the next poll of the host.
        self.requests: list[Any] = []
        self.events: list[Any] = []

    def merged(self, polled: PollReply) -> PollReply:
        """A reply with what earlier polls returned."""
        polled["requests"] = self.requests + polled["requests"]
        known = {event["seq"] for event in polled["events"]}
        earlier = [event for event in self.events if event["seq"] not in known]
        polled["events"] = sorted(earlier + polled["events"], key=lambda event: event["seq"])
        self.requests, self.events = [], []
        return polled

    def keep(self, polled: PollReply) -> None:
        """Keep what a poll returned besides key requests for the next poll of the host."""
        self.requests += polled["requests"]
        self.events += polled["events"]

    def settle(self, app: Any, *, replies: bool, waits: bool = False) -> bool:  # noqa: ANN401
        """Serve until no key is asked for; returns whether there was any.

        `replies`: a decision that follows a key is the reply that function pointers give at once,
        so it is drawn, and is no event. `waits`: the call's reply says that it waits for a key.
        """
        served, any_served = waits, False
        while True:
            polled = app.raw("poll", {"only_new": True})
            if replies and served:
                drawn = [event for event in polled["events"] if event["type"] == "decision"]
                polled["events"] = [event for event in polled["events"] if event not in drawn]
                for event in drawn:
                    app.shown = event["decision"]
            self.keep(polled)
            asked = polled.get("key_requests", [])
            if not asked:
                return any_served
            served = any_served = True
            for request in asked:
                app.raw("key_complete", serve(self.phone.keychain, request))


def call(
    app: Any,  # noqa: ANN401
    requests: Requests,
    name: str,
    request: Mapping[str, Any] | None,
) -> Any:  # noqa: ANN401
    """Make a call as if the key store answered at once."""
    while True:
        try:
            value = app.raw(name, request)
        except HoldfastError as error:
            if error.code == "keystore.pending" and requests.settle(app, replies=True):
                continue
            raise
        break
    if name == "poll":
        while asked := value.get("key_requests"):
            requests.keep(value)
            for one in asked:
                app.raw("key_complete", serve(requests.phone.keychain, one))
            value = app.raw("poll", {"only_new": True})
        return requests.merged(value)
    if name == "complete":
        requests.settle(app, replies=False)
        return value
    if name in QUIET:
        return value
    decision = value.get("decision", value)
    if "screen" in decision and name != "route_check":
        app.shown = decision
    requests.settle(app, replies=True, waits=value.get("reason") == "keystore_pending")
    # The decision that followed the wait for a key is what function pointers give at once.
    return app.shown if value.get("reason") == "keystore_pending" else value
