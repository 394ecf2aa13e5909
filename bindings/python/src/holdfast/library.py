"""Finds and loads the shared library and declares its functions; several may be loaded at once."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from .keystore import KeyStoreStruct
    from .types import BuildInfo

log = logging.getLogger("holdfast")

LOG_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)

Answer = tuple[int, bytes | None]

#: What `Library.next` gives: all but requests, requests alone, or both.
NEWS, REQUESTS, ALL = 1, 2, 3


class Library:
    """A loaded libholdfast with bytes as requests and replies; see `Holdfast` for dicts."""

    _default: Library | None = None
    _lock = threading.Lock()

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Load the file at `path`, with private symbols; raises OSError."""
        self.path = Path(path)
        self._dll = ctypes.CDLL(str(self.path))
        self._log_functions: list[object] = []
        self._declare()

    @classmethod
    def default(cls) -> Library:
        """The library at the path of `find`, loaded once; raises ImportError."""
        with cls._lock:
            if cls._default is None:
                path = find()
                try:
                    cls._default = cls(path)
                except OSError as error:
                    raise ImportError(
                        f"{path} cannot be loaded ({error}): install the holdfast wheel for this"
                        " platform, or the library itself, or name its file in HOLDFAST_LIBRARY"
                    ) from error
            return cls._default

    def _declare(self) -> None:
        number, void, text = ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p
        reply = handle = ctypes.POINTER(void)
        for name, result, arguments in (
            ("open", number, (text, void, handle, reply)),
            ("call", number, (void, text, text, reply)),
            ("next", number, (void, number, number, reply)),
            ("wake_fd", number, (void, number)),
            ("close", None, (void,)),
            ("free", None, (void,)),
            ("log", None, (number, LOG_FUNCTION, void)),
            ("version", text, ()),
            ("version_number", number, ()),
            ("build_info", text, ()),
            ("live_count", ctypes.c_int64, ()),
        ):
            function = getattr(self._dll, f"holdfast_{name}")
            function.argtypes, function.restype = arguments, result
        self._open, self._call = self._dll.holdfast_open, self._dll.holdfast_call

    def open(self, config: bytes | None, keystore: KeyStoreStruct | None) -> tuple[int, Answer]:
        """Return (handle, (status, reply)); the handle is 0 unless the status is 0."""
        handle, reply = ctypes.c_void_p(), ctypes.c_void_p()
        pointer = None if keystore is None else ctypes.byref(keystore)
        status = self._open(config, pointer, ctypes.byref(handle), ctypes.byref(reply))
        return handle.value or 0, (status, self._take(reply))

    def call(self, name: str, handle: int | None, request: bytes | None) -> Answer:
        """Return (status, reply) of one operation; the reply is a copy."""
        reply = ctypes.c_void_p()
        status = self._call(handle, name.encode(), request, ctypes.byref(reply))
        return status, self._take(reply)

    def call_without_reply(self, name: str, handle: int | None, request: bytes | None) -> int:
        """Return the status of one operation, with NULL for the reply."""
        return int(self._call(handle, name.encode(), request, None))

    def _take(self, reply: ctypes.c_void_p) -> bytes | None:
        if not reply.value:
            return None
        try:
            return ctypes.string_at(reply.value)
        finally:
            self._dll.holdfast_free(reply)

    def close(self, handle: int | None) -> None:
        """Close a handle; invalid handles are ignored."""
        self._dll.holdfast_close(handle)

    def free(self, pointer: int | None) -> None:
        """Release a reply; None is ignored."""
        self._dll.holdfast_free(pointer)

    def next(self, handle: int | None, what: int, timeout_ms: int) -> Answer:
        """Return (status, reply) of holdfast_next(); other Python threads run meanwhile."""
        reply = ctypes.c_void_p()
        status = self._dll.holdfast_next(handle, what, timeout_ms, ctypes.byref(reply))
        return status, self._take(reply)

    def wake_fd(self, handle: int | None, what: int) -> int:
        """A descriptor, readable while `next` has something; -1 for an invalid handle."""
        return int(self._dll.holdfast_wake_fd(handle, what))

    def version(self) -> str:
        """The library's version, "MAJOR.MINOR.PATCH"."""
        return str(self._dll.holdfast_version(), "ascii")

    def version_number(self) -> int:
        """The library's version as a number: 0.2.0 is 2000."""
        return int(self._dll.holdfast_version_number())

    def build_info(self) -> BuildInfo:
        """The library's version, ABI and flavour, and the versions of the libraries in it."""
        return cast("BuildInfo", json.loads(self._dll.holdfast_build_info()))

    def live(self) -> int:
        """The number of handles and replies that this process has not released."""
        return int(self._dll.holdfast_live_count())

    def set_log(self, level: int, function: Callable[[int, str], None] | None) -> None:
        """Send log lines to `function(level, line)`; None stops logging.

        Levels up to `level` are logged: 0 error, 1 warning, 2 info, 3 debug. Applies to the whole
        process.
        """
        if function is None:
            self._dll.holdfast_log(level, LOG_FUNCTION(), None)
            return

        def give(_context: int | None, at: int, line: bytes) -> None:
            try:
                function(at, line.decode("utf-8", "replace"))
            except Exception:
                log.exception("the log function failed")

        callback = LOG_FUNCTION(give)
        # Kept for ever: another thread may still run the function that this one replaces.
        self._log_functions.append(callback)
        self._dll.holdfast_log(level, callback, None)


#: The library's file in a wheel and in a build tree, and its name for the system's loader.
FILE, SYSTEM = {
    "win32": ("holdfast.dll", "holdfast.dll"),
    "darwin": ("libholdfast.dylib", "libholdfast.1.dylib"),
}.get(sys.platform, ("libholdfast.so", "libholdfast.so.1"))


def find() -> Path:
    """The path: HOLDFAST_LIBRARY, the package's file, build/lib of a source tree, the system's."""
    named = os.environ.get("HOLDFAST_LIBRARY")
    if named:
        return Path(named)
    here = Path(__file__).resolve().parent
    own = here / FILE
    if own.is_file():
        return own
    for root in here.parents:
        if (root / "bindings" / "python").is_dir() and (root / "include" / "holdfast.h").is_file():
            built = root / "build" / "lib" / FILE
            if built.is_file():
                return built
    return Path(SYSTEM)
