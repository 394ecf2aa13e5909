"""The host's loop on a handle: what `next` gives until it has nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast import Holdfast
from holdfast.errors import InvalidError
from holdfast.library import ALL, NEWS
from holdfast.transport import REFUSED, answered

Thing = dict[str, Any]


@dataclass
class Round:
    """What the library gave until it had nothing more, and what became of the requests."""

    requests: list[Any] = field(default_factory=list, repr=False)
    answers: list[Any] = field(default_factory=list, repr=False)
    #: Everything else, each as one object with a type (`event`).
    events: list[Thing] = field(default_factory=list)
    wake_in_ms: int | None = None

    @property
    def idle(self) -> bool:
        """Whether there was nothing."""
        return not self.requests and not self.events


def event(thing: Thing) -> Thing:
    """What `next` gave, as one object with a type.

    A notice has its own. The state of sync after a run's end has the type `sync_completed`.
    """
    if "screen" in thing:
        return {"type": "screen", **thing}
    if "notice" in thing:
        return dict(thing["notice"])
    if "answer" in thing:
        answer = thing["answer"]
        return {"type": "contact" if answer["to"] == "contact_get" else answer["to"], **answer}
    sync = thing["sync"]
    return {"type": "sync_completed" if sync["message"] else "sync", **sync}


#: The calls whose purpose is a screen: it is the next thing that the library gives.
SCREEN_CALLS = {
    "session_adopt",
    "sign_in_complete",
    "sign_in_cancel",
    "session_resume",
    "session_unlock",
    "session_lock",
    "session_background",
    "session_foreground",
    "session_logout",
    "org_select",
}


class Host(Holdfast):
    """A handle whose calls for a screen answer with that screen."""

    def raw(self, name: str, request: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
        """Make one call."""
        return super()._call(name, request)

    def _call(self, name: str, request: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
        """Make one call; after one whose purpose is a screen, the reply is that screen.

        With what else the call replies, the screen stands beside it. A logout keeps unsent items,
        unless the test says what becomes of them.
        """
        if name == "session_logout" and request is None:
            request = {"unsent": "keep"}
        value = self.raw(name, request)
        if name not in SCREEN_CALLS:
            return value
        thing: Any = self.next(0, what=NEWS)
        assert thing is not None and "screen" in thing, thing
        self.see(thing["screen"])
        return {**value, **thing} if value else thing["screen"]

    def see(self, screen: Any) -> None:  # noqa: ANN401
        """A screen came."""

    def poll(self, what: int = ALL) -> Any:  # noqa: ANN401
        """All that the library gives now: `requests`, `events`, `wake_in_ms`."""
        taken = self.take(what)
        return {"requests": taken.requests, "events": taken.events, "wake_in_ms": taken.wake_in_ms}

    def take(self, what: int = ALL) -> Round:
        """Take all that the library gives now."""
        taken = Round()
        while True:
            thing: Any = self.next(0, what=what)
            assert thing is not None, "the handle is closed"
            if "wake_in_ms" in thing:
                taken.wake_in_ms = thing["wake_in_ms"]
                return taken
            if "request" in thing:
                taken.requests.append(thing["request"])
                continue
            if "screen" in thing:
                self.see(thing["screen"])
            taken.events.append(event(thing))

    def round(self, transport: Any) -> Round:  # noqa: ANN401
        """Take all, then send and complete each request in turn."""
        taken = self.take()
        for request in taken.requests:
            answer = transport(request)
            taken.answers.append(answer)
            self.answer(request, answer)
        return taken

    def answer(self, request: Any, answer: Any) -> None:  # noqa: ANN401
        """Complete a request; an answer that the library cannot take is a failed request."""
        try:
            self.complete(answered(request, answer))
        except (InvalidError, TypeError, ValueError):
            self.complete(answered(request, REFUSED))
