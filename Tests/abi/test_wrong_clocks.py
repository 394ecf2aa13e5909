"""ATK-10, B3: a clock that was wrong and is corrected delays nothing and hurries nothing."""

from __future__ import annotations

import email.utils
import json
from datetime import datetime
from typing import Any, cast

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from patience import eventually

from support import own_rows
from support import sign_in as browser
from support.directory_fixtures import DirectoryFixtures, Person
from support.held import answer, hold, taken, unlock
from support.phone import TOKEN_S, App, Phone
from support.queue import EMPTY, add, add_offline, code_of, item_of, stored
from support.refusals import coded
from support.screens import seen, why
from support.sizes import crossed
from support.users import MakePhone, MakeUser, SignedIn
from support.workers import finish_worker, start_worker

HOUR_S = 3600
YEAR_S = 365 * 24 * HOUR_S
UPLOAD = "/rest/v1/activities"
MEMBERSHIPS = "/rest/v1/memberships"
#: Longer than any pause that no server asked for.
ORDINARY_S = 600
#: The service's own answers: the table is missing; there is no connection to the database.
NO_TABLE = {"code": "PGRST205", "message": "Could not find the table"}
BROKEN = {"code": "42P17", "message": "infinite recursion detected in policy"}
BUSY = {"code": "PGRST001", "message": "no connection"}
#: What makes items wait: a missing table puts off its items, a busy service all uploads.
CAUSES = {"items put off": (404, NO_TABLE), "uploads paused": (503, BUSY)}
ANY_CAUSE = pytest.mark.parametrize("cause", CAUSES)
AFTERWARDS = ["the app goes on", "the app starts again"]


def is_fast(cause: str, after: str, wrong_s: int) -> bool:
    """Each error of the clock once, with each cause and each sequel."""
    short = abs(wrong_s) < YEAR_S
    return (cause == "items put off") == (wrong_s < 0) and (after == AFTERWARDS[0]) == short


def follow_true_time(phone: Phone, by_s: int = 0) -> list[int]:
    """From now on the servers keep true time, and the phone's clock is moved by so much.

    Returns how far it is off, in seconds.
    """
    wrong_s = [0]
    ahead_ms = phone.ahead_ms
    phone.network.ahead_ms = lambda: ahead_ms() - 1000 * wrong_s[0]
    move(phone, wrong_s, by_s)
    return wrong_s


def move(phone: Phone, wrong_s: list[int], by_s: int) -> None:
    """Move the phone's clock; true time does not move."""
    wrong_s[0] += by_s
    phone.set_wall_clock(by_s)


def at_home(user: SignedIn, after: str = "the app goes on") -> App:
    """The app, unlocked, in the same process or in the next one."""
    if after == "the app starts again":
        ahead_ms = user.phone.network.ahead_ms
        user.restart()
        user.phone.network.ahead_ms = ahead_ms
    unlock(user)
    user.app.settle()
    assert user.app.screen["screen"] == "home"
    return user.app


def put_off(
    user: SignedIn, directory: DirectoryFixtures, cause: str, asked_s: int | None = None
) -> str:
    """Add an item whose upload fails once; returns its id."""
    status, body = CAUSES[cause]
    directory.control.respond(
        UPLOAD, status, body=body, times=1, method="POST", retry_after_s=asked_s
    )
    item = add(user.app)
    user.app.settle()
    assert directory.control.count(UPLOAD, "POST") == 1
    return item


def pass_time(user: SignedIn, seconds: int) -> None:
    """Let time pass in a running app."""
    for _ in range(10):
        user.app.wait(seconds / 10)


# MARK: The same boot


