"""Versions of the app whose kinds and columns differ share one queue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from support.damage import destroy_header
from support.directory_fixtures import DirectoryFixtures, changed
from support.phone import App
from support.queue import EMPTY, add, code_of, drain, item_of, new_ids, stored
from support.users import MakeUser, SignedIn

COLUMNS = ["type", "minutes", "occurred_at", "contact_id", "follows", "note", "user_id"]
#: The columns of a version of the app that no longer knows `note`.
FEWER = [column for column in COLUMNS if column != "note"]


def configure(user: SignedIn, columns: list[str], **more: Any) -> None:  # noqa: ANN401
    """The app's next version: it lists these columns of an activity, and no other kind."""
    user.phone.config["backend"]["queue"] = {
        "activity": {"table": "activities", "columns": columns, **more}
    }


def uploads(user: SignedIn) -> list[dict[str, Any]]:
    return [dict(sent) for sent in user.phone.network.sent if sent["purpose"] == "upload"]


@pytest.fixture
def reports(directory: DirectoryFixtures) -> Iterator[DirectoryFixtures]:
    """A table that a test may change."""
    table = """
        create table public.reports(id uuid primary key, org_id uuid, user_id uuid,
          title text, note text, colour text);
        grant select, insert on public.reports to authenticated
        """
    with changed(directory, table, "drop table public.reports"):
        yield directory


def kinds(columns: list[str], **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"queue": {"report": {"table": "reports", "columns": columns}, **more}}


def report(user: SignedIn, **payload: str) -> str:
    return str(user.app.queue_add({"kind": "report", "payload": payload})["id"])


@pytest.mark.parametrize("upload", ["table", "rpc"])
def test_ATK_2_an_item_is_sent_with_the_columns_that_it_was_accepted_with(
    user: SignedIn, directory: DirectoryFixtures, upload: str
) -> None:
    item = add(user.offline(), note="Ringte på torsdag")
    plain = add(user.app)
    configure(user, FEWER, upload=upload, function="submit_activities")
    user.phone.network.up = True
    user.restart()
    drain(user.app)
    rows = {str(row["id"]): row["note"] for row in directory.activities(user.person)}
    assert rows == {item: "Ringte på torsdag", plain: None}
    assert user.app.of_type("item_parked") == []
    assert user.app.queue_list()["counts"] == EMPTY


@pytest.mark.parametrize("based", [False, True])
def test_ATK_2_an_edit_keeps_a_column_that_is_not_listed_any_more(
    user: SignedIn, directory: DirectoryFixtures, based: bool
) -> None:
    item = add(user.offline(), note="Ringte på torsdag")
    configure(user, FEWER)
    user.restart(online=False)
    seen = item_of(user.app, item)["payload"]
    edit: Any = {"id": item, "payload": {"minutes": 77}}
    if based:
        edit = {"id": item, "base": seen, "payload": {**seen, "minutes": 77}}
    user.app.queue_edit(edit)
    user.phone.network.up = True
    user.restart()
    drain(user.app)
    [row] = directory.activities(user.person)
    assert (row["minutes"], row["note"]) == (77, "Ringte på torsdag")


def test_ATK_2_user_id_is_a_column_that_an_item_was_accepted_with(
    sign_in: MakeUser, reports: DirectoryFixtures
) -> None:
    user = sign_in(tables=kinds(["title", "user_id"]))
    user.app.go_offline()
    with_user = report(user, title="a")
    user.phone.config["backend"].update(kinds(["title"]))
    user.restart(online=False)
    without_user = report(user, title="b")
    user.phone.config["backend"].update(kinds(["title", "user_id"]))
    user.phone.network.up = True
    user.restart()
    drain(user.app)
    rows = reports.control.sql("select id::text, user_id::text from reports")
    assert {row["id"]: row["user_id"] for row in rows} == {
        with_user: user.person.id,
        without_user: None,
    }


def test_ATK_2_the_same_item_is_the_same_under_another_configuration(sign_in: MakeUser) -> None:
    user = sign_in(tables=kinds(["title", "user_id"]))
    user.app.go_offline()
    item = report(user, title="a")
    user.phone.config["backend"].update(kinds(["title"]))
    user.restart(online=False)
    request: Any = {"kind": "report", "id": item, "payload": {"title": "a"}}
    assert user.app.queue_add(request)["id"] == item
    assert user.app.queue_list()["counts"]["pending"] == 1


