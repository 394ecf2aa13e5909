"""The pull: pages, late commits, deletions, interruptions, bad rows."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from local_supabase import LocalSupabase

from support import contact_data
from support.contact_data import DAY_S, pull
from support.directory_fixtures import DirectoryFixtures
from support.held import taken, total, unlock
from support.sizes import crossed, sampled
from support.users import MakeUser, SignedIn


def names(user: SignedIn) -> list[str]:
    """The cached names."""
    return sorted(str(row[0]) for row in contact_data.cached(user.app).values())


def asked(user: SignedIn) -> list[dict[str, str]]:
    """The parsed queries of the contact requests, in order."""
    return [
        dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(request["url"]).query))
        for request in user.phone.network.sent
        if request["purpose"] == "pull"
    ]


def is_reconcile(query: dict[str, str]) -> bool:
    """Whether the request is one of a reconcile, which reads ids and times only."""
    return query["select"] == "id,updated_at"


class AlteredRequests:
    """A server that ignores parts of a request: changes pull URLs in transit."""

    def __init__(self, user: SignedIn, change: Callable[[str], str]) -> None:
        self.http = user.phone.network._http
        self.change = change
        user.phone.network._http = self  # type: ignore[assignment]

    def __call__(self, request: HttpRequest) -> Answer:
        if request["purpose"] == "pull":
            request = {**request, "url": self.change(request["url"])}
        return self.http(request)


def without(*parameters: str) -> Callable[[str], str]:
    """Remove these query parameters."""

    def change(url: str) -> str:
        address, _, query = url.partition("?")
        kept = [part for part in query.split("&") if part.partition("=")[0] not in parameters]
        return f"{address}?{'&'.join(kept)}"

    return change


# Late commits -------------------------------------------------------------------------------------


def test_CAC_1_a_row_committed_late_is_still_fetched(
    user: SignedIn, directory: DirectoryFixtures, backend: LocalSupabase
) -> None:
    with psycopg.connect(backend.dsn) as slow:
        insert = "insert into contacts (org_id, name) values (%s, 'Sen Commit')"
        slow.execute(insert, [user.org.id])
        directory.contact(user.org, "Rask Commit")
        pull(user)
        assert names(user) == ["Rask Commit"]
        slow.commit()
    # When the first one is committed, its time is before the cursor: a plain delta misses it
    behind = directory.control.sql(
        "select name from contacts where org_id = %s and updated_at > "
        "(select updated_at from contacts where org_id = %s and name = 'Rask Commit')",
        user.org.id, user.org.id,
    )  # fmt: skip
    assert behind == []
    pull(user, after_s=30)
    assert names(user) == ["Rask Commit", "Sen Commit"]


@pytest.mark.parametrize("change", ["new", "changed"])
def test_CAC_1_the_reconcile_fetches_a_row_committed_after_the_overlap(
    user: SignedIn, directory: DirectoryFixtures, change: str
) -> None:
    ids = [directory.contact(user.org, name) for name in ("Alva Prøve", "Birk Prøve")]
    pull(user)
    before = "now() - interval '2 minutes'"
    insert = f"insert into contacts (name, updated_at, org_id) values ('Cato Prøve', {before}, %s)"
    update = f"update contacts set name = 'Alva Ny', updated_at = {before} where id = %s"
    with directory.times_as_given():
        if change == "new":
            directory.control.sql(insert, user.org.id)
            expected = ["Alva Prøve", "Birk Prøve", "Cato Prøve"]
        else:
            directory.control.sql(update, ids[0])
            expected = ["Alva Ny", "Birk Prøve"]
    pull(user, after_s=60)
    assert names(user) != expected
    pull(user, after_s=DAY_S)
    assert names(user) == expected
    single = [query for query in asked(user) if query.get("id", "").startswith("in.(")]
    assert [query["id"].count(",") for query in single] == [0]


def test_CAC_1_deleted_and_moved_rows_disappear(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    ids = [directory.contact(user.org, f"Prøve {number}") for number in range(6)]
    elsewhere = directory.organisation()
    pull(user)
    directory.control.sql("update contacts set deleted_at = now() where id = %s", ids[0])
    directory.control.sql("delete from contacts where id = %s", ids[1])
    directory.control.sql("update contacts set org_id = %s where id = %s", elsewhere.id, ids[2])
    [told] = pull(user, after_s=30)
    assert told["removed"] == 1
    assert names(user) == [f"Prøve {number}" for number in (1, 2, 3, 4, 5)]
    [told] = pull(user, after_s=DAY_S)
    assert told["removed"] == 2
    assert names(user) == [f"Prøve {number}" for number in (3, 4, 5)]


def test_CAC_1_rows_return_when_they_are_visible_again(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    contact = directory.contact(user.org, "Borte Prøve")
    pull(user)
    with directory.times_as_given():
        elsewhere = directory.organisation()
        move = "update contacts set org_id = %s where id = %s"
        directory.control.sql(move, elsewhere.id, contact)
        pull(user, after_s=DAY_S)
        assert names(user) == []
        directory.control.sql(move, user.org.id, contact)
    pull(user, after_s=DAY_S)
    assert names(user) == ["Borte Prøve"]


def test_CAC_1_a_changed_membership_reconciles_at_once(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    ids = [directory.contact(user.org, name) for name in ("Alva Prøve", "Birk Prøve")]
    pull(user)
    directory.control.sql("delete from contacts where id = %s", ids[0])
    directory.control.set_membership(user.person.id, user.org.id, role="coordinator")
    pull(user, after_s=60)
    assert names(user) == ["Birk Prøve"]


def test_the_reconcile_follows_the_policy_s_interval(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"reconcile_interval_s": 3600})
    contact = directory.contact(user.org, "Alva Prøve")
    pull(user)
    directory.control.sql("delete from contacts where id = %s", contact)
    pull(user, after_s=3000)
    assert names(user) == ["Alva Prøve"]
    pull(user, after_s=700)
    assert names(user) == []


def test_a_row_with_a_future_time_hides_no_later_row(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    with directory.times_as_given():
        directory.control.sql(
            "insert into contacts (org_id, name, updated_at) values "
            "(%s, 'Fram Prøve', now() + interval '30 years'), (%s, 'Evig Prøve', 'infinity')",
            user.org.id, user.org.id,
        )  # fmt: skip
    [told] = pull(user)
    # The row at 'infinity' has no valid time: it is skipped and counted.
    assert told["skipped"] > 0
    assert told["problem"] is None
    assert names(user) == ["Fram Prøve"]
    directory.contact(user.org, "Ny Prøve")
    pull(user)
    assert names(user) == ["Fram Prøve", "Ny Prøve"]


# Pages --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", crossed([1, 7, 40, 41], fast=lambda most: most in (7, 40)))
def test_smaller_pages_than_requested_are_read_to_the_end(
    user: SignedIn, directory: DirectoryFixtures, most: int
) -> None:
    contact_data.fill(directory.control, user.org.id, 40)
    directory.control.set(max_rows=most)
    [told] = pull(user)
    assert (told["rows"], told["problem"]) == (40, None)
    assert contact_data.cached(user.app) == contact_data.truth(directory.control, user.org.id)
    directory.control.sql("delete from contacts where org_id = %s and name like 'A%%'", user.org.id)
    pull(user, after_s=DAY_S)
    assert contact_data.cached(user.app) == contact_data.truth(directory.control, user.org.id)


@pytest.mark.parametrize("most", crossed([300, 1], fast=lambda most: most == 300))
def test_a_page_limit_that_is_lowered_during_a_reconcile_erases_nothing(
    user: SignedIn, directory: DirectoryFixtures, most: int
) -> None:
    count = 1_430 if most > 1 else 530
    contact_data.fill(directory.control, user.org.id, count)
    pull(user)
    assert total(user.app) == count
    lower_after(user, directory, most, is_versions)
    told = pull(user, after_s=DAY_S)
    assert sum(event["removed"] for event in told) == 0
    assert total(user.app) == count


def lower_after(
    user: SignedIn, directory: DirectoryFixtures, most: int, which: Callable[[str], bool]
) -> None:
    """After the next page whose URL is such, the server lowers its page limit."""

    def lower(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] == "pull" and which(request["url"]):
            directory.control.set(max_rows=most)
            user.phone.network.alter.remove(lower)
        return answer

    user.phone.network.alter.append(lower)


def is_versions(url: str) -> bool:
    """Whether the URL is that of a reconcile's page."""
    return "select=id,updated_at" in url.replace("%2C", ",")


