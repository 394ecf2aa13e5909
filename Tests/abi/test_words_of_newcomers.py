"""Issue 16: what five newcomers tripped over who wrote hosts from the documentation alone."""

from __future__ import annotations

import json

import pytest
from holdfast import HoldfastError, Library
from holdfast.transport import Answer

from conftest import MakePhone, MakeUser
from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.held import answer, fill, hold, page, total
from support.phone import App, Phone
from support.sign_in import begin, browse, finish

PAGE = {"content-type": "text/html"}


def shown(app: App) -> tuple[str, str, str | None]:
    """The screen, its reason, and the cause that its message names."""
    message = app.screen["message"] or {}
    return app.screen["screen"], app.screen["reason"], message.get("cause")


# ---- Addresses of other servers ----------------------------------------------------------------


#: What stands in the way of the first request, and the cause that the waiting user is told.
ON_THE_WAY: dict[str, tuple[Answer, str]] = {
    "nothing listens": ({"error": "refused"}, "refused"),
    "another certificate": ({"error": "tls"}, "tls"),
    "no answer": ({"error": "timeout"}, "timeout"),
    "a page": ({"status": 200, "headers": PAGE, "body": "<html>"}, "not_supabase"),
    "a page that forbids": ({"status": 403, "headers": PAGE, "body": "<html>"}, "not_supabase"),
    "elsewhere": ({"status": 302, "headers": {"location": "/"}, "body": ""}, "not_supabase"),
}


@pytest.mark.parametrize("address", ON_THE_WAY)
def test_HST_4_who_waits_for_a_sign_in_learns_at_once_why_it_is_tried_again(
    phone: Phone, person: Person, library: Library, address: str
) -> None:
    """Newcomers' finding 3: a wrong address was told after a minute."""
    given, cause = ON_THE_WAY[address]
    lines: list[str] = []
    app = phone.start()
    library.set_log(1, lambda level, line: lines.append(line))
    phone.network.instead.append(lambda request: given)
    start = phone.monotonic_ms
    finish(app, browse(begin(app)["url"]))
    # When the first request has failed
    app.settle()
    # Then the wait goes on, and its message names the cause
    assert phone.monotonic_ms - start < 1000
    assert shown(app) == ("wait", "signing_in", cause)
    message = app.screen["message"]
    assert message is not None
    assert message["text"] == "Vi har ikke fått kontakt ennå. Vi prøver fortsatt …"
    assert [line for line in lines if "tried again" in line and cause in line], lines
    # and once is enough, however often it is tried
    told = len(app.of_type("decision"))
    for _ in range(25):
        if phone.network.count("sign_in") == 1:
            phone.pass_time(1)
            app.settle()
    assert phone.network.count("sign_in") > 1
    assert len(app.of_type("decision")) == told
    # and when the way is free within the minute, the user is in
    phone.network.instead.clear()
    app.settle_until("decision", within_s=30)
    assert app.screen["screen"] == "home"


#: Answers after which another try is of no use.
OTHER_SERVERS = {
    "a server that takes no POST": 501,
    "a server that takes no POST there": 405,
}


@pytest.mark.parametrize("body", ["<html>Unsupported method", json.dumps({"detail": "no"})])
@pytest.mark.parametrize("other", OTHER_SERVERS)
def test_HST_4_a_server_that_is_not_supabase_ends_the_sign_in(
    phone: Phone, person: Person, other: str, body: str
) -> None:
    """Newcomers' finding 3: `python3 -m http.server` answers 501. That was told after a minute,
    and without a cause."""
    given: Answer = {"status": OTHER_SERVERS[other], "headers": PAGE, "body": body}
    app = phone.start()
    phone.network.instead.append(lambda request: given)
    app.sign_in_complete({"email": person.email, "password": PASSWORD})
    app.settle()
    assert shown(app) == ("sign_in", "sign_in_failed", "not_supabase")


# ---- The first pull ----------------------------------------------------------------------------


def test_OFF_3_a_first_pull_under_way_is_not_an_empty_cache(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    """Newcomers' finding 4: the banner said that there is nothing, above 500 contacts."""
    org = directory.organisation()
    fill(directory, org)
    app = phones().start()
    app.sign_in_complete({"email": directory.person(org).email, "password": PASSWORD})
    # Given a first pull before its first page
    first = hold(app, page(1))
    reply = app.contact_search({"query": ""})
    assert ([banner["code"] for banner in reply["banners"]], reply["total"]) == (
        ["nothing_cached_yet"],
        0,
    )
    # When a page has come, and not the last one
    answer(app, first)
    second = hold(app, page(1))
    # Then what is there is shown, and that more is to come, also to a search without a result
    assert 0 < total(app) < 1200
    for query in ("", "nobody has this name"):
        reply = app.contact_search({"query": query})
        assert [banner["code"] for banner in reply["banners"]] == ["partly_cached"]
        assert reply["as_of_ms"] is None
    some = app.contact_search({"query": "", "limit": 1})["contacts"][0]["id"]
    assert [b["code"] for b in app.contact_get({"id": some})["banners"]] == ["partly_cached"]
    # and with the last page the banner goes
    answer(app, second)
    app.settle()
    assert total(app) == 1200
    assert app.contact_search({"query": ""})["banners"] == []


# ---- A time in seconds -------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, 1, 1_732_300_000, 99_999_999_999])
def test_HST_4_a_time_in_seconds_is_refused(sign_in: MakeUser, seconds: int) -> None:
    """Newcomers' finding 5: a visit of `time.time()` was stored as one of January 1970."""
    app = sign_in().app
    visit = {"kind": "activity", "payload": {"type": "visit", "minutes": 1}}
    with pytest.raises(HoldfastError) as caught:
        app.queue_add({**visit, "occurred_at_ms": seconds})  # type: ignore[typeddict-item]
    assert (caught.value.code, caught.value.field) == ("request.invalid_value", "/occurred_at_ms")
    assert "milliseconds" in caught.value.message
    assert "seconds" in caught.value.message
    assert app.queue_list()["items"] == []
    # and what can be milliseconds is taken
    app.queue_add({**visit, "occurred_at_ms": 100_000_000_000})  # type: ignore[typeddict-item]


def test_CLK_2_a_device_whose_clock_fell_back_to_1970_registers(
    sign_in: MakeUser,
) -> None:
    """Its host can only say what its clock says; a visit is not lost for it."""
    user = sign_in(policy={"biometric": "off"})
    user.phone.now_ms = 86_400_000
    user.app.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
    user.app.queue_add(
        {
            "kind": "activity",
            "payload": {"type": "visit", "minutes": 1},
            "occurred_at_ms": user.phone.now_ms,
        }
    )
    assert len(user.app.queue_list()["items"]) == 1
