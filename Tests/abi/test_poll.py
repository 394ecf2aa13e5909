"""Requests, answers and events: each is delivered once; late answers are ignored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdfast import HoldfastError
from holdfast.types import HttpRequest

from support.directory_fixtures import DirectoryFixtures
from support.phone import Phone
from support.users import MakeUser, SignedIn


def take(user: SignedIn, purpose: str) -> HttpRequest:
    """The request of this purpose, unanswered; answers the others."""
    for _ in range(20):
        found = None
        for request in user.app.poll()["requests"]:
            if request["purpose"] == purpose and found is None:
                found = request
            else:
                answer: Any = {"id": request["id"], **user.phone.network(request)}
                user.app.complete(answer)
        if found is not None:
            return found
    raise AssertionError(f"no request for {purpose}")


def test_each_request_is_handed_out_once(sign_in: MakeUser) -> None:
    user = sign_in()
    user.app.register()
    request = take(user, "upload")
    assert user.app.poll()["requests"] == []
    assert user.app.poll()["requests"] == []
    answer: Any = {"id": request["id"], **user.phone.network(request)}
    assert user.app.complete(answer) == {"accepted": True}
    assert user.app.complete(answer) == {"accepted": False}
    assert user.app.complete({"id": 999_999, "error": "offline"}) == {"accepted": False}


def test_QUE_9_an_item_in_flight_cannot_be_changed(sign_in: MakeUser) -> None:
    user = sign_in()
    item = user.app.register()
    request = take(user, "upload")
    assert user.app.queue_get({"id": item})["item"]["state"] == "sending"
    calls: list[Any] = [
        lambda: user.app.queue_edit({"id": item, "payload": {"type": "x", "minutes": 1}}),
        lambda: user.app.queue_cancel({"id": item}),
    ]
    for call in calls:
        with pytest.raises(HoldfastError) as caught:
            call()
        error = caught.value
        assert (error.code, error.status, error.retryable) == ("queue.in_flight", 2, True)
    user.app.complete({"id": request["id"], "error": "cancelled"})
    assert user.app.queue_cancel({"id": item})["id"] == item


def test_an_answer_after_the_time_out_is_ignored(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an upload without an answer in time
    user = sign_in()
    item = user.app.register()
    request = take(user, "upload")
    answer: Any = {"id": request["id"], **user.phone.network(request)}
    user.phone.pass_time(request["timeout_ms"] / 1000 + 6)
    user.app.poll()
    # When the answer comes late
    # Then it is ignored, and the repeated request stores nothing twice
    assert user.app.complete(answer) == {"accepted": False}
    user.app.settle_until("sync_completed")
    assert [str(row["id"]) for row in directory.activities(user.person)] == [item]


def test_requests_carry_the_headers_of_the_services(sign_in: MakeUser) -> None:
    user = sign_in(contacts=1)
    user.app.register()
    user.app.settle_until("sync_completed")
    purposes = set()
    for request in user.phone.network.sent:
        names = {name.lower() for name in request["headers"]}
        assert "apikey" in names
        assert request["url"].startswith(user.phone.backend.url)
        assert request["timeout_ms"] > 0
        if request["purpose"] in {"upload", "pull", "guard", "summary"}:
            assert "authorization" in names
            assert "/rest/v1/" in request["url"]
        if request["body"] is not None:
            json.loads(request["body"])
            assert "content-type" in names
        purposes.add(request["purpose"])
    assert {"guard", "pull", "summary", "upload"} <= purposes


def test_wake_in_ms_names_the_next_step_of_a_back_off(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a server that sends Retry-After
    user = sign_in()
    directory.control.respond("/rest/v1/activities", 503, body="busy", retry_after_s=30)
    user.app.register()
    user.app.settle()
    count = user.phone.network.count("upload")
    assert count == 1
    # When the host polls before and after wake_in_ms
    wake = user.app.poll()["wake_in_ms"]
    assert wake is not None
    assert 29_000 <= wake <= 60_000
    user.phone.pass_time(wake / 1000 - 1)
    user.app.settle()
    assert user.phone.network.count("upload") == count
    user.phone.pass_time(1.1)
    user.app.settle()
    # Then the request is repeated at that time and not earlier
    assert user.phone.network.count("upload") == count + 1
    assert len(directory.activities(user.person)) == 1


def test_the_clock_of_the_system_cannot_be_set(sign_in: MakeUser) -> None:
    app = sign_in(clock="system").app
    with pytest.raises(HoldfastError) as caught:
        app.clock_set({"now_ms": 1})
    assert (caught.value.code, caught.value.status) == ("clock.not_manual", 2)


def test_a_file_in_place_of_the_folder_is_an_error_of_its_field(phone: Phone) -> None:
    phone.folder.parent.mkdir(parents=True, exist_ok=True)
    phone.folder.write_text("not a folder")
    with pytest.raises(HoldfastError) as caught:
        phone.open()
    assert (caught.value.code, caught.value.field) == ("request.invalid_value", "/data_dir")
    assert phone.folder.read_text() == "not a folder"


def test_two_handles_on_one_folder_see_the_same_queue(sign_in: MakeUser) -> None:
    # Given two open handles on one folder, as two processes of one app have them
    user = sign_in()
    user.app.go_offline()
    first = user.app
    user.phone.app = None
    second = user.phone.start(online=False)
    try:
        ids = [app.register(minutes=1 + n) for n, app in enumerate([first, second] * 5)]
        assert [item["id"] for item in first.queue_list()["items"]] == ids
        assert [item["id"] for item in second.queue_list()["items"]] == ids
        first.session_logout()
        assert second.session_status()["state"] == "signed_out"
        with pytest.raises(HoldfastError):
            second.register()
    finally:
        first.close()
