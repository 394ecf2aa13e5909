"""`Holdfast`: an open data folder with dicts as requests and replies."""

from __future__ import annotations

import collections
import json
import logging
import os
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from .errors import OK, ClosedError, HoldfastError, InternalError
from .keystore import KeyStore, KeyStoreStruct, checked, struct_for
from .library import ALL, NEWS, Library
from .operations import Operations
from .types import NextAnswer, NextNotice, NextScreen, NextSync

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .types import Config, Decision, NextReply, OpenReply

log = logging.getLogger("holdfast")

#: What the host shows or tells: {"screen"}, {"answer"}, {"notice"} or {"sync"}.
News: TypeAlias = NextScreen | NextAnswer | NextNotice | NextSync


class Holdfast(Operations):
    """An open data folder; `with` closes it.

    Any thread may use it. Operations raise `HoldfastError`. What they change comes by iteration,
    while a `Runner` sends the requests: `with Holdfast(config) as app, Runner(app):` and
    `for thing in app:`.
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
        self.library = library or Library.default()
        # Kept as long as this object: a call on another thread may outlast close().
        self._keystore: KeyStoreStruct | None = None if keystore is None else struct_for(keystore)
        self._handle, (status, reply) = self.library.open(encode(plain(config)), self._keystore)
        #: The reply of holdfast_open(): the version, the key store in use, whether damaged files
        #: were set aside, and the first screen.
        self.opened = cast("OpenReply", self._decode("open", status, reply))
        self._screen = self.opened["screen"]
        #: The screen of the open, until iteration has given it or a newer one.
        self._first = self._screen
        #: What came before it was asked for: while a screen was given, or waited for.
        self.held: collections.deque[News] = collections.deque()

    def _call(self, name: str, request: Mapping[str, Any] | None) -> object:
        sent = None if request is None else encode(request)
        return self._decode(name, *self.library.call(name, self._handle, sent))

    def _decode(self, name: str, status: int, reply: bytes | None) -> dict[str, Any]:
        """The reply as a dict; raises the exception of an error reply."""
        value: dict[str, Any] | None = None if reply is None else json.loads(reply.decode())
        if status != OK:
            raise HoldfastError.of(status, value)
        if value is None:
            raise InternalError("internal.defect", "success without a reply")
        return value

    @property
    def screen(self) -> Decision | None:
        """The newest screen that was given; None before the first, as in a worker."""
        return self._screen

    def next(self, timeout_ms: int = -1, *, what: int = ALL) -> NextReply | None:
        """The next thing for the host; None when the handle is closed.

        Blocks up to `timeout_ms` until there is one; negative: no limit. One of {"screen"},
        {"answer"}, {"notice"}, {"sync"}, {"request"}; {"wake_in_ms"}: nothing now. One reader for
        each handle and each `what`, one of the constants of `holdfast.library`.
        """
        status, reply = self.library.next(self._handle, what, timeout_ms)
        if status == ClosedError.status:
            return None
        given = cast("NextReply", self._decode("next", status, reply))
        if "screen" in given:
            self._screen, self._first = given["screen"], None
        return given

    def news(self) -> News | None:
        """Wait for the next thing to show or tell; None when the handle is closed.

        The first is the first screen. Asking again acknowledges a notice. A temporary failure of
        the storage or the key store is logged, and waited out.
        """
        while not self.held:
            given: NextReply | None = {"wake_in_ms": None}
            try:
                given = self.next(-1 if self._first is None else 0, what=NEWS)
            except HoldfastError as error:
                if not error.retryable:
                    raise
                # It does not hold up the first screen.
                log.warning("the next thing is late: %s", error)
            if given is None or "request" in given:
                return None
            if self._first is not None:
                self.held.append({"screen": self._first})
                self._first = None
            if "wake_in_ms" not in given:
                self.held.append(given)
        return self.held.popleft()

    def __iter__(self) -> Iterator[News]:
        """Iterate over `news`, for one reader, until the handle is closed."""
        while (given := self.news()) is not None:
            yield given

    def settled(self) -> Decision:
        """Wait for the next screen but `wait`, for instance the result of a sign-in.

        What else comes is kept for the reader; a notice among it counts as acknowledged. Raises
        `ClosedError` when the handle is closed.
        """
        others: list[News] = []
        try:
            for thing in self:
                if "screen" not in thing:
                    others.append(thing)
                elif thing["screen"]["screen"] != "wait":
                    return thing["screen"]
        finally:
            self.held.extend(others)
        raise ClosedError("handle.closed", "the handle is closed")

    def wake_fd(self, *, what: int = ALL) -> int:
        """A descriptor that is readable while `next` has something.

        For selectors and event loops: do not read, write or close it. -1 for an invalid handle.
        """
        return self.library.wake_fd(self._handle, what)

    def close(self) -> None:
        """Close, after running calls on other threads have finished; may be called twice."""
        self.library.close(self._handle)

    def __reduce__(self) -> tuple[object, ...]:
        """Raise TypeError: a handle cannot be pickled for another process."""
        raise TypeError("a Holdfast cannot be sent to another process: open its data_dir there")

    def __enter__(self) -> Self:
        """Return the handle."""
        return self

    def __exit__(self, *_: object) -> None:
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
