"""Exceptions: one class for each status of holdfast.h."""

from __future__ import annotations

from typing import Any, ClassVar

OK = 0


class HoldfastError(Exception):
    """An operation failed.

    `code` (`noun.reason`) is stable and for programs. `field` is a JSON Pointer into the request,
    or None. `message` is for developers and never holds user data. `retryable` tells whether the
    same call may succeed later. `detail` holds further values of the code.
    """

    status: int
    _classes: ClassVar[dict[int, type[HoldfastError]]] = {}

    def __init_subclass__(cls, status: int) -> None:
        """Register the subclass for its status."""
        cls.status = status
        HoldfastError._classes[status] = cls

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        retryable: bool = False,
        detail: dict[str, Any] | None = None,
    ) -> None:
        """Store the fields of the error reply."""
        super().__init__(f"{code}{f' at {field}' if field is not None else ''}: {message}")
        self.code = code
        self.message = message
        self.field = field
        self.retryable = retryable
        self.detail = detail or {}

    @staticmethod
    def of(status: int, reply: dict[str, Any] | None) -> HoldfastError:
        """The exception for a status and its error reply; None if memory was exhausted."""
        kind = HoldfastError._classes.get(status, InternalError)
        if reply is None and status == NoMemoryError.status:
            return NoMemoryError("memory.exhausted", "out of memory", retryable=True)
        if reply is None:
            return kind("internal.defect", f"status {status} without a reply")
        error = reply["error"]
        return kind(
            error["code"],
            error["message"],
            field=error["field"],
            retryable=error["retryable"],
            detail=error["detail"],
        )


class InvalidError(HoldfastError, status=1):
    """The request is invalid; `field` says where."""


class StateError(HoldfastError, status=2):
    """Not allowed in the present state: locked, signed out, no organisation, item in flight."""


class NotFoundError(HoldfastError, status=3):
    """The item, contact, organisation or sign-in does not exist."""


class ConflictError(HoldfastError, status=4):
    """The id exists with other content, or a confirmation is wrong."""


class KeyStoreFailedError(HoldfastError, status=5):
    """The key store is unavailable; nothing was changed."""


class StorageError(HoldfastError, status=6):
    """A file could not be read or written; nothing was changed."""


class FullError(HoldfastError, status=7):
    """The disk is full, or the queue has reached its limit."""


class BusyError(HoldfastError, status=8):
    """Another process holds the files, or the call came from a callback."""


class ClosedError(HoldfastError, status=9):
    """The handle is closed or invalid."""


class ForkedError(HoldfastError, status=10):
    """The handle belongs to the parent process."""


class NoMemoryError(HoldfastError, status=11):
    """Out of memory."""


class InternalError(HoldfastError, status=12):
    """A defect of the library; please report `code`."""
