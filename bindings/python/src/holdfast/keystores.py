"""Key stores; any other object with the methods of `KeyStore` works, too."""

from __future__ import annotations

import base64
import logging
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

from .keystore import KEY_LOCKED, KeyStoreAnswer

log = logging.getLogger("holdfast")


class MemoryKeyStore:
    """Keys in the memory of this process, for tests and scripts."""

    def __init__(self) -> None:
        """An empty store."""
        self.keys: dict[str, bytes] = {}

    def load(self, name: str) -> bytes | None:
        """The key, if there is one."""
        return self.keys.get(name)

    def save(self, name: str, key: bytes, protection: int) -> None:
        """Keep it."""
        self.keys[name] = key

    def erase(self, name: str) -> None:
        """Forget it."""
        self.keys.pop(name, None)


class FileKeyStore:
    """Keys as files in a folder apart from the data: another volume, a RAM disk.

    For servers, kiosks and development: every process that can read the folder has the keys,
    including the "biometric" key. A folder or file of another user, one that others may write, a
    key file that others may read, and a link in place of a file are refused (`PermissionError`).
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """`folder` is created with mode 0700 when the first key is saved."""
        self._folder = Path(folder)

    def load(self, name: str) -> bytes | None:
        """The key, if there is one."""
        descriptor = self._open(name, os.O_RDONLY)
        if descriptor is None:
            return None
        with os.fdopen(descriptor, "rb") as file:
            return file.read()

    def save(self, name: str, key: bytes, protection: int) -> None:
        """Write a temporary file and rename it: a power cut leaves the old or the new key.

        An old "session" key is overwritten first: a rename would leave its bytes on the disk.
        """
        if name == "session":
            self.erase(name)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_folder()
        descriptor, beside = tempfile.mkstemp(dir=self._folder)  # readable by this user only
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path(name))
        except BaseException:
            os.unlink(beside)
            raise
        self._sync()

    def erase(self, name: str) -> None:
        """Overwrite and remove the file.

        A flash disk writes the zeros to another place: the old key may stay on it for a while.
        """
        descriptor = self._open(name, os.O_WRONLY)
        if descriptor is None:
            return
        with os.fdopen(descriptor, "wb") as file:
            file.write(bytes(os.fstat(descriptor).st_size))
            file.flush()
            os.fsync(descriptor)
        self._path(name).unlink()
        self._sync()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.key"

    def _open(self, name: str, how: int) -> int | None:
        """Open a key file, if there is one; refuse one that others can read, write or replace."""
        flags = how | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            self._check_folder()
            descriptor = os.open(self._path(name), flags)
        except FileNotFoundError:
            return None
        found = os.fstat(descriptor)
        if os.name != "nt" and (
            not stat.S_ISREG(found.st_mode)
            or found.st_uid != os.geteuid()
            or stat.S_IMODE(found.st_mode) & 0o077
        ):
            os.close(descriptor)
            raise PermissionError(f"{self._path(name)} must be a file of this user, with mode 0600")
        return descriptor

    def _check_folder(self) -> None:
        """Whoever may write the folder can replace keys. Windows has no modes."""
        found = self._folder.stat()
        if os.name != "nt" and (
            found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022
        ):
            raise PermissionError(f"{self._folder} must be writable by this user alone")

    def _sync(self) -> None:
        """Make a rename durable; Windows has no such call and needs none."""
        if os.name == "nt":
            return
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _no_keyring() -> str:
    """Why `keyring` has found nothing to keep keys in."""
    if sys.platform == "linux" and not os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return "DBUS_SESSION_BUS_ADDRESS is not set, so the program has no session bus"
    if sys.platform == "linux":
        return (
            "no secret service answers on the session bus, or the package secretstorage is missing"
        )
    return "no backend of the package keyring works"


#: Backends of `keyring` that forget what they are given, always fail, or keep it in clear.
UNSAFE_KEYRINGS = ("keyring.backends.null", "keyring.backends.fail", "keyrings.alt.file")


class KeyringKeyStore:
    """Keys in the desktop's secret service, through the `keyring` package (`holdfast[keyring]`).

    A desktop's keyring does not verify the user's presence: use `"policy": {"biometric": "off"}`,
    or accept that every program of this user can load the "biometric" key. Backends that keep
    nothing, or keep it in plain text, are refused.
    """

    def __init__(self, service: str) -> None:
        """`service` names the app in the keyring.

        Raises `RuntimeError` if the only keyring here keeps nothing, or keeps it in clear.
        """
        import keyring
        import keyring.errors

        chosen: Any = keyring.get_keyring()
        for backend in (chosen, *getattr(chosen, "backends", ())):
            module = type(backend).__module__
            if module.startswith("keyring.backends.fail"):
                raise RuntimeError(f"there is no keyring here: {_no_keyring()}")
            if module.startswith(UNSAFE_KEYRINGS):
                raise RuntimeError(f"the keyring {module} does not keep keys safely")

        self._keyring: Any = keyring
        self._locked: type[Exception] = keyring.errors.KeyringLocked
        self._service = service

    def load(self, name: str) -> bytes | None:
        """The key, if there is one."""
        text = self._ask(self._keyring.get_password, name)
        return None if text is None else base64.b64decode(text)

    def save(self, name: str, key: bytes, protection: int) -> None:
        """Store the key as text, since keyrings hold text."""
        self._ask(self._keyring.set_password, name, base64.b64encode(key).decode("ascii"))

    def erase(self, name: str) -> None:
        """Remove the key; look first, since keyrings report a missing key in different ways."""
        if self._ask(self._keyring.get_password, name) is not None:
            self._ask(self._keyring.delete_password, name)

    def _ask(self, function: Any, *arguments: str) -> str | None:  # noqa: ANN401
        try:
            return cast("str | None", function(self._service, *arguments))
        except self._locked as error:
            log.warning("the keyring is locked, or its prompt was dismissed: %s", error)
            raise KeyStoreAnswer(KEY_LOCKED) from error
