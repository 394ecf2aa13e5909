"""What became of an item: stored, cancelled and never added are three answers (HST-6)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from holdfast import HoldfastError

from support.directory_fixtures import DirectoryFixtures
from support.queue import BAD_MINUTES, add, code_of, drain, new_ids, stored
from support.users import MakeUser, SignedIn

DAY_S = 86_400


def fate(app: Any, item: str) -> str:  # noqa: ANN401
    """The state that queue_get tells; "unknown" for an item that it does not know."""
    try:
        return str(app.queue_get({"id": item})["state"])
    except HoldfastError as error:
        assert (error.code, error.field, error.status) == ("queue.not_found", "/id", 3)
        return "unknown"


def store(user: SignedIn) -> str:
    """Add an item, and let the server store it."""
    item = add(user.app)
    drain(user.app)
    assert fate(user.app, item) == "stored"
    return item


@pytest.mark.parametrize("restarted", [False, True])
def test_HST_6_stored_cancelled_and_unknown_items_have_three_answers(
    sign_in: MakeUser, restarted: bool
) -> None:
    # Given an item that is stored, one that was cancelled, one that waits, and one that never was
    user = sign_in(policy={"biometric": "off"})
    app = user.app
    before = user.phone.now_ms
    sent = store(user)
    app.go_offline()
    cancelled, waits = add(app), add(app)
    app.queue_cancel({"id": cancelled})
    after = user.phone.now_ms
    if restarted:
        app = user.restart(online=False)
    # When the host asks for each, Then each has its own answer
    first = app.queue_get({"id": sent})
    assert first == {"state": "stored", "stored_ms": first["stored_ms"]}
    assert before - 1000 <= first["stored_ms"] <= after + 1000
    second = app.queue_get({"id": cancelled})
    assert second == {"state": "cancelled", "cancelled_ms": second["cancelled_ms"]}
    assert before - 1000 <= second["cancelled_ms"] <= after + 1000
    third = app.queue_get({"id": waits})
    assert (third["state"], third["item"]["id"]) == ("pending", waits)
    assert set(third) == {"state", "item"}
    assert fate(app, str(uuid.uuid4())) == "unknown"
    # and a call that needs a queued item says what became of it
    for item, said in ((sent, "stored"), (cancelled, "cancelled")):
        with pytest.raises(HoldfastError, match=said) as caught:
            app.queue_edit({"id": item, "payload": {"type": "call", "minutes": 1}})
        assert caught.value.code == "queue.not_found"


def test_HST_6_an_item_that_is_cancelled_after_the_server_was_asked_is_known(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an item whose request was lost on the way, so that the server must be asked
    user = sign_in()
    user.phone.network.up = False
    item = add(user.app)
    user.app.settle()
    assert user.app.queue_cancel({"id": item})["state"] is not None
    assert fate(user.app, item) in {"pending", "waiting"}
    # When the server says that it has none
    user.phone.network.up = True
    user.app.go_online()
    user.app.sync_now()
    user.app.settle()
    # Then it is cancelled
    assert fate(user.app, item) == "cancelled"
    assert stored(directory, user.person) == []


def test_HST_6_an_item_that_is_added_again_is_queued(sign_in: MakeUser) -> None:
    user = sign_in()
    user.app.go_offline()
    [item] = new_ids(1)
    add(user.app, item)
    user.app.queue_cancel({"id": item})
    assert fate(user.app, item) == "cancelled"
    add(user.app, item)
    assert fate(user.app, item) == "pending"
    user.app.go_online()
    drain(user.app)
    assert fate(user.app, item) == "stored"


def test_HST_6_the_memory_is_bounded_by_a_number(sign_in: MakeUser) -> None:
    user = sign_in(policy={"stored_items": 3})
    items = [store(user) for _ in range(2)]
    user.app.go_offline()
    items += [add(user.app) for _ in range(2)]
    for item in items[2:]:
        user.app.queue_cancel({"id": item})
    assert [fate(user.app, item) for item in items] == ["unknown", "stored"] + ["cancelled"] * 2


def test_HST_6_the_memory_is_bounded_by_a_time(sign_in: MakeUser) -> None:
    user = sign_in(policy={"stored_items_s": 3600, "session_window_s": 10 * DAY_S})
    item = store(user)
    user.phone.pass_time(3500)
    assert fate(user.app, item) == "stored"
    user.phone.pass_time(200)
    assert fate(user.app, item) == "unknown"


def test_HST_6_a_clock_that_is_set_forward_empties_no_memory(sign_in: MakeUser) -> None:
    # Given a stored item, and a device's clock that is set a year ahead of the server's
    user = sign_in(policy={"session_window_s": 1000 * DAY_S, "offline_limit_s": 1000 * DAY_S})
    ahead = user.phone.ahead_ms()
    user.phone.network.ahead_ms = lambda: ahead
    item = store(user)
    user.phone.set_wall_clock(400 * DAY_S)
    # When others are cancelled and stored meanwhile
    user.app.go_offline()
    user.app.queue_cancel({"id": add(user.app)})
    user.app.go_online()
    user.app.settle()
    other = store(user)
    # Then the first is still known as stored, and its time is the server's
    reply = user.app.queue_get({"id": item})
    assert reply["state"] == "stored"
    later = user.app.queue_get({"id": other})
    assert abs(later["stored_ms"] - reply["stored_ms"]) < 3_600_000


def test_HST_6_a_cancelled_item_is_no_parent(sign_in: MakeUser) -> None:
    user = sign_in()
    user.app.go_offline()
    parent = add(user.app)
    user.app.queue_cancel({"id": parent})
    with pytest.raises(HoldfastError) as caught:
        user.app.queue_add(
            {
                "kind": "activity",
                "payload": {"type": "call", "minutes": 1},
                "depends_on": [parent],
            }
        )
    assert caught.value.code == "queue.unknown_dependency"


def test_HST_6_another_user_learns_nothing(sign_in: MakeUser, directory: DirectoryFixtures) -> None:
    user = sign_in()
    item = store(user)
    user.app.session_logout()
    user.app.sign_in(directory.person(user.org))
    assert fate(user.app, item) == "unknown"


def lose_an_answer(user: SignedIn, directory: DirectoryFixtures) -> str:
    """Add an item that the server stores without the device hearing of it; the network goes."""
    item = add(user.app)
    directory.control.drop_after("/rest/v1/activities", method="POST", times=1)
    user.app.settle()
    user.app.go_offline()
    assert stored(directory, user.person) == [item]
    return item


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("how", ["twice", "by force", "after a refused edit"])
def test_B10_a_cancelled_item_that_the_server_may_have_is_no_cancelled_one(
    sign_in: MakeUser, directory: DirectoryFixtures, how: str, restarted: bool
) -> None:
    """Finding B10: queue_get said `cancelled` of an item that the server has stored."""
    # Given an item that the server has, and whose answer was lost
    user = sign_in(policy={"biometric": "off"})
    app = user.app
    item = lose_an_answer(user, directory)
    if how == "after a refused edit":
        app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": BAD_MINUTES}})
    # When its user cancels it at once, or after the library has said that it cannot know
    if how == "twice":
        app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 45}})
    if how != "by force":
        user.phone.pass_time(60)
        app.go_online()
        drain(app)
        expected = "unknown_outcome" if how == "twice" else "server_rule"
        assert code_of(app, item) == expected
    app.queue_cancel({"id": item, "force": how != "twice"})
    if restarted:
        app = user.restart(online=False)
    # Then it is gone, and its fate is what the library knows: nothing
    assert app.queue_list()["items"] == []
    reply = app.queue_get({"id": item})
    assert reply == {"state": "unknown_outcome", "cancelled_ms": reply["cancelled_ms"]}
    with pytest.raises(HoldfastError, match="the server may have stored it") as caught:
        app.queue_cancel({"id": item})
    assert (caught.value.code, caught.value.field) == ("queue.not_found", "/id")


def test_B10_an_item_that_the_server_refused_is_cancelled(sign_in: MakeUser) -> None:
    """The other side of B10: there is no doubt about it."""
    user = sign_in()
    item = add(user.app, minutes=BAD_MINUTES)
    drain(user.app)
    user.app.queue_cancel({"id": item})
    assert fate(user.app, item) == "cancelled"
