"""The package's key stores, called through the library's callbacks."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import keyring
import keyring.backend
import keyring.errors
import pytest
from holdfast import FileKeyStore, Holdfast, KeyringKeyStore, KeyStore, Library, MemoryKeyStore
from holdfast.keystore import KEY_FAILED, KEY_LOCKED, KEY_NOT_FOUND, KEY_OK

CONFIG = {"data_dir": "/nowhere", "backend": {"url": "http://localhost", "api_key": "k"}}
#: The key that the scripted library saves.
KEY = bytes([7]) * 32


def ask(app: Holdfast, name: str) -> dict[str, Any]:
    return cast(dict[str, Any], getattr(app, name)({}))


class Ring(keyring.backend.KeyringBackend):
    """A keyring in memory that can be locked."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise keyring.errors.KeyringLocked("the user sent the prompt away")
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[(service, username)] = password

    def delete_password(self, service: str, username: str) -> None:
        if (service, username) not in self.held:
            raise keyring.errors.PasswordDeleteError("no such password")
        del self.held[(service, username)]


@pytest.fixture
def ring() -> Iterator[Ring]:
    before = keyring.get_keyring()
    made = Ring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


@pytest.fixture(params=["memory", "file", "keyring"])
def store(request: pytest.FixtureRequest, tmp_path: Path, ring: Ring) -> KeyStore:
    stores: dict[str, KeyStore] = {
        "memory": MemoryKeyStore(),
        "file": FileKeyStore(tmp_path / "keys"),
        "keyring": KeyringKeyStore("app.example"),
    }
    return stores[request.param]


def test_a_key_is_saved_found_and_erased(stub: Library, store: KeyStore) -> None:
    with Holdfast(CONFIG, store, library=stub) as app:
        assert ask(app, "session_unlock")["answer"] == KEY_NOT_FOUND
        assert ask(app, "session_lock")["answer"] == KEY_OK
        assert store.load("device") == KEY
        assert ask(app, "session_unlock") == {"answer": KEY_OK, "length": 32, "first": 7}
        assert ask(app, "session_logout")["answer"] == KEY_OK
        assert store.load("device") is None
        assert ask(app, "session_logout")["answer"] == KEY_OK, "erasing a missing key must succeed"


def test_key_files_are_private_and_no_other_files_remain(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "keys"
    store = FileKeyStore(folder)
    store.save("device", b"old", 0)
    store.save("device", b"new", 0)
    assert [file.name for file in folder.iterdir()] == ["device.key"]
    assert store.load("device") == b"new"
    assert stat.S_IMODE((folder / "device.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_unreadable_key_file_is_a_failure(stub: Library, tmp_path: Path) -> None:
    # Only a missing file may report "not found", since the library then creates a new key.
    (tmp_path / "device.key").mkdir()
    with Holdfast(CONFIG, FileKeyStore(tmp_path), library=stub) as app:
        assert ask(app, "session_unlock")["answer"] == KEY_FAILED


def test_a_key_that_could_not_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    store = FileKeyStore(tmp_path)
    (tmp_path / "biometric.key" / "in the way").mkdir(parents=True)
    with pytest.raises(OSError, match="biometric"):
        store.save("biometric", b"new", 1)
    assert [file.name for file in tmp_path.iterdir()] == ["biometric.key"]


def test_a_locked_keyring_reports_locked_and_keeps_its_keys(stub: Library, ring: Ring) -> None:
    with Holdfast(CONFIG, KeyringKeyStore("app.example"), library=stub) as app:
        ask(app, "session_lock")
        ring.locked = True
        assert ask(app, "session_unlock")["answer"] == KEY_LOCKED
        ring.locked = False
        assert ask(app, "session_unlock")["answer"] == KEY_OK


def test_the_keyring_stores_text(ring: Ring) -> None:
    KeyringKeyStore("app.example").save("device", KEY, 0)
    assert ring.held == {
        ("app.example", "device"): "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=",
    }