@pytest.mark.parametrize(
    ("cause", "after", "wrong_s"),
    crossed(CAUSES, AFTERWARDS, [-YEAR_S, -90 * 60, 20 * HOUR_S, YEAR_S], fast=is_fast),
)
def test_ATK_10_a_corrected_clock_does_not_prolong_a_wait(
    sign_in: MakeUser, directory: DirectoryFixtures, cause: str, after: str, wrong_s: int
) -> None:
    user = sign_in(policy={"offline_limit_s": 10 * YEAR_S})
    wrong = follow_true_time(user.phone, wrong_s)
    item = put_off(user, directory, cause)
    move(user.phone, wrong, -wrong_s)
    at_home(user, after)
    pass_time(user, ORDINARY_S)
    assert stored(directory, user.person) == [item]
    assert user.app.queue_list()["counts"] == EMPTY


@pytest.mark.parametrize(
    ("after", "wrong_s"),
    crossed(
        AFTERWARDS,
        [-YEAR_S, -12 * 24 * HOUR_S, -90 * 60],
        fast=lambda after, wrong_s: (after == AFTERWARDS[1]) == (wrong_s == -YEAR_S),
    ),
)
def test_ATK_10_a_date_without_the_server_s_time_asks_for_no_long_pause(
    sign_in: MakeUser, directory: DirectoryFixtures, after: str, wrong_s: int
) -> None:
    user = sign_in(policy={"offline_limit_s": 10 * YEAR_S})
    wrong = follow_true_time(user.phone, wrong_s)
    true_s = user.phone.now_ms / 1000 - wrong_s
    after = email.utils.formatdate(true_s + 60, usegmt=True)
    answer: Answer = {"status": 503, "headers": {"retry-after": after}, "body": json.dumps(BUSY)}
    user.phone.network.instead.append(
        lambda request: answer if request["purpose"] == "upload" else None
    )
    item = add(user.app)
    user.app.settle()
    assert user.phone.network.count("upload") == 1
    user.phone.network.instead.clear()
    move(user.phone, wrong, -wrong_s)
    at_home(user, after)
    pass_time(user, ORDINARY_S)
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize(
    ("cause", "after", "wrong_s"),
    crossed(CAUSES, AFTERWARDS, [-YEAR_S, -90 * 60, 90 * 60, YEAR_S], fast=is_fast),
)
def test_ATK_10_a_corrected_clock_does_not_shorten_what_a_server_asked_for(
    sign_in: MakeUser, directory: DirectoryFixtures, cause: str, after: str, wrong_s: int
) -> None:
    user = sign_in(policy={"offline_limit_s": 10 * YEAR_S})
    wrong = follow_true_time(user.phone, wrong_s)
    item = put_off(user, directory, cause, asked_s=HOUR_S)
    move(user.phone, wrong, -wrong_s)
    at_home(user, after)
    pass_time(user, HOUR_S - 60)
    assert directory.control.count(UPLOAD, "POST") == 1
    pass_time(user, 60 + ORDINARY_S)
    assert stored(directory, user.person) == [item]


