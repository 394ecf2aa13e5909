"""Holdfast: sessions, tenants, an offline queue and an encrypted cache for apps on Supabase.

help(Holdfast.queue_add) explains an operation; `holdfast.types` has the types of requests and
replies. The folder docs/ of the package has the reference, the header holdfast.h, its schema, and
the pages on hosts, sync and security: begin with docs/reference.md.
"""

from collections.abc import Callable

from .async_handle import AsyncHoldfast
from .async_keystore import AsyncKeyStore
from .checkup import Step, doctor
from .errors import (
    BusyError,
    ClosedError,
    ConflictError,
    ForkedError,
    FullError,
    HoldfastError,
    InternalError,
    InvalidError,
    KeyStoreFailedError,
    NoMemoryError,
    NotFoundError,
    StateError,
    StorageError,
)
from .handle import Holdfast, News
from .keystore import KeyStore, KeyStoreAnswer
from .keystores import FileKeyStore, KeyringKeyStore, MemoryKeyStore
from .library import Library
from .runner import Runner
from .transport import AsyncTransport, HttpTransport, Transport
from .types import BuildInfo

__all__ = [
    "AsyncHoldfast",
    "AsyncKeyStore",
    "AsyncTransport",
    "BusyError",
    "ClosedError",
    "ConflictError",
    "FileKeyStore",
    "ForkedError",
    "FullError",
    "Holdfast",
    "HoldfastError",
    "HttpTransport",
    "InternalError",
    "InvalidError",
    "KeyStore",
    "KeyStoreAnswer",
    "KeyStoreFailedError",
    "KeyringKeyStore",
    "Library",
    "MemoryKeyStore",
    "News",
    "NoMemoryError",
    "NotFoundError",
    "Runner",
    "StateError",
    "Step",
    "StorageError",
    "Transport",
    "build_info",
    "doctor",
    "live",
    "set_log",
    "version",
]


def version() -> str:
    """The version of the default library, "MAJOR.MINOR.PATCH"."""
    return Library.default().version()


def build_info() -> BuildInfo:
    """What the default library consists of.

    Its version, ABI and flavour, and the versions of SQLite, libsodium and jansson in it.
    """
    return Library.default().build_info()


def live() -> int:
    """The number of unreleased handles and replies of the default library in this process."""
    return Library.default().live()


def set_log(level: int, function: Callable[[int, str], None] | None) -> None:
    """Send the default library's log lines to `function(level, line)`; None stops logging."""
    Library.default().set_log(level, function)
