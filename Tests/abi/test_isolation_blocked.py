"""Items that something on the way to the service refuses, for instance a firewall (finding B2)."""

from __future__ import annotations

from statistics import mean

import pytest

from support.damage import destroy_header
from support.directory_fixtures import DirectoryFixtures
from support.held import unlock
from support.queue import (
    EMPTY,
    UPLOADS,
    add,
    ask_until_believed,
    code_of,
    drain,
    edit,
    in_doubt,
    item_of,
    stored,
    user_of,
)
from support.refusals import (
    HOUR_S,
    REFUSALS,
    WORDS,
    Firewall,
    coded,
    has_words,
    is_alone,
    is_store,
    live,
    patient,
)
from support.sizes import crossed, sized
from support.users import MakeUser, SignedIn


def sent_since(user: SignedIn, item: str, at: int, directory: DirectoryFixtures) -> float:
    """Live until the item is stored; returns how long it took since `at`."""
    live(user, 2 * HOUR_S, lambda: item in stored(directory, user.person))
    return (user.phone.now_ms - at) / 1000


@pytest.mark.parametrize(
    ("form", "upload"),
    crossed(
        REFUSALS, UPLOADS, fast=lambda *case: case in [("html", "table"), ("unauthorized", "rpc")]
    ),
)
def test_ATK_9_B2_an_item_that_a_firewall_refuses_is_parked_and_delays_no_other(
    sign_in: MakeUser, directory: DirectoryFixtures, form: str, upload: str
) -> None:
    user = patient(sign_in, upload)
    app = user.offline()
    ids = [add(app) for _ in range(13)]
    bad = add(app, note=WORDS)
    ids += [add(app) for _ in range(16)]
    firewall = Firewall(user, form, has_words)
    began_ms = user.phone.now_ms
    app.reconnect()
    assert stored(directory, user.person) == sorted(ids)
    [told] = app.of_type("sync_completed")
    assert (told["sent"], told["parked"], told["waiting"]) == (29, 0, 1)
    assert told["message"]["code"] == "sync_completed_waiting"
    shown = item_of(app, bad)
    assert (shown["state"], shown["reason"]["code"]) == ("waiting", "waiting_blocked")
    assert shown["not_before_ms"] > user.phone.now_ms
    [why] = app.queue_explain()["reasons"]
    assert (why["code"], why["count"]) == ("waiting_blocked", 1)
    assert why["until_ms"] == shown["not_before_ms"]
    assert app.sync_status()["not_before_ms"] is None
    waits: list[float] = []
    parked_ms = None
    for _ in range(sized(12, 36)):
        live(user, 2 * HOUR_S - 177)
        at = user.phone.now_ms
        ids.append(add(app))
        waits.append(sent_since(user, ids[-1], at, directory))
        if parked_ms is None and app.of_type("item_parked"):
            parked_ms = user.phone.now_ms
    assert stored(directory, user.person) == sorted(ids)
    assert mean(waits) < 1, waits
    assert max(waits) < 10, waits
    assert code_of(app, bad) == "blocked"
    [event] = app.of_type("item_parked")
    assert (event["id"], event["reason"]) == (bad, "blocked")
    assert app.queue_list()["counts"] == {**EMPTY, "parked": 1}
    assert parked_ms is not None
    assert 2 * HOUR_S < (parked_ms - began_ms) / 1000 < 9 * HOUR_S
    alone = [request for request in firewall.refused if is_alone(request, bad)]
    # A token that is refused is refreshed first, so each try takes two requests.
    most = 28 if form == "unauthorized" else 14
    assert 7 <= len(alone) <= most
    assert len(firewall.refused) <= most + 8
    assert sum(event["parked"] for event in app.of_type("sync_completed")) == 1
    assert sum(event["sent"] for event in app.of_type("sync_completed")) == len(ids)


