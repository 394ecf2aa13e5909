"""What an attacker with the phone's files reads; after a lock only the finger opens them."""

from __future__ import annotations

from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from support import attacker, scan, tamper
from support.directory_fixtures import DirectoryFixtures
from support.hosted import HostedLibrary
from support.phone import TOKEN_S, FilePhone
from support.screens import why
from support.sizes import sampled
from support.users import MakeUser, SignedIn


def locked_by_hand(user: SignedIn) -> None:
    user.app.session_lock()


def locked_by_absence(user: SignedIn) -> None:
    user.app.session_background()
    user.phone.pass_time(301)
    assert why(user.app.session_foreground()) == "background_timeout"


def locked_by_expiry(user: SignedIn) -> None:
    user.phone.pass_time(TOKEN_S + 60)
    assert why(user.restart().screen) == "token_expired"


@pytest.mark.parametrize("lock", sampled([locked_by_hand, locked_by_absence, locked_by_expiry], 2))
@pytest.mark.parametrize("app_runs", [True, False])
def test_SES_10_after_a_lock_files_and_device_key_reveal_nothing(
    sign_in: MakeUser, lock: object, app_runs: bool
) -> None:
    # Given a user at home: with the device and session keys, the files can be read
    user = sign_in(contacts=3)
    user.app.contact_search({"query": ""})
    device, biometric = (
        user.phone.keychain.stored("device"),
        user.phone.keychain.stored("biometric"),
    )
    session = user.phone.keychain.stored("session")
    before = attacker.decrypted(user.phone.folder, device, session)
    assert set(before) == {"tokens", "choice", "memberships", "contacts", "blocks"}, (
        "the attacker code does not work"
    )
    assert user.org.name.encode() in before["memberships"]
    lock(user)  # type: ignore[operator]
    if not app_runs:
        user.phone.close()
    assert attacker.vault_keys(user.phone.folder, device) == set()
    assert attacker.decrypted(user.phone.folder, device) == {}
    # nor does an old copy of the row that SQLite may have left in its files,
    vault = attacker.vault_keys(user.phone.folder, biometric)
    assert len(vault) == 1
    assert scan.scan_files(user.phone.folder, *vault) == []
    assert set(attacker.decrypted(user.phone.folder, biometric)) == set(before)


def test_SES_10_the_files_do_not_hold_the_erased_wrap(user: SignedIn) -> None:
    wrap = tamper.stored(user.phone.folder, "wrap_session")
    assert scan.scan_files(user.phone.folder, wrap) != [], "the scan does not find a planted secret"
    user.app.session_lock()
    user.phone.close()
    assert scan.scan_files(user.phone.folder, wrap) == []


@pytest.mark.parametrize("end", ["session_lock", "session_logout"])
def test_SES_12_no_vault_key_stays_in_memory(
    hosted: HostedLibrary,
    tmp_path: Path,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    end: str,
) -> None:
    person = directory.person(directory.organisation(contacts=3))
    phone = FilePhone(tmp_path / "phone", hosted, backend)
    app = phone.start()
    session = directory.session(person)
    app.session_adopt({"session": session})
    app.settle()
    app.contact_search({"query": ""})
    app.sync_now()
    assert app.poll()["requests"] != []
    keys = [
        (phone.folder / "keys" / f"{name}.key").read_bytes()
        for name in ("device", "biometric", "session")
    ]
    [vault] = attacker.vault_keys(phone.folder, *keys)
    assert scan.scan_memory(hosted.pid, vault) != [], "the scan does not find a planted secret"
    getattr(app, end)()
    secrets = [vault, *keys[1:], session["access_token"], session["refresh_token"]]
    assert scan.scan_memory(hosted.pid, *secrets) == []
    phone.close()


def test_ORG_5_nothing_of_the_organisation_is_readable(sign_in: MakeUser) -> None:
    user = sign_in("org_admin", contacts=7)
    item = user.offline().register(note="en fortrolig samtale om noe viktig")
    contacts = user.app.contact_search({"query": ""})["contacts"]
    assert len(contacts) == 7
    secrets = [
        user.org.id,
        user.org.name,
        "org_admin",
        user.person.id,
        item,
        "en fortrolig samtale om noe viktig",
        *(contact["name"] for contact in contacts),
        *(contact["id"] for contact in contacts),
    ]
    assert scan.scan_files(user.phone.folder, *secrets) == []
    user.phone.close()
    assert scan.scan_files(user.phone.folder, *secrets) == []
    assert tamper.stored(user.phone.folder, "choice")
    assert tamper.stored(user.phone.folder, "memberships")
