"""KEEP-2, HST-4: a folder that is opened with another key store than the one that has its keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from holdfast import Library

from support import damage
from support.directory_fixtures import Backend, DirectoryFixtures, Person
from support.errors import error_of
from support.missing import LOST, until_lost
from support.phone import App, FilePhone, Phone
from support.queue import add, stored
from support.screens import shown

#: No prompt is needed, so that every kind of key store takes the same configuration.
POLICY = {"biometric": "off"}
MakeFolder = Callable[[str], Phone]


@pytest.fixture
def opened(tmp_path: Path, library: Library, backend: Backend) -> Iterator[MakeFolder]:
    """The phone of one folder and one keychain, with the key store of this kind."""
    made: list[Phone] = []

    def make(kind: str) -> Phone:
        for phone in made:
            phone.close()
        maker = FilePhone if kind == "file" else Phone
        phone = maker(tmp_path / "phone", library, backend, policy=POLICY)
        if made:
            phone.now_ms, phone.monotonic_ms = made[-1].now_ms, made[-1].monotonic_ms
        made.append(phone)
        return phone

    yield make
    for phone in made:
        phone.close()


def with_an_item(phone: Phone, person: Person) -> str:
    """A signed-in user's item that is not sent; the app is closed."""
    app = phone.start()
    app.sign_in(person)
    assert app.screen["screen"] == "home"
    app.go_offline()
    item = add(app)
    phone.close()
    return item


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of the folder whose content matters."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "holdfast.handles"
    }


def told(app: App) -> list[dict[str, Any]]:
    app.settle()
    return app.of_type("storage_recovered")


@pytest.mark.parametrize(("first", "second"), [("file", "functions"), ("functions", "file")])
def test_KEEP_2_another_kind_of_key_store_is_refused_and_the_queue_is_kept(
    opened: MakeFolder, library: Library, directory: DirectoryFixtures, first: str, second: str
) -> None:
    person = directory.person(directory.organisation())
    item = with_an_item(opened(first), person)
    other = opened(second)
    before = contents(other.folder)
    lines: list[tuple[int, str]] = []
    library.set_log(1, lambda level, line: lines.append((level, line)))
    error = error_of(other.open)
    assert error.code == "request.invalid_value"
    assert error.field == "/keystore/kind"
    assert ('{"kind":"file"}' if first == "file" else "the host's key store") in str(error)
    [line] = [text for level, text in lines if level == 1 and "key" in text]
    assert str(other.folder) not in line
    assert contents(other.folder) == before
    library.set_log(0, None)
    app = opened(first).start()
    assert app.screen["screen"] == "home"
    app.settle()
    assert stored(directory, person) == [item]


def test_KEEP_2_without_the_key_files_another_kind_leads_to_a_working_app(
    opened: MakeFolder, directory: DirectoryFixtures
) -> None:
    person = directory.person(directory.organisation())
    first = opened("file")
    with_an_item(first, person)
    for path in (first.folder / "keys").iterdir():
        path.unlink()
    phone = opened("functions")
    app = phone.start()
    phone.network.up = True
    until_lost(app)
    app.sign_in(person)
    assert app.screen["screen"] == "home"
    assert [event["unreadable"] for event in told(app)] == [True]


def test_KEEP_2_key_files_that_do_not_open_the_folder_refuse_nothing(
    opened: MakeFolder, directory: DirectoryFixtures
) -> None:
    """Only the key that opens the files proves which key store has it."""
    person = directory.person(directory.organisation())
    phone = opened("functions")
    with_an_item(phone, person)
    keys = phone.folder / "keys"
    keys.mkdir(mode=0o700)
    for content in (bytes(range(32)), b"", b"short"):
        (keys / "device.key").write_bytes(content)
        (keys / "device.key").chmod(0o600)
        app = opened("functions").start()
        assert app.screen["screen"] == "home"
        assert told(app) == []


def test_KEEP_2_a_folder_opens_though_what_tells_its_key_store_is_damaged(
    opened: MakeFolder, directory: DirectoryFixtures
) -> None:
    # Given a folder with old key files beside the host's keys, too large to be checked at the start
    person = directory.person(directory.organisation())
    phone = opened("functions")
    app = phone.start()
    app.sign_in(person)
    app.go_offline()
    items = [add(app, note="x" * 100_000) for _ in range(12)]
    phone.close()
    keys = phone.folder / "keys"
    keys.mkdir(mode=0o700)
    (keys / "device.key").write_bytes(bytes(range(32)))
    (keys / "device.key").chmod(0o600)
    # When the page that tells which key store has the keys is damaged
    damage.empty_log(phone.folder)
    damage.overwrite(phone.folder, damage.root_of(phone.folder, "meta"))
    # Then it opens
    app = opened("functions").start(online=False)
    assert told(app)
    assert damage.listed(app) == items


def test_KEEP_2_a_lost_key_is_not_called_damage(
    opened: MakeFolder, library: Library, directory: DirectoryFixtures
) -> None:
    """The same kind of key store, and another keychain: nobody can open the files here."""
    person = directory.person(directory.organisation())
    phone = opened("functions")
    with_an_item(phone, person)
    lines: list[tuple[int, str]] = []
    library.set_log(1, lambda level, line: lines.append((level, line)))
    for name in phone.keychain.names():
        phone.keychain.erase(name)
    app = phone.open()
    assert error_of(app.queue_list).code == "keystore.failed"
    phone.pass_time(10)
    error = error_of(app.queue_list)
    assert error.code == "keystore.key_lost"
    assert "the key store no longer has the key" in str(error)
    phone.network.up = True
    app.session_resume()
    assert shown(app) == LOST
    app.sign_in(person)
    # One line of the log says why the files are set aside
    why = [line for level, line in lines if "no longer has the key" in line]
    assert len(why) == 1, lines
    assert "device, not_found" in why[0]
    [event] = told(app)
    assert event["unreadable"]
    assert event["reason"] == "storage_key_lost"
    assert "nøkkelen" in event["text"]
    words = json.dumps([event["text"], [line for _, line in lines]])
    assert "skad" not in words
    assert "damage" not in words
    assert (phone.folder / event["file"]).exists()
