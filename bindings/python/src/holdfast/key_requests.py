"""Key requests: a key store that the library asks in `poll`, for a keychain that is asynchronous.

With `{"keystore": {"kind": "host"}}` the library calls no function of the host. A poll returns key
requests, and `key_complete` takes the outcomes.
"""

from __future__ import annotations

import base64
import logging
import threading
from typing import TYPE_CHECKING, Protocol, cast

from .keystore import (
    KEY_CANCELLED,
    KEY_INVALIDATED,
    KEY_LOCKED,
    KEY_LOCKOUT,
    KEY_LOCKOUT_PERMANENT,
    KEY_NOT_ENROLLED,
    KEY_NOT_FOUND,
    KEY_UNAVAILABLE,
    PROTECT_BIOMETRIC,
    PROTECT_DEVICE,
    CancellableKeyStore,
    KeyStore,
    KeyStoreAnswer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .types import KeyCompleteRequest, KeyRequest

log = logging.getLogger("holdfast")

#: How long a load has after `cancel` to end, in seconds, before `cancel` is called again.
CANCEL_AGAIN_S = 0.25

_RESULTS = {
    KEY_NOT_FOUND: "not_found",
    KEY_LOCKED: "locked",
    KEY_CANCELLED: "cancelled",
    KEY_LOCKOUT: "lockout",
    KEY_LOCKOUT_PERMANENT: "lockout_permanent",
    KEY_NOT_ENROLLED: "not_enrolled",
    KEY_INVALIDATED: "invalidated",
    KEY_UNAVAILABLE: "unavailable",
}


class AsyncKeyStore(Protocol):
    """The protocol of a key store for asyncio; as `KeyStore`, with coroutines.

    The library asks for one operation at a time under each name. The methods may call the library.
    """

    async def load(self, name: str, prompt: str | None) -> bytes | None:
        """Return the key, or None if the store works and has no such key.

        `prompt` is the text for the prompt with which the user releases "biometric". None: show no
        prompt, and raise `KeyStoreAnswer(KEY_CANCELLED)` for a key that needs one. The coroutine is
        cancelled when nobody needs the key any more: take the prompt back in `finally`.
        """

    async def save(self, name: str, key: bytes, protection: int) -> None:
        """Store or replace the key durably; `protection` is one of the constants `PROTECT_...`."""

    async def erase(self, name: str) -> None:
        """Remove the key; a missing key is not a failure."""


def asks_host(config: Mapping[str, Any]) -> bool:
    """Whether a configuration names the key store `host`."""
    named = config.get("keystore")
    return isinstance(named, dict) and named.get("kind") == "host"


def serve(store: KeyStore, request: KeyRequest) -> KeyCompleteRequest:
    """Carry out a key request with a key store; an exception becomes a result."""
    try:
        match request["operation"]:
            case "load":
                return _loaded(request, store.load(request["name"]))
            case "save":
                store.save(request["name"], _value(request), _protection(request))
            case "erase":
                store.erase(request["name"])
            case other:
                raise ValueError(f"unknown operation {other}")
    except Exception as error:
        return _refused(request, error)
    return {"id": request["id"], "result": "ok"}


async def serve_async(store: AsyncKeyStore, request: KeyRequest) -> KeyCompleteRequest:
    """The same with a key store for asyncio."""
    try:
        match request["operation"]:
            case "load":
                return _loaded(request, await store.load(request["name"], request["prompt"]))
            case "save":
                await store.save(request["name"], _value(request), _protection(request))
            case "erase":
                await store.erase(request["name"])
            case other:
                raise ValueError(f"unknown operation {other}")
    except Exception as error:
        return _refused(request, error)
    return {"id": request["id"], "result": "ok"}


class Load:
    """A load that a thread carries out, until somebody withdraws it.

    `cancel` of a key store dismisses a prompt that is on the screen. A load that has begun may not
    show its prompt yet, so `cancel` is called again until the load returns, and never afterwards:
    the prompt on the screen is then another load's.
    """

    def __init__(self, request: KeyRequest) -> None:
        """Nothing is asked of a key store before `serve`."""
        self._request = request
        self._lock = threading.Lock()
        #: The key store, while its `load` runs.
        self._store: KeyStore | None = None
        self._withdrawn = False
        self._returned = threading.Event()

    def serve(self, store: KeyStore) -> KeyCompleteRequest:
        """Carry out the load; one that was withdrawn shows no prompt, and is `cancelled`."""
        with self._lock:
            if self._withdrawn:
                return {"id": self._request["id"], "result": "cancelled"}
            self._store = store
        try:
            return serve(store, self._request)
        finally:
            with self._lock:
                self._store = None
            self._returned.set()

    def withdraw(self) -> None:
        """Have the prompt dismissed, on a thread of its own: nobody needs the key any more."""
        with self._lock:
            if self._withdrawn:
                return
            self._withdrawn = True
            if getattr(self._store, "cancel", None) is None:
                return
        threading.Thread(target=self._dismiss, name="holdfast-cancel", daemon=True).start()

    def _dismiss(self) -> None:
        while not self._returned.is_set():
            with self._lock:
                if self._store is not None:
                    cancel(self._store, self._request["name"])
            self._returned.wait(CANCEL_AGAIN_S)


def cancel(store: object, name: str) -> None:
    """Have a key store take back the prompt of a `load`."""
    try:
        cast("CancellableKeyStore", store).cancel(name)
    except Exception:
        log.exception("the key store did not take its prompt back")


def _value(request: KeyRequest) -> bytes:
    return base64.b64decode(request["value"] or "")


def _protection(request: KeyRequest) -> int:
    return PROTECT_BIOMETRIC if request["protection"] == "biometric" else PROTECT_DEVICE


def _loaded(request: KeyRequest, key: bytes | None) -> KeyCompleteRequest:
    if key is None:
        return {"id": request["id"], "result": "not_found"}
    value = base64.b64encode(key).decode("ascii")
    return {"id": request["id"], "result": "ok", "value": value}


def _refused(request: KeyRequest, error: Exception) -> KeyCompleteRequest:
    if not isinstance(error, KeyStoreAnswer):
        log.error("the key store failed", exc_info=error)
        return {"id": request["id"], "result": "failed"}
    result = _RESULTS.get(error.answer, "failed")
    return {"id": request["id"], "result": result}  # type: ignore[typeddict-item]