@pytest.mark.parametrize(
    ("waited_h", "back_h"),
    crossed([0.05, 2], [0, 1, 4, 20], fast=lambda *case: case in [(2, 1), (0.05, 4)]),
)
def test_CLK_3_an_item_that_waits_alone_rests_after_a_reboot_with_a_clock_set_back(
    sign_in: MakeUser, waited_h: float, back_h: float
) -> None:
    user = user_of(sign_in, "table", policy={"pull_interval_s": 6 * HOUR_S, "biometric": "off"})
    firewall = Firewall(user, "html", has_words)
    bad = add(user.app, note=WORDS)
    user.app.settle()
    live(user, waited_h * HOUR_S)
    before = len(firewall.refused)
    user.phone.reboot(off_for_s=-back_h * HOUR_S)
    user.app = user.phone.start()
    steps = [user.app.step().idle for _ in range(40)]
    assert steps[-1]
    live(user, 600)
    assert code_of(user.app, bad) == "waiting_blocked"
    assert len(firewall.refused) - before <= 2


def test_ATK_9_B2_an_item_that_is_refused_while_nothing_else_is_sent_is_parked(
    sign_in: MakeUser,
) -> None:
    user = patient(sign_in)
    app = user.app
    firewall = Firewall(user, "html", has_words)
    bad = add(app, note=WORDS)
    app.settle()
    assert code_of(app, bad) == "waiting_blocked"
    took = live(user, 24 * HOUR_S, lambda: bool(app.of_type("item_parked")))
    assert 10 * HOUR_S < took < 20 * HOUR_S
    assert len(firewall.refused) <= 24
    assert code_of(app, bad) == "blocked"
    live(user, 48 * HOUR_S)
    assert len(firewall.refused) <= 24


@pytest.mark.parametrize(
    ("refused", "form"),
    crossed(
        ["everything", "the data service"],
        REFUSALS,
        fast=lambda *case: case in [("everything", "unauthorized"), ("the data service", "html")],
    ),
)
def test_ATK_9_a_portal_that_refuses_everything_parks_and_isolates_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, refused: str, form: str
) -> None:
    user = patient(sign_in)
    app = user.offline()
    ids = [add(app) for _ in range(20)]
    prefix = "/" if refused == "everything" else "/rest/v1/"
    portal = Firewall(user, form, lambda request: prefix in request["url"])
    app.go_online()
    hours = sized(6, 24)
    for _ in range(hours):
        live(user, HOUR_S)
        assert app.queue_list()["counts"] == {**EMPTY, "pending": 20}
        [why] = app.queue_explain()["reasons"]
        assert why["code"] in {"back_off", "token", "not_supabase"}
    # and the requests keep to the back-off, whose delays are random: about 57 an hour, and with a
    # refused token 64
    uploads = [request for request in portal.refused if request["purpose"] == "upload"]
    assert len(uploads) <= hours * (90 if form == "unauthorized" else 75)
    assert app.screen["screen"] == "home"
    portal.end()
    user.phone.network.forget()
    took = live(user, HOUR_S, lambda: len(stored(directory, user.person)) == 20)
    assert took <= 300
    assert stored(directory, user.person) == sorted(ids)
    assert len([request for request in user.phone.network.sent if is_store(request)]) <= 4
    assert app.of_type("item_parked") == []


