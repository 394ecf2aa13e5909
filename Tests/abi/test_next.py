"""What `next` gives: screens, notices, answers and the state of sync, one thing at a time."""

from __future__ import annotations

import resource
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from holdfast import Holdfast
from holdfast.errors import InvalidError
from holdfast.library import ALL, NEWS, REQUESTS

from support import children, secrecy
from support.damage import restart_after
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.events import answered, park, parked_items, second_handle
from support.missing import lose, until_lost
from support.phone import App, Phone
from support.queue import BAD_MINUTES, RPC, add, add_offline, ask_until_believed, stored
from support.users import MakeUser, SignedIn
from support.waking import Waiting, readable
from support.workers import finish_worker, start_worker

#: How many items two handles park while both tell of something.
RACES = 100


def notice_of(app: App) -> Any:  # noqa: ANN401
    """Answer requests until the next thing is a notice; ask for nothing after it."""
    for _ in range(200):
        thing = app.next(0)
        assert "wake_in_ms" not in thing, "no notice"
        if "request" in thing:
            answered(app, thing["request"])
        if "notice" in thing:
            return thing["notice"]
    raise AssertionError("no notice")


def reasons(app: App) -> list[str]:
    """The items whose notices this app was given."""
    return [event["id"] for event in app.of_type("item_parked")]


# One thing at a time ------------------------------------------------------------------------------


def test_a_request_for_nothing_is_refused(sign_in: MakeUser) -> None:
    app = sign_in().app
    for what in (-1, 0, 4, 99):
        with pytest.raises(InvalidError) as caught:
            app.next(0, what=what)
        assert (caught.value.code, caught.value.field) == ("request.invalid_value", "/what")
        assert app.wake_fd(what=what) == -1


def test_a_screen_comes_first_after_a_call_for_one(user: SignedIn) -> None:
    """Also if it looks the same, and before other work is looked for."""
    app = user.app
    app.register(minutes=BAD_MINUTES)
    app.settle()
    app.register()
    for call, screen in [
        ("session_resume", "home"),
        ("session_resume", "home"),
        ("session_background", "home"),
        ("session_foreground", "home"),
        ("session_lock", "unlock"),
        ("session_lock", "unlock"),
        ("session_foreground", "unlock"),
    ]:
        assert app.raw(call, None) == {}
        thing = app.next(0, what=NEWS)
        assert (list(thing), thing["screen"]["screen"]) == (["screen"], screen), call


def test_NXT_2_only_the_newest_screen_is_given(sign_in: MakeUser) -> None:
    app = sign_in().app
    for call in ("session_background", "session_foreground", "session_lock"):
        app.raw(call, None)
    screens = [e["screen"]["screen"] for e in app.take(NEWS).events if e["type"] == "screen"]
    assert screens == ["unlock"]


def test_NXT_2_a_screen_of_a_file_that_was_replaced_is_not_given(user: SignedIn) -> None:
    # Given a home screen that was decided and not given yet
    user.app.raw("network_report", {"online": False})
    for file in user.phone.folder.glob("holdfast.db*"):
        file.rename(file.with_name("away-" + file.name))
    screens = [e["screen"]["screen"] for e in user.app.take(NEWS).events if e["type"] == "screen"]
    assert screens == ["sign_in"]


def test_a_reader_gets_what_it_asks_for(sign_in: MakeUser) -> None:
    app = sign_in().app
    app.settle()
    app.register()
    app.raw("session_foreground", None)
    taken = app.take(REQUESTS)
    assert "upload" in {request["purpose"] for request in taken.requests}
    assert taken.events == []
    beside = app.take(NEWS)
    assert beside.requests == []
    assert [event["type"] for event in beside.events] == ["screen"]
    for request in taken.requests:
        app.answer(request, app.phone.network(request))
    assert app.take(ALL).events


def test_NXT_6_each_reader_is_woken_for_its_own(user: SignedIn) -> None:
    app = user.app
    app.settle()
    news, requests = app.wake_fd(what=NEWS), app.wake_fd(what=REQUESTS)
    assert not readable(news)
    assert not readable(requests)
    app.register()
    app.take(NEWS)
    assert readable(requests)
    assert not readable(news)
    while not readable(news):
        taken = app.take(REQUESTS)
        assert taken.requests
        for request in taken.requests:
            app.answer(request, user.phone.network(request))
    app.settle()
    app.raw("session_foreground", None)
    app.take(REQUESTS)
    assert readable(news)
    assert not readable(requests)


