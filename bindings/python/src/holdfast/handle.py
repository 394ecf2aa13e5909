"""`Holdfast`: an open data folder with dicts as requests and replies."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any, Self, cast

from .errors import OK, ClosedError, HoldfastError, InternalError
from .keystore import KeyStore, KeyStoreStruct, checked, struct_for
from .library import Library
from .operations import Operations

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from .types import Config, Event, OpenReply


class Holdfast(Operations):
    """An open data folder; `with` closes it.

    Any thread may use it. Operations raise `HoldfastError`.
    """

    def __init__(
        self,
        config: Config | Mapping[str, Any],
        keystore: KeyStore | None = None,
        *,
        library: Library | None = None,
    ) -> None:
        """Open the folder.

        Without `keystore`, `config` has `{"keystore": {"kind": "file"}}`: key files beside the
        data, with `"policy": {"biometric": "preferred"}` or `"off"`. `data_dir` may be a
        `pathlib.Path`.
        """
        self._handle = 0
        checked(keystore)
        # The number of the newest decision that a call was answered with.
        self._decided = 0
        self._deciding = threading.Lock()
        self.library = library or Library.default()
        # Kept as long as this object: a call on another thread may outlast close().
        self._keystore: KeyStoreStruct | None = None if keystore is None else struct_for(keystore)
        self._handle, (status, reply) = self.library.open(encode(plain(config)), self._keystore)
        #: The reply of holdfast_open(): the version, the key store in use, and whether damaged
        #: files were set aside.
        self.opened = cast("OpenReply", self._decode("open", status, reply))

    def _call(self, name: str, request: Mapping[str, Any] | None) -> object:
        sent = None if request is None else encode(request)
        return self._decode(name, *self.library.call(name, self._handle, sent))

    def _follow(self, reply: dict[str, Any]) -> None:
        """Remember the number of a decision in a reply."""
        decision = reply.get("decision", reply)
        number = decision.get("number", 0) if "screen" in decision else 0
        with self._deciding:
            self._decided = max(self._decided, number)

    def superseded(self, event: Event) -> bool:
        """Whether the event is a decision that is older than one that a call has replied.

        Do not draw such an event. Ask on the thread that draws, just before it draws: another
        thread may have polled the event before the reply came.
        """
        if event["type"] != "decision":
            return False
        return event["decision"]["number"] < self._decided

    def _decode(self, name: str, status: int, reply: bytes | None) -> dict[str, Any]:
        """The reply as a dict; raises the exception of an error reply."""
        value: dict[str, Any] | None = None if reply is None else json.loads(reply.decode())
        if status != OK:
            raise HoldfastError.of(status, value)
        if value is None:
            raise InternalError("internal.defect", "success without a reply")
        self._follow(value)
        return value

    def wait(self, timeout_ms: int = -1) -> bool:
        """Block until there is something to poll, or `timeout_ms` has passed; negative: no limit.

        Returns True to poll now, also at the timeout, and False if the handle was closed.
        """
        status = self.library.wait(self._handle, timeout_ms)
        if status == OK:
            return True
        if status == ClosedError.status:
            return False
        raise HoldfastError.of(status, None)

    def wake_fd(self) -> int:
        """A descriptor that is readable while there is something to poll.

        For selectors and event loops: do not read, write or close it. -1 for an invalid handle.
        """
        return self.library.wake_fd(self._handle)

    def close(self) -> None:
        """Close, after running calls on other threads have finished; may be called twice."""
        self.library.close(self._handle)

    def __reduce__(self) -> tuple[object, ...]:
        """Raise TypeError: a handle cannot be pickled for another process."""
        raise TypeError("a Holdfast cannot be sent to another process: open its data_dir there")

    def __enter__(self) -> Self:
        """Return the handle."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def __del__(self) -> None:
        """Close a handle that was not closed; closing twice is harmless."""
        handle = getattr(self, "_handle", 0)
        if handle:
            self.library.close(handle)


def plain(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration with its folder as text."""
    folder = config.get("data_dir")
    if not isinstance(folder, os.PathLike):
        return config
    return {**config, "data_dir": os.fsdecode(folder)}


#: Made once: json.dumps() makes one at every call that has options.
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def encode(request: Mapping[str, Any]) -> bytes:
    """The request as JSON, escaped to ASCII, so that lone surrogates reach the library, too."""
    return _ENCODER.encode(request).encode("ascii")
