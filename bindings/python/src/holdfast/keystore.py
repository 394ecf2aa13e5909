"""Key stores as Python objects: protocol, result constants and C callbacks."""

from __future__ import annotations

import ctypes
import inspect
import logging
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("holdfast")

KEY_OK = 0
KEY_NOT_FOUND = 1
KEY_LOCKED = 2
KEY_CANCELLED = 3
KEY_FAILED = 4
KEY_LOCKOUT = 5
KEY_LOCKOUT_PERMANENT = 6
KEY_NOT_ENROLLED = 7
KEY_INVALIDATED = 8
KEY_UNAVAILABLE = 9

PROTECT_DEVICE = 0
PROTECT_BIOMETRIC = 1


class KeyStoreAnswer(Exception):  # noqa: N818 - an answer is not always an error
    """Raised by a key store to return one of the results `KEY_...` instead of a key."""

    def __init__(self, answer: int) -> None:
        """`answer` is one of the constants `KEY_...`."""
        super().__init__(f"key store answer {answer}")
        self.answer = answer


class KeyStore(Protocol):
    """The protocol of a key store; the names of keys are "device", "session" and "biometric".

    "session" comes and goes with every unlock and lock. What was saved is loaded at once and
    compared, and what was erased must load as None.

    The library calls the methods inside an operation, on the caller's thread; they must not call
    the library. Raise `KeyStoreAnswer` to give the reason of a failure; any other exception counts
    as KEY_FAILED.
    """

    def load(self, name: str) -> bytes | None:
        """Return the key, or None if the store works and has no such key. Show no prompt.

        Where "biometric" needs one, the app shows it and then calls `session_unlock`: return the
        key that the user has just released, and raise `KeyStoreAnswer(KEY_CANCELLED)` otherwise.
        """

    def save(self, name: str, key: bytes, protection: int) -> None:
        """Store or replace the key durably; `protection` is one of the constants `PROTECT_...`."""

    def erase(self, name: str) -> None:
        """Remove the key; a missing key is not a failure."""


def checked(store: object, *, coroutines: bool = False) -> bool:
    """Whether the methods of a key store are coroutines, which only `coroutines` permits.

    Raises TypeError for what is no key store: a class, or an object without the methods.
    """
    if store is None:
        return False
    if isinstance(store, type):
        raise TypeError(f"a key store is an object: pass {store.__name__}(...), not the class")
    kinds = set()
    for name in ("load", "save", "erase"):
        method = getattr(store, name, None)
        if not callable(method):
            raise TypeError(f"a key store has load, save and erase: {store!r} has no {name}")
        kinds.add(inspect.iscoroutinefunction(method))
        if True in kinds and not coroutines:
            raise TypeError(f"{name} of {type(store).__name__} is a coroutine: use AsyncHoldfast")
    if len(kinds) > 1:
        raise TypeError(f"the methods of {store!r} are all coroutines, or none is")
    return True in kinds


_INT, _SIZE, _TEXT = ctypes.c_int32, ctypes.c_size_t, ctypes.c_char_p
_CONTEXT, _KEY = ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint8)
LOAD = ctypes.CFUNCTYPE(_INT, _CONTEXT, _TEXT, _KEY, _SIZE, ctypes.POINTER(_SIZE))
SAVE = ctypes.CFUNCTYPE(_INT, _CONTEXT, _TEXT, _KEY, _SIZE, _INT)
ERASE = ctypes.CFUNCTYPE(_INT, _CONTEXT, _TEXT)
DESTROY = ctypes.CFUNCTYPE(None, _CONTEXT)


class KeyStoreStruct(ctypes.Structure):
    """`holdfast_keystore` of holdfast.h."""

    _fields_ = (
        ("size", _SIZE),
        ("context", _CONTEXT),
        ("load", LOAD),
        ("save", SAVE),
        ("erase", ERASE),
        ("destroy", DESTROY),  # NULL here: the struct lives as long as the handle's object
    )


def _answering(work: Callable[..., int | None]) -> Callable[..., int]:
    """A callback, which answers KEY_OK for None; no exception may cross into C."""

    def answer(_context: int, name: bytes, *given: object) -> int:
        try:
            return work(name.decode("ascii"), *given) or KEY_OK
        except KeyStoreAnswer as raised:
            return raised.answer
        except BaseException:
            log.exception("the key store failed")
            return KEY_FAILED

    return answer


def struct_for(store: KeyStore) -> KeyStoreStruct:
    """The callbacks for a store; keep the struct as long as the handle, since it owns them."""

    @_answering
    def load(name: str, key: object, capacity: int, length: object) -> int | None:
        found = store.load(name)
        if found is None:
            return KEY_NOT_FOUND
        if len(found) > capacity:
            raise ValueError(f"the key has {len(found)} bytes, at most {capacity} are allowed")
        ctypes.memmove(cast(Any, key), found, len(found))
        cast(Any, length)[0] = len(found)
        return None

    @_answering
    def save(name: str, key: object, length: int, protection: int) -> None:
        store.save(name, ctypes.string_at(cast(Any, key), length), protection)

    @_answering
    def erase(name: str) -> None:
        store.erase(name)

    return KeyStoreStruct(ctypes.sizeof(KeyStoreStruct), None, LOAD(load), SAVE(save), ERASE(erase))
