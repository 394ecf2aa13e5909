"""QUE-16, more kinds of damage: the undamaged items are salvaged and sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.queue import stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.directory_fixtures import DirectoryFixtures
    from support.users import MakeUser

PAGE = 4096


def truncated(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3 // PAGE * PAGE + 100]


def without_header(data: bytes) -> bytes:
    return bytes(PAGE) + data[PAGE:]


@pytest.mark.parametrize("damage", [truncated, without_header])
def test_QUE_16_undamaged_items_are_salvaged_and_sent(
    sign_in: MakeUser, directory: DirectoryFixtures, damage: Callable[[bytes], bytes]
) -> None:
    # Given a queue in a file that is then truncated or loses its header
    user = sign_in()
    user.app.go_offline()
    ids = {user.app.register(minutes=1 + number, note="x" * 500) for number in range(60)}
    user.phone.close()
    database = user.phone.folder / "holdfast.db"
    database.write_bytes(damage(database.read_bytes()))
    # When the app starts
    app = user.phone.start(online=False)
    app.settle()
    # Then the event counts the salvaged items, and exactly these are sent
    app.go_online()
    if app.screen["screen"] != "home":
        app.sign_in(user.person)
    for _ in range(3):
        app.settle()
        user.phone.pass_time(60)
    [event] = app.of_type("storage_recovered")
    found = stored(directory, user.person)
    assert set(found) <= ids
    assert event["salvaged"] == len(found)
    assert len(found) == len(ids) if damage is without_header else len(found) > 0


@pytest.mark.parametrize("name", ["holdfast.db", "cache.db"])
def test_A3_a_header_that_forbids_writing_is_damaged(
    sign_in: MakeUser, directory: DirectoryFixtures, name: str
) -> None:
    """A flipped bit of the format's version: every change failed with `storage.read_only`."""
    # Given a file whose header names a format that SQLite reads and does not write
    user = sign_in()
    user.app.go_offline()
    item = user.app.register(minutes=10)
    user.phone.close()
    path = user.phone.folder / name
    data = bytearray(path.read_bytes())
    data[18] ^= 8
    path.write_bytes(data)
    # When the app starts
    app = user.phone.start(online=False)
    if app.screen["screen"] != "home":
        app.sign_in(user.person)
    # Then the queue can be changed, and all is there and sent
    more = app.register(minutes=20)
    app.go_online()
    app.settle()
    assert stored(directory, user.person) == sorted([item, more])
    # and the contacts and figures can be read
    assert app.contact_search({"query": ""})["contacts"] is not None
    assert app.summary_get()["summary"] is not None
