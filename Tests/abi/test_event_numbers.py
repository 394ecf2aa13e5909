"""The numbers of events go on when another file takes the place of the main file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from holdfast.keystore import KEY_NOT_FOUND

from support.damage import restart_after
from support.events import park, second_handle, seqs
from support.queue import add

if TYPE_CHECKING:
    from support.users import MakeUser


@pytest.mark.parametrize("times", [1, 5])
def test_A7_numbers_go_on_in_a_file_that_replaces_one_without_its_key(
    sign_in: MakeUser, times: int
) -> None:
    """Seeds 1004485, 1005135 and 1010954: a number that was acknowledged came again."""
    # Given an app that has acknowledged several events
    user = sign_in()
    first = user.app
    for _ in range(3):
        add(first)
        first.settle()
    acknowledged = max(event["seq"] for event in first.events)
    # When the key store tells another process that the device key is gone: once, or for good
    user.phone.keychain.answer("load", "device", *[KEY_NOT_FOUND] * times)
    with second_handle(user) as second:
        assert second.screen["reason"] == "key_lost"
        for _ in range(3):
            second.poll()
        second.sign_in(user.person)
        park(second, 1)
        # Then its events have higher numbers
        assert min(event["seq"] for event in second.events) > acknowledged
        # and the first process, which still acknowledges the former ones, is told of the new ones
        told = first.poll({"ack": acknowledged})
        assert "item_parked" in {event["type"] for event in told["events"]}
        assert min(event["seq"] for event in told["events"]) > acknowledged
        # and deletes none of them
        again = first.poll({"ack": acknowledged, "from_oldest": True})
        assert seqs(again) == seqs(told)


def test_A7_numbers_go_on_in_a_file_that_replaces_a_damaged_one(sign_in: MakeUser) -> None:
    # Given an app that has acknowledged several events
    user = sign_in()
    for _ in range(3):
        add(user.app)
        user.app.settle()
    acknowledged = max(event["seq"] for event in user.app.events)
    # When the file's header is destroyed
    app = restart_after(user)
    # Then the event that says so has a higher number
    [number] = seqs(app.poll())
    assert number > acknowledged