def test_NXT_6_a_reader_waits_for_its_own(user: SignedIn) -> None:
    app = user.app
    app.settle()
    driver, host = Waiting(app, REQUESTS), Waiting(app, NEWS)
    app.register()
    assert driver.ends()
    [thing] = driver.answers
    app.answer(thing["request"], user.phone.network(thing["request"]))
    while host.thread.is_alive():
        for request in app.take(REQUESTS).requests:
            app.answer(request, user.phone.network(request))
        host.thread.join(0.01)
    assert "sync" in host.answers[0]


def test_the_first_screen_is_in_the_reply_of_open(sign_in: MakeUser) -> None:
    """The same as session_resume gives, without another call; a worker gets none."""
    user = sign_in(clock="system")
    user.app.settle()
    user.phone.close()
    config: Any = user.phone.config
    with Holdfast(config, user.phone.key_store, library=user.phone.library) as app:
        shown = app.opened["screen"]
        assert shown is not None
        assert (shown["screen"], shown["route"]) == ("home", user.home)
        app.queue_list()
        app.session_resume()
        assert app.next(0) == {"screen": shown}
    worker: Any = {**config, "role": "worker"}
    with Holdfast(worker, user.phone.key_store, library=user.phone.library) as app:
        assert app.opened["screen"] is None
        thing: Any = app.next(0, what=NEWS)
        assert "screen" not in thing


def test_a_first_screen_that_the_disk_withholds_comes_later(phone: Phone) -> None:
    """A manual clock is set after the open: the first `next` gives the screen then."""
    config: Any = phone.config
    with Holdfast(config, phone.key_store, library=phone.library) as app:
        assert app.opened["screen"] is None
        thing: Any = app.next(0)
        assert thing["screen"]["screen"] == "sign_in"


def test_NXT_5_nobody_asks_is_a_problem_and_a_line_of_the_log(user: SignedIn) -> None:
    app = user.app
    app.settle()
    app.register()
    said = "Call holdfast_next"

    def lines() -> list[str]:
        return [text for _, text in secrecy.current.heard if said in text]

    for _ in range(2):
        assert app.sync_status()["problems"] == []
        user.phone.pass_time(4)
    app.session_status()
    user.phone.pass_time(6)
    [problem] = app.sync_status()["problems"]
    assert (problem["what"], problem["code"]) == ("host", "nobody_asks")
    user.phone.pass_time(60)
    assert len(app.sync_status()["problems"]) == 1
    assert len(lines()) == 1
    app.take(REQUESTS)
    assert app.sync_status()["problems"] == []


def test_NXT_5_a_host_that_has_nothing_to_send_is_no_problem(user: SignedIn) -> None:
    user.app.settle()
    for _ in range(5):
        user.phone.pass_time(20)
        assert user.app.sync_status()["problems"] == []


# Notices ------------------------------------------------------------------------------------------


def test_NXT_3_a_notice_comes_again_until_the_next_thing_is_asked_for(user: SignedIn) -> None:
    """Also over a kill between the two calls."""
    add(user.app, minutes=BAD_MINUTES)
    notice = notice_of(user.app)
    assert notice["type"] == "item_parked"
    for _ in range(2):
        app = user.restart(online=False)
        assert notice_of(app) == notice
    app.next(0)
    app = user.restart(online=False)
    app.settle()
    assert app.of_type("item_parked") == []


