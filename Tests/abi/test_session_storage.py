"""The files hold no readable secret."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from conftest import MakePhone, MakeUser
from support import scan, tamper
from support.directory_fixtures import DirectoryFixtures
from support.phone import TOKEN_S


def planted(folder: Path, secret: str) -> list[str]:
    """The finds of a scan in a folder with a planted secret."""
    folder.mkdir()
    (folder / "file").write_bytes(b"x" * 5 + secret.encode() + b"y")
    return scan.scan_files(folder, secret)


def test_the_scan_finds_planted_secrets_in_files(tmp_path: Path) -> None:
    import base64

    secret = "correct-horse-battery-staple"
    assert planted(tmp_path / "raw", secret)
    for number, form in enumerate(
        [
            secret.encode().hex().encode(),
            secret.encode("utf-16-le"),
            *(base64.b64encode(b"ab"[:n] + secret.encode() + b"tail") for n in range(3)),
            *(base64.urlsafe_b64encode(b"ab"[:n] + secret.encode()) for n in range(3)),
        ]
    ):
        assert scan.find(b"before" + form + b"after", secret), number
    assert scan.find(json.dumps("Åse Øvingsdal").encode(), "Åse Øvingsdal")
    assert scan.find(
        bytes.fromhex("0f00000000004000800000000000abcd"), "0f000000-0000-4000-8000-00000000abcd"
    )
    assert not scan.find(b"correct-horse-batteri-staple", secret)


def test_the_scan_finds_planted_secrets_in_memory() -> None:
    import os

    secret = os.urandom(24)
    assert scan.scan_memory(os.getpid(), secret)


def test_KEEP_1_no_token_is_readable_in_any_file(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    phone = phones()
    org = directory.organisation(contacts=5)
    person = directory.person(org)
    session = directory.session(person)
    secrets = [
        session["access_token"],
        session["refresh_token"],
        session["access_token"].split(".")[1],
        session["access_token"].split(".")[2],
        person.email,
        person.id,
    ]
    app = phone.start()
    app.session_adopt({"session": session})
    assert scan.scan_files(phone.folder, *secrets) == []
    app.settle()
    app.register()
    app.session_background()
    assert scan.scan_files(phone.folder, *secrets) == []
    app.session_lock()
    phone.close()
    assert scan.scan_files(phone.folder, *secrets) == []
    assert tamper.stored(phone.folder), "no session was stored, so the scan proves nothing"
    assert scan.total_size(phone.folder) > 10_000


def test_KEEP_1_no_refreshed_token_is_readable_in_any_file(sign_in: MakeUser) -> None:
    user = sign_in()
    replies: list[str] = []

    def note(request: object, answer: dict[str, object]) -> dict[str, object]:
        if "refresh_token" in str(answer.get("body")):
            replies.append(str(answer["body"]))
        return answer

    user.phone.network.alter.append(note)
    user.phone.pass_time(TOKEN_S + 60)
    app = user.restart()
    app.touch()
    app.settle()
    assert len(replies) == 1
    session = json.loads(replies[0])
    secrets = [session["access_token"], session["refresh_token"]]
    assert scan.scan_files(user.phone.folder, *secrets) == []
    user.phone.close()
    assert scan.scan_files(user.phone.folder, *secrets) == []


def test_KEEP_1_only_the_user_of_the_device_can_read_the_files(sign_in: MakeUser) -> None:
    user = sign_in()
    assert stat.S_IMODE(user.phone.folder.stat().st_mode) == 0o700
    files = [path for path in user.phone.folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"holdfast.db", "cache.db"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_ORG_5_nothing_of_the_organisation_is_readable(sign_in: MakeUser) -> None:
    user = sign_in("org_admin", contacts=7)
    user.app.go_offline()
    item = user.app.register(note="en fortrolig samtale om noe viktig")
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