def test_ATK_2_an_item_is_parked_when_the_server_no_longer_has_its_column(
    sign_in: MakeUser, reports: DirectoryFixtures
) -> None:
    user = sign_in(tables=kinds(["title", "note"]))
    user.app.go_offline()
    gone = [report(user, title=f"{number}", note="viktig") for number in range(3)]
    kept = [report(user, title="x") for _ in range(3)]
    reports.control.sql("alter table reports drop column note")
    reports.control.reload_schema()
    user.phone.config["backend"].update(kinds(["title"]))
    user.phone.network.up = True
    user.restart()
    done = drain(user.app)
    assert (done["sent"], done["parked"], done["waiting"]) == (3, 3, 0)
    rows = reports.control.sql("select id::text from reports")
    assert sorted(row["id"] for row in rows) == sorted(kept)
    for item in gone:
        shown = item_of(user.app, item)
        assert (shown["state"], shown["field"]) == ("parked", "note")
        assert shown["reason"]["code"] == "missing_column"
        assert shown["reason"]["sqlstate"] == "PGRST204"
        assert shown["payload"]["note"] == "viktig"
    assert {event["field"] for event in user.app.of_type("item_parked")} == {"note"}
    user.app.queue_edit({"id": gone[0], "payload": {"title": "0", "note": "uviktig"}})
    user.app.queue_edit({"id": gone[1], "payload": {"title": "1: viktig"}})
    user.app.settle_until("sync_completed")
    assert code_of(user.app, gone[0]) == "missing_column"
    titles = {row["title"] for row in reports.control.sql("select title from reports")}
    assert "1: viktig" in titles


def test_ATK_2_an_item_waits_for_a_column_that_the_server_does_not_have_yet(
    sign_in: MakeUser, reports: DirectoryFixtures
) -> None:
    user = sign_in(tables=kinds(["title", "mood"]))
    item = report(user, title="a", mood="good")
    user.app.settle()
    assert item_of(user.app, item)["state"] == "waiting"
    reports.control.sql("alter table reports add column mood text")
    reports.control.reload_schema()
    drain(user.app)
    assert reports.control.sql("select mood from reports") == [{"mood": "good"}]


def test_ATK_2_a_salvaged_item_keeps_its_columns(
    sign_in: MakeUser, reports: DirectoryFixtures
) -> None:
    user = sign_in(tables=kinds(["title", "note", "user_id"]))
    user.app.go_offline()
    item = report(user, title="a", note="b")
    user.phone.close()
    database = user.phone.folder / "holdfast.db"
    database.write_bytes(bytes(4096) + database.read_bytes()[4096:])
    user.phone.config["backend"].update(kinds(["title", "colour"]))
    user.phone.network.up = True
    user.restart()
    user.app.settle()
    [event] = user.app.of_type("storage_recovered")
    assert event["carried"] == 1
    user.app.wait(60)
    query = "select id::text, title, note, user_id::text from reports"
    assert reports.control.sql(query) == [
        {"id": item, "title": "a", "note": "b", "user_id": user.person.id}
    ]


def test_ATK_2_renamed_tables_and_columns_in_another_order_share_a_request(
    sign_in: MakeUser, reports: DirectoryFixtures
) -> None:
    user = sign_in(tables=kinds(["title", "note", "colour"]))
    user.app.go_offline()
    report(user, note="n", colour="c", title="t")
    user.phone.config["backend"].update(kinds(["colour", "title"]))
    user.phone.network.up = True
    user.restart()
    drain(user.app)
    [sent] = uploads(user)
    assert "?columns=id,org_id,colour,title,note&" in sent["url"]
    [row] = json.loads(sent["body"])
    assert sorted(row) == ["colour", "id", "note", "org_id", "title"]


# ---- B9 ----


def newer(user: SignedIn) -> App:
    """Another process with the app's newer version, which knows all kinds."""
    config = {**user.phone.config, "backend": {**user.phone.config["backend"]}}
    del config["backend"]["queue"]
    app = App(user.phone, config)
    app.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
    app.session_resume()
    app.touch()
    app.settle()
    return app


def person_of(name: str) -> dict[str, Any]:
    return {"kind": "contact", "payload": {"name": name}}


