"""Item outcomes: sent, held, parked, edited, cancelled; never lost, never duplicated."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from holdfast import HoldfastError

from support import children
from support.directory_fixtures import DirectoryFixtures
from support.queue import stored
from support.sizes import sized
from support.users import MakeUser, SignedIn

BAD = {"minutes": 100_000}


def drained(user: SignedIn) -> dict[str, Any]:
    """Settle until the sync run completes; returns its event."""
    if not user.app.of_type("sync_completed"):
        user.app.settle_until("sync_completed", within_s=7200)
    return user.app.of_type("sync_completed")[-1]


def test_QUE_1_a_process_killed_at_any_write_loses_no_acknowledged_item(
    sign_in: MakeUser, killer: Path, tmp_path: Path
) -> None:
    # Given three acknowledged items
    user = sign_in()
    user.app.go_offline()
    ids = [user.app.register(minutes=1 + number) for number in range(3)]
    user.phone.close()
    fourth = "01976b36-0000-7000-8000-0000000c0de4"
    request = json.dumps(
        {"kind": "activity", "id": fourth, "payload": {"type": "visit", "minutes": 44}}
    )
    found = []
    for number in range(1, 100, sized(3, 1)):
        # When the process dies at its n-th file change while it adds one, for every n
        twin = user.phone.twin(tmp_path / f"add-{number}")
        arguments = [twin.spec(), "queue_add", request, str(number)]
        ended = children.run("die_during.py", *arguments, env={"LD_PRELOAD": str(killer)})
        assert not ended.crashed, ended.errors
        items = twin.start(online=False).queue_list()["items"]
        twin.close()
        # Then every acknowledged item is there, and the fourth is complete or absent
        assert [item["id"] for item in items[:3]] == ids
        assert [item["payload"]["minutes"] for item in items[:3]] == [1, 2, 3]
        assert [(i["id"], i["payload"]) for i in items[3:]] in (
            [],
            [(fourth, {"type": "visit", "minutes": 44})],
        )
        found.append(len(items))
        if not ended.killed:
            ended.check()
            break
    assert found[0] == 3, "no process died before the commit: the killer did not work"
    assert found[-1] == 4
    assert found == sorted(found)


def test_QUE_17_a_full_disk_refuses_items_and_damages_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, killer: Path
) -> None:
    # Given a disk that is full for a while
    user = sign_in()
    user.phone.close()
    # When items are registered before, during and after
    ended = children.run("full_disk.py", user.phone.spec(), env={"LD_PRELOAD": str(killer)})
    # Then those during it are refused with storage.full, and no item is incomplete
    accepted = ended.check().output.split()
    user.restart()
    drained(user)
    assert stored(directory, user.person) == sorted(set(accepted))


def test_QUE_4_a_parked_item_is_corrected_and_sent(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    item = user.app.register(**BAD)
    drained(user)
    assert [r["code"] for r in user.app.queue_explain()["reasons"]] == ["parked"]
    [exported] = user.app.queue_export({"state": "parked"})["items"]
    assert exported["id"] == item
    assert exported["payload"]["minutes"] == BAD["minutes"]
    edited = user.app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 45}})
    assert edited["state"] == "pending"
    user.app.events.clear()
    assert drained(user)["sent"] == 1
    assert stored(directory, user.person) == [item]


def test_QUE_5_a_refused_token_is_refreshed_and_no_attempt_is_charged(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a server that refuses the access token
    user = sign_in()
    user.app.go_offline()
    item = user.app.register()
    body = {"code": "PGRST303", "message": "JWT expired", "details": None, "hint": None}
    directory.control.respond("/rest/v1/activities", 401, body=body)
    # When the queue is sent
    user.app.go_online()
    done = drained(user)
    # Then there is one refresh, and the item is sent
    assert (done["sent"], done["parked"]) == (1, 0)
    assert directory.refreshes() == 1
    assert stored(directory, user.person) == [item]


def test_QUE_6_items_of_an_ended_membership_are_held(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given items of two organisations, one of which has ended the membership
    user = sign_in()
    second = directory.organisation()
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")
    app = user.restart()
    app.settle()
    app.go_offline()
    held = app.register()
    app.org_select({"org_id": second.id})
    free = app.register()
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    # When they are sent
    app.go_online()
    app.settle()
    for _ in range(5):
        user.phone.pass_time(60)
        app.settle()
    # Then the first is held with the reason, and the other is sent
    assert stored(directory, user.person) == [free]
    item = app.queue_get({"id": held})["item"]
    assert item["state"] == "waiting"
    assert item["reason"] is not None
    assert "organisation" in [r["code"] for r in app.queue_explain()["reasons"]]
    assert app.of_type("item_parked") == []
    # and a restored membership releases it
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    app.session_background()
    app.session_foreground()
    app.settle()
    for _ in range(5):
        user.phone.pass_time(600)
        app.settle()
    assert stored(directory, user.person) == sorted({free, held})


def test_QUE_7_retry_after_holds_while_other_requests_succeed(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a phone that comes online, and a server that sends Retry-After for uploads only
    user = sign_in()
    app = user.app
    app.go_offline()
    item = app.register()
    busy = {"code": "PGRST001", "message": "no connection", "details": None, "hint": None}
    directory.control.respond(
        "/rest/v1/activities", 503, body=busy, retry_after_s=60, method="POST"
    )
    user.phone.network.forget()
    # When a read in flight with the upload is answered after the upload's refusal
    app.go_online()
    under_way = app.poll()["requests"]
    assert {"guard", "upload"} <= {request["purpose"] for request in under_way}
    for request in sorted(under_way, key=lambda it: it["purpose"] != "upload"):
        answer: Any = {"id": request["id"], **user.phone.network(request)}
        app.complete(answer)
    user.phone.pass_time(50)
    app.sync_now()
    app.settle()
    # Then the upload is repeated after Retry-After and not earlier
    assert user.phone.network.count("upload") == 1
    user.phone.pass_time(70)
    app.settle()
    assert stored(directory, user.person) == [item]
    assert user.phone.network.count("upload") == 2


def test_QUE_8_an_item_waits_for_the_one_it_depends_on(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an item that depends on another one, which the server refuses
    user = sign_in()
    app = user.app
    app.go_offline()
    first = app.register(**BAD)
    added = app.queue_add(
        {
            "kind": "activity",
            "payload": {"type": "visit", "minutes": 5, "follows": first},
            "depends_on": [first],
            "occurred_at_ms": user.phone.now_ms,
        }
    )
    assert added["state"] == "waiting"
    app.go_online()
    drained(user)
    # Then it waits with a reason
    item = app.queue_get({"id": added["id"]})["item"]
    assert (item["state"], item["depends_on"]) == ("waiting", [first])
    assert item["reason"] is not None
    assert item["reason"]["code"] == "dependency_parked"
    assert stored(directory, user.person) == []
    # and is sent after the first one is corrected
    app.queue_edit({"id": first, "payload": {"type": "visit", "minutes": 5}})
    app.events.clear()
    drained(user)
    app.settle()
    assert stored(directory, user.person) == sorted({first, added["id"]})


def test_QUE_11_items_belong_to_their_owner(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given unsent items of a user who logged out
    user = sign_in()
    user.app.go_offline()
    item = user.app.register()
    assert user.app.session_logout()["unsent"] == 1
    # When another user signs in, online
    other = directory.person(directory.organisation())
    user.app.go_online()
    user.app.sign_in(other)
    user.app.settle()
    # Then the items are neither sent nor shown, and they are there when the owner signs in again
    assert directory.activities(other) == []
    assert user.app.queue_list()["items"] == []
    assert "other_user" in [r["code"] for r in user.app.queue_explain()["reasons"]]
    user.app.session_logout()
    user.app.sign_in(user.person)
    drained(user)
    assert stored(directory, user.person) == [item]


def test_QUE_12_only_an_explicit_discard_deletes_items(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    user.app.go_offline()
    for _ in range(3):
        user.app.register()
    with pytest.raises(HoldfastError) as caught:
        user.app.session_logout({"discard": True, "confirm_unsent": 2})
    assert (caught.value.code, caught.value.status) == ("session.confirm_unsent", 4)
    assert caught.value.detail == {"unsent": 3}
    assert user.app.session_status()["state"] == "active"
    assert user.app.session_logout({"discard": True, "confirm_unsent": 3})["unsent"] == 3
    user.app.go_online()
    user.app.sign_in(user.person)
    user.app.settle()
    assert user.app.queue_list()["items"] == []
    assert directory.activities(user.person) == []


def test_QUE_15_two_processes_drain_the_same_queue(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given two handles on one folder, as in two processes, and a long queue
    user = sign_in()
    first = user.app
    first.go_offline()
    user.phone.app = None
    second = user.phone.start(online=False)
    ids = [first.register(minutes=1 + number % 60) for number in range(30)]
    try:
        # When both send it alternately
        user.phone.network.up = True
        apps = [first, second]
        for app in apps:
            app.network_set({"online": True})
        asked = [(app, app.poll()["requests"]) for app in apps]
        for app, requests in asked:
            for request in requests:
                answer: Any = {"id": request["id"], **user.phone.network(request)}
                app.complete(answer)
        for _ in range(5):
            for app in apps:
                app.settle()
            user.phone.pass_time(60)
            first.clock_set({"now_ms": user.phone.now_ms})
        # Then each item is sent by one of them, and stored once
        uploads = directory.control.requests("/rest/v1/activities", "POST")
        assert sum(entry["rows_in"] for entry in uploads) == len(ids)
        assert stored(directory, user.person) == sorted(set(ids))
        assert first.queue_list()["items"] == second.queue_list()["items"] == []
    finally:
        first.close()


def noise(data: bytes, first: int) -> bytes:
    """The data with random bytes from `first` on."""
    return data[:first] + random.Random(7).randbytes(len(data) - first)


@pytest.mark.parametrize("spared", [0, 4096, 3 / 4])
def test_QUE_16_a_damaged_file_is_set_aside_and_salvaged(
    sign_in: MakeUser, directory: DirectoryFixtures, spared: float
) -> None:
    # Given a queue in a file that is damaged from some offset on
    user = sign_in()
    user.app.go_offline()
    ids = [user.app.register(minutes=1 + number % 60, note="x" * 500) for number in range(60)]
    user.phone.close()
    database = user.phone.folder / "holdfast.db"
    data = database.read_bytes()
    assert len(data) > 40_000
    for path in user.phone.folder.glob("holdfast.db-*"):
        path.unlink()
    point = int(spared * len(data)) if spared < 1 else int(spared)
    damaged = noise(data, point)
    database.write_bytes(damaged)
    # When the app starts
    app = user.phone.start(online=False)
    # Then the file is set aside unchanged (at once if its beginning is damaged),
    assert app.opened["recovered"] or spared == 3 / 4
    app.settle()
    aside = [path for path in user.phone.folder.iterdir() if ".damaged-" in path.name]
    assert any(path.read_bytes() == damaged for path in aside), sorted(p.name for p in aside)
    # the user can sign in, readable items are there, and an event reports the salvage
    app.go_online()
    if app.screen["screen"] != "home":
        app.sign_in(user.person)
    app.settle()
    for _ in range(3):
        user.phone.pass_time(60)
        app.settle()
    assert app.screen["screen"] == "home"
    assert set(stored(directory, user.person)) <= set(ids)
    [event] = app.of_type("storage_recovered")
    assert event["salvaged"] == len(stored(directory, user.person))
    # and the next start is a normal one
    app = user.restart()
    assert app.opened["recovered"] is False
    assert app.screen["screen"] == "home"


def test_QUE_18_queue_explain_names_the_cause(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given items that wait for each possible cause
    user = sign_in()
    app = user.app

    def causes() -> set[str]:
        reasons = app.queue_explain()["reasons"]
        assert all(reason["text"] for reason in reasons)
        return {reason["code"] for reason in reasons}

    # Then queue_explain returns the cause, as code and text
    assert causes() == {"nothing_queued"}
    app.go_offline()
    app.register()
    assert causes() == {"offline"}
    app.go_online()
    assert causes() == {"ready"}
    app.settle_until("sync_completed")
    app.register()
    directory.control.respond("/rest/v1/activities", 503, retry_after_s=60, times=1)
    app.settle()
    assert causes() == {"back_off"}
    [reason] = app.queue_explain()["reasons"]
    assert reason["until_ms"] is not None
    assert reason["until_ms"] >= user.phone.now_ms + 59_000
    user.phone.pass_time(120)
    while "upload" not in [request["purpose"] for request in app.poll()["requests"]]:
        pass
    assert causes() == {"sending"}
    app.session_lock()
    assert causes() <= {"locked", "sending"}
    app.session_logout()
    assert causes() == {"signed_out"}
