"""Errors of the auth service in GoTrue's three formats.

Source: supabase/auth, internal/api/errors.go and apierrors; recordings of the real server in
Tests/backend/conformance/gotrue.
"""

from __future__ import annotations

import datetime
import json
import uuid

from .messages import Reply, Request

#: Since this API version `code` is a string. Older requests get a number and `error_code`.
FIRST_VERSION = datetime.date(2024, 1, 1)


class AuthError(Exception):
    """Ends the request with this status and code."""

    def __init__(self, status: int, code: str, message: str, **extra: object) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.extra = extra


class OAuthError(Exception):
    """Ends the request with 400 and an OAuth body, which is the same in all API versions."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error
        self.description = description


def reply(request: Request, error: AuthError | OAuthError) -> Reply:
    """Format the error for the request's X-Supabase-Api-Version."""
    headers = {"Content-Type": "application/json"}
    new = _wants_new(request.header("x-supabase-api-version"))
    if new:
        headers["X-Supabase-Api-Version"] = FIRST_VERSION.isoformat()
    if isinstance(error, OAuthError):
        fields: dict[str, object] = {
            "error": error.error,
            "error_description": error.description,
        }
        return Reply(400, json.dumps(fields).encode(), headers)
    headers["x-sb-error-code"] = error.code
    if new:
        fields = {"code": error.code, "message": error.message, **error.extra}
    else:
        fields = {
            "code": error.status,
            "error_code": error.code,
            "msg": error.message,
            **error.extra,
        }
        if error.status >= 500:
            fields["error_id"] = str(uuid.uuid4())
    return Reply(error.status, json.dumps(fields).encode(), headers)


def _wants_new(version: str | None) -> bool:
    try:
        return version is not None and datetime.date.fromisoformat(version) >= FIRST_VERSION
    except ValueError:
        return False