def test_ATK_9_an_outage_is_no_try_of_an_item_that_was_refused_before(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = patient(sign_in)
    app = user.app
    firewall = Firewall(user, "html", has_words)
    ids = [add(app)]
    bad = add(app, note=WORDS)
    app.settle()
    ids.append(add(app))
    live(user, 24 * HOUR_S, lambda: len(firewall.refused) == 6)
    assert code_of(app, bad) == "waiting_blocked"
    firewall.end()
    portal = Firewall(user, "html", lambda request: "/rest/v1/" in request["url"])
    portal.answer = {**REFUSALS["html"], "status": 511}  # type: ignore[typeddict-item]
    live(user, 24 * HOUR_S)
    assert app.of_type("item_parked") == []
    assert len([request for request in portal.refused if is_alone(request, bad)]) > 3
    portal.end()
    live(user, 3 * HOUR_S, lambda: app.queue_list()["counts"] == EMPTY)
    assert stored(directory, user.person) == sorted([*ids, bad])


def test_ATK_9_visits_to_portals_park_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = patient(sign_in)
    app = user.app
    ids: list[str] = []
    for _ in range(sized(6, 12)):
        portal = Firewall(user, "html", lambda _: True)
        ids.append(add(app))
        live(user, 0.4 * HOUR_S)
        # (the phone leaves the portal's network without a word to the library)
        portal.end()
        took = live(user, HOUR_S, lambda: len(stored(directory, user.person)) == len(ids))
        assert took <= 300
        live(user, HOUR_S)
    assert app.of_type("item_parked") == []
    assert app.queue_list()["counts"] == EMPTY


def test_ATK_9_a_service_that_refuses_every_upload_for_hours_parks_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = patient(sign_in)
    app = user.offline()
    ids = [add(app) for _ in range(60)]
    gateway = Firewall(user, "html", is_store)
    app.go_online()
    hours = sized(4, 9)
    live(user, hours * HOUR_S)
    assert app.of_type("item_parked") == []
    assert len(gateway.refused) <= hours * 40
    gateway.end()
    live(user, 3 * HOUR_S, lambda: len(stored(directory, user.person)) == 60)
    assert stored(directory, user.person) == sorted(ids)
    assert app.queue_list()["counts"] == EMPTY


def test_ATK_9_a_bad_item_in_a_full_batch_costs_few_requests(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = patient(sign_in)
    app = user.offline()
    ids = [add(app) for _ in range(237)]
    bad = add(app, note=WORDS)
    ids += [add(app) for _ in range(262)]
    firewall = Firewall(user, "html", has_words)
    user.phone.network.forget()
    app.go_online()
    took = live(user, HOUR_S, lambda: code_of(app, bad) == "waiting_blocked")
    assert took < 1
    assert stored(directory, user.person) == sorted(ids)
    assert len(firewall.refused) <= 8
    assert user.phone.network.count("upload") <= 40


def test_ATK_9_a_row_that_was_stored_although_the_answer_was_refused_counts_as_sent(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = patient(sign_in)
    app = user.app
    user.phone.network.alter.append(
        lambda request, answer: REFUSALS["html"] if is_store(request) else answer
    )
    item = add(app)
    done = drain(app)
    assert (done["sent"], done["parked"]) == (1, 0)
    assert stored(directory, user.person) == [item]
    assert app.queue_list()["counts"] == EMPTY


# The user's control -------------------------------------------------------------------------------


def blocked(sign_in: MakeUser) -> tuple[SignedIn, Firewall, str]:
    """A user with an item that a firewall refuses, while it waits."""
    user = patient(sign_in)
    firewall = Firewall(user, "html", has_words)
    item = add(user.app, note=WORDS)
    user.app.settle()
    assert code_of(user.app, item) == "waiting_blocked"
    assert len(firewall.refused) == 1
    return user, firewall, item


def until_parked(user: SignedIn) -> None:
    """Live until the item is parked."""
    live(user, 24 * HOUR_S, lambda: bool(user.app.of_type("item_parked")))


def test_ATK_9_sync_now_keeps_the_item_s_own_pause(sign_in: MakeUser) -> None:
    # sync_now may be called by every pull-to-refresh: it must not use up the item's tries
    user, firewall, item = blocked(sign_in)
    until_ms = item_of(user.app, item)["not_before_ms"]
    for _ in range(20):
        assert user.app.sync_now() == {"started": True, "reason": None}
        user.app.settle()
    assert len(firewall.refused) == 1
    assert item_of(user.app, item)["not_before_ms"] == until_ms


def test_ATK_9_queue_retry_sends_the_item_at_once_and_uses_up_no_try(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user, firewall, item = blocked(sign_in)
    until_ms = item_of(user.app, item)["not_before_ms"]
    for turn in range(1, 25):
        assert user.app.queue_retry({"id": item})["retried"] == 1
        user.app.settle()
        assert len(firewall.refused) == 1 + turn
        shown = item_of(user.app, item)
        assert (shown["state"], shown["not_before_ms"]) == ("waiting", until_ms)
    firewall.end()
    user.app.queue_retry({"id": item})
    user.app.settle()
    assert stored(directory, user.person) == [item]


def test_ATK_9_a_parked_item_is_tried_once_more(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user, firewall, item = blocked(sign_in)
    app = user.app
    until_parked(user)
    firewall.refused.clear()
    other = add(app)
    assert app.queue_retry()["retried"] == 1
    app.settle()
    assert len(firewall.refused) == 1
    assert is_alone(firewall.refused[0], item)
    assert code_of(app, item) == "blocked"
    assert len(app.of_type("item_parked")) == 2
    assert stored(directory, user.person) == [other]
    edit(app, item, 5, note="plain")
    app.settle()
    assert stored(directory, user.person) == sorted([item, other])


def test_ATK_9_an_edit_while_the_item_waits_is_sent_at_once(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user, _, item = blocked(sign_in)
    edit(user.app, item, 5, note="plain")
    user.app.settle()
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize("state", ["waiting", "parked"])
def test_ATK_9_a_refused_item_can_be_cancelled(sign_in: MakeUser, state: str) -> None:
    user, _, item = blocked(sign_in)
    if state == "parked":
        until_parked(user)
    # While it waits, the server is asked first; before it was parked, the server was asked
    reply = user.app.queue_cancel({"id": item})
    assert reply["state"] == ("pending" if state == "waiting" else None)
    ask_until_believed(user.app)
    assert user.app.queue_get({"id": item})["state"] == "cancelled"


def test_ATK_9_the_figures_are_pulled_while_an_item_is_refused(sign_in: MakeUser) -> None:
    # The server was asked: it does not have the item, so no figure can count it twice
    user, _, _ = blocked(sign_in)
    user.phone.network.forget()
    user.app.sync()
    assert user.phone.network.count("summary") == 1


# Restarts and damage ------------------------------------------------------------------------------


@pytest.mark.parametrize("after", ["restart", "salvage"])
def test_ATK_9_the_tries_are_counted_over_restarts_and_salvages(
    sign_in: MakeUser, directory: DirectoryFixtures, after: str
) -> None:
    user = patient(sign_in)
    app = user.app
    firewall = Firewall(user, "html", has_words)
    bad = add(app, note=WORDS)
    ids: list[str] = []
    for turn in range(14):
        ids.append(add(app))
        app.settle()
        live(user, HOUR_S, lambda: bool(user.app.of_type("item_parked")))
        if app.of_type("item_parked"):
            break
        if after == "salvage" and turn == 2:
            user.phone.close()
            destroy_header(user.phone.folder)
        app = user.restart()
        unlock(user)
        app.settle()
    assert app.of_type("item_parked")[0]["id"] == bad
    assert code_of(app, bad) == "blocked"
    assert 5 <= len([request for request in firewall.refused if is_alone(request, bad)]) <= 16
    assert set(ids) <= set(stored(directory, user.person))


def test_ATK_12_a_cancel_of_a_blocked_item_asks_the_server_that_has_not_said_whether_it_has_it(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = patient(sign_in)
    app = user.app
    item = in_doubt(user, directory, note=WORDS)
    Firewall(user, "html", has_words)
    user.phone.network.alter.append(
        lambda request, answer: (
            coded(500, "55P03")
            if (request["purpose"], request["method"]) == ("upload", "GET")
            else answer
        )
    )
    app.go_online()
    live(user, 24 * HOUR_S, lambda: item_of(app, item)["state"] == "parked")
    assert code_of(app, item) == "blocked"
    user.phone.network.alter.clear()
    assert app.queue_cancel({"id": item})["state"] == "pending"
    live(user, HOUR_S, lambda: item_of(app, item)["state"] == "parked")
    assert code_of(app, item) == "unknown_outcome"
