"""Erased cache data leaves no bytes on the disk.

A lock keeps the data, sealed: see test_lock_is_cryptographic.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from support import contact_data, elsewhere, held
from support.directory_fixtures import DirectoryFixtures, Organisation
from support.held import return_to_foreground, total, unlock
from support.users import MakePhone, MakeUser, SignedIn, signed_in


def taken(user: SignedIn) -> list[bytes]:
    """The sealed contacts and summary in the cache file."""
    blobs = contact_data.sealed(user.phone.folder)
    assert len(blobs) > 200
    assert contact_data.left_on_disk(user.phone.folder, blobs) == len(blobs)
    return blobs


def member_of_two(
    phones: MakePhone, directory: DirectoryFixtures, **policy: bool
) -> tuple[SignedIn, Organisation]:
    """A user of two organisations, with the contacts of the first one cached."""
    first, second = directory.organisation(contacts=300), directory.organisation(contacts=3)
    return signed_in(phones, directory.person(first, second), first, policy=policy), second


def test_KEEP_4_a_logout_leaves_no_cached_bytes(sign_in: MakeUser) -> None:
    user = sign_in(contacts=300)
    blobs = taken(user)
    user.app.session_logout()
    assert contact_data.left_on_disk(user.phone.folder, blobs) == 0


def test_CAC_3_an_ended_membership_leaves_no_cached_bytes(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    user, second = member_of_two(phones, directory)
    blobs = taken(user)
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    return_to_foreground(user)
    assert user.app.screen["screen"] == "select_org"
    assert contact_data.left_on_disk(user.phone.folder, blobs) == 0
    user.app.org_select({"org_id": second.id})
    user.app.settle()
    assert total(user.app) == 3


@pytest.mark.parametrize("purpose", ["pull", "summary"])
def test_CAC_3_an_answer_after_the_end_of_a_membership_is_not_cached(
    phones: MakePhone, directory: DirectoryFixtures, purpose: str
) -> None:
    org = directory.organisation(contacts=30)
    person = directory.person(org, directory.organisation())
    phone = phones()
    app = phone.start()
    app.sign_in(person)
    app.org_select({"org_id": org.id})
    user = SignedIn(phone, app, person, org, "peer_mentor")
    request = held.taken(user, purpose)
    early: Any = {"id": request["id"], **phone.network(request)}
    directory.control.set_membership(person.id, org.id, status="ended")
    return_to_foreground(user)
    assert app.screen["screen"] == "select_org"
    app.complete(early)
    app.settle()
    assert contact_data.sealed(phone.folder) == []


def test_CAC_3_an_erasure_that_fails_is_owed_and_made_later(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    user, second = member_of_two(phones, directory)
    blobs = taken(user)
    user.app.org_select({"org_id": second.id})
    user.app.settle()
    directory.control.sql(
        "delete from memberships where user_id = %s and org_id = %s", user.person.id, user.org.id
    )
    elsewhere.lock_cache_during_the_guard(user)
    assert [membership["org_id"] for membership in user.app.org_list()["orgs"]] == [second.id]
    assert contact_data.left_on_disk(user.phone.folder, blobs) > 0
    user.restart()
    unlock(user)
    user.app.settle()
    assert contact_data.left_on_disk(user.phone.folder, blobs) == 0


def test_CAC_3_a_disabled_organisation_leaves_no_cached_bytes(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=300)
    blobs = taken(user)
    directory.control.sql("update organizations set status = 'disabled' where id = %s", user.org.id)
    return_to_foreground(user)
    assert contact_data.left_on_disk(user.phone.folder, blobs) == 0


@pytest.mark.parametrize("erase", [True, False])
def test_leaving_an_organisation_erases_its_cache_if_configured(
    phones: MakePhone, directory: DirectoryFixtures, erase: bool
) -> None:
    user, second = member_of_two(phones, directory, erase_on_switch=erase)
    blobs = taken(user)
    user.app.go_offline()
    user.app.org_select({"org_id": second.id})
    assert contact_data.left_on_disk(user.phone.folder, blobs) == (0 if erase else len(blobs))
    user.app.org_select({"org_id": user.org.id})
    assert total(user.app) == (0 if erase else 300)
    user.app.reconnect()
    assert total(user.app) == 300


def test_logout_erases_a_damaged_cache_that_was_set_aside(sign_in: MakeUser) -> None:
    user = sign_in(contacts=300)
    blobs = taken(user)
    user.phone.close()
    path = user.phone.folder / "cache.db"
    data = bytearray(path.read_bytes())
    data[:100] = b"\xff" * 100
    path.write_bytes(bytes(data))
    user.restart()
    user.app.settle()
    aside = [item.name for item in user.phone.folder.iterdir() if ".damaged" in item.name]
    assert "cache.db.damaged" in aside
    assert contact_data.left_on_disk(user.phone.folder, blobs) > 0
    user.app.session_logout()
    assert contact_data.left_on_disk(user.phone.folder, blobs) == 0