def test_a_newer_version_sends_what_an_older_one_does_not_know(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    configure(user, COLUMNS)
    old = user.restart()
    with newer(user) as new:
        for round_ in range(3):
            names = [f"Ola {round_}", f"Kari {round_}"]
            ids = [new.queue_add(cast("Any", person_of(name)))["id"] for name in names]
            old.settle()
            assert [code_of(old, item) for item in ids] == ["schema_not_ready"] * 2
            assert "contacts" not in "".join(sent["url"] for sent in uploads(user))
            add(old)
            old.settle()
            new.settle_until("sync_completed")
            assert old.queue_list()["counts"] == EMPTY
            stored_names = directory.control.sql(
                "select name from contacts where org_id = %s order by name", user.org.id
            )
            assert [f"Kari {round_}", f"Ola {round_}"] == sorted(
                row["name"] for row in stored_names if row["name"].endswith(str(round_))
            )
            user.phone.network.forget()


def test_what_is_held_makes_a_version_that_knows_the_kind_poll(user: SignedIn) -> None:
    configure(user, COLUMNS)
    old = user.restart()
    with newer(user) as new:
        new.queue_add(cast("Any", person_of("Ola")))
        old.settle()
        [request] = [sent for sent in new.poll()["requests"] if sent["purpose"] == "upload"]
        assert "/contacts" in request["url"]
        # The older one leaves a request of the newer one alone
        old.settle()
        assert new.queue_list()["counts"]["sending"] == 1
        new.complete({"id": request["id"], **user.phone.network(request)})
        new.settle()
        assert new.queue_list()["counts"] == EMPTY


def test_an_older_version_alone_keeps_waiting_and_rests(user: SignedIn) -> None:
    user.app.go_offline()
    ids = [user.app.queue_add(cast("Any", person_of(f"{n}")))["id"] for n in range(5)]
    configure(user, COLUMNS)
    user.phone.network.up = True
    app = user.restart()
    app.settle()
    for _ in range(5):
        step = app.poll()
        assert step["requests"] == []
        assert step["wake_in_ms"] is None or step["wake_in_ms"] > 0
        app.wait(60)
    assert app.queue_list()["counts"] == {**EMPTY, "waiting": 5}
    assert {code_of(app, item) for item in ids} == {"schema_not_ready"}
    del user.phone.config["backend"]["queue"]
    user.restart()
    drain(user.app)
    assert user.app.queue_list()["counts"] == EMPTY


# ---- Low: the order of batches ----


def test_batches_go_in_the_order_of_their_oldest_items(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.offline()
    shapes: list[dict[str, Any]] = [{}, {"note": "a"}, {"note": "a", "follows": None}]
    contact = directory.contact(user.org, "Kari")
    shapes += [{"contact_id": contact}, {"contact_id": contact, "note": "b"}, {"follows": None}]
    shapes += [{"follows": None, "contact_id": contact}]
    first = [add(app, **shape) for shape in shapes]
    later = [add(app, **shape) for _ in range(3) for shape in reversed(shapes)]
    app.go_online()
    drain(app)
    assert stored(directory, user.person) == sorted(first + later)
    sent = [{row["id"] for row in json.loads(request["body"])} for request in uploads(user)]
    order = [min((first + later).index(item) for item in batch) for batch in sent]
    assert order == sorted(order)


def test_ATK_2_an_edit_keeps_a_parent_whose_column_is_not_listed_any_more(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    contact = user.offline().queue_add({"kind": "contact", "payload": {"name": "Kari"}})["id"]
    visit = add(user.app, contact_id=contact)
    assert item_of(user.app, visit)["state"] == "waiting"
    fewer = [column for column in COLUMNS if column != "contact_id"]
    user.phone.config["backend"]["queue"] = {
        "activity": {"table": "activities", "columns": fewer},
        "contact": {"table": "contacts", "columns": ["name"]},
    }
    user.restart(online=False)
    payload: Any = {"type": "visit", "minutes": 6, "contact_id": contact}
    assert user.app.queue_edit({"id": visit, "payload": payload})["state"] == "waiting"
    directory.control.drop_before("/rest/v1/contacts", method="POST", times=1)
    user.app.go_online()
    drain(user.app)
    [row] = directory.activities(user.person)
    assert (str(row["id"]), row["minutes"], str(row["contact_id"])) == (visit, 6, contact)
    assert user.app.of_type("item_parked") == []


@pytest.mark.parametrize("columns", [None, FEWER[:3]])
def test_ATK_2_a_salvage_by_another_version_keeps_the_parents(
    user: SignedIn, directory: DirectoryFixtures, columns: list[str] | None
) -> None:
    user.app.go_offline()
    child, parent = new_ids(2)
    add(user.app, parent)
    add(user.app, child, follows=parent)
    whole = user.phone.config["backend"].get("queue")
    if columns is None:
        user.phone.config["backend"]["queue"] = {"contact": {"table": "contacts"}}
    else:
        configure(user, columns)
    user.phone.close()
    destroy_header(user.phone.folder)
    app = user.phone.start(online=False)
    assert app.opened["recovered"]
    app.close()
    del user.phone.config["backend"]["queue"]
    if whole is not None:
        user.phone.config["backend"]["queue"] = whole
    app = user.phone.start(online=False)
    assert code_of(app, child) == "dependency_waiting"
    assert item_of(app, parent)["state"] == "pending"
    app.go_online()
    drain(app)
    assert sorted(stored(directory, user.person)) == sorted([parent, child])
