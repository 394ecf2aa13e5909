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
from fake_library import CONFIG, KEY, FakeLibrary, opened
from holdfast import AsyncHoldfast, FileKeyStore, KeyringKeyStore, KeyStore, MemoryKeyStore
from holdfast.keystore import KEY_FAILED, KEY_LOCKED, KEY_NOT_FOUND, KEY_OK, KeyStoreAnswer

LOADED = [KEY_OK, KEY.hex()]


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


@pytest.mark.parametrize("kind", ["memory", "file", "keyring"])
def test_a_key_is_saved_found_and_erased(kind: str, tmp_path: Path, ring: Ring) -> None:
    stores: dict[str, KeyStore] = {
        "memory": MemoryKeyStore(),
        "file": FileKeyStore(tmp_path / "keys"),
        "keyring": KeyringKeyStore("app.example"),
    }
    store, fake = stores[kind], FakeLibrary()
    with opened(fake, store):
        assert fake.load(b"device") == [KEY_NOT_FOUND, ""]
        assert fake.save(b"device", KEY) == KEY_OK
        assert store.load("device") == KEY
        assert fake.load(b"device") == LOADED
        assert fake.erase(b"device") == KEY_OK
        assert store.load("device") is None
        assert fake.erase(b"device") == KEY_OK, "erasing a missing key must succeed"


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (KeyStoreAnswer(KEY_LOCKED), KEY_LOCKED),
        (OSError("the chain is broken"), KEY_FAILED),
        (KeyboardInterrupt(), KEY_FAILED),
        (bytes(64), KEY_FAILED),
    ],
)
def test_no_exception_and_no_long_key_crosses_into_c(
    given: BaseException | bytes, answer: int
) -> None:
    class Odd(MemoryKeyStore):
        def __len__(self) -> int:
            return 0  # an empty store was taken for none

        def load(self, name: str) -> bytes | None:
            if isinstance(given, bytes):
                return given
            raise given

    fake = FakeLibrary()
    with opened(fake, Odd()):
        assert fake.load(b"device") == [answer, ""]


def test_what_is_no_key_store_is_refused() -> None:
    """Every key failed later, with an error that named no cause."""

    class Half:
        def load(self, name: str) -> bytes | None: ...

        def save(self, name: str, key: bytes, protection: int) -> None: ...

    class Coroutines:
        async def load(self, name: str, prompt: str | None) -> bytes | None: ...

        async def save(self, name: str, key: bytes, protection: int) -> None: ...

        async def erase(self, name: str) -> None: ...

    class Mixed(Coroutines):
        def erase(self, name: str) -> None: ...  # type: ignore[override]

    for wrong, said in [
        (MemoryKeyStore, r"pass MemoryKeyStore\(...\), not the class"),
        (Half(), "has no erase"),
        (Coroutines(), "load of Coroutines is a coroutine"),
    ]:
        with pytest.raises(TypeError, match=said):
            opened(FakeLibrary(), cast(Any, wrong))
    with pytest.raises(TypeError, match="all coroutines, or none is"):
        AsyncHoldfast(CONFIG, cast(Any, Mixed()))
    AsyncHoldfast(CONFIG, Coroutines())


# ---- files ----


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "keys"


def test_key_files_are_private_and_no_other_files_remain(folder: Path) -> None:
    store = FileKeyStore(folder)
    store.save("device", b"old", 0)
    store.save("device", b"new", 0)
    assert [file.name for file in folder.iterdir()] == ["device.key"]
    assert store.load("device") == b"new"
    assert stat.S_IMODE((folder / "device.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_erased_key_is_overwritten_first(folder: Path) -> None:
    store = FileKeyStore(folder)
    store.save("session", KEY, 0)
    with (folder / "session.key").open("rb") as still_open:
        store.erase("session")
        assert still_open.read() == bytes(len(KEY))
    assert list(folder.iterdir()) == []


def test_a_key_that_could_not_be_read_or_written_is_a_failure(folder: Path) -> None:
    """Only a missing file may be "not found", since the library then creates a new key."""
    (folder / "device.key" / "in the way").mkdir(parents=True)
    fake = FakeLibrary()
    with opened(fake, FileKeyStore(folder)):
        assert fake.load(b"device") == [KEY_FAILED, ""]
        assert fake.save(b"device", KEY) == KEY_FAILED
    assert [file.name for file in folder.iterdir()] == ["device.key"]


@pytest.mark.parametrize("way", [0o620, 0o602, 0o640, 0o604, "link"])
def test_a_key_file_that_others_can_open_or_replace_is_refused(
    folder: Path, way: int | str
) -> None:
    store = FileKeyStore(folder)
    store.save("other", KEY, 0)
    if isinstance(way, int):
        store.save("device", KEY, 0)
        (folder / "device.key").chmod(way)
    else:
        (folder / "device.key").symlink_to(folder / "other.key")
    for use in (store.load, store.erase):
        with pytest.raises(OSError, match=r"device\.key"):
            use("device")
    assert store.load("other") == (folder / "device.key").read_bytes() == KEY


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_is_refused(folder: Path, mode: int) -> None:
    store = FileKeyStore(folder)
    store.save("device", KEY, 0)
    folder.chmod(mode)
    for use in (store.load, store.erase, lambda name: store.save(name, KEY, 0)):
        with pytest.raises(PermissionError, match="this user alone"):
            use("device")
    folder.chmod(0o755)
    assert store.load("device") == KEY


# ---- keyrings ----


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("keyring.backends.null", "keyring.backends.null does not keep keys safely"),
        ("keyring.backends.fail", "there is no keyring here: DBUS_SESSION_BUS_ADDRESS is not set"),
        (None, r"keyrings\.alt\.file"),
    ],
)
def test_a_keyring_that_keeps_nothing_or_in_clear_is_refused(
    module: str | None, said: str, ring: Ring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    if module is None:
        # One of a chain
        plain = type("PlaintextKeyring", (Ring,), {"__module__": "keyrings.alt.file"})()
        ring.backends = [plain]  # type: ignore[attr-defined]
    else:
        keyring.set_keyring(importlib.import_module(module).Keyring())
    with pytest.raises(RuntimeError, match=said):
        KeyringKeyStore("app.example")


def test_a_locked_keyring_says_so_and_keeps_its_keys(
    ring: Ring, caplog: pytest.LogCaptureFixture
) -> None:
    fake = FakeLibrary()
    with opened(fake, KeyringKeyStore("app.example")):
        fake.save(b"device", KEY)
        assert ring.held == {
            ("app.example", "device"): "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
        }
        ring.locked = True
        assert fake.load(b"device") == [KEY_LOCKED, ""]
        assert "the user sent the prompt away" in caplog.text
        ring.locked = False
        assert fake.load(b"device") == LOADED
