"""Interrupted pulls of several pages: a partial pull never counts as complete."""

from __future__ import annotations

import copy

import pytest
from holdfast.types import HttpRequest

from support import contact_data, elsewhere
from support.contact_data import DAY_S, pull
from support.directory_fixtures import PASSWORD, DirectoryFixtures
from support.held import COUNT, answer, fill, hold, page, return_to_foreground, total, unlock
from support.phone import App
from support.users import MakePhone, MakeUser, SignedIn, signed_in


@pytest.mark.parametrize("erase", [True, False])
def test_a_pull_continues_after_switching_organisation_and_back(
    phones: MakePhone, directory: DirectoryFixtures, erase: bool
) -> None:
    first, second = directory.organisation(), directory.organisation(contacts=3)
    fill(directory, first)
    app = phones(policy={"erase_on_switch": erase}).start()
    app.sign_in(directory.person(first, second))
    app.org_select({"org_id": first.id})
    late = hold(app, page(3, first))
    app.org_select({"org_id": second.id})
    app.org_select({"org_id": first.id})
    answer(app, late)
    app.settle()
    assert total(app) == COUNT


def test_a_pull_is_complete_after_an_ended_membership_returns(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    first, second = directory.organisation(), directory.organisation(contacts=3)
    fill(directory, first)
    person = directory.person(first, second)
    phone = phones()
    app = phone.start()
    app.sign_in(person)
    app.org_select({"org_id": first.id})
    late = hold(app, page(3, first))
    for status in ("ended", "active"):
        directory.control.set_membership(person.id, first.id, status=status)
        app.session_background()
        app.session_foreground()
        app.settle()
    answer(app, late)
    if app.screen["screen"] != "home":
        app.org_select({"org_id": first.id})
    app.settle()
    assert total(app) == COUNT


def test_a_pull_goes_on_after_the_cache_of_another_organisation_was_erased(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    first, second = directory.organisation(contacts=3), directory.organisation()
    fill(directory, second)
    user = signed_in(phones, directory.person(first, second), first)
    app = user.app
    assert total(app) == 3
    app.org_select({"org_id": second.id})
    query = "delete from memberships where user_id = %s and org_id = %s"
    directory.control.sql(query, user.person.id, first.id)
    app.session_background()
    app.session_foreground()
    held: dict[str, HttpRequest] = {}
    for _ in range(10):
        for request in app.poll()["requests"]:
            if request["purpose"] in {"guard", "pull"} - held.keys():
                held[request["purpose"]] = request
            else:
                answer(app, request)
    answer(app, held["pull"])
    answer(app, held["guard"])
    assert [org["org_id"] for org in app.org_list()["orgs"]] == [second.id]
    app.settle()
    assert total(app) == COUNT


def test_CAC_2_a_newly_network_only_column_is_erased_at_once(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    fill(directory, user.org)
    pull(user, 60)
    blobs = contact_data.sealed(user.phone.folder)
    contacts = {"columns": ["name", "municipality"], "needs_network": ["relation", "phone"]}
    user.phone.config["backend"]["contacts"] = contacts
    user.restart()
    hold(user.app, page(2))
    assert contact_data.left_on_disk(user.phone.folder, blobs[:COUNT]) == 0
    user.restart()
    user.app.settle()
    assert total(user.app) == COUNT


def changed_during_a_reconcile(user: SignedIn, directory: DirectoryFixtures) -> HttpRequest:
    """An unanswered page of a reconcile; then a contact is deleted, and the role changes."""
    fill(directory, user.org)
    pull(user, 60)
    query = "select id from contacts where org_id = %s order by id limit 1"
    [first] = directory.control.sql(query, user.org.id)
    user.phone.pass_time(DAY_S)
    user.app.sync_now()
    late = hold(user.app, lambda url: "deleted_at=is.null&id=gt." in url)
    directory.control.sql("delete from contacts where id = %s", first["id"])
    directory.control.set_membership(user.person.id, user.org.id, role="coordinator")
    return late


def test_CAC_1_a_changed_membership_restarts_a_reconcile(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    changed_during_a_reconcile(user, directory)
    user.restart()
    unlock(user)
    user.app.settle()
    pull(user, 60)
    assert total(user.app) == COUNT - 1


def test_CAC_1_a_membership_that_changes_during_a_reconcile_orders_the_next_one(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"session_window_s": 20 * DAY_S})
    late = changed_during_a_reconcile(user, directory)
    user.app.session_background()
    user.app.session_foreground()
    user.app.settle()
    answer(user.app, late)
    user.app.settle()
    assert total(user.app) == COUNT - 1


def test_CAC_1_a_changed_membership_counts_also_when_the_cache_cannot_be_written(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=20)
    pull(user, 60)
    query = "select id from contacts where org_id = %s limit 1"
    [first] = directory.control.sql(query, user.org.id)
    directory.control.sql("delete from contacts where id = %s", first["id"])
    directory.control.set_membership(user.person.id, user.org.id, role="coordinator")
    elsewhere.lock_cache_during_the_guard(user)
    assert total(user.app) == 20
    return_to_foreground(user)
    assert total(user.app) == 19


@pytest.mark.parametrize("body", ["[{}]", "[null,1]", '[{"id":null,"updated_at":null}]'])
def test_an_invalid_reconcile_page_deletes_nothing(sign_in: MakeUser, body: str) -> None:
    user = sign_in(contacts=20)
    pull(user, 60)

    user.phone.network.alter.append(
        lambda request, real: (
            {**real, "body": body}  # type: ignore[typeddict-item]
            if request["purpose"] == "pull" and "deleted_at=is.null" in request["url"]
            else real
        )
    )
    [told] = pull(user, DAY_S)
    assert told["skipped"] > 0
    assert total(user.app) == 20


def test_two_processes_that_reconcile_at_once_delete_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"session_window_s": 20 * DAY_S, "reconcile_interval_s": 3600})
    fill(directory, user.org)
    pull(user, 60)
    query = "select id from contacts where org_id = %s order by id limit 1"
    [first] = directory.control.sql(query, user.org.id)
    with directory.times_as_given():
        late = "update contacts set updated_at = now() - interval '40 hours' where id = %s"
        directory.control.sql(late, first["id"])
    user.phone.pass_time(3700)
    user.app.sync_now()
    missing = hold(user.app, lambda url: "id=in." in url)
    other = App(user.phone, user.phone.config)
    other.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
    other.session_resume()
    other.sync_now()
    hold(other, lambda url: "deleted_at=is.null" in url)
    answer(user.app, missing)
    other.close()
    user.restart()
    unlock(user)
    user.app.settle()
    pull(user, 1000)
    assert total(user.app) == COUNT


@pytest.mark.parametrize("columns", ["the same columns", "other columns"])
def test_two_processes_that_begin_at_once_leave_no_row_out(
    user: SignedIn, directory: DirectoryFixtures, columns: str
) -> None:
    fill(directory, user.org)
    config = copy.deepcopy(user.phone.config)
    if columns == "other columns":
        contacts = {"columns": ["name", "municipality"], "needs_network": ["relation", "phone"]}
        config["backend"]["contacts"] = contacts
    other = App(user.phone, config)
    other.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
    other.session_resume()
    other.sync_now()
    first = hold(other, page(1))
    user.app.sync_now()
    late = hold(user.app, page(3))
    answer(other, first)
    other.close()
    answer(user.app, late)
    user.app.settle()
    if columns == "other columns":
        assert user.app.contact_search({"query": ""})["as_of_ms"] is None
        pull(user, 1000)
    assert total(user.app) == COUNT


def test_an_unusable_cache_blocks_neither_queue_nor_guard(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=3)
    user.phone.close()
    for path in user.phone.folder.glob("cache.db*"):
        path.unlink()
    (user.phone.folder / "cache.db").mkdir()
    (user.phone.folder / "cache.db" / "x").write_text("x")
    app = user.restart()
    app.register()
    app.settle_until("sync_completed")
    assert len(directory.activities(user.person)) == 1
    # The end of the membership is detected nevertheless.
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    app.session_background()
    app.session_foreground()
    app.settle()
    assert app.screen["screen"] == "select_org"


def test_the_summary_is_fetched_as_often_as_the_contacts(sign_in: MakeUser) -> None:
    user = sign_in(contacts=3)
    user.phone.network.forget()
    for _ in range(30):
        user.app.wait(120)
    assert user.phone.network.count("summary") >= 3
    assert user.phone.network.count("pull") >= 3


def test_OFF_3_data_is_stale_as_long_as_its_pulls_fail(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=3)
    app = user.app

    def banners() -> tuple[list[str], list[str]]:
        replies = app.contact_search({"query": ""}), app.summary_get()
        contacts, figures = ([each["code"] for each in one["banners"]] for one in replies)
        return contacts, figures

    busy = {"code": "PGRST001", "message": "no connection"}
    directory.control.respond("/rest/v1/contacts", 503, body=busy, times=1, retry_after_s=600)
    app.sync()
    # The auth service answers, and so do the figures.
    return_to_foreground(user)
    assert banners() == (["stale_data"], [])
    app.wait(1800)
    assert banners() == ([], [])


def test_OFF_3_a_first_pull_under_way_is_not_an_empty_cache(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    org = directory.organisation()
    fill(directory, org)
    app = phones().start()
    app.sign_in_complete({"email": directory.person(org).email, "password": PASSWORD})
    first = hold(app, page(1))
    reply = app.contact_search({"query": ""})
    assert ([banner["code"] for banner in reply["banners"]], reply["total"]) == (
        ["nothing_cached_yet"],
        0,
    )
    answer(app, first)
    second = hold(app, page(1))
    assert 0 < total(app) < 1200
    for query in ("", "nobody has this name"):
        reply = app.contact_search({"query": query})
        assert [banner["code"] for banner in reply["banners"]] == ["partly_cached"]
        assert reply["as_of_ms"] is None
    some = app.contact_search({"query": "", "limit": 1})["contacts"][0]["id"]
    assert [b["code"] for b in app.contact_get({"id": some})["banners"]] == ["partly_cached"]
    answer(app, second)
    app.settle()
    assert total(app) == 1200
    assert app.contact_search({"query": ""})["banners"] == []
