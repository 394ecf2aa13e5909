"""Queue operations of the user, and the queue's events and wake-ups."""

from __future__ import annotations

from typing import Any, cast

import pytest

from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.held import answer, taken
from support.phone import App
from support.queue import (
    BAD_MINUTES,
    EMPTY,
    UPLOADS,
    activity,
    add,
    code_of,
    drain,
    edit,
    item_of,
    new_ids,
    stored,
    user_of,
)
from support.users import MakeUser


def test_adding_the_same_id_again_is_a_no_op_or_a_conflict(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    app = user.offline()
    [item] = new_ids(1)
    first = app.queue_add(activity(item))
    # The same content gets the same reply, also after a restart
    assert app.queue_add(activity(item)) == first
    app = user.restart(online=False)
    assert app.queue_add(activity(item.upper())) == first
    # Different content is a conflict and changes nothing
    for other in (
        activity(item, note="x"),
        {**activity(item), "occurred_at_ms": 1_795_000_000_000},
    ):
        error = error_of(app.queue_add, other)
        assert (error.code, error.status, error.field) == ("queue.id_taken", 4, "/id")
    assert len(app.queue_list()["items"]) == 1
    app.go_online()
    [bad] = new_ids(1)
    app.queue_add({**activity(bad, minutes=BAD_MINUTES), "occurred_at_ms": 1_795_000_000_000})
    app.settle()
    again = {**activity(bad, minutes=BAD_MINUTES), "occurred_at_ms": 1_795_000_000_000}
    assert app.queue_add(again)["state"] == "parked"


def test_generated_ids_are_growing_uuids_of_version_7(sign_in: MakeUser) -> None:
    user = sign_in()
    user.app.go_offline()
    ids = []
    for _ in range(20):
        ids.append(add(user.app))
        user.phone.pass_time(0.002)
    assert ids == sorted(ids)
    assert {item[14] for item in ids} == {"7"}


ID = "01976b36-0000-7000-8000-000000000001"
INVALID: list[tuple[Any, str | None, str | None]] = [
    *(
        ({"kind": "activity", "payload": payload}, code, field)
        for payload, code, field in (
            ([], "queue.invalid_payload", "/payload"),
            (1.5, "queue.invalid_payload", "/payload"),
            ("text", "queue.invalid_payload", "/payload"),
            (None, None, "/payload"),
            ({"minuts": 3}, "queue.unknown_column", "/payload/minuts"),
            ({"a/b~c": 3}, "queue.unknown_column", "/payload/a~1b~0c"),
            ({"note": "x" * 262_144}, "queue.item_too_large", "/payload"),
            ({"minutes": 2**53 + 1}, "queue.invalid_payload", "/payload/minutes"),
            ({"note": {"a": [1, 2**60]}}, "queue.invalid_payload", "/payload/note/a/1"),
            ({"org_id": "x"}, "queue.invalid_payload", "/payload/org_id"),
            ({"user_id": ID}, "queue.invalid_payload", "/payload/user_id"),
            ({"note": "\ud800"}, None, "/payload/note"),
            ({"note": "a\u0000b"}, None, "/payload/note"),
            ({"no\0te": "x"}, None, None),
        )
    ),
    *(
        ({"kind": "activity", "payload": {}, **more}, code, "/" + field)
        for more, code, field in (
            ({"id": "1"}, "queue.invalid_id", "id"),
            ({"id": 7}, "queue.invalid_id", "id"),
            ({"id": f"{{{ID}}}"}, "queue.invalid_id", "id"),
            ({"depends_on": ["x"]}, "queue.unknown_dependency", "depends_on/0"),
            ({"depends_on": "x"}, "request.wrong_type", "depends_on"),
            ({"occurred_at_ms": -1}, "request.invalid_value", "occurred_at_ms"),
            ({"occured_at_ms": 1}, "request.unknown_field", "occured_at_ms"),
            ({"org_id": ID}, "org.not_a_member", "org_id"),
            ({"state": "sent"}, None, "state"),
            ({"kind": "activty"}, "queue.unknown_kind", "kind"),
            ({"kind": 1}, "request.wrong_type", "kind"),
        )
    ),
    ({"kind": "activity"}, "request.missing_field", "/payload"),
    ({"payload": {}}, "request.missing_field", "/kind"),
]


def test_QUE_13_invalid_input_is_refused_by_queue_add(sign_in: MakeUser) -> None:
    app = sign_in().app
    app.go_offline()
    for request, code, field in INVALID:
        error = error_of(app.queue_add, request)
        case = f"{str(request)[:200]}: {error}"
        assert error.status == (3 if code == "org.not_a_member" else 1), case
        assert code is None or error.code == code, case
        assert field is None or error.field == field, case
    assert app.queue_list()["items"] == []


def test_QUE_13_the_time_of_an_item_is_the_one_that_its_user_edited(sign_in: MakeUser) -> None:
    app = sign_in().offline()
    [item] = new_ids(1)
    app.queue_add({**activity(item), "occurred_at_ms": 1_795_000_000_000})
    edit(app, item, 5, occurred_at="2026-11-20T10:00:00+01:00")
    for listed in (app.queue_list()["items"], app.queue_export()["items"]):
        assert [one["occurred_at_ms"] for one in listed] == [1_795_165_200_000]
    edit(app, item, 6)
    assert item_of(app, item)["occurred_at_ms"] == 1_795_165_200_000


def test_QUE_13_a_column_that_holds_no_time_is_not_replaced(sign_in: MakeUser) -> None:
    """The server says what is wrong with it."""
    app = sign_in().offline()
    [item] = new_ids(1)
    app.queue_add({**activity(item, occurred_at=5), "occurred_at_ms": 1_795_000_000_000})
    shown = item_of(app, item)
    assert (shown["payload"]["occurred_at"], shown["occurred_at_ms"]) == (5, 1_795_000_000_000)


def test_QUE_9_an_item_in_flight_cannot_be_changed_and_is_not_lost(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    app = user.app
    item = add(app)
    flying = taken(user, "upload")
    for call, more in (
        ("edit", {"payload": {"type": "call", "minutes": 9}}),
        ("cancel", {}),
        ("retry", {}),
    ):
        error = error_of(getattr(app, f"queue_{call}"), {"id": item, **more})
        assert (error.code, error.status, error.retryable) == ("queue.in_flight", 2, True)
    answer(app, flying)
    app.settle()
    assert [row["minutes"] for row in directory.activities(user.person)] == [5]
    assert error_of(app.queue_edit, {"id": item, "payload": {}}).code == "queue.not_found"


def test_the_list_is_paged_and_filtered(sign_in: MakeUser) -> None:
    user = sign_in()
    app = user.app
    parked = add(app, minutes=BAD_MINUTES)
    drain(app)
    app.go_offline()
    ids = [parked] + [add(app) for _ in range(24)]
    seen: list[str] = []
    after = 0
    while True:
        page = app.queue_list({"after": after, "limit": 7})
        seen += [item["id"] for item in page["items"]]
        assert page["counts"] == {**EMPTY, "pending": 24, "parked": 1}
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == ids
    assert [i["id"] for i in app.queue_list({"state": "parked"})["items"]] == [parked]
    assert [i["id"] for i in app.queue_export({"state": "parked"})["items"]] == [parked]


def test_QUE_4_exported_items_can_be_added_unchanged(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    second = directory.organisation()
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")
    app = user.restart()
    app.settle()
    bad = add(app, minutes=BAD_MINUTES)
    drain(app)
    app.go_offline()
    child = add(app, follows=bad)
    app.org_select({"org_id": second.id})
    other = add(app, note="æøå")
    exported = app.queue_export()["items"]
    assert [item["state"] for item in exported] == ["parked", "waiting", "pending"]
    for item in exported:
        app.queue_cancel({"id": item["id"]})
    for item in exported:
        app.queue_add(cast("Any", item))
    again = app.queue_export()["items"]
    assert [{**item, "state": ""} for item in again] == [{**item, "state": ""} for item in exported]
    assert [item["id"] for item in again] == [bad, child, other]
    for item in exported:
        app.queue_add(cast("Any", item))
    assert app.queue_export()["items"] == again


def test_QUE_8_an_edit_changes_what_an_item_waits_for(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    app = user.app
    bad = add(app, minutes=BAD_MINUTES)
    drain(app)
    child = add(app, follows=bad)
    app.settle()
    assert code_of(app, child) == "dependency_parked"
    # When the user removes the reference, it is sent
    edited = app.queue_edit({"id": child, "payload": {"minutes": 6, "follows": None}})
    assert edited["state"] == "pending"
    drain(app)
    assert stored(directory, user.person) == [child]


def test_QUE_8_two_items_cannot_wait_for_each_other(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    app = user.offline()
    first, second, third = new_ids(3)
    add(app, third)
    add(app, first, depends_on=[third])
    add(app, second, depends_on=[first])
    app.queue_cancel({"id": third})
    add(app, third, depends_on=[second])
    edit(app, first, 7)
    app.go_online()
    assert drain(app)["sent"] == 3
    assert stored(directory, user.person) == [first, second, third]


def test_QUE_8_cancelling_a_parent_frees_all_its_children(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    app = user.offline()
    parent, other = add(app), add(app)
    children = [add(app, depends_on=[parent, *[other] * (number == 3)]) for number in range(4)]
    assert app.queue_cancel({"id": parent}) == {"id": parent, "released": 3, "state": None}
    assert item_of(app, children[3])["state"] == "waiting"
    app.go_online()
    drain(app)
    assert stored(directory, user.person) == sorted([other, *children])


def child_of(*parents: str) -> Any:  # noqa: ANN401
    """A request for an item that names these in `depends_on`."""
    return {
        **activity(new_ids(1)[0]),
        "depends_on": [*parents],
        "occurred_at_ms": 1_795_000_000_000,
    }


def refusal_of_child(app: App, *parents: str) -> tuple[str, str | None]:
    """The code and the field that refuse such an item."""
    error = error_of(app.queue_add, child_of(*parents))
    return error.code, error.field


def test_depends_on_an_item_that_was_never_added_is_refused(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    app = user.offline()
    parent = add(app)
    [later] = new_ids(1)
    unknown = "queue.unknown_dependency"
    assert refusal_of_child(app, parent, later) == (unknown, "/depends_on/1")
    assert app.queue_list()["counts"]["pending"] == 1
    # With its parent in the queue it waits, in any order of calls after that
    app.queue_add({**activity(later), "occurred_at_ms": 1_795_000_000_000})
    child = app.queue_add(child_of(later))
    assert child["state"] == "waiting"
    # A cancelled item is no parent either
    app.queue_cancel({"id": parent})
    assert refusal_of_child(app, parent) == (unknown, "/depends_on/0")
    app.go_online()
    drain(app)
    assert stored(directory, user.person) == sorted([later, child["id"]])


def test_depends_on_a_stored_item_is_accepted(sign_in: MakeUser) -> None:
    user = sign_in()
    parent = add(user.app)
    drain(user.app)
    app = user.restart(online=False)
    request = child_of(parent)
    assert app.queue_add(request)["state"] == "pending"
    # and its export does not name it, since another device does not know it
    [exported] = app.queue_export()["items"]
    assert "depends_on" not in exported
    # A waiting one names its parent, and the export can be added again
    waiting = app.queue_add(child_of(request["id"], parent))
    exports = app.queue_export()["items"]
    assert exports[1]["depends_on"] == [request["id"]]
    assert app.queue_list()["items"][1]["id"] == waiting["id"]


def test_depends_on_is_checked_for_each_user(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    parent = add(user.app)
    drain(user.app)
    user.app.session_logout()
    other = directory.person(user.org)
    user.app.sign_in(other)
    assert refusal_of_child(user.app, parent)[0] == "queue.unknown_dependency"


@pytest.mark.parametrize("upload", UPLOADS)
def test_QUE_8_a_child_waits_for_a_parent_that_another_handle_sends(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given a child that was added before its parent (so that nothing links them yet)
    user = user_of(sign_in, upload)
    app = user.offline()
    [parent] = new_ids(1)
    child = add(app, follows=parent)
    app.go_online()
    flying = taken(user, "upload")
    add(app, parent)
    answer(app, flying)
    assert code_of(app, child) == "dependency_waiting"
    drain(app)
    app.settle()
    assert stored(directory, user.person) == sorted([parent, child])


def test_a_kind_that_is_no_longer_configured_waits(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    app = user.offline()
    lost = app.queue_add({"kind": "contact", "payload": {"name": "Ola Prøve"}})["id"]
    columns = ["type", "minutes", "occurred_at", "user_id"]
    kind = {"table": "activities", "columns": columns}
    user.phone.config["backend"]["queue"] = {"activity": kind}
    user.phone.network.up = True
    app = user.restart()
    kept = add(app)
    done = drain(app)
    assert (done["sent"], done["parked"], done["waiting"]) == (1, 0, 1)
    assert stored(directory, user.person) == [kept]
    assert code_of(app, lost) == "schema_not_ready"
    assert [r["code"] for r in app.queue_explain()["reasons"]] == ["schema_not_ready"]
    error = error_of(app.queue_edit, {"id": lost, "payload": {"name": "Kari"}})
    assert error.code == "queue.unknown_kind"
    del user.phone.config["backend"]["queue"]
    app = user.restart()
    drain(app)
    assert app.queue_list()["counts"] == EMPTY
