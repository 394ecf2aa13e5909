"""The pull of the user's own rows: what it asks for, keeps, removes and refuses."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

import pytest

from support import attacker
from support.contact_data import DAY_S
from support.directory_fixtures import DirectoryFixtures
from support.held import answer, hold, taken
from support.own_rows import ids, insert, listed, page, pull, tables
from support.queue import add
from support.users import MakeUser, SignedIn

DELETED = "update activities set deleted_at = now() where id = %s"


@pytest.fixture
def user(sign_in: MakeUser) -> SignedIn:
    """A user whose stored activities are kept."""
    return sign_in(tables=tables())


def asked(user: SignedIn) -> list[dict[str, str]]:
    """The parsed queries of the requests for own rows, in order."""
    urls = [
        urllib.parse.urlsplit(one["url"])
        for one in user.phone.network.sent
        if one["purpose"] == "pull"
    ]
    return [
        dict(urllib.parse.parse_qsl(url.query)) for url in urls if url.path.endswith("/activities")
    ]


def cached(user: SignedIn) -> int:
    """The number of cached rows, own ones and contacts."""
    [(count,)] = attacker.rows(user.phone.folder / "cache.db", "SELECT count(*) FROM contact")
    return int(count)


def status(user: SignedIn) -> dict[str, Any]:
    """What sync_status says of the kind."""
    [status] = user.app.sync_status()["own"]
    return dict(status)


def answer_with(user: SignedIn, *rows: dict[str, Any]) -> None:
    """The next page of own rows is this one, and the page after it is empty."""
    http = user.phone.network._http
    pages = [json.dumps(rows), "[]"]

    def call(request: Any) -> Any:  # noqa: ANN401
        answer = http(request)
        if request["purpose"] == "pull" and "/activities?" in request["url"] and pages:
            return {**answer, "body": pages.pop(0)}
        return answer

    user.phone.network._http = call


def test_a_pull_asks_for_the_users_rows_of_the_organisation_and_the_last_days(
    user: SignedIn,
) -> None:
    [query] = asked(user)
    assert query["select"] == (
        "id,updated_at,deleted_at,type,minutes,occurred_at,contact_id,follows,note,org_id"
    )
    assert query["org_id"] == f"eq.{user.org.id}"
    assert query["user_id"] == f"eq.{user.person.id}"
    assert query["occurred_at"].startswith("gte.")
    assert query["order"] == "updated_at.asc,id.asc"


def test_own_rows_come_in_pages_and_later_pulls_bring_what_has_changed(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    made = insert(directory, user.person, user.org, count=1100)
    pull(user, after_s=30)
    assert ids(user.app) == made
    # Three pages and an empty one
    limits = [query["limit"] for query in asked(user)]
    assert len(limits) >= 4
    user.phone.network.forget()
    directory.control.sql("update activities set minutes = 90 where id = %s", made[7])
    pull(user, after_s=30)
    assert [item["payload"]["minutes"] for item in listed(user.app)][6:9] == [30, 90, 30]
    assert all("or" in query for query in asked(user))


def test_a_marked_row_goes_with_the_next_pull_and_a_deleted_one_with_the_reconcile(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    made = insert(directory, user.person, user.org, count=4)
    elsewhere = directory.organisation()
    pull(user, after_s=30)
    directory.control.sql(DELETED, made[0])
    directory.control.sql("delete from activities where id = %s", made[1])
    directory.control.sql("update activities set org_id = %s where id = %s", elsewhere.id, made[2])
    pull(user, after_s=30)
    assert ids(user.app) == made[1:]
    pull(user, after_s=DAY_S)
    assert ids(user.app) == made[3:]
    [first, *_] = [query for query in asked(user) if query["select"] == "id,updated_at"]
    assert first["deleted_at"] == "is.null"
    assert first["user_id"] == f"eq.{user.person.id}"
    assert "occurred_at" in first


def test_without_marks_no_request_names_them(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(tables=tables(delete="row"))
    insert(directory, user.person, user.org)
    pull(user, after_s=DAY_S)
    assert len(asked(user)) >= 3
    for query in asked(user):
        assert "deleted_at" not in query
        assert "deleted_at" not in query["select"]


def test_rows_of_other_users_and_of_other_organisations_do_not_come(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    other = directory.organisation()
    user = sign_in(tables=tables())
    stranger = directory.person(user.org)
    insert(directory, stranger, user.org)
    insert(directory, user.person, other)
    pull(user, after_s=30)
    assert ids(user.app) == []


ROW = {
    "id": "01976b36-5e10-7f3a-9c44-2f0a6d1b8e03",
    "updated_at": "2026-11-20T10:00:00.123456+00:00",
    "occurred_at": "2026-11-20T10:00:00+00:00",
    "minutes": 20,
    "deleted_at": None,
}


@pytest.mark.parametrize(("change", "column"), [
    ({"org_id": "01976b36-5e10-7f3a-9c44-2f0a6d1b8eff"}, "org_id"),
    ({"occurred_at": None}, "occurred_at"),
    ({"occurred_at": "soon"}, "occurred_at"), ({"updated_at": "2026-11-20T10:00:00"}, "updated_at"),
    ({"note": "x" * 600_000}, None), ({"deleted_at": 7}, "deleted_at"),
])  # fmt: skip
def test_a_row_that_cannot_be_used_costs_itself_and_is_named(
    user: SignedIn, change: dict[str, Any], column: str | None
) -> None:
    good = {**ROW, "org_id": str(user.org.id)}
    bad = {**good, "id": "01976b36-5e10-7f3a-9c44-2f0a6d1b8e04", **change}
    answer_with(user, good, bad)
    pull(user, after_s=30)
    assert ids(user.app) == [good["id"]]
    assert status(user)["skipped"] == 1
    [problem] = user.app.sync_status()["problems"]
    told = [problem[part] for part in ("what", "kind", "purpose", "code", "column")]
    assert told == ["own", "activity", "pull", "unusable_row", column]
    # It says nothing about uploads of the kind.
    add(user.app)
    user.app.settle()
    assert user.app.queue_list({})["items"] == []


def test_a_kind_whose_table_lacks_a_column_holds_up_no_other_pull(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    own = {"columns": ["minutes", "colour"], "time": "updated_at"}
    columns = ["minutes", "type", "occurred_at", "colour", "user_id"]
    user = sign_in(tables=tables(own=own, columns=columns))
    directory.contact(user.org, "Kari Sen")
    pull(user, after_s=600)
    assert user.app.contact_search({"query": ""})["total"] == 1
    [problem] = user.app.sync_status()["problems"]
    assert (problem["what"], problem["kind"], problem["code"]) == ("own", "activity", "42703")
    assert page(user.app)["as_of_ms"] is None


def test_rows_of_more_than_so_many_days_are_neither_fetched_nor_kept(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(tables=tables(days=10))
    insert(directory, user.person, user.org, days_ago=11)
    made = insert(directory, user.person, user.org, days_ago=8)
    pull(user, after_s=30)
    assert ids(user.app) == made
    # Time passes: it goes with the next complete pull.
    pull(user, after_s=3 * DAY_S)
    assert ids(user.app) == []
    assert cached(user) == 0


@pytest.mark.parametrize("change", [
    {"own": {"columns": ["minutes", "occurred_at"]}}, {"days": 100},
    {"own": {"time": "updated_at"}}, {"delete": None},
])  # fmt: skip
def test_after_a_change_of_what_is_kept_all_is_read_anew(
    user: SignedIn, directory: DirectoryFixtures, change: dict[str, Any]
) -> None:
    made = insert(directory, user.person, user.org, count=3)
    pull(user, after_s=30)
    other = tables(**change)
    if change.get("delete", 0) is None:
        del other["queue"]["activity"]["delete"]
    user.phone.close()
    user.phone.network.forget()
    user.phone.config["backend"].update(other)
    user.app = user.phone.start()
    user.app.touch()
    user.app.settle()
    assert "or" not in asked(user)[0]
    assert sorted(ids(user.app)) == sorted(made)
    columns = set(listed(user.app)[0]["payload"])
    assert columns == ({"minutes", "occurred_at"} if "columns" in change.get("own", {}) else {
        "type", "minutes", "occurred_at", "contact_id", "follows", "note"})  # fmt: skip


def test_a_lost_cache_is_read_anew(user: SignedIn, directory: DirectoryFixtures) -> None:
    made = insert(directory, user.person, user.org, count=3)
    pull(user, after_s=30)
    user.phone.close()
    for path in user.phone.folder.glob("cache.db*"):
        path.unlink()
    app = user.app = user.phone.start(online=False)
    app.touch()
    assert ids(app) == []
    app.reconnect()
    assert ids(app) == made


def test_an_item_that_is_stored_and_erased_before_the_first_pull_is_not_shown_after_it(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    made = insert(directory, user.person, user.org)
    user.phone.close()
    for path in user.phone.folder.glob("cache.db*"):
        path.unlink()
    app = user.app = user.phone.start(online=False)
    app.touch()
    user.phone.network.replace("pull", {"status": 503, "headers": {}, "body": ""})
    item = add(app, minutes=60)
    app.reconnect()
    assert ids(app) == [item]
    directory.control.sql("delete from activities where id = %s", item)
    user.phone.network.alter.clear()
    pull(user, after_s=600)
    app.settle()
    assert ids(app) == made


def test_a_page_that_was_read_while_an_upload_began_is_read_again(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    made = insert(directory, user.person, user.org)
    user.phone.pass_time(1000)
    app.sync_now()
    held = hold(app, lambda url: "/activities?" in url)
    late = user.phone.network(held)
    item = add(app, minutes=60)
    answer(app, taken(user, "upload"))
    app.complete({"id": held["id"], **late})
    again = hold(app, lambda url: "/activities?" in url)
    assert again["url"] == held["url"]
    assert ids(app) == [item]
    answer(app, again)
    app.settle()
    assert ids(app) == [item, *made]
