"""The runner, against a scripted `Holdfast`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from holdfast import Holdfast, Runner
from holdfast.errors import HoldfastError
from holdfast.transport import Answer
from holdfast.types import Event, HttpRequest
from patience import eventually, patience

REQUEST = {"id": 1, "purpose": "pull", "url": "http://x"}


class Scripted:
    """A fake `Holdfast` with scripted polls that records completed requests."""

    def __init__(self, polls: list[dict[str, Any]]) -> None:
        self.polls = polls
        self.asked: list[object] = []
        self.completed: list[dict[str, Any]] = []
        #: What `complete` raises, by the id of the request.
        self.refusals: dict[int, list[HoldfastError]] = {}

    def poll(self, given: dict[str, Any] | None = None) -> dict[str, Any]:
        self.asked.append(given)
        nothing: dict[str, Any] = {"requests": [], "events": [], "wake_in_ms": None}
        return nothing | self.polls.pop(0) if self.polls else nothing

    def complete(self, given: dict[str, Any]) -> dict[str, Any]:
        if self.refusals.get(given["id"]):
            raise self.refusals[given["id"]].pop()
        self.completed.append(given)
        return {"accepted": True}

    def superseded(self, event: Event) -> bool:
        return event["type"] == "decision" and event["decision"]["number"] < 5

    def wait(self, timeout_ms: int) -> bool:
        until = time.monotonic() + timeout_ms / 1000
        while not self.polls and time.monotonic() < until:
            time.sleep(0.01)
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


def test_a_step_answers_for_a_transport_that_raises() -> None:
    """The exception left `step()`, and no request after it was sent."""
    app = Scripted([{"requests": [REQUEST | {"id": number} for number in (1, 2, 3)]}])

    def transport(request: HttpRequest) -> Answer:
        if request["id"] == 2:
            raise OSError("no route")
        return {"status": 204}

    step = Runner(cast(Holdfast, app), transport=transport).step()
    assert step.accepted == [True, True, True]
    assert app.completed == [
        {"id": 1, "status": 204},
        {"id": 2, "error": "offline"},
        {"id": 3, "status": 204},
    ]


@pytest.mark.parametrize("retryable", [False, True])
def test_a_step_completes_the_other_requests_when_one_cannot_be_completed(retryable: bool) -> None:
    """The error left `step()` at once: the requests after it were neither sent nor answered."""
    app = Scripted([{"requests": [REQUEST | {"id": number} for number in (1, 2, 3)]}])
    error = HoldfastError("storage.busy", "", retryable=retryable)
    app.refusals = {2: [error]}
    runner = runner_for(app, lambda _: None)
    with pytest.raises(HoldfastError) as caught:
        runner.step()
    assert caught.value is error
    assert [given["id"] for given in app.completed] == [1, 3]
    # The next step passes the answer again if that can help
    runner.step()
    assert [given["id"] for given in app.completed] == ([1, 3, 2] if retryable else [1, 3])


def test_requests_of_a_poll_whose_event_is_not_handled_are_sent_later() -> None:
    """The exception of `on_event` left `step()`: its requests were lost."""
    event = {"seq": 4, "type": "session_ended"}
    app = Scripted([{"events": [event], "requests": [REQUEST]}])
    failures = [RuntimeError()]

    def failing(_: Event) -> None:
        raise failures.pop()

    runner = runner_for(app, failing)
    with pytest.raises(RuntimeError):
        runner.step()
    assert app.completed == []
    runner.step()
    assert [given["id"] for given in app.completed] == [1]


def test_the_thread_outlives_a_handler_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    """The thread ended, and nothing was sent any more."""
    event = {"seq": 4, "type": "session_ended"}
    app = Scripted([{"events": [event], "requests": [REQUEST]}, {"events": [event]}])
    failures = [RuntimeError("no window yet")]
    seen: list[Event] = []
    handled = threading.Event()

    def handler(given: Event) -> None:
        if failures:
            raise failures.pop()
        seen.append(given)
        handled.set()

    with runner_for(app, handler):
        assert handled.wait(patience(60))
    assert seen == [event]
    assert [given["id"] for given in app.completed] == [1]
    assert app.asked[1] == {"from_oldest": True}
    assert "no window yet" in caplog.text


def test_a_superseded_decision_is_acknowledged_and_not_shown() -> None:
    """An old `home` was drawn over the `unlock` of a later reply."""
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
        eventually(lambda: app.completed, what="the request is completed")
        [thread] = [one for one in threading.enumerate() if one.name == "holdfast-runner"]
    assert not thread.is_alive()
    assert app.completed == [{"id": 1, "status": 204}]


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
        eventually(lambda: app.completed, what="the request is completed")
    assert (app.completed, app.failures) == ([{"id": 1, "status": 204}], 0)