def test_a_page_limit_that_is_lowered_hides_no_row_of_a_first_pull(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    contact_data.fill(directory.control, user.org.id, 1_200)
    lower_after(user, directory, 200, lambda url: True)
    [told] = pull(user)
    assert (told["rows"], told["problem"]) == (1_200, None)
    assert total(user.app) == 1_200


def test_a_page_limit_that_is_lowered_loses_no_row_that_a_reconcile_fetches(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    contact_data.fill(directory.control, user.org.id, 150)
    pull(user)
    contact_data.change_behind_the_cursor(directory, user.org.id)
    lower_after(user, directory, 40, is_versions)
    [told] = pull(user, after_s=DAY_S)
    assert (told["rows"], told["removed"]) == (150, 0)
    assert contact_data.cached(user.app) == contact_data.truth(directory.control, user.org.id)


def test_rows_with_equal_times_are_paged_by_id(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    with directory.times_as_given():
        directory.control.sql(
            "insert into contacts (org_id, name, updated_at) "
            "select %s, 'Prøve ' || n, '2026-01-01T00:00:00.123456Z' from generate_series(1, 90) n",
            user.org.id,
        )
    directory.control.set(max_rows=20)
    pull(user)
    assert contact_data.cached(user.app) == contact_data.truth(directory.control, user.org.id)


def test_a_pull_accepts_a_page_beyond_the_limit(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    contact_data.fill(directory.control, user.org.id, 1_200)
    directory.control.set(max_rows=None)
    AlteredRequests(user, without("limit"))
    [told] = pull(user)
    assert (told["rows"], told["skipped"], told["problem"]) == (1_200, 0, None)
    assert total(user.app) == 1_200


@pytest.mark.parametrize("ignored", [("or", "updated_at"), ("or", "updated_at", "limit")])
def test_a_pull_stops_when_a_page_repeats(
    user: SignedIn, directory: DirectoryFixtures, ignored: tuple[str, ...]
) -> None:
    contact_data.fill(directory.control, user.org.id, 60)
    directory.control.set(max_rows=50)
    AlteredRequests(user, without(*ignored))
    user.phone.network.forget()
    [told] = pull(user)
    # The first page is kept, the problem is reported, and the pull stops.
    assert told["problem"] == "loop"
    assert len(asked(user)) <= 3
    status = user.app.sync_status()["contacts"]
    assert status["problem"] == "loop"
    reply = user.app.contact_search({"query": ""})
    assert reply["total"] == 50
    assert "stale_data" in {banner["code"] for banner in reply["banners"]}
    user.phone.network._http = user.phone.network._http.http  # type: ignore[attr-defined]
    [told] = pull(user, after_s=DAY_S)
    assert told["problem"] is None
    assert total(user.app) == 60
    assert user.app.sync_status()["contacts"]["problem"] is None


def test_a_reconcile_stops_when_a_page_repeats(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    contact_data.fill(directory.control, user.org.id, 60)
    pull(user)
    directory.control.set(max_rows=50)
    AlteredRequests(user, without("id"))
    [told] = pull(user, after_s=DAY_S)
    assert told["problem"] == "loop"
    # No row was deleted.
    assert total(user.app) == 60


# Interruptions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", sampled(["go on", "restart"], 2))
@pytest.mark.parametrize("pages", [1, 2])
def test_an_interrupted_pull_continues(
    user: SignedIn, directory: DirectoryFixtures, pages: int, again: str
) -> None:
    contact_data.fill(directory.control, user.org.id, 1_300)
    directory.control.set(max_rows=400)

    def cut(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] == "pull" and len(asked(user)) > pages:
            return {"error": "offline"}
        return answer

    user.phone.network.forget()
    user.phone.network.alter.append(cut)
    assert pull(user, after_s=60) == []
    reply = user.app.contact_search({"query": ""})
    # The received pages are readable, and as_of_ms stays old.
    assert reply["total"] == 400 * pages
    assert reply["as_of_ms"] is not None
    assert reply["as_of_ms"] < user.phone.now_ms
    user.phone.network.alter.clear()
    user.phone.network.forget()
    if again == "restart":
        user.restart()
    user.app.wait(600)
    assert "or" in asked(user)[0]
    assert total(user.app) == 1_300
    assert user.app.contact_search({"query": ""})["as_of_ms"] is not None


@pytest.mark.parametrize("damage", ["deleted", "noise"])
def test_a_cache_lost_during_a_pull_is_pulled_from_the_start(
    user: SignedIn, directory: DirectoryFixtures, damage: str
) -> None:
    contact_data.fill(directory.control, user.org.id, 190)
    directory.control.set(max_rows=60)
    user.phone.network.forget()

    def lose(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] == "pull" and len(asked(user)) == 3:
            for path in user.phone.folder.glob("cache.db*"):
                if damage == "deleted":
                    path.unlink()
                else:
                    path.write_bytes(bytes(range(256)) * (path.stat().st_size // 256))
        return answer

    user.phone.network.alter.append(lose)
    pull(user)
    # The pull starts again from the first page, so no row is missing.
    assert contact_data.cached(user.app) == contact_data.truth(directory.control, user.org.id)


def test_an_interrupted_reconcile_continues(user: SignedIn, directory: DirectoryFixtures) -> None:
    contact_data.fill(directory.control, user.org.id, 90)
    directory.control.set(max_rows=30)
    pull(user)
    gone = "delete from contacts where id in (select id from contacts where org_id = %s limit 25)"
    directory.control.sql(gone, user.org.id)

    def cut(request: HttpRequest, answer: Answer) -> Answer:
        started = [query for query in asked(user) if is_reconcile(query)]
        return {"error": "timeout"} if len(started) > 1 else answer

    user.phone.network.forget()
    user.phone.network.alter.append(cut)
    pull(user, after_s=DAY_S)
    assert total(user.app) == 90
    user.phone.network.alter.clear()
    user.restart()
    unlock(user)
    user.app.wait(600)
    reconciles = [query for query in asked(user) if is_reconcile(query)]
    assert "id" in reconciles[0], "the reconcile did not start again"
    assert contact_data.cached(user.app) == contact_data.truth(directory.control, user.org.id)


#: What is instead in an answer.
INVALID: dict[str, Callable[[Any], dict[str, Any]]] = {
    "html": lambda real: {"headers": {"content-type": "text/html"}, "body": "<html>login</html>"},
    "503": lambda real: {"status": 503, "body": '{"code":"PGRST000","message":"no database"}'},
    "object": lambda real: {"body": '{"id":1}'},
    "truncated": lambda real: {"body": real["body"][:-10]},
}


@pytest.mark.parametrize("answer", INVALID)
def test_an_invalid_page_changes_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, answer: str
) -> None:
    user = sign_in(contacts=5)
    before = contact_data.cached(user.app)
    directory.contact(user.org, "Ny Prøve")

    def broken(request: HttpRequest, real: Any) -> Any:  # noqa: ANN401
        return {**real, **INVALID[answer](real)} if request["purpose"] == "pull" else real

    user.phone.network.alter.append(broken)
    assert pull(user) == []
    assert contact_data.cached(user.app) == before
    reply = user.app.contact_search({"query": ""})
    assert "stale_data" in {banner["code"] for banner in reply["banners"]}
    user.phone.network.alter.clear()
    user.app.wait(900)
    assert len(contact_data.cached(user.app)) == 6
    assert user.app.contact_search({"query": ""})["banners"] == []


# Invalid rows -------------------------------------------------------------------------------------

BAD: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no object": lambda row: 7,
    "no id": lambda row: {key: row[key] for key in row if key != "id"},
    "null id": lambda row: {**row, "id": None},
    "number as id": lambda row: {**row, "id": 7},
    "words as id": lambda row: {**row, "id": "seven"},
    "no organisation": lambda row: {key: row[key] for key in row if key != "org_id"},
    "another organisation": lambda row: {**row, "org_id": "00000000-0000-4000-8000-000000000001"},
    "no time": lambda row: {**row, "updated_at": None},
    "no time at all": lambda row: {**row, "updated_at": "yesterday"},
    "a filter as time": lambda row: {**row, "updated_at": '2026-01-01"),or=(id.gt.0'},
    "no name": lambda row: {key: row[key] for key in row if key != "name"},
    "null as name": lambda row: {**row, "name": None},
    "number as name": lambda row: {**row, "name": 7},
    "list as municipality": lambda row: {**row, "municipality": ["Oslo"]},
    "truth as tombstone": lambda row: {**row, "deleted_at": True},
    "a name of 1 MB": lambda row: {**row, "name": "Å" * 500_000},
}


def test_one_bad_row_does_not_hold_up_the_page(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"session_window_s": 60 * DAY_S, "offline_limit_s": 60 * DAY_S})
    ids = [directory.contact(user.org, f"Prøve {number}") for number in range(5)]
    pull(user)
    for kind, bad in BAD.items():
        spoilt: list[str] = []

        def spoil(rows: list[Any], bad: Any = bad, spoilt: list[str] = spoilt) -> list[Any]:  # noqa: ANN401
            spoilt += [row["id"] for row in rows if row["id"] == ids[2]]
            return [bad(row) if row["id"] == ids[2] else row for row in rows]

        directory.control.sql("delete from contacts where id = %s", ids[2])
        pull(user, after_s=DAY_S)
        new = [f"Prøve {number}: {kind}" for number in range(5)]
        for identity, name in zip(ids, new, strict=True):
            directory.control.sql(
                "insert into contacts (id, org_id, name) values (%s, %s, %s) "
                "on conflict (id) do update set name = excluded.name",
                identity, user.org.id, name,
            )  # fmt: skip
        user.phone.network.rewrite("pull", spoil)
        [told] = pull(user)
        assert spoilt, kind
        assert (told["skipped"], told["problem"]) == (len(spoilt), None), kind
        assert user.app.sync_status()["contacts"]["skipped"] == len(spoilt), kind
        assert names(user) == new[:2] + new[3:], kind
        user.phone.network.alter.clear()
        pull(user, after_s=DAY_S)
        assert names(user) == new, kind
        assert user.app.sync_status()["contacts"]["skipped"] == 0, kind


def test_missing_null_and_extra_columns_are_accepted(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    ids = [directory.contact(user.org, f"Prøve {number}") for number in range(3)]
    more = [{}, {"municipality": None}, {"phone": "+47 99 99 99 99", "secret": {"deep": [1, 2]}}]
    changes: dict[str, Any] = dict(zip(ids, more, strict=True))

    def change(rows: list[Any]) -> list[Any]:
        changed = [{**row, **changes[row["id"]]} for row in rows]
        return [
            {key: row[key] for key in row if row["id"] != ids[0] or key != "relation"}
            for row in changed
        ]

    user.phone.network.rewrite("pull", change)
    [told] = pull(user)
    assert (told["rows"], told["skipped"]) == (3, 0)
    found = {row["id"]: row for row in user.app.contact_search({"query": ""})["contacts"]}
    assert "relation" not in found[ids[0]]
    assert found[ids[1]]["municipality"] is None
    # Columns that were not requested are not stored (CAC-2).
    assert set(found[ids[2]]) == {"id", "org_id", "name", "municipality", "relation"}


def test_the_same_id_twice_in_a_page_is_stored_once(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    directory.contact(user.org, "Prøve")
    user.phone.network.rewrite(
        "pull", lambda rows: rows + [{**row, "name": "Prøve Sist"} for row in rows]
    )
    [told] = pull(user)
    assert (told["skipped"], told["problem"]) == (0, None)
    assert total(user.app) == 1


# Columns ------------------------------------------------------------------------------------------


def test_CAC_2_a_newly_network_only_column_is_removed(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    contacts = {"columns": ["name", "municipality", "relation"], "needs_network": ["phone"]}
    user = sign_in(tables={"contacts": contacts})
    contact = directory.contact(user.org, "Prøve", phone="+47 000 00 001", relation="bruker")
    pull(user)
    assert user.app.contact_get({"id": contact})["contact"]["relation"] == "bruker"
    user.phone.config["backend"]["contacts"] = {
        "columns": ["name", "municipality"], "needs_network": ["relation", "phone"],
    }  # fmt: skip
    user.restart(online=False)
    assert "relation" not in user.app.contact_get({"id": contact})["contact"]
    assert "relation" not in user.app.contact_search({"query": ""})["contacts"][0]
    user.app.reconnect()
    assert set(user.app.contact_get({"id": contact})["contact"]) == {
        "id", "org_id", "name", "municipality",
    }  # fmt: skip
    selected = {column for query in asked(user) for column in query["select"].split(",")}
    assert not selected & {"relation", "phone", "*"}


# Order --------------------------------------------------------------------------------------------


def test_the_queue_is_drained_before_anything_is_read(sign_in: MakeUser) -> None:
    user = sign_in(contacts=3)
    user.app.go_offline()
    for _ in range(3):
        user.app.register()
    user.phone.pass_time(3600)
    user.phone.network.forget()
    user.app.reconnect()
    purposes = user.phone.network.purposes()
    assert {"upload", "pull", "summary"} <= set(purposes)
    last_write = max(i for i, purpose in enumerate(purposes) if purpose == "upload")
    first_read = min(i for i, p in enumerate(purposes) if p in {"pull", "summary"})
    assert last_write < first_read


def test_nothing_is_read_while_an_upload_is_under_way(sign_in: MakeUser) -> None:
    user = sign_in(contacts=3)
    user.phone.pass_time(3600)
    user.phone.network.forget()
    user.app.register()
    user.app.sync_now()
    upload = taken(user, "upload")
    assert [r["purpose"] for r in user.app.poll()["requests"] if r["purpose"] != "guard"] == []
    assert {"pull", "summary"}.isdisjoint(user.phone.network.purposes())
    user.app.answer(upload, user.phone.network(upload))
    user.phone.network.forget()
    user.app.settle()
    assert {"pull", "summary"} <= set(user.phone.network.purposes())
