"""`Holdfast`: an open data folder, dicts in and dicts out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self, cast

from .errors import OK, ClosedError, HoldfastError, InternalError
from .keystore import KeyStore, KeyStoreStruct, struct_for
from .library import Library
from .operations import Operations

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from .types import Config, OpenReply


class Holdfast(Operations):
    """An open data folder. Any thread may use it; `with` closes it."""

    def __init__(
        self,
        config: Config | Mapping[str, Any],
        keystore: KeyStore | None = None,
        *,
        library: Library | None = None,
    ) -> None:
        """Open. Without a key store the built-in file key store holds the keys (development)."""
        self._handle = 0
        self.library = library or Library.default()
        # Lives as long as this object: a call on another thread may outlast close().
        self._keystore: KeyStoreStruct | None = struct_for(keystore) if keystore else None
        self._handle, (status, reply) = self.library.open(encode(config), self._keystore)
        #: What holdfast_open() answered: the version, and whether damaged files were set aside.
        self.opened = cast("OpenReply", self._decode("open", status, reply))

    def _call(self, name: str, request: Mapping[str, Any] | None) -> object:
        sent = None if request is None else encode(request)
        return self._decode(name, *self.library.call(name, self._handle, sent))

    def _decode(self, name: str, status: int, reply: bytes | None) -> dict[str, Any]:
        """The reply as a dict, or the exception that it tells of."""
        value: dict[str, Any] | None = None if reply is None else json.loads(reply)
        if status != OK:
            raise HoldfastError.of(status, value)
        if value is None:
            raise InternalError("internal.defect", "success without a reply")
        return value

    def wait(self, timeout_ms: int = -1) -> bool:
        """Block until there is something to poll; negative waits without limit.

        True: poll now (also when the time has passed). False: closed meanwhile.
        """
        status = self.library.wait(self._handle, timeout_ms)
        if status == OK:
            return True
        if status == ClosedError.status:
            return False
        raise HoldfastError.of(status, None)

    def wake_fd(self) -> int:
        """A descriptor for selectors and event loops; never read, write or close it."""
        return self.library.wake_fd(self._handle)

    def close(self) -> None:
        """Close; again is fine. Calls under way on other threads finish first."""
        self.library.close(self._handle)

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse to be sent to another process, which multiprocessing would try."""
        raise TypeError("a Holdfast stays in its process: open its data_dir in the other one too")

    def __enter__(self) -> Self:
        """Itself."""
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
        """Close what was forgotten: the handle is a token, so a second time is harmless."""
        handle = getattr(self, "_handle", 0)
        if handle:
            self.library.close(handle)


def encode(request: Mapping[str, Any]) -> bytes:
    """A request as the library reads it. Escaped to ASCII, so that nothing is lost on the way."""
    return json.dumps(request, allow_nan=False, separators=(",", ":")).encode("ascii")
