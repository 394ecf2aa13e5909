"""Which values of a row count as the user's own: a value of another person is never lost unseen."""

from __future__ import annotations

from typing import Any

import pytest

from support.corrections import (
    KIND,
    OWN,
    edit,
    lose_change,
    row,
    set_elsewhere,
    shown,
    tables,
    user_with_change_ids,
)
from support.directory_fixtures import DirectoryFixtures, changed
from support.errors import error_of
from support.held import answer, taken
from support.own_rows import COLUMNS, insert, pull
from support.queue import add, code_of, item_of
from support.users import MakePhone, MakeUser, SignedIn, signed_in

BY_FUNCTION = {"upload": "rpc", "function": "submit_activities"}


@pytest.fixture
def user(sign_in: MakeUser) -> SignedIn:
    """A user whose stored activities are kept."""
    return sign_in(tables=tables())


def lost_insert(user: SignedIn, **payload: Any) -> str:  # noqa: ANN401
    """Register an activity that is stored, and whose answer is lost; no network from then on."""
    user.phone.network.lose["upload"] = 1
    item = add(user.app, **payload)
    user.app.settle()
    user.app.go_offline()
    assert item_of(user.app, item)["state"] == "pending"
    return item


def conflict(user: SignedIn, item: str) -> tuple[Any, Any, Any]:
    """The column of the item that others have changed, too: its base, theirs and mine."""
    assert code_of(user.app, item) == "changed_elsewhere"
    [column] = item_of(user.app, item)["conflict"]["columns"]
    return column["base"], column["theirs"], column["mine"]


@pytest.mark.parametrize("theirs", [None, "theirs"])
def test_COR_6_a_column_that_others_cleared_after_a_lost_insert_is_asked_for(
    user: SignedIn, directory: DirectoryFixtures, theirs: str | None
) -> None:
    item = lost_insert(user, minutes=30, note="first")
    edit(user.app, item, note="second")
    set_elsewhere(directory, item, note=theirs)
    user.app.go_online()
    user.app.wait(600)
    assert conflict(user, item) == ("first", theirs, "second")
    assert row(directory, item)["note"] == theirs


def test_COR_6_a_number_that_was_sent_as_a_text_is_no_other_number(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = add(user.app, minutes=30)
    user.app.settle()
    user.app.go_offline()
    edit(user.app, item, minutes="50")
    set_elsewhere(directory, item, minutes=77)
    user.app.go_online()
    user.app.wait(600)
    assert conflict(user, item) == (30, 77, "50")
    assert row(directory, item)["minutes"] == 77


@pytest.mark.parametrize(
    ("column", "sent", "stored"),
    [
        ("minutes", "50", "50"),
        ("occurred_at", "2026-03-01T08:00Z", "2026-03-01"),
    ],
    ids=["a number as a text", "a time without seconds"],
)
def test_COR_5_a_value_that_the_server_writes_in_its_own_form_is_recognised(
    user: SignedIn, directory: DirectoryFixtures, column: str, sent: str, stored: str
) -> None:
    item = add(user.app, minutes=30)
    user.app.settle()
    edit(user.app, item, **{column: sent})
    lose_change(user)
    user.app.wait(600)
    assert user.app.queue_get({"id": item})["state"] == "stored"
    assert str(row(directory, item)[column]).split(" ")[0] == stored


#: What was sent, and what others have set.
ALIKE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"minutes": "30"}, {"minutes": 77}),
    ({"note": "abc"}, {"note": "ABC"}),
    ({"note": "1.1"}, {"note": "1.10"}),
    ({"note": "a b"}, {"note": "ab"}),
    ({"note": "12:00"}, {"note": "12:00:59"}),
    ({"note": "2026-11-30"}, {"note": "2026-11-30T15:00:00"}),
]


