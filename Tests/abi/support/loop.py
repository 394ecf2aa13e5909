"""The host's loop on a handle: what `next` gives until it has nothing more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.library import ALL, NEWS

if TYPE_CHECKING:
    from holdfast import Holdfast

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


def take(core: Holdfast, what: int = ALL) -> Round:
    """Take all that the library gives now."""
    taken = Round()
    while True:
        thing: Any = core.next(0, what=what)
        assert thing is not None, "the handle is closed"
        if "wake_in_ms" in thing:
            taken.wake_in_ms = thing["wake_in_ms"]
            return taken
        if "request" in thing:
            taken.requests.append(thing["request"])
        else:
            taken.events.append(event(thing))


def step(core: Holdfast, transport: Any) -> Round:  # noqa: ANN401
    """Take all, then send and complete each request in turn."""
    taken = take(core)
    for request in taken.requests:
        answer = transport(request)
        taken.answers.append(answer)
        given: Any = {"id": request["id"], **answer}
        core.complete(given)
    return taken


def resume(core: Holdfast) -> Any:  # noqa: ANN401
    """Resume; returns the screen."""
    given: Any = core.session_resume()
    return given if "screen" in given else shown(core)


def shown(core: Holdfast) -> Any:  # noqa: ANN401
    """The screen that a call has led to."""
    thing: Any = core.next(0, what=NEWS)
    assert thing is not None and "screen" in thing, thing
    return thing["screen"]
