"""Holdfast: sessions, tenants, an offline queue and an encrypted cache for apps on Supabase.

The manual of every operation is in holdfast.h; what goes in and out is typed in `holdfast.types`.
"""

from collections.abc import Callable

from .async_handle import AsyncHoldfast, ThreadTransport
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
from .handle import Holdfast
from .keystore import KeyStore, KeyStoreAnswer
from .keystores import FileKeyStore, KeyringKeyStore, MemoryKeyStore
from .library import Library
from .runner import Runner
from .transport import AsyncTransport, HttpTransport, Transport

__all__ = [
    "AsyncHoldfast",
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
    "NoMemoryError",
    "NotFoundError",
    "Runner",
    "StateError",
    "StorageError",
    "ThreadTransport",
    "Transport",
    "live",
    "set_log",
    "version",
]


def version() -> str:
    """The default library's version."""
    return Library.default().version()


def live() -> int:
    """Handles and replies of the default library not yet released in this process."""
    return Library.default().live()


def set_log(level: int, function: Callable[[int, str], None] | None) -> None:
    """Give the default library's log lines to `function(level, line)`; None switches them off."""
    Library.default().set_log(level, function)