def test_NXT_3_a_killed_process_has_acknowledged_what_it_followed(user: SignedIn) -> None:
    ids = park_silently(user, 3)
    user.phone.close()
    script = children.command("asks_and_dies.py", user.phone.spec(), "2")
    ended = subprocess.run(
        script, env=children.environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == -9, ended.stderr
    told = ended.stdout.split()
    assert len(told) == 2
    app = user.restart(online=False)
    app.settle()
    assert reasons(app) == [told[1], *(set(ids) - set(told))]


def park_silently(user: SignedIn, count: int) -> list[str]:
    """Park items; nothing takes their notices. Returns their ids."""
    for _ in range(count):
        add(user.app, minutes=BAD_MINUTES)
    while user.app.queue_list({"limit": 1})["counts"]["parked"] < count:
        for request in user.app.take(REQUESTS).requests:
            answered(user.app, request)
    return [item["id"] for item in parked_items(user.app)]


def test_ATK_5_hundreds_of_notices_come_once_each(sign_in: MakeUser) -> None:
    user = sign_in(tables=RPC)
    park_silently(user, 450)
    ids = {item["id"] for item in parked_items(user.app)}
    app = user.restart(online=False)
    app.settle()
    told = reasons(app)
    assert len(told) == 450
    assert set(told) == ids
    wake = app.take().wake_in_ms
    assert wake is None or wake > 1000


def test_ATK_5_a_slow_host_is_not_kept_busy(user: SignedIn) -> None:
    park_silently(user, 3)
    app = user.restart(online=False)
    taken = app.take(REQUESTS)
    assert taken.requests == []
    assert taken.wake_in_ms is None or taken.wake_in_ms > 1000
    assert not readable(app.wake_fd(what=REQUESTS))
    assert readable(app.wake_fd(what=NEWS))


def test_ATK_5_notices_of_one_user_are_shown_to_no_other(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    ids = park_silently(user, 1)
    app = user.app
    app.session_logout()
    app.settle()
    assert reasons(app) == []
    app.sign_in(directory.person(user.org))
    other = park(app, 1)
    app.settle()
    assert reasons(app) == other
    app.session_logout()
    app.settle()
    app.sign_in(user.person)
    app.settle()
    assert reasons(app) == [*other, *ids]


def test_ATK_7_handles_that_tell_at_once_lose_nothing(user: SignedIn) -> None:
    first = user.app
    stop = threading.Event()
    failures: list[BaseException] = []
    told: set[str] = set()
    with second_handle(user) as second:

        def flicker() -> None:
            online = False
            try:
                while not stop.is_set():
                    second.network_report({"online": online})
                    online = not online
                    taken = second.take(NEWS).events
                    told.update(e["id"] for e in taken if e["type"] == "item_parked")
            except BaseException as error:
                failures.append(error)

        other = threading.Thread(target=flicker)
        other.start()
        items: list[str] = []
        try:
            while len(items) < RACES and not failures:
                items.append(add(first, minutes=BAD_MINUTES))
                for request in first.take().requests:
                    answered(first, request)
        finally:
            stop.set()
            other.join()
        second.take(NEWS)
    assert not failures, failures
    first.settle()
    told |= set(reasons(first)) | set(reasons(second))
    missing = {item["id"] for item in parked_items(first)} - told
    assert not missing, f"{len(missing)} of {len(items)} were never told"


def test_ATK_7_processes_that_tell_at_once_drop_no_answer(user: SignedIn) -> None:
    app = user.app
    workers = [start_worker(user.phone, 15, BAD_MINUTES) for _ in range(2)]
    mine: list[str] = []
    ended = False
    while not ended:
        ended = all(worker.poll() is not None for worker in workers)
        if len(mine) < 30:
            mine.append(add(app, minutes=BAD_MINUTES))
        for _ in range(20 if ended else 1):
            app.step()
    items = [item for worker in workers for item in finish_worker(worker)]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert len(items) == 30
    # Then no answer is dropped: each item is parked, and the notices here are of these items
    assert {item["id"] for item in parked_items(app)} == {*items, *mine}
    assert set(reasons(app)) <= {*items, *mine}


def test_ATK_7_a_file_that_replaces_one_without_its_key_has_notices_of_its_own(
    user: SignedIn,
) -> None:
    first = user.app
    add(first, minutes=BAD_MINUTES)
    notice_of(first)
    lose(user.phone)
    with second_handle(user) as second:
        until_lost(second)
        second.sign_in(user.person)
        [parked] = park(second, 1)
        first.settle()
        assert parked in {*reasons(first), *reasons(second)}


def test_ATK_7_a_file_that_replaces_a_damaged_one_tells_of_that(user: SignedIn) -> None:
    add(user.app, minutes=BAD_MINUTES)
    notice_of(user.app)
    app = restart_after(user)
    app.settle()
    assert [len(app.of_type(one)) for one in ("item_parked", "storage_recovered")] == [1, 1]


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process can grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# Responses ----------------------------------------------------------------------------------------


def test_NXT_4_a_response_that_storage_does_not_take_is_kept(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = user.app.register()
    app = user.app
    [request] = [r for r in app.take().requests if r["purpose"] == "upload"]
    answer = user.phone.network(request)
    with full_disk():
        assert app.raw("complete", {"id": request["id"], **answer}) == {}
        user.phone.pass_time(120)
        assert error_of(app.take).code == "storage.full"
    app.settle()
    assert stored(directory, user.person) == [item]
    assert user.phone.network.count("upload") == 1
    assert app.queue_list({"limit": 1})["counts"]["sending"] == 0


# The state of sync --------------------------------------------------------------------------------


def run_of(app: App) -> dict[str, Any]:
    """Settle until another run is complete; returns its event."""
    app.settle_until("sync_completed")
    return app.of_type("sync_completed")[-1]


def test_stored_items_are_named(sign_in: MakeUser) -> None:
    app = sign_in().app
    # The first two have other columns than the rest, so they are sent alone, and there is progress.
    good = sorted([*(add(app, note="first") for _ in range(2)), add(app)])
    bad = add(app, minutes=BAD_MINUTES)
    done = run_of(app)
    assert (sorted(done["ids"]), done["ids_truncated"]) == (good, False)
    progress = [one for one in app.of_type("sync") if one["running"]][-1]
    assert set(progress["ids"]) <= set(good)
    assert (len(progress["ids"]), progress["ids_truncated"]) == (progress["sent"], False)
    # A parked item is not among them, and the message does not say that everything was sent
    assert bad not in done["ids"]
    assert (done["sent"], done["parked"]) == (3, 1)
    assert done["message"]["code"] == "sync_completed_parked"
    # The next run names its own items only
    item = add(app)
    done = run_of(app)
    assert (done["ids"], done["message"]["code"]) == ([item], "sync_completed")


def test_a_run_that_only_parks_does_not_say_that_it_sent(sign_in: MakeUser) -> None:
    app = sign_in().app
    add(app, minutes=BAD_MINUTES)
    done = run_of(app)
    assert (done["sent"], done["parked"], done["ids"]) == (0, 1, [])
    assert done["message"]["code"] == "sync_completed_parked"


def test_a_run_that_leaves_items_waiting_says_so(user: SignedIn) -> None:
    app = user.app
    user.phone.network.alter.append(
        lambda request, answer: (
            {**answer, "status": 403, "body": '{"code":"42501"}'}
            if request["purpose"] == "upload" and "waits" in str(request["body"])
            else {**answer, "headers": {}, "body": "[]"}
            if request["purpose"] == "guard"
            else answer
        )
    )
    app.queue_add(
        {
            "kind": "activity",
            "payload": {"type": "visit", "minutes": 1},
            "occurred_at_ms": user.phone.now_ms,
        }
    )
    app.register(note="waits")
    done = run_of(app)
    assert (done["sent"], done["waiting"]) == (1, 1)
    assert done["message"]["code"] == "sync_completed_waiting"


def test_stored_ids_are_kept_over_a_restart_up_to_the_bound(user: SignedIn) -> None:
    ids = add_offline(user, 600)
    user.app.go_online()
    uploads = 0
    while not uploads:
        for request in user.app.poll()["requests"]:
            user.app.complete({"id": request["id"], **user.phone.network(request)})
            uploads += request["purpose"] == "upload"
    app = user.restart()
    done = run_of(app)
    assert (done["sent"], done["ids_truncated"]) == (len(ids), True)
    assert len(done["ids"]) == len(set(done["ids"])) == 500
    assert set(done["ids"]) <= set(ids)


def test_stored_ids_of_before_a_restart_are_named_after_it(user: SignedIn) -> None:
    network = user.phone.network
    user.app.go_offline()
    ids = {add(user.app), add(user.app, note="later")}
    user.app.go_online()
    network.alter.append(
        lambda request, answer: (
            {"error": "offline"}
            if request["purpose"] == "upload" and network.count("upload") > 1
            else answer
        )
    )
    user.app.settle()
    assert user.app.of_type("sync_completed") == []
    network.alter.clear()
    done = run_of(user.restart())
    assert (set(done["ids"]), done["ids_truncated"]) == (ids, False)


def test_the_run_of_a_cancelled_item_ends(user: SignedIn) -> None:
    app = user.app
    user.phone.network.up = False
    user.phone.network.failure = "dns"
    item = add(app)
    app.settle()
    app.queue_cancel({"id": item})
    user.phone.network.up = True
    ask_until_believed(app)
    add(app)
    done = run_of(app)
    assert (done["sent"], done["parked"]) == (1, 0)
    assert done["duration_ms"] < 60_000