@pytest.mark.parametrize(("sent", "theirs"), ALIKE)
@pytest.mark.parametrize("wish", ["another value", "deletion"])
def test_COR_8_what_is_only_alike_is_another_value(
    user: SignedIn,
    directory: DirectoryFixtures,
    sent: dict[str, Any],
    theirs: dict[str, Any],
    wish: str,
) -> None:
    [(column, value)] = theirs.items()
    item = lost_insert(user, **{"minutes": 30, **sent})
    set_elsewhere(directory, item, **theirs)
    if wish == "deletion":
        user.app.queue_cancel({"id": item})
    else:
        edit(user.app, item, **{column: "9"})
    user.app.go_online()
    user.app.wait(600)
    assert conflict(user, item)[1] == value
    assert row(directory, item)[column] == value
    assert row(directory, item)["deleted_at"] is None


def test_COR_5_a_text_whose_spaces_the_server_removes_is_recognised(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = lost_insert(user, minutes=30, note="as written ")
    set_elsewhere(directory, item, note="as written")
    edit(user.app, item, minutes=45)
    user.app.go_online()
    user.app.wait(600)
    assert user.app.queue_get({"id": item})["state"] == "stored"
    assert (row(directory, item)["note"], row(directory, item)["minutes"]) == ("as written", 45)


NARROWER: dict[str, dict[str, Any]] = {
    "change": {"change": {"columns": ["note"]}},
    "own": {"own": {"columns": ["type", "occurred_at", "note"]}},
    "columns": {"columns": ["type", "occurred_at", "note", "user_id"]},
}


@pytest.mark.parametrize("place", NARROWER)
def test_COR_4_an_edit_is_kept_by_a_version_of_the_app_that_lists_fewer_columns(
    user: SignedIn, directory: DirectoryFixtures, place: str
) -> None:
    item = lost_insert(user, minutes=30)
    assert edit(user.app, item, minutes=45)["state"] == "pending"
    user.phone.config["backend"]["queue"] = tables(**NARROWER[place])["queue"]
    app = user.restart()
    app.touch()
    app.go_online()
    app.wait(600)
    assert app.queue_get({"id": item})["state"] == "stored"
    assert row(directory, item)["minutes"] == 45


def test_COR_1_an_edit_to_null_of_a_column_that_no_list_shows_is_kept(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(tables=tables(own={"columns": ["type", "minutes", "occurred_at"]}))
    [item] = insert(directory, user.person, user.org)
    pull(user, after_s=30)
    seen = shown(user.app, item)["payload"]
    assert "note" not in seen
    user.app.queue_edit({"id": item, "base": seen, "payload": {"note": None}})
    user.app.wait(600)
    # Nobody has seen what was there.
    assert conflict(user, item) == (None, "Tur 0", None)


@pytest.mark.parametrize("is_stored", [False, True])
def test_COR_1_an_edit_cannot_remove_the_time_by_which_rows_are_listed(
    user: SignedIn, *, is_stored: bool
) -> None:
    if not is_stored:
        user.app.go_offline()
    item = add(user.app, minutes=30)
    user.app.settle()
    error = error_of(lambda: edit(user.app, item, occurred_at=None))
    assert (error.code, error.field) == ("queue.invalid_payload", "/payload/occurred_at")
    edit(user.app, item, occurred_at="2026-11-20T10:00:00Z", note=None)
    user.app.settle()
    assert shown(user.app, item)["occurred_at_ms"] == 1_795_168_800_000


def test_COR_5_with_a_column_for_its_id_a_deletion_is_not_repeated(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_with_change_ids(sign_in, directory)
    app = user.app
    item = add(app, minutes=30)
    app.settle()
    app.queue_cancel({"id": item})
    lose_change(user)
    assert row(directory, item)["deleted_at"] is not None
    # Somebody restores the row.
    set_elsewhere(directory, item, deleted_at=None, note="restored")
    app.wait(600)
    assert app.queue_get({"id": item})["state"] == "cancelled"
    assert row(directory, item)["deleted_at"] is None
    assert shown(app, item)["payload"]["note"] == "restored"


def test_COR_8_an_item_that_others_deleted_before_it_was_proved_is_not_listed(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = lost_insert(user, minutes=30)
    directory.control.sql("update activities set deleted_at = now() where id = %s", item)
    user.phone.pass_time(15)
    add(user.app, minutes=1)
    # A pull passes the deleted row while its item is queued.
    hold: list[Any] = []
    user.phone.network.instead.append(
        lambda request: {"error": "timeout"} if request["purpose"] == "upload" and hold else None
    )
    hold.append(True)
    user.app.go_online()
    user.app.settle()
    hold.clear()
    user.app.wait(600)
    assert user.app.queue_get({"id": item})["state"] == "stored"
    listed = user.app.item_list({"kind": "activity"})["items"]
    assert item not in [one["id"] for one in listed]
    assert set(COLUMNS) >= set(listed[0]["payload"])


REFUSED_ON_THE_WAY: dict[str, Any] = {
    "status": 403,
    "headers": {"content-type": "text/html"},
    "body": "<html>Access denied</html>",
}


def told_nothing(user: SignedIn) -> None:
    """The next upload gets no body, its question is refused on the way, and the way is open."""
    request = taken(user, "upload")
    done = user.phone.network(request)
    user.app.complete({"id": request["id"], **done, "body": ""})  # type: ignore[typeddict-item]
    question = taken(user, "upload")
    assert question["method"] == "GET"
    user.app.complete({"id": question["id"], **REFUSED_ON_THE_WAY})  # type: ignore[typeddict-item]
    answer(user.app, taken(user, "upload"))


@pytest.mark.parametrize("wish", ["edit", "edit, and an answer is lost", "cancel"])
def test_COR_2_a_batch_that_may_be_stored_counts_as_sent(
    user: SignedIn, directory: DirectoryFixtures, wish: str
) -> None:
    app = user.app
    app.go_offline()
    item, other = (add(app, minutes=minutes, note="first") for minutes in (1, 2))
    app.go_online()
    told_nothing(user)
    assert [one["attempts"] for one in app.queue_list()["items"]] == [1, 1]
    if wish == "cancel":
        app.queue_cancel({"id": item})
    else:
        edit(app, item, note="second")
    user.phone.network.lose["upload"] = int("lost" in wish)
    app.settle()
    app.wait(900)
    assert app.of_type("item_parked") == []
    assert app.queue_get({"id": other})["state"] == "stored"
    if wish == "cancel":
        assert app.queue_get({"id": item})["state"] == "cancelled"
        assert row(directory, item)["deleted_at"] is not None
    else:
        assert app.queue_get({"id": item})["state"] == "stored"
        assert row(directory, item)["note"] == "second"


@pytest.fixture
def keeper(sign_in: MakeUser) -> SignedIn:
    """A user whose stored activities are changed, and not deleted."""
    return sign_in(tables={"queue": {"activity": {**KIND, "own": {}, "change": {}}}})


def test_COR_5_an_edit_that_is_taken_back_while_its_row_is_read_is_not_made(
    keeper: SignedIn, directory: DirectoryFixtures
) -> None:
    app = keeper.app
    item = lost_insert(keeper, minutes=30, note="first")
    edit(app, item, note="second")
    app.go_online()
    while "updated_at,type" not in (reading := taken(keeper, "upload"))["url"].replace(
        "deleted_at,", ""
    ):
        answer(app, reading)
    app.queue_cancel({"id": item})
    answer(app, reading)
    app.wait(900)
    assert row(directory, item)["note"] == "first"
    assert shown(app, item)["payload"]["note"] == "first"
    assert shown(app, item)["state"] == "stored"


@pytest.mark.parametrize("later", ["cancel", "edit, cancel"])
def test_COR_5_what_a_cancel_brings_back_is_what_its_user_saw_first(
    keeper: SignedIn, directory: DirectoryFixtures, later: str
) -> None:
    """Also after another cancel, or another edit, when the first edit was found at the server."""
    app = keeper.app
    item = add(app, minutes=30, note="first")
    app.settle()
    edit(app, item, note="second")
    request = taken(keeper, "upload")
    keeper.phone.network(request)
    app.complete({"id": request["id"], "error": "timeout"})
    app.queue_cancel({"id": item})
    if "edit" in later:
        edit(app, item, note="third")
    keeper.phone.pass_time(60)
    while (request := taken(keeper, "upload"))["method"] != "GET":
        answer(app, request)
    answer(app, request)
    app.queue_cancel({"id": item})
    app.wait(900)
    assert row(directory, item)["note"] == "first"
    assert shown(app, item)["payload"]["note"] == "first"


def change_unproved(user: SignedIn) -> str:
    """An item whose change from 30 to 45 min is stored, and the answer lost: its id."""
    app = user.app
    item = add(app, minutes=30, note="first")
    app.settle()
    app.go_offline()
    edit(app, item, minutes=45)
    app.go_online()
    lose_change(user)
    return item


@pytest.mark.parametrize("payload", [{"type": "visit"}, {"note": "second"}])
def test_COR_5_an_edit_of_a_deletion_brings_back_what_an_unproved_change_has_changed(
    user: SignedIn, directory: DirectoryFixtures, payload: dict[str, str]
) -> None:
    app = user.app
    item = change_unproved(user)
    app.queue_cancel({"id": item})
    assert shown(app, item)["payload"]["minutes"] == 30
    assert edit(app, item, **payload)["state"] != "stored"
    assert shown(app, item)["payload"]["minutes"] == 30
    app.wait(600)
    assert app.queue_get({"id": item})["state"] == "stored"
    stored = row(directory, item)
    assert (stored["minutes"], stored["note"]) == (30, payload.get("note", "first"))


@pytest.mark.parametrize("payload", [{"minutes": 45}, {"type": "phone"}])
@pytest.mark.parametrize("is_stale", [True, False])
def test_COR_5_an_edit_of_a_deletion_keeps_what_its_user_sees_of_an_earlier_change(
    user: SignedIn, directory: DirectoryFixtures, payload: dict[str, Any], *, is_stale: bool
) -> None:
    app = user.app
    item = change_unproved(user)
    # Given a deletion that waits for its user, because others have changed the row
    app.queue_cancel({"id": item})
    stale = shown(app, item)["payload"]
    directory.control.sql("update activities set note = 'theirs' where id = %s", item)
    app.wait(600)
    now = shown(app, item)
    assert (stale["minutes"], now["state"], now["payload"]["minutes"]) == (30, "parked", 45)
    # When they edit what they see, or saw before
    seen = stale if is_stale else now["payload"]
    app.queue_edit({"id": item, "base": seen, "payload": payload})
    wanted = {**seen, **payload}
    assert shown(app, item)["payload"] == {**wanted, "note": "theirs"}
    app.wait(600)
    # Then the rest of it stands
    stored = row(directory, item)
    assert (stored["minutes"], stored["note"]) == (wanted["minutes"], "theirs")
    assert stored["type"] == wanted["type"]


@pytest.mark.parametrize("step", ["retry", "edit"])
@pytest.mark.parametrize("other", ["deleted", "another"])
@pytest.mark.parametrize("upload", [{}, BY_FUNCTION], ids=["rest", "rpc"])
def test_COR_2_an_item_whose_id_is_taken_is_not_stored_because_an_answer_is_lost(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: dict[str, str], other: str, step: str
) -> None:
    user = sign_in(tables=tables(**upload))
    app = user.app
    if other == "deleted":
        item = add(app, minutes=30)
        app.settle()
        app.queue_cancel({"id": item})
        app.settle()
    else:
        [item] = insert(directory, user.person, user.org)
    # Given an item that is parked, because its id is another row's
    code = "deleted_elsewhere" if other == "deleted" else "conflict"
    add(app, item, minutes=30 if other == "deleted" else 31)
    app.settle()
    assert code_of(app, item) == code
    # When its user sends it again, and the answer is lost
    user.phone.network.lose["upload"] = 1
    if step == "retry":
        app.queue_retry({"id": item})
    else:
        edit(app, item, minutes=45)
    app.settle()
    app.reconnect()
    app.wait(600)
    # Then its user is still asked
    assert app.queue_get({"id": item})["state"] == "parked"
    assert row(directory, item)["minutes"] == 30
    # And so they are without a loss
    app.queue_retry({"id": item})
    app.wait(600)
    assert app.queue_get({"id": item})["state"] == "parked"


@pytest.mark.parametrize("upload", [{}, BY_FUNCTION], ids=["rest", "rpc"])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("theirs", [30, 45])
def test_COR_2_an_edit_of_a_copy_is_not_lost_because_an_answer_is_lost(
    sign_in: MakeUser,
    phones: MakePhone,
    directory: DirectoryFixtures,
    upload: dict[str, str],
    theirs: int,
    *,
    kept: bool,
) -> None:
    """An item that was exported is sent by another device, and edited on this one."""
    kind = {**OWN, **upload} if kept else {**KIND, **upload}
    user = sign_in(tables={"queue": {"activity": kind}})
    app = user.app
    app.go_offline()
    item = add(app, minutes=30)
    if theirs == 45:
        app.queue_edit({"id": item, "payload": {"minutes": 45}})
    [copy] = app.queue_export()["items"]
    other = signed_in(phones, user.person, user.org, tables={"queue": {"activity": kind}}).app
    other.queue_add({key: copy[key] for key in ("id", "kind", "payload", "occurred_at_ms")})
    other.settle()
    assert row(directory, item)["minutes"] == theirs
    app.queue_edit({"id": item, "payload": {"minutes": 45}})
    user.phone.network.lose["upload"] = 1
    app.go_online()
    app.settle()
    app.reconnect()
    app.wait(600)
    outcome = app.queue_get({"id": item})
    if theirs == 45 or kept:
        assert outcome["state"] == "stored"
        assert row(directory, item)["minutes"] == 45
    else:
        assert code_of(app, item) == "unknown_outcome"


@pytest.mark.parametrize("way", ["edit", "cancel"])
def test_COR_2_an_edit_of_a_copy_is_not_lost_because_another_one_follows(
    sign_in: MakeUser, phones: MakePhone, directory: DirectoryFixtures, way: str
) -> None:
    """Another device has sent the copy as it was before the first edit."""
    kinds = {"queue": {"activity": OWN}}
    user = sign_in(tables=kinds)
    app = user.app
    app.go_offline()
    item = add(app, minutes=30)
    [copy] = app.queue_export()["items"]
    other = signed_in(phones, user.person, user.org, tables=kinds).app
    other.queue_add({key: copy[key] for key in ("id", "kind", "payload", "occurred_at_ms")})
    other.settle()
    edit(app, item, minutes=45)
    # Given an upload of which nobody knows whether it has stored the first edit
    user.phone.network.lose["upload"] = 1
    app.go_online()
    app.settle()
    app.go_offline()
    if way == "cancel":
        app.queue_cancel({"id": item})
    # When the next edit changes something else
    edit(app, item, note="again")
    app.reconnect()
    app.wait(600)
    # Then the copy, which the user saw before their edits, has both
    assert app.queue_get({"id": item})["state"] == "stored"
    stored = row(directory, item)
    assert (stored["minutes"], stored["note"]) == (45, "again")


def test_COR_2_a_default_of_the_server_is_no_conflict_after_edits_and_a_lost_answer(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    with changed(
        directory,
        "alter table activities alter column note set default 'by the server'",
        "alter table activities alter column note drop default",
    ):
        app.go_offline()
        item = add(app, minutes=30)
        edit(app, item, minutes=45)
        user.phone.network.lose["upload"] = 1
        app.go_online()
        app.settle()
        edit(app, item, type="phone")
        app.wait(600)
    stored = row(directory, item)
    assert (stored["minutes"], stored["type"], stored["note"]) == (45, "phone", "by the server")
    assert app.queue_get({"id": item})["state"] == "stored"