def test_ATK_10_what_the_host_is_told_agrees_with_what_is_done(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    wrong = follow_true_time(user.phone)
    put_off(user, directory, "uploads paused", asked_s=HOUR_S)
    for by_s in (YEAR_S, -2 * YEAR_S):
        move(user.phone, wrong, by_s)
        status = user.app.sync_status()
        (reason,) = user.app.queue_explain()["reasons"]
        assert status["not_before_ms"] == reason["until_ms"]
        left_ms = cast("int", status["not_before_ms"]) - user.phone.now_ms
        assert HOUR_S * 1000 <= left_ms <= (HOUR_S + 300) * 1000
    pass_time(user, HOUR_S + ORDINARY_S)
    assert user.app.sync_status()["not_before_ms"] is None


def test_ATK_10_the_time_until_which_an_item_waits_is_told_by_the_present_clock(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    wrong = follow_true_time(user.phone, YEAR_S)
    item = put_off(user, directory, "items put off")
    move(user.phone, wrong, -YEAR_S)
    told = item_of(user.app, item)["not_before_ms"]
    assert 0 < told - user.phone.now_ms <= ORDINARY_S * 1000
    (reason,) = user.app.queue_explain()["reasons"]
    assert (reason["code"], reason["until_ms"]) == ("schema_not_ready", told)


@pytest.mark.parametrize("by_s", [YEAR_S, -YEAR_S])
def test_ATK_10_a_moved_clock_takes_no_items_from_a_living_process(
    sign_in: MakeUser, directory: DirectoryFixtures, by_s: int
) -> None:
    user = sign_in(policy={"offline_limit_s": 10 * YEAR_S})
    ids = add_offline(user, 5)
    user.phone.close()
    user.phone.network.up = True
    hanging = directory.control.hang(UPLOAD, method="POST")
    worker = start_worker(user.phone, 0, 1)
    eventually(lambda: directory.control.faults()[0]["hits"], what="the batch is under way")
    assert worker.poll() is None
    follow_true_time(user.phone, by_s)
    at_home(user, "the app starts again")
    assert user.phone.network.count("upload") == 0
    assert user.app.queue_list()["counts"]["sending"] == len(ids)
    worker.kill()
    finish_worker(worker)
    directory.control.clear_faults(hanging)
    pass_time(user, 60)
    assert stored(directory, user.person) == sorted(ids)


def test_ATK_10_a_clock_that_is_corrected_during_a_sign_in_does_not_end_it(
    phones: MakePhone, person: Person
) -> None:
    phone = phones()
    wrong = follow_true_time(phone)
    app = phone.start()
    move(phone, wrong, YEAR_S)
    callback = browser.browse(browser.begin(app)["url"])
    move(phone, wrong, -YEAR_S)
    app.sign_in_complete({"callback_url": callback})
    app.settle()
    assert app.screen["screen"] == "home"


def test_ATK_10_the_duration_of_a_run_is_the_time_that_passed(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    wrong = follow_true_time(user.phone, -YEAR_S)
    put_off(user, directory, "uploads paused")
    move(user.phone, wrong, YEAR_S)
    pass_time(user, ORDINARY_S)
    (done,) = user.app.of_type("sync_completed")
    assert 0 < done["duration_ms"] <= ORDINARY_S * 1000


# MARK: Another boot


@pytest.mark.parametrize(
    ("cause", "wrong_s"),
    crossed(
        CAUSES,
        [-YEAR_S, 20 * HOUR_S, YEAR_S],
        fast=lambda cause, wrong_s: (cause == "uploads paused") == (wrong_s > YEAR_S - 1),
    ),
)
def test_ATK_10_across_boots_a_wait_is_bounded(
    sign_in: MakeUser, directory: DirectoryFixtures, cause: str, wrong_s: int
) -> None:
    user = sign_in(policy={"offline_limit_s": 10 * YEAR_S})
    wrong = follow_true_time(user.phone, wrong_s)
    item = put_off(user, directory, cause)
    user.phone.reboot()
    move(user.phone, wrong, -wrong_s)
    at_home(user, "the app starts again")
    pass_time(user, ORDINARY_S)
    assert stored(directory, user.person) == [item]


@ANY_CAUSE
def test_ATK_10_across_boots_what_a_server_asked_for_is_kept(
    sign_in: MakeUser, directory: DirectoryFixtures, cause: str
) -> None:
    user = sign_in()
    item = put_off(user, directory, cause, asked_s=HOUR_S)
    user.phone.reboot(off_for_s=600)
    at_home(user, "the app starts again")
    pass_time(user, 2700)
    assert directory.control.count(UPLOAD, "POST") == 1
    pass_time(user, 300 + ORDINARY_S)
    assert stored(directory, user.person) == [item]


def test_ATK_10_a_wrong_clock_at_the_start_of_a_boot_does_not_matter_afterwards(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"offline_limit_s": 10 * YEAR_S})
    wrong = follow_true_time(user.phone)
    user.phone.reboot()
    move(user.phone, wrong, -YEAR_S)
    at_home(user, "the app starts again")
    item = put_off(user, directory, "items put off", asked_s=HOUR_S)
    move(user.phone, wrong, YEAR_S)
    pass_time(user, HOUR_S - 60)
    assert directory.control.count(UPLOAD, "POST") == 1
    pass_time(user, 60 + ORDINARY_S)
    assert stored(directory, user.person) == [item]


# MARK: sync_now


@ANY_CAUSE
def test_ATK_10_sync_now_sends_what_no_server_put_off(
    sign_in: MakeUser, directory: DirectoryFixtures, cause: str
) -> None:
    user = sign_in()
    item = put_off(user, directory, cause)
    assert user.app.sync_status()["pause"] == ("back_off" if cause == "uploads paused" else None)
    assert user.app.sync_now() == {"started": True, "reason": None}
    user.app.settle()
    assert stored(directory, user.person) == [item]


def test_ATK_10_sync_now_leaves_alone_the_items_that_a_server_put_off(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    item = put_off(user, directory, "items put off", asked_s=HOUR_S)
    told = item_of(user.app, item)
    assert (told["state"], told["reason"]["code"]) == ("waiting", "server_pause")
    (reason,) = user.app.queue_explain()["reasons"]
    assert (reason["code"], reason["until_ms"]) == ("server_pause", told["not_before_ms"])
    user.app.sync()
    assert item_of(user.app, item)["not_before_ms"] == told["not_before_ms"]
    assert directory.control.count(UPLOAD, "POST") == 1
    pass_time(user, HOUR_S + ORDINARY_S)
    assert stored(directory, user.person) == [item]


def test_ATK_10_sync_now_leaves_alone_the_pause_that_a_server_asked_for(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    item = put_off(user, directory, "uploads paused", asked_s=HOUR_S)
    assert user.app.sync_now() == {"started": False, "reason": "server_pause"}
    assert user.app.sync_status()["pause"] == "server_pause"
    (reason,) = user.app.queue_explain()["reasons"]
    assert reason["code"] == "server_pause"
    assert code_of(user.app, item) is None
    pass_time(user, HOUR_S - 60)
    assert directory.control.count(UPLOAD, "POST") == 1
    pass_time(user, 60 + ORDINARY_S)
    assert stored(directory, user.person) == [item]


# MARK: Pauses


def test_ATK_10_a_later_failure_does_not_shorten_what_the_server_asked_for(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    first = user.app
    items = [add(first)]
    one = taken(user, "upload")
    user.app = user.phone.another()
    try:
        items.append(add(user.app))
        other = taken(user, "upload")
        asked: Any = {**coded(503, "PGRST001"), "headers": {"retry-after": str(HOUR_S)}}
        first.complete({"id": one["id"], **asked})
        user.app.complete({"id": other["id"], "status": 502, "body": "<html>"})
    finally:
        first.close()
    assert user.app.sync_now()["reason"] == "server_pause"
    pass_time(user, HOUR_S - 60)
    assert directory.control.count(UPLOAD, "POST") == 0
    pass_time(user, 60 + ORDINARY_S)
    assert stored(directory, user.person) == sorted(items)


# MARK: The session window


def test_ATK_10_a_clock_that_is_held_back_does_not_extend_the_session_window(
    sign_in: MakeUser,
) -> None:
    user = sign_in(policy={"session_window_s": 12 * HOUR_S})
    user.app.go_offline()
    for _ in range(11):
        user.phone.pass_time(HOUR_S)
        user.phone.set_wall_clock(-HOUR_S)
        assert user.app.session_foreground()["screen"] == "home"
    user.phone.pass_time(HOUR_S + 60)
    user.phone.set_wall_clock(-HOUR_S)
    screen = user.app.session_foreground()
    assert seen(screen) == ("unlock", "session_window")


def test_ATK_10_the_window_goes_on_in_another_process(sign_in: MakeUser) -> None:
    user = sign_in(policy={"session_window_s": HOUR_S // 2})
    user.phone.pass_time(HOUR_S // 2 + 60)
    user.phone.set_wall_clock(-HOUR_S // 2)
    screen = user.restart(online=False).screen
    assert seen(screen) == ("unlock", "session_window")


def test_ATK_10_memberships_listed_under_a_clock_that_was_behind_stay_valid(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"session_window_s": 10**6, "background_timeout_s": 10**6})
    wrong = follow_true_time(user.phone, -30 * 24 * HOUR_S)
    listed = directory.control.count(MEMBERSHIPS, "GET")
    user.app.session_lock()
    user.app.touch()
    user.app.settle()
    assert directory.control.count(MEMBERSHIPS, "GET") > listed
    move(user.phone, wrong, 30 * 24 * HOUR_S)
    directory.control.respond(MEMBERSHIPS, 500, body=BROKEN, times=-1, method="GET")
    refreshes = directory.refreshes()
    user.app.wait(TOKEN_S + 60)
    assert directory.refreshes() == refreshes + 1
    assert user.app.screen["screen"] == "home"
    item = add(user.app)
    user.app.settle()
    assert item in stored(directory, user.person)
    as_of_ms = user.app.org_list()["as_of_ms"]
    assert as_of_ms is not None
    assert 0 <= user.phone.now_ms - as_of_ms < 2 * TOKEN_S * 1000


def test_ATK_10_a_clock_that_was_behind_at_sign_in_does_not_end_the_window(
    sign_in: MakeUser,
) -> None:
    user = sign_in()
    wrong = follow_true_time(user.phone, -YEAR_S)
    user.app.session_lock()
    user.app.touch()
    user.app.settle()
    move(user.phone, wrong, YEAR_S)
    assert user.app.session_foreground()["screen"] == "home"


def test_ATK_10_across_boots_the_window_counts_by_the_device_s_clock(sign_in: MakeUser) -> None:
    user = sign_in(policy={"session_window_s": HOUR_S // 2})
    user.phone.reboot(off_for_s=HOUR_S // 2 + 60)
    assert why(user.restart(online=False).screen) == "session_window"
    user.phone.reboot()
    user.phone.set_wall_clock(-2 * HOUR_S)
    assert why(user.restart(online=False).screen) == "clock_moved_back"


# MARK: The server's time

STRANGERS: dict[str, dict[str, Any]] = {
    "a portal's page": {"status": 200, "body": "<html>Log in</html>"},
    "a portal's JSON": {"status": 200, "body": '{"portal":"please log in"}'},
    "a gateway": {"status": 503, "body": "<html>"},
    "a firewall": {"status": 403, "body": '{"code":"access_denied"}'},
    "a redirect": {"status": 302, "body": ""},
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_ATK_10_only_the_service_itself_corrects_the_server_s_time(
    sign_in: MakeUser, directory: DirectoryFixtures, stranger: str
) -> None:
    user = sign_in(contacts=1)
    user.app.settle()
    assert abs(user.app.session_status()["clock_offset_ms"]) < 5000
    headers = {"Date": "Tue, 01 Jan 2019 00:00:00 GMT"}
    user.phone.network.instead.append(
        lambda _request: cast("Answer", {**STRANGERS[stranger], "headers": headers})
    )
    for contact in user.app.contact_search({"query": ""})["contacts"]:
        user.app.contact_get({"id": contact["id"], "live": True})
    add(user.app)
    user.restart()
    unlock(user)
    pass_time(user, ORDINARY_S)
    user.app.wait(2 * HOUR_S)
    assert len(set(user.phone.network.purposes())) > 2
    assert abs(user.app.session_status()["clock_offset_ms"]) < 5000


@pytest.mark.parametrize("purpose", ["guard", "pull", "upload", "validate", "refresh"])
def test_ATK_10_each_of_the_services_corrects_the_server_s_time(
    sign_in: MakeUser, directory: DirectoryFixtures, purpose: str
) -> None:
    user = sign_in(contacts=1)

    def only(request: HttpRequest) -> Answer | None:
        return None if request["purpose"] == purpose else {"error": "timeout"}

    user.phone.network.instead.append(only)
    follow_true_time(user.phone, -24 * HOUR_S)
    if purpose == "refresh":
        user.phone.pass_time(HOUR_S)
    if purpose == "upload":
        add(user.app)
    if purpose == "validate":
        user.app.go_offline()
        user.app.go_online()
    user.app.sync()
    offset_ms = user.app.session_status()["clock_offset_ms"]
    assert abs(offset_ms - 24 * HOUR_S * 1000) < 5000


def dated(user: SignedIn, by_s: float | None, age_s: int = 0) -> None:
    """From now on each answer has a `Date` that is wrong by so much, or none, and an `Age`."""

    def change(_request: HttpRequest, answer: Answer) -> Answer:
        if "status" not in answer:
            return answer
        headers = {name: text for name, text in answer["headers"].items() if name != "date"}
        if by_s is not None:
            moment = email.utils.parsedate_to_datetime(answer["headers"]["date"]).timestamp()
            headers["date"] = email.utils.formatdate(moment + by_s, usegmt=True)
        if age_s:
            headers["age"] = str(age_s)
        return {**answer, "headers": headers}

    user.phone.network.alter.append(change)


@pytest.mark.parametrize("by_s", [-400 * 24 * HOUR_S, -5 * HOUR_S, 5 * HOUR_S, 500 * 24 * HOUR_S])
def test_ATK_10_a_date_at_which_the_token_is_not_valid_is_not_the_service_s(
    sign_in: MakeUser, directory: DirectoryFixtures, by_s: int
) -> None:
    # Given a phone whose clock is right, and a gateway whose clock is wrong
    user = sign_in(tables=own_rows.tables(), policy={"biometric": "preferred"})
    made = own_rows.insert(directory, user.person, user.org, count=3)
    dated(user, by_s)
    # When answers come, of a refresh, too
    own_rows.pull(user, after_s=30)
    user.app.wait(TOKEN_S)
    own_rows.pull(user, after_s=30)
    # Then its time is not taken: the token is valid, now is now, and no row is too old
    assert abs(user.app.session_status()["clock_offset_ms"]) < 5000
    assert own_rows.ids(user.app) == made
    request: Any = {"kind": "activity", "payload": {"type": "visit", "minutes": 5}}
    item = str(user.app.queue_add(request)["id"])
    assert abs(item_of(user.app, item)["occurred_at_ms"] - user.phone.now_ms) < 5000
    refreshes = directory.refreshes()
    user.phone.network.up = False
    assert seen(user.restart(online=False).screen) == ("home", None)
    assert directory.refreshes() == refreshes


@pytest.mark.parametrize("by_s", [-2 * YEAR_S, 2 * YEAR_S])
def test_ATK_10_where_no_answer_tells_the_time_the_token_bounds_it(
    sign_in: MakeUser, directory: DirectoryFixtures, by_s: int
) -> None:
    # Given answers without a date, and a clock that jumps
    user = sign_in(tables=own_rows.tables())
    made = own_rows.insert(directory, user.person, user.org, count=3)
    own_rows.pull(user, after_s=30)
    dated(user, None)
    true_ms = user.phone.now_ms
    follow_true_time(user.phone, by_s)
    # When own rows are pulled, and when the token is refreshed
    own_rows.pull(user, after_s=30)
    assert own_rows.ids(user.app) == made
    for _ in range(2):
        offset_ms = user.app.session_status()["clock_offset_ms"]
        assert abs(user.phone.now_ms + offset_ms - true_ms) <= (TOKEN_S + 90) * 1000
        true_ms += TOKEN_S * 1000
        user.app.wait(TOKEN_S)


@pytest.mark.parametrize(("age_s", "expected_s"), [(0, -1200), (1200, 0)])
def test_ATK_10_an_answer_that_a_cache_has_kept_tells_its_age(
    sign_in: MakeUser, age_s: int, expected_s: int
) -> None:
    user = sign_in()
    user.app.wait(TOKEN_S // 2)
    dated(user, -1200, age_s)
    user.app.sync()
    assert abs(user.app.session_status()["clock_offset_ms"] - 1000 * expected_s) < 5000


def test_time_away_counts_in_the_boot_in_which_the_app_left_again(sign_in: MakeUser) -> None:
    user = sign_in(policy={"biometric": "off", "session_window_s": 10**7})
    user.phone.set_wall_clock(30 * 86_400)
    user.app.session_background()
    user.phone.reboot()
    user.phone.now_ms -= 30 * 86_400_000
    app = user.phone.open()
    app.session_background()
    user.phone.close()
    user.phone.pass_time(360)
    screen = user.phone.start().screen
    assert seen(screen) == ("sign_in", "biometric_off")


# The time of an item that was added without one ---------------------------------------------------


def occurred_ms(directory: DirectoryFixtures, person: Person, item: str) -> int:
    """When the item occurred, as the server has it."""
    [row] = [row for row in directory.activities(person) if str(row["id"]) == item]
    return int(datetime.fromisoformat(str(row["occurred_at"])).timestamp() * 1000)


@pytest.mark.parametrize("by_s", [24 * HOUR_S, -24 * HOUR_S, -30 * YEAR_S])
@pytest.mark.parametrize("after", AFTERWARDS)
def test_FIX_13_an_item_without_a_time_gets_the_server_s_where_it_is_known(
    sign_in: MakeUser, directory: DirectoryFixtures, by_s: int, after: str
) -> None:
    user = sign_in()
    follow_true_time(user.phone, by_s)
    user.app.network_report({"online": False})
    user.app.network_report({"online": True})
    app = at_home(user, after)
    request: Any = {"kind": "activity", "payload": {"type": "visit", "minutes": 5}}
    item = str(app.queue_add(request)["id"])
    true_ms = user.phone.now_ms - 1000 * by_s
    shown = item_of(app, item)["occurred_at_ms"]
    assert abs(shown - true_ms) < 60_000
    app.settle()
    assert stored(directory, user.person) == [item]
    # The directory's time is the machine's
    assert abs(occurred_ms(directory, user.person, item) - true_ms) < 60_000


def test_FIX_13_before_any_answer_the_device_s_clock_counts(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    phone = phones(tables={"memberships": None}, routes={"user": {"home": "/", "screens": ["*"]}})
    person = directory.person(directory.organisation())
    app = phone.start(online=False)
    app.session_adopt({"session": phone.session(person)})
    assert app.screen["screen"] == "home"
    request: Any = {"kind": "activity", "payload": {"type": "visit", "minutes": 5}}
    assert item_of(app, app.queue_add(request)["id"])["occurred_at_ms"] == phone.now_ms
    # A time that the host gives is stored as it is
    given = {**request, "occurred_at_ms": phone.now_ms - 90_000}
    assert item_of(app, app.queue_add(given)["id"])["occurred_at_ms"] == phone.now_ms - 90_000


def test_FIX_13_an_item_with_an_id_of_the_host_s_is_the_same_when_it_is_added_again(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    """With a time of the library's it would be another item each time."""
    user = sign_in()
    app = user.app
    app.network_report({"online": False})
    request: Any = {
        "kind": "activity",
        "id": "0d000000-0000-7000-8000-00000000000d",
        "payload": {"type": "visit", "minutes": 5},
    }
    first = app.queue_add(request)
    for seconds in (1, HOUR_S):
        user.phone.pass_time(seconds)
        assert app.queue_add(request) == first
    assert item_of(app, first["id"])["occurred_at_ms"] is None


# Own rows ---------------------------------------------------------------------------------------


def test_COR_11_a_clock_that_jumps_ahead_empties_no_list(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(tables=own_rows.tables())
    made = own_rows.insert(directory, user.person, user.org, count=3)
    own_rows.pull(user, after_s=30)
    assert own_rows.ids(user.app) == made
    # It jumps before the rows are asked for, and their answer tells the time.
    user.app.sync_now()
    answer(user.app, hold(user.app, lambda url: "/contacts?" in url))
    follow_true_time(user.phone, 2 * YEAR_S)
    user.app.settle()
    assert own_rows.ids(user.app) == made
