"""What must go from the cache is gone from the disk, byte by byte.

(A lock leaves it there, unreadable: test_lock_is_cryptographic.py.)
"""

from __future__ import annotations

import pytest

from conftest import MakePhone, MakeUser, SignedIn
from support import directory
from support.town import Organisation, Town


def taken(user: SignedIn) -> list[bytes]:
    """What lies on the disk of the cached data: contacts and summary, sealed."""
    blobs = directory.sealed(user.phone.folder)
    assert len(blobs) > 200
    assert directory.left_on_disk(user.phone.folder, blobs) == len(blobs)
    return blobs


def member_of_two(phones: MakePhone, town: Town, **policy: bool) -> tuple[SignedIn, Organisation]:
    """A user of two organisations, with the contacts of the first one cached."""
    first, second = town.organisation(contacts=300), town.organisation(contacts=3)
    person = town.person(first, second)
    phone = phones(policy=policy)
    app = phone.start()
    app.sign_in(person, first)
    return SignedIn(phone, app, person, first, "peer_mentor"), second


def test_KEEP_4_after_a_logout(sign_in: MakeUser) -> None:
    user = sign_in(contacts=300)
    blobs = taken(user)
    user.app.session_logout()
    assert directory.left_on_disk(user.phone.folder, blobs) == 0


def test_CAC_3_after_the_end_of_a_membership(phones: MakePhone, town: Town) -> None:
    user, second = member_of_two(phones, town)
    blobs = taken(user)
    town.control.set_membership(user.person.id, user.org.id, status="ended")
    user.app.session_background()
    user.app.session_foreground()
    user.app.settle()
    assert user.app.screen["screen"] == "select_org"
    assert directory.left_on_disk(user.phone.folder, blobs) == 0
    user.app.org_select({"org_id": second.id})
    user.app.settle()
    assert user.app.contact_search({"query": ""})["total"] == 3


def test_CAC_3_an_organisation_that_is_disabled(sign_in: MakeUser, town: Town) -> None:
    user = sign_in(contacts=300)
    blobs = taken(user)
    town.control.sql("update organizations set status = 'disabled' where id = %s", user.org.id)
    user.app.session_background()
    user.app.session_foreground()
    user.app.settle()
    assert directory.left_on_disk(user.phone.folder, blobs) == 0


@pytest.mark.parametrize("erase", [True, False])
def test_an_organisation_that_is_left(phones: MakePhone, town: Town, erase: bool) -> None:
    user, second = member_of_two(phones, town, erase_on_switch=erase)
    blobs = taken(user)
    user.app.go_offline()
    user.app.org_select({"org_id": second.id})
    assert directory.left_on_disk(user.phone.folder, blobs) == (0 if erase else len(blobs))
    user.app.org_select({"org_id": user.org.id})
    assert user.app.contact_search({"query": ""})["total"] == (0 if erase else 300)
    user.app.go_online()
    user.app.settle()
    assert user.app.contact_search({"query": ""})["total"] == 300


def test_a_damaged_cache_that_was_set_aside_goes_as_well(sign_in: MakeUser) -> None:
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
    assert directory.left_on_disk(user.phone.folder, blobs) > 0
    user.app.session_logout()
    assert directory.left_on_disk(user.phone.folder, blobs) == 0
