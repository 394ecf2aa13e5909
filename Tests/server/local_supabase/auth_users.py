"""Users of the auth service and their JSON form."""

from __future__ import annotations

import datetime
import json
import uuid
from typing import Any

from psycopg.rows import dict_row

from . import passwords
from .database import Connection

Row = dict[str, Any]


def timestamp(value: datetime.datetime) -> str:
    """Format as Go does: RFC 3339 in UTC, without trailing zeros of the fraction."""
    text = value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return text + "Z"


async def fetch(connection: Connection, text: str, *values: Any) -> Row | None:
    """Return the first row of a query as a dictionary."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(text, values)
        return await cursor.fetchone() if cursor.description else None


async def by_email(connection: Connection, email: str) -> Row | None:
    """Find a user by e-mail address, ignoring case."""
    return await fetch(connection, "select * from auth.users where email = lower(%s)", email)


async def by_id(connection: Connection, user_id: uuid.UUID) -> Row | None:
    """Find a user by id."""
    return await fetch(connection, "select * from auth.users where id = %s", user_id)


async def create(
    connection: Connection,
    email: str,
    password: str | None,
    metadata: Row | None = None,
    provider: str = "email",
    user_id: str | None = None,
) -> Row:
    """Create a confirmed user with one identity."""
    made = uuid.UUID(user_id) if user_id else uuid.uuid4()
    user = await fetch(
        connection,
        """insert into auth.users (id, email, encrypted_password, raw_app_meta_data, raw_user_meta_data)
           values (%s, lower(%s), %s, %s, %s) returning *""",
        made,
        email,
        passwords.digest(password) if password is not None else None,
        json.dumps({"provider": provider, "providers": [provider]}),
        json.dumps(metadata or {}),
    )
    assert user is not None
    await connection.execute(
        """insert into auth.identities (user_id, provider, provider_id, identity_data)
           values (%s, %s, %s, %s)""",
        (made, provider, str(made), json.dumps({"sub": str(made), "email": user["email"]})),
    )
    return user


def is_banned(user: Row) -> bool:
    """Whether the user is banned now."""
    until = user["banned_until"]
    return until is not None and until > datetime.datetime.now(datetime.UTC)


async def represent(connection: Connection, user: Row) -> Row:
    """GoTrue's user object, without members that are null."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            "select * from auth.identities where user_id = %s order by created_at", (user["id"],)
        )
        identities = [_identity(row) for row in await cursor.fetchall()]
    shown: Row = {
        "id": str(user["id"]),
        "aud": user["aud"],
        "role": user["role"],
        "email": user["email"] or "",
        "phone": user["phone"] or "",
        "app_metadata": user["raw_app_meta_data"],
        "user_metadata": user["raw_user_meta_data"],
        "identities": identities,
        "is_anonymous": user["is_anonymous"],
        "created_at": timestamp(user["created_at"]),
        "updated_at": timestamp(user["updated_at"]),
    }
    for name in ("email_confirmed_at", "last_sign_in_at", "banned_until", "deleted_at"):
        if user[name] is not None:
            shown[name] = timestamp(user[name])
    if user["email_confirmed_at"] is not None:
        shown["confirmed_at"] = shown["email_confirmed_at"]
    return shown


def _identity(row: Row) -> Row:
    shown = {
        "identity_id": str(row["id"]),
        "id": row["provider_id"],
        "user_id": str(row["user_id"]),
        "identity_data": row["identity_data"],
        "provider": row["provider"],
        "created_at": timestamp(row["created_at"]),
        "updated_at": timestamp(row["updated_at"]),
        "email": row["identity_data"].get("email", ""),
    }
    if row["last_sign_in_at"] is not None:
        shown["last_sign_in_at"] = timestamp(row["last_sign_in_at"])
    return shown
