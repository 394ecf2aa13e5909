"""The runner, against a scripted `Holdfast`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from holdfast import Holdfast, Runner
from holdfast.errors import HoldfastError
from holdfast.types import Event

REQUEST = {"id": 1, "purpose": "pull", "url": "http://x"}


class Scripted:
    """A fake `Holdfast` with scripted polls that records completed requests."""

    def __init__(self, polls: list[dict[str, Any]]) -> None:
        self.polls = polls
        self.asked: list[object] = []
        self.completed: list[dict[str, Any]] = []

    def poll(self, given: dict[str, Any] | None = None) -> dict[str, Any]:
        self.asked.append(given)
        nothing: dict[str, Any] = {"requests": [], "events": [], "wake_in_ms": None}
        return nothing | self.polls.pop(0) if self.polls else nothing

    def complete(self, given: dict[str, Any]) -> dict[str, Any]:
        self.completed.append(given)
        return {"accepted": True}

    def superseded(self, event: Event) -> bool:
        return event["type"] == "decision" and event["decision"]["number"] < 5

    def wait(self, timeout_ms: int) -> bool:
        time.sleep(timeout_ms / 1000)
        return True


def runner_for(scripted: Scripted, seen: Callable[[Event], None]) -> Runner:
    return Runner(cast(Holdfast, scripted), seen, lambda _: {"status": 204})


def test_a_step_sends_completes_and_acknowledges() -> None:
    event = {"seq": 4, "type": "session_ended"}
    app = Scripted([{"requests": [REQUEST], "events": [event]}])
    seen: list[Event] = []
    runner = runner_for(app, seen.append)
    step = runner.step()
    assert (seen, step.accepted, app.completed) == ([event], [True], [{"id": 1, "status": 204}])
    assert runner.step().idle
    assert app.asked == [None, {"ack": 4}]


def test_a_superseded_decision_is_acknowledged_and_not_shown() -> None:
    """Newcomers' finding 1: an old `home` was drawn over the `unlock` of a later reply."""
    old = {"seq": 4, "type": "decision", "decision": {"number": 4}}
    new = {"seq": 5, "type": "decision", "decision": {"number": 6}}
    app = Scripted([{"events": [old]}, {"events": [new]}])
    seen: list[Event] = []
    runner = runner_for(app, seen.append)
    runner.step()
    assert seen == []
    runner.step()
    assert seen == [new]
    assert app.asked == [None, {"ack": 4}]


def test_a_step_is_printed_without_tokens() -> None:
    """Lock finding 17."""
    secret = REQUEST | {"headers": {"Authorization": "Bearer a.b.c"}}
    runner = Runner(
        cast(Holdfast, Scripted([{"requests": [secret]}])),
        transport=lambda _: {"status": 200, "headers": {}, "body": '{"access_token":"a.b.c"}'},
    )
    step = runner.step()
    assert step.requests and step.answers
    assert "a.b.c" not in repr(step)


def test_an_unhandled_event_is_not_acknowledged() -> None:
    def failing(_: Event) -> None:
        raise RuntimeError

    app = Scripted([{"events": [{"seq": 4, "type": "session_ended"}]}])
    runner = runner_for(app, failing)
    with pytest.raises(RuntimeError):
        runner.step()
    runner.step()
    # All come again, also those behind it that were not shown
    assert app.asked == [None, {"from_oldest": True}]


def test_run_until_idle_has_a_limit() -> None:
    busy = {"requests": [REQUEST]}
    assert len(runner_for(Scripted([busy, busy]), lambda _: None).run_until_idle()) == 2
    with pytest.raises(RuntimeError):
        runner_for(Scripted([busy] * 9), lambda _: None).run_until_idle(limit=5)


def test_the_thread_works_until_stopped() -> None:
    app = Scripted([{"wake_in_ms": 20}, {"requests": [REQUEST]}])
    with runner_for(app, lambda _: None):
        deadline = time.monotonic() + 5
        while not app.completed and time.monotonic() < deadline:
            time.sleep(0.01)
    assert app.completed == [{"id": 1, "status": 204}]
    polls = len(app.asked)
    time.sleep(0.05)
    assert len(app.asked) == polls


def test_a_temporary_failure_of_wait_does_not_end_the_thread() -> None:
    class Failing(Scripted):
        failures = 2

        def wait(self, timeout_ms: int) -> bool:
            if self.failures:
                self.failures -= 1
                raise HoldfastError.of(6, None)
            return super().wait(timeout_ms)

    app = Failing([{}, {}, {"requests": [REQUEST]}])
    with runner_for(app, lambda _: None):
        deadline = time.monotonic() + 5
        while not app.completed and time.monotonic() < deadline:
            time.sleep(0.01)
    assert (app.completed, app.failures) == ([{"id": 1, "status": 204}], 0)
