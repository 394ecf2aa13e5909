"""The list of the user's own items, stored and queued in one (COR-11)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from holdfast import HoldfastError

from support import attacker
from support.contact_data import DAY_S
from support.damage import empty_log, overwrite, root_of
from support.directory_fixtures import PASSWORD, DirectoryFixtures
from support.held import answer, hold, taken, total
from support.own_rows import banners, ids, insert, listed, page, pull, tables
from support.queue import add, stored
from support.users import MakePhone, MakeUser, SignedIn

HOUR_MS = 3_600_000


def is_of_own_rows(url: str) -> bool:
    """Whether a pull is one of own rows."""
    return "/activities?" in url


@pytest.fixture
def user(sign_in: MakeUser) -> SignedIn:
    """A user whose stored activities are kept, changed and taken back."""
    return sign_in(tables=tables(change={}))


def states(user: SignedIn) -> dict[str, str]:
    """The states of the listed items, by id."""
    return {item["id"]: item["state"] for item in listed(user.app)}


def register_at(user: SignedIn, ms: int, **more: Any) -> str:  # noqa: ANN401
    """Register an activity of that time; returns its id."""
    payload: Any = {"type": "visit", "minutes": 5, **more}
    request: Any = {"kind": "activity", "payload": payload, "occurred_at_ms": ms}
    return str(user.app.queue_add(request)["id"])


def register(user: SignedIn, hours_ago: float = 0, **more: Any) -> str:  # noqa: ANN401
    """The same so many hours ago."""
    return register_at(user, user.phone.now_ms - round(hours_ago * HOUR_MS), **more)


def test_COR_11_stored_and_queued_items_are_one_list_newest_first(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    old = insert(directory, user.person, user.org, count=2, days_ago=2)
    pull(user, after_s=30)
    user.app.go_offline()
    new = register(user, hours_ago=1, note="Kaffe")
    oldest = register(user, hours_ago=24 * 9)
    items = listed(user.app)
    assert [item["id"] for item in items] == [new, *old, oldest]
    assert [item["state"] for item in items] == ["pending", "stored", "stored", "pending"]
    assert (items[0]["payload"]["minutes"], items[0]["payload"]["note"]) == (5, "Kaffe")
    assert items[0]["occurred_at_ms"] == user.phone.now_ms - HOUR_MS
    columns = {"type", "minutes", "occurred_at", "contact_id", "follows", "note"}
    assert set(items[1]["payload"]) == columns
    assert (items[1]["reason"], items[1]["conflict"], items[1]["kind"]) == (None, None, "activity")


def test_COR_11_an_item_is_shown_once_from_its_registration_to_the_pull(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = register(user, note="Kaffe")
    assert states(user) == {item: "pending"}
    request = taken(user, "upload")
    assert states(user) == {item: "sending"}
    answer(app, request)
    # Stored, and not pulled yet
    [stored] = listed(app)
    assert (stored["id"], stored["state"]) == (item, "stored")
    assert (stored["payload"]["note"], stored["payload"]["minutes"]) == ("Kaffe", 5)
    app.settle()
    [pulled] = listed(app)
    assert (pulled["state"], pulled["payload"]["note"]) == ("stored", "Kaffe")
    assert pulled["occurred_at_ms"] == stored["occurred_at_ms"]
    # The server's form of it
    directory.control.sql("update activities set note = 'Te' where id = %s", item)
    pull(user, after_s=30)
    assert listed(app)[0]["payload"]["note"] == "Te"


def test_COR_11_the_pull_replaces_what_the_library_has_put_there(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = register(user)
    answer(user.app, taken(user, "upload"))
    assert states(user) == {item: "stored"}
    # A trigger of the server rounds what it stores, with a time before the item's.
    with directory.times_as_given():
        directory.control.sql(
            "update activities set minutes = 6, updated_at = now() - interval '5 seconds' "
            "where id = %s",
            item,
        )
    user.app.settle()
    assert [item["payload"]["minutes"] for item in listed(user.app)] == [6]


def test_COR_11_corrections_show_over_the_stored_values(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    made = insert(directory, user.person, user.org, count=3)
    pull(user, after_s=30)
    app.go_offline()
    app.queue_edit({"id": made[0], "payload": {"minutes": 90}})
    app.queue_cancel({"id": made[1]})
    assert states(user) == {made[0]: "changing", made[1]: "deleting", made[2]: "stored"}
    changed = listed(app)[0]
    assert (changed["payload"]["minutes"], changed["payload"]["note"]) == (90, "Tur 0")
    assert listed(app)[1]["payload"]["note"] == "Tur 1"
    # When the change is stored, before and after the pull
    app.go_online()
    answer(app, taken(user, "upload"))
    assert states(user)[made[0]] == "stored"
    assert listed(app)[0]["payload"]["minutes"] == 90
    pull(user, after_s=30)
    assert (states(user)[made[0]], listed(app)[0]["payload"]["minutes"]) == ("stored", 90)


def test_COR_11_a_change_of_the_time_moves_the_item_and_leaves_no_second_one(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    made = insert(directory, user.person, user.org, count=5)
    pull(user, after_s=30)
    user.app.go_offline()
    edit: Any = {"id": made[0], "payload": {"occurred_at": "2026-03-01T10:00:00Z"}}
    user.app.queue_edit(edit)
    assert ids(user.app) == [*made[1:], made[0]]
    assert ids(user.app, limit=1) == [*made[1:], made[0]]
    user.app.go_online()
    user.app.settle()
    assert ids(user.app) == [*made[1:], made[0]]


@pytest.mark.parametrize("step", ["edited", "cancelled"])
def test_COR_11_an_item_keeps_its_place_under_a_version_of_the_app_without_the_list(
    sign_in: MakeUser, step: str
) -> None:
    user = sign_in(tables=tables())
    kept = user.phone.config["backend"]["queue"]
    plain = {"activity": {"table": "activities", "columns": kept["activity"]["columns"]}}
    user.phone.network.lose["upload"] = 1
    app = user.restart(online=step == "cancelled")
    app.touch()
    item = add(app, minutes=30)
    app.settle()
    app.go_offline()
    user.phone.config["backend"]["queue"] = plain
    app = user.restart(online=False)
    app.touch()
    if step == "edited":
        app.queue_edit({"id": item, "payload": {"minutes": 45}})
    else:
        assert app.queue_cancel({"id": item})["state"] is not None
    user.phone.config["backend"]["queue"] = kept
    app = user.restart(online=False)
    app.touch()
    [shown] = listed(app)
    assert (shown["id"], shown["payload"]["minutes"]) == (item, 45 if step == "edited" else 30)
    assert shown["state"] == ("deleting" if step == "cancelled" else "pending")


def test_COR_11_pages_go_on_after_a_restart_and_leave_nothing_out(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    stored = insert(directory, user.person, user.org, count=30)
    pull(user, after_s=30)
    user.app.go_offline()
    # Of one time, among them stored ones
    [second] = [item["occurred_at_ms"] for item in listed(user.app) if item["id"] == stored[10]]
    for _ in range(7):
        register_at(user, second)
    whole = ids(user.app)
    assert len(whole) == len(set(whole)) == 37
    for limit in (1, 3, 36, 37, 38):
        assert ids(user.app, limit=limit) == whole
    first = page(user.app, limit=20)
    app = user.restart(online=False)
    app.touch()
    rest = page(app, limit=20, after=first["next"])
    assert [item["id"] for item in first["items"] + rest["items"]] == whole
    assert rest["next"] is None


def test_COR_11_a_range_of_time_has_its_first_millisecond_and_not_its_last(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    stored = insert(directory, user.person, user.org, count=9)
    pull(user, after_s=30)
    user.app.go_offline()
    times = {item["id"]: item["occurred_at_ms"] for item in listed(user.app)}
    extra = register_at(user, times[stored[4]])
    found = ids(user.app, from_ms=times[stored[5]], to_ms=times[stored[3]], limit=1)
    assert sorted(found) == sorted([extra, stored[4], stored[5]])
    assert ids(user.app, to_ms=times[stored[7]]) == stored[8:]
    assert ids(user.app, from_ms=times[stored[0]] + 1) == []


@pytest.mark.parametrize(("request_", "code", "field"), [
    ({}, "request.missing_field", "/kind"), ({"kind": "walk"}, "queue.unknown_kind", "/kind"),
    ({"kind": "contact"}, "config.not_configured", "/kind"),
    ({"kind": "activity", "limit": 201}, "request.invalid_value", "/limit"),
    ({"kind": "activity", "limit": 0}, "request.invalid_value", "/limit"),
    ({"kind": "activity", "after": "7"}, "request.invalid_value", "/after"),
    ({"kind": "activity", "after": "2026-01-01T00:00:00Z/x"}, "request.invalid_value", "/after"),
    ({"kind": "activity", "from_ms": "x"}, "request.wrong_type", "/from_ms"),
])  # fmt: skip
def test_a_request_that_is_wrong_is_named(
    sign_in: MakeUser,
    request_: Any,  # noqa: ANN401
    code: str,
    field: str,
) -> None:
    mapping = tables()
    mapping["queue"]["contact"] = {"table": "contacts", "columns": ["name"]}
    user = sign_in(tables=mapping)
    with pytest.raises(HoldfastError) as caught:
        user.app.item_list(request_)
    assert (caught.value.code, caught.value.field) == (code, field)


def test_COR_11_the_list_says_what_it_lacks(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    org = directory.organisation()
    person = directory.person(org)
    insert(directory, person, org, count=600)
    phone = phones(tables=tables())
    app = phone.start()
    app.sign_in_complete({"email": person.email, "password": PASSWORD})
    first = hold(app, is_of_own_rows)
    assert (page(app)["as_of_ms"], banners(app)) == (None, ["nothing_cached_yet"])
    answer(app, first)
    second = hold(app, is_of_own_rows)
    assert len(ids(app)) == 500
    assert (page(app)["as_of_ms"], banners(app)) == (None, ["partly_cached"])
    answer(app, second)
    app.settle()
    assert (len(ids(app)), banners(app)) == (600, [])
    assert page(app)["as_of_ms"] is not None
    app.go_offline()
    add(app)
    phone.pass_time(2 * DAY_S)
    assert banners(app) == ["offline", "stale_data", "queued_not_sent"]


# Who sees it ------------------------------------------------------------------------------------


def rows(user: SignedIn) -> int:
    """The cached rows that have a time."""
    query = "SELECT count(*) FROM contact WHERE listed_ms IS NOT NULL"
    [(count,)] = attacker.rows(user.phone.folder / "cache.db", query)
    return int(count)


def refused(user: SignedIn) -> str:
    """The error of the list."""
    with pytest.raises(HoldfastError) as caught:
        page(user.app)
    return str(caught.value.code)


def test_COR_11_a_locked_list_is_not_read_and_comes_back(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    made = insert(directory, user.person, user.org, count=2, note="Hemmelig tur hos Kari")
    pull(user, after_s=30)
    user.app.session_lock()
    assert refused(user) == "session.locked"
    # On the disk there are times and no words.
    files = [path for path in user.phone.folder.rglob("*") if path.is_file()]
    assert not any(b"Hemmelig" in path.read_bytes() for path in files)
    user.app.touch()
    assert ids(user.app) == made


def test_COR_11_each_organisation_has_its_own_list(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(tables=tables())
    other = directory.organisation()
    directory.control.set_membership(user.person.id, other.id, role="peer_mentor")
    here = insert(directory, user.person, user.org)
    there = insert(directory, user.person, other)
    pull(user, after_s=1000)
    assert ids(user.app) == here
    user.app.org_select({"org_id": other.id})
    user.app.go_offline()
    queued = add(user.app)
    assert ids(user.app) == [queued]
    user.app.go_online()
    user.app.settle()
    assert ids(user.app) == [queued, *there]
    user.app.org_select({"org_id": user.org.id})
    assert ids(user.app) == here
    assert rows(user) == 3


def end_membership(user: SignedIn, directory: DirectoryFixtures) -> None:
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    pull(user, after_s=1000)


def log_out(user: SignedIn, _: DirectoryFixtures) -> None:
    user.app.session_logout()


def change_user(user: SignedIn, directory: DirectoryFixtures) -> None:
    user.start_as(directory.person(user.org))


@pytest.mark.parametrize("end", [end_membership, log_out, change_user])
@pytest.mark.parametrize(
    "configured", [True, False], ids=["configured", "of an earlier configuration"]
)
def test_COR_11_the_rows_of_every_kind_go_with_the_right_to_see_them(
    sign_in: MakeUser,
    directory: DirectoryFixtures,
    end: Callable[[SignedIn, DirectoryFixtures], None],
    configured: bool,
) -> None:
    user = sign_in(tables=tables())
    insert(directory, user.person, user.org, count=3)
    pull(user, after_s=30)
    assert rows(user) == 3
    if not configured:
        user.phone.close()
        mapping = tables()
        del mapping["queue"]["activity"]["own"], mapping["queue"]["activity"]["delete"]
        user.phone.config["backend"].update(mapping)
        user.app = user.phone.start()
        user.app.touch()
        user.app.settle()
        assert rows(user) == 3
    end(user, directory)
    assert rows(user) == 0


def test_COR_11_a_switch_that_erases_takes_the_own_rows_along(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(tables=tables(), policy={"erase_on_switch": True})
    other = directory.organisation()
    directory.control.set_membership(user.person.id, other.id, role="peer_mentor")
    insert(directory, user.person, user.org)
    pull(user, after_s=1000)
    assert rows(user) == 1
    user.app.go_offline()
    queued = add(user.app)
    user.app.org_select({"org_id": other.id})
    assert rows(user) == 0
    # What is stored there later is not shown here.
    user.app.reconnect()
    assert queued in stored(directory, user.person)
    assert rows(user) == 0


# Damage -----------------------------------------------------------------------------------------


def test_CAC_4_damage_to_the_main_file_costs_the_cache_nothing(sign_in: MakeUser) -> None:
    user = sign_in(tables=tables(), contacts=40)
    user.app.go_offline()
    for _ in range(90):
        add(user.app, note="x" * 15_000)
    user.phone.close()
    folder = user.phone.folder
    # A start does not check a file that is so large.
    assert (folder / "holdfast.db").stat().st_size > 1 << 20
    app = user.restart(online=False)
    empty_log(folder)
    overwrite(folder, root_of(folder, "queue_listed"))
    assert len(listed(app)) == 90
    assert not (folder / "cache.db.damaged").exists()
    assert total(app) == 40
    app.settle()
    assert [event["reason"] for event in app.of_type("storage_recovered")] == ["storage_recovered"]


# Cost -------------------------------------------------------------------------------------------


def test_COR_11_a_page_reads_the_same_however_long_both_lists_are(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    """Each query of a page is a search in an index of a list, without a sort."""
    insert(directory, user.person, user.org, count=3)
    pull(user, after_s=30)
    add(user.app)
    for name, table, listed_in, tag in [
        ("cache.db", "contact", "org", "row"),
        ("holdfast.db", "queue", "list", "item"),
    ]:
        query = (
            f"SELECT * FROM {table} INDEXED BY {table}_listed WHERE {listed_in} = x'00' "
            f"AND listed_ms >= 0 AND (listed_ms, {tag}) < (9, x'00') "
            f"ORDER BY listed_ms DESC, {tag} DESC LIMIT 50"
        )
        with sqlite3.connect(f"file:{user.phone.folder / name}?mode=ro", uri=True) as database:
            plan = [row[3] for row in database.execute("EXPLAIN QUERY PLAN " + query)]
        assert len(plan) == 1, plan
        assert "=? AND listed_ms" in plan[0] or "(org=? AND" in plan[0], plan
