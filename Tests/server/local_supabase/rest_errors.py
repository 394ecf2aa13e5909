"""Errors of the data service: PostgREST's own codes and the HTTP status of every SQLSTATE.

Source: https://docs.postgrest.org/en/stable/references/errors.html and the recorded exchanges in
Tests/backend/conformance/postgrest.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg


class RestError(Exception):
    """Ends the request with this status and body."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: str | None = None,
        hint: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.hint = hint
        self.headers = headers or {}

    def body(self) -> bytes:
        """The JSON that PostgREST sends: always the same four keys."""
        fields = {
            "code": self.code,
            "details": self.details,
            "hint": self.hint,
            "message": self.message,
        }
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()

    def all_headers(self) -> dict[str, str]:
        """Headers of the answer, with the code repeated as PostgREST 13 and later do."""
        return {
            "Content-Type": "application/json; charset=utf-8",
            "Proxy-Status": f"PostgREST; error={self.code}",
            **self.headers,
        }


_BY_STATE = {
    "23503": 409,
    "23505": 409,
    "25006": 405,
    "42883": 404,
    "42P01": 404,
    "42P17": 500,
    "53400": 500,
    "57P01": 503,
    "P0001": 400,
    "21000": 500,
}
_BY_CLASS = {
    "08": 503,
    "09": 500,
    "0L": 403,
    "0P": 403,
    "25": 500,
    "28": 403,
    "2D": 500,
    "38": 500,
    "39": 500,
    "3B": 500,
    "40": 500,
    "53": 503,
    "54": 500,
    "55": 500,
    "57": 500,
    "58": 500,
    "F0": 500,
    "HV": 500,
    "P0": 500,
    "XX": 500,
}


def status_of(sqlstate: str, authenticated: bool) -> int:
    """HTTP status of an SQLSTATE. 42501 is 401 without a token and 403 with one."""
    if sqlstate == "42501":
        return 403 if authenticated else 401
    if sqlstate.startswith("PT") and sqlstate[2:].isdigit():
        return int(sqlstate[2:])
    return _BY_STATE.get(sqlstate) or _BY_CLASS.get(sqlstate[:2], 400)


def from_database(error: psycopg.Error, authenticated: bool) -> RestError:
    """PostgREST's error for an error of PostgreSQL."""
    state = error.sqlstate
    if state is None:
        # A dead idle connection. All measured versions respond 400 with empty fields.
        return RestError(400, "", "")
    message = error.diag.message_primary or ""
    details, hint = error.diag.message_detail, error.diag.message_hint
    if state == "PGRST":
        return _raised_by_sql(message, details)
    status = status_of(state, authenticated)
    headers = {}
    if state == "22023" and message.startswith("role ") and message.endswith(" does not exist"):
        status = 401
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        headers["Retry-After"] = "0"
    return RestError(status, state, message, details, hint, headers)


def _raised_by_sql(message: str, detail: str | None) -> RestError:
    """The error of `raise sqlstate 'PGRST'`: the function sets body, status and headers."""
    try:
        body: dict[str, Any] = json.loads(message)
        extra: dict[str, Any] = json.loads(detail or "")
        return RestError(
            int(extra["status"]),
            body["code"],
            body["message"],
            body.get("details"),
            body.get("hint"),
            {str(k): str(v) for k, v in extra.get("headers", {}).items()},
        )
    except (ValueError, KeyError, TypeError):
        return RestError(
            500, "PGRST121", "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error"
        )
