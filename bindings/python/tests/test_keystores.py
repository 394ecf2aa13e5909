"""The package's key stores, called through the library's callbacks."""

from __future__ import annotations

import importlib
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import keyring
import keyring.backend
import keyring.errors
import pytest
from holdfast import (
    AsyncHoldfast,
    FileKeyStore,
    Holdfast,
    KeyringKeyStore,
    KeyStore,
    Library,
    MemoryKeyStore,
)
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


def test_a_class_is_no_key_store(stub: Library) -> None:
    """Where the class was passed, every key failed later, with an error that named no cause."""
    wrong = cast(Any, MemoryKeyStore)
    for make in (
        lambda: Holdfast(CONFIG, wrong, library=stub),
        lambda: AsyncHoldfast(CONFIG, wrong, library=stub),
    ):
        with pytest.raises(TypeError, match=r"pass MemoryKeyStore\(...\), not the class"):
            make()


def test_an_object_without_the_methods_is_no_key_store(stub: Library) -> None:
    class Half:
        def load(self, name: str) -> bytes | None:
            return None

        def save(self, name: str, key: bytes, protection: int) -> None: ...

    class Coroutines:
        async def load(self, name: str, prompt: str | None) -> bytes | None: ...

        async def save(self, name: str, key: bytes, protection: int) -> None: ...

        async def erase(self, name: str) -> None: ...

    class Mixed(Coroutines):
        def erase(self, name: str) -> None: ...  # type: ignore[override]

    with pytest.raises(TypeError, match="has no erase"):
        Holdfast(CONFIG, cast(Any, Half()), library=stub)
    with pytest.raises(TypeError, match="load of Coroutines is a coroutine"):
        Holdfast(CONFIG, cast(Any, Coroutines()), library=stub)
    with pytest.raises(TypeError, match="all coroutines, or none is"):
        AsyncHoldfast(CONFIG, cast(Any, Mixed()), library=stub)
    AsyncHoldfast(CONFIG, Coroutines(), library=stub)


def test_an_empty_key_store_is_one(stub: Library) -> None:
    """A store with `__len__` that was empty counted as none."""

    class Sized(MemoryKeyStore):
        def __len__(self) -> int:
            return len(self.keys)

    with Holdfast(CONFIG, Sized(), library=stub) as app:
        assert ask(app, "session_unlock")["answer"] == KEY_NOT_FOUND


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


def test_an_erased_key_is_overwritten_first(tmp_path: Path) -> None:
    store = FileKeyStore(tmp_path / "keys")
    store.save("session", KEY, 0)
    with (tmp_path / "keys" / "session.key").open("rb") as still_open:
        store.erase("session")
        assert still_open.read() == bytes(len(KEY))
    assert list((tmp_path / "keys").iterdir()) == []


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o640, 0o604])
def test_a_key_file_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    """Lock finding 2."""
    store = FileKeyStore(tmp_path / "keys")
    store.save("device", KEY, 0)
    (tmp_path / "keys" / "device.key").chmod(mode)
    with pytest.raises(PermissionError, match="0600"):
        store.load("device")
    with pytest.raises(PermissionError, match="0600"):
        store.erase("device")
    assert (tmp_path / "keys" / "device.key").read_bytes() == KEY


def test_a_link_in_place_of_a_key_file_is_refused(tmp_path: Path) -> None:
    """Lock finding 2."""
    store = FileKeyStore(tmp_path / "keys")
    store.save("other", KEY, 0)
    (tmp_path / "keys" / "device.key").symlink_to(tmp_path / "keys" / "other.key")
    with pytest.raises(OSError, match=r"device\.key"):
        store.load("device")
    with pytest.raises(OSError, match=r"device\.key"):
        store.erase("device")
    assert store.load("other") == KEY


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    """Lock finding 2."""
    folder = tmp_path / "keys"
    store = FileKeyStore(folder)
    store.save("device", KEY, 0)
    folder.chmod(mode)
    with pytest.raises(PermissionError, match="this user alone"):
        store.load("device")
    with pytest.raises(PermissionError, match="this user alone"):
        store.save("device", KEY, 0)
    with pytest.raises(PermissionError, match="this user alone"):
        store.erase("device")
    folder.chmod(0o755)
    assert store.load("device") == KEY


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("keyring.backends.null", "keyring.backends.null does not keep keys safely"),
        ("keyring.backends.fail", "there is no keyring here: DBUS_SESSION_BUS_ADDRESS is not set"),
    ],
)
def test_a_keyring_that_keeps_nothing_is_refused(
    module: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The missing session bus was not named."""
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    before = keyring.get_keyring()
    keyring.set_keyring(importlib.import_module(module).Keyring())
    try:
        with pytest.raises(RuntimeError, match=said):
            KeyringKeyStore("app.example")
    finally:
        keyring.set_keyring(before)


def test_a_chain_with_a_keyring_in_clear_is_refused(ring: Ring) -> None:
    """Lock finding 5."""
    plain = type("PlaintextKeyring", (Ring,), {"__module__": "keyrings.alt.file"})()
    ring.backends = [plain]  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match=r"keyrings\.alt\.file"):
        KeyringKeyStore("app.example")


def test_a_key_that_could_not_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    store = FileKeyStore(tmp_path)
    (tmp_path / "biometric.key" / "in the way").mkdir(parents=True)
    with pytest.raises(OSError, match="biometric"):
        store.save("biometric", b"new", 1)
    assert [file.name for file in tmp_path.iterdir()] == ["biometric.key"]


def test_a_locked_keyring_reports_locked_and_keeps_its_keys(
    stub: Library, ring: Ring, caplog: pytest.LogCaptureFixture
) -> None:
    with Holdfast(CONFIG, KeyringKeyStore("app.example"), library=stub) as app:
        ask(app, "session_lock")
        ring.locked = True
        assert ask(app, "session_unlock")["answer"] == KEY_LOCKED
        assert "the user sent the prompt away" in caplog.text
        ring.locked = False
        assert ask(app, "session_unlock")["answer"] == KEY_OK


def test_the_keyring_stores_text(ring: Ring) -> None:
    KeyringKeyStore("app.example").save("device", KEY, 0)
    assert ring.held == {
        ("app.example", "device"): "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=",
    }
