"""Iteration over a handle, and the runner beside it, with a scripted library."""

from __future__ import annotations

import threading
from typing import Any

import fake_library as h
import pytest
from holdfast import BusyError, ClosedError, Runner
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from patience import eventually, patience

BUSY = (BusyError.status, h.refusal("storage.busy", retryable=True))
LATER = (h.STORAGE, h.refusal("storage.failed", retryable=True))
#: The id and answer of a completed request.
SENT = [{"id": 1, "status": 204}]


def sent(_: HttpRequest) -> Answer:
    return {"status": 204}


# ---- iteration ----


@pytest.mark.parametrize(
    ("given", "come"),
    [
        ([h.NOTICE, h.HOME], [h.FIRST, h.NOTICE, h.HOME]),
        ([h.HOME, h.NOTICE], [h.HOME, h.NOTICE]),
        ([LATER, h.NOTICE, LATER, h.HOME], [h.FIRST, h.NOTICE, h.HOME]),
        # A failure withholds no screen
        ([LATER, h.HOME], [h.FIRST, h.HOME]),
    ],
)
def test_the_first_screen_comes_first_unless_there_is_a_newer_one(
    given: list[Any], come: list[Any]
) -> None:
    fake = h.FakeLibrary()
    fake.give(*given)
    with h.opened(fake) as app:
        assert app.screen == h.FIRST["screen"]
        for thing in come:
            assert app.news() == thing
        assert app.screen == h.HOME["screen"]
        app.close()
        assert list(app) == []


def test_asking_for_the_next_thing_acknowledges_the_last() -> None:
    fake = h.FakeLibrary()
    fake.give(h.NOTICE, h.HOME)
    for number, _ in enumerate(h.opened(fake)):
        # The library is asked when the host has dealt with what it got
        assert fake.asked == max(number, 1)
        if number == 2:
            break


def test_the_next_screen_but_wait_is_settled_and_the_rest_is_kept() -> None:
    fake = h.FakeLibrary(screen=h.WAIT["screen"])
    fake.give(h.NOTICE, h.WAIT, h.HOME)
    with h.opened(fake) as app:
        assert app.settled() == h.HOME["screen"]
        assert app.news() == h.NOTICE
        app.close()
        with pytest.raises(ClosedError):
            app.settled()


# ---- step by step ----


def test_a_step_sends_completes_and_tells() -> None:
    fake = h.FakeLibrary()
    fake.give(h.request(), h.NOTICE)
    seen: list[object] = []
    runner = Runner(h.opened(fake), seen.append, sent)
    step = runner.step()
    assert (seen, step.news, fake.completed) == ([h.NOTICE], [h.NOTICE], SENT)
    assert "secret" not in repr(step)
    assert runner.step().idle


def test_without_a_function_for_news_the_host_reads_them_itself() -> None:
    fake = h.FakeLibrary()
    fake.give(h.request(), h.NOTICE)
    with h.opened(fake) as app:
        Runner(app, transport=sent).run_until_idle()
        assert (fake.completed, fake.asked) == (SENT, 0)
        assert [app.news(), app.news()] == [h.FIRST, h.NOTICE]


def test_a_request_that_fails_leaves_the_others_alone() -> None:
    """A transport that raised ended the step, and an answer of no form the thread."""
    fake = h.FakeLibrary()
    fake.give(*map(h.request, (1, 2, 3)))

    def transport(given: HttpRequest) -> Answer:
        if given["id"] == 1:
            raise OSError("no route")
        return {"status": 204, "body": b"no text" if given["id"] == 2 else None}

    Runner(h.opened(fake), transport=transport).step()
    assert fake.completed == [
        {"id": 1, "error": "offline"},
        {"id": 2, "error": "refused"},
        {"id": 3, "status": 204, "body": None},
    ]


def test_a_request_that_was_taken_is_sent_also_if_the_step_fails() -> None:
    """The library gives it once."""
    fake = h.FakeLibrary()
    fake.requests += [h.request(), BUSY]
    with pytest.raises(BusyError):
        Runner(h.opened(fake), transport=sent).step()
    assert fake.completed == SENT


def test_run_until_idle_has_a_limit() -> None:
    fake = h.FakeLibrary()
    fake.give(*map(h.request, (1, 2)))

    def again(given: HttpRequest) -> Answer:
        fake.give(h.request(given["id"]))
        return {"status": 204}

    with pytest.raises(RuntimeError):
        Runner(h.opened(fake), transport=again).run_until_idle(limit=5)
    assert len(fake.completed) == 10


# ---- on a thread ----


def test_the_thread_outlives_failures_and_ends_when_stopped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fake = h.FakeLibrary()
    fake.give(LATER, LATER, h.NOTICE, h.NOTICE, h.request())
    failures = [RuntimeError("no window yet")]
    seen: list[object] = []

    def tell(given: object) -> None:
        if failures:
            raise failures.pop()
        seen.append(given)

    with Runner(h.opened(fake), tell, sent):
        eventually(lambda: fake.completed and seen, what="the request is completed")
        [thread] = [one for one in threading.enumerate() if one.name == "holdfast-runner"]
    assert not thread.is_alive()
    assert (fake.completed, seen) == (SENT, [h.NOTICE])
    assert "no window yet" in caplog.text


def test_a_thread_that_does_not_start_costs_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def full(thread: threading.Thread) -> None:
        if thread.name == "holdfast-http":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", full)
    fake = h.FakeLibrary()
    fake.give(*map(h.request, (1, 2)))
    with Runner(h.opened(fake), transport=sent):
        eventually(lambda: len(fake.completed) == 2, what="both requests are completed")


def test_the_thread_ends_with_the_handle() -> None:
    app = h.opened(h.FakeLibrary())
    Runner(app).start()
    [thread] = [one for one in threading.enumerate() if one.name == "holdfast-runner"]
    app.close()
    thread.join(patience(60))
    assert not thread.is_alive()
