"""The control endpoint /_control/: faults, settings, users and the request log. No password."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
from psycopg.rows import dict_row

from . import auth_flows, demo
from .accounts import User
from .auth_mirror import MirroredAuth
from .database import Connection
from .messages import Reply, Request
from .server_state import State

Sent = dict[str, Any]


class Refused(Exception):
    """A bad request to the control endpoint; the response is 400 with this text."""


async def handle(request: Request, path: str, state: State) -> Reply:
    """Answer one request; `path` is what follows /_control."""
    handler = _ROUTES.get(f"{request.method} {path}")
    if handler is None:
        return _json(404, {"error": f"no {request.method} /_control{path}"})
    try:
        sent = json.loads(request.body) if request.body else {}
        return _json(200, await handler(state, {**request.parameters(), **sent}))
    except (Refused, ValueError, KeyError, TypeError, psycopg.Error) as error:
        return _json(400, {"error": f"{type(error).__name__}: {error}"})


def _json(status: int, value: Any) -> Reply:
    body = json.dumps(value, default=str).encode()
    return Reply(status, body, {"Content-Type": "application/json"})


# Settings, faults, log ----------------------------------------------------------------------------


async def _health(_: State, __: Sent) -> Any:
    return {"ok": True}


async def _get_config(state: State, _: Sent) -> Any:
    return state.config.public()


async def _set_config(state: State, sent: Sent) -> Any:
    state.config.change(sent)
    return state.config.public()


async def _add_fault(state: State, sent: Sent) -> Any:
    return dataclasses.asdict(state.faults.add(sent))


async def _faults(state: State, _: Sent) -> Any:
    return [dataclasses.asdict(rule) for rule in state.faults.rules]


async def _remove_faults(state: State, sent: Sent) -> Any:
    state.faults.remove(int(sent["id"]) if "id" in sent else None)
    return {}


async def _requests(state: State, sent: Sent) -> Any:
    return state.log.list(path=sent.get("path", "/"), method=sent.get("method"))


async def _counts(state: State, _: Sent) -> Any:
    return dict(state.log.counts)


async def _clear_requests(state: State, _: Sent) -> Any:
    state.log.clear()
    return {}


async def _reset(state: State, sent: Sent) -> Any:
    """Begin a test: these settings, no faults, no refusals and an empty log."""
    state.config.change(sent)
    state.faults.remove(None)
    state.people.auth.refusals.clear()
    state.log.clear()
    return {}


# The database -------------------------------------------------------------------------------------


async def _reload_schema(state: State, _: Sent) -> Any:
    await state.database.reload()
    return {}


async def _sql(state: State, sent: Sent) -> Any:
    """Run any statement as the superuser, for at most `within_ms`. Returns the rows as dictionaries."""
    limit = "select set_config('statement_timeout', %s, false)"
    async with state.database.admin.connection() as connection:
        await connection.execute(limit, [f"{int(sent.get('within_ms', 0))}ms"])
        try:
            return await _rows(connection, sent["query"], *sent.get("parameters", []))
        finally:
            await connection.execute(limit, ["0"])


async def _stop_database(state: State, _: Sent) -> Any:
    state.database.mark_stopped()
    state.postgres.interrupt()
    return {}


async def _start_database(state: State, _: Sent) -> Any:
    state.postgres.resume()
    await state.database.mark_started()
    return {}


async def _seed_demo(state: State, _: Sent) -> Any:
    await seed_demo(state.people)
    return {}


async def seed_demo(people: MirroredAuth) -> None:
    """Store the demo of demo.py."""
    for email, user_id in demo.USERS.items():
        people.auth.create(email, demo.PASSWORD, user_id=user_id)
    await people.store()
    async with people.database.admin.connection() as connection, connection.transaction():
        await _seed_rows(connection)


async def _seed_rows(connection: Connection) -> None:
    for org, name in demo.ORGANIZATIONS.items():
        await connection.execute(
            "insert into organizations (id, name) values (%s, %s)", (org, name)
        )
    for email, user_id in demo.USERS.items():
        await connection.execute(
            "insert into profiles (id, full_name) values (%s, %s)",
            (user_id, email.split("@")[0].capitalize() + " Prøve"),
        )
    for email, org, role in demo.MEMBERSHIPS:
        await connection.execute(
            "insert into memberships (user_id, org_id, role) values (%s, %s, %s)",
            (demo.USERS[email], org, role),
        )
    for org in demo.ORGANIZATIONS:
        await seed_contacts(connection, org, demo.CONTACTS_PER_ORGANIZATION, 0)


async def seed_contacts(connection: Connection, org: str, count: int, first: int) -> None:
    """Store `count` made-up contacts with their details, numbered from `first`."""
    numbers = range(first, first + count)
    await connection.execute(
        """insert into contacts (id, org_id, name, municipality, relation)
           select id, org_id, name, municipality, relation
           from jsonb_to_recordset(%s::jsonb) as r(id uuid, org_id uuid, name text, municipality text,
             relation text)
           on conflict (id) do nothing""",
        (json.dumps([demo.contact(org, n) for n in numbers]),),
    )
    await connection.execute(
        """insert into contact_details (id, contact_id, org_id, phone, address, national_id)
           select id, contact_id, org_id, phone, address, national_id
           from jsonb_to_recordset(%s::jsonb) as r(id uuid, contact_id uuid, org_id uuid, phone text,
             address text, national_id text)
           on conflict (id) do nothing""",
        (json.dumps([demo.contact_details(org, n) for n in numbers]),),
    )


async def _seed_contacts(state: State, sent: Sent) -> Any:
    async with state.database.admin.connection() as connection, connection.transaction():
        await seed_contacts(connection, sent["org"], int(sent["count"]), int(sent.get("first", 0)))
    return {}


async def _rows(connection: Connection, text: str, *values: Any) -> list[Sent]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(text, values or None)
        return await cursor.fetchall() if cursor.description else []


async def _one(state: State, text: str, *values: Any) -> Sent:
    async with state.database.admin.connection() as connection:
        found = await _rows(connection, text, *values)
    if not found:
        raise Refused("nothing of that name")
    return found[0]


# People and organisations -------------------------------------------------------------------------


def _user(state: State, sent: Sent) -> User:
    """`user` is an e-mail address or an id."""
    found = state.people.auth.find(sent["user"])
    if found is None:
        raise Refused("nothing of that name")
    return found


async def _add_user(state: State, sent: Sent) -> Any:
    if state.people.auth.by_email(sent["email"]) is not None:
        raise Refused("there is such a user")
    password = sent.get("password", demo.PASSWORD)
    user = state.people.auth.create(sent["email"], password, user_id=sent.get("id"))
    await state.people.store()
    return {"id": user["id"], "email": user["email"]}


async def _remove_user(state: State, sent: Sent) -> Any:
    await state.people.remove(_user(state, sent)["id"])
    return {}


async def _ban(state: State, sent: Sent) -> Any:
    """For `seconds`, by default a year; 0 lifts the ban."""
    state.people.auth.ban(_user(state, sent), float(sent.get("seconds", 365 * 86400)))
    return {}


async def _add_org(state: State, sent: Sent) -> Any:
    return await _one(
        state,
        "insert into organizations (id, name) values (coalesce(%s, gen_random_uuid()), %s) returning *",
        sent.get("id"),
        sent["name"],
    )


async def _set_org(state: State, sent: Sent) -> Any:
    return await _one(
        state,
        "update organizations set status = %s where id = %s returning *",
        sent["status"],
        sent["org"],
    )


async def _set_membership(state: State, sent: Sent) -> Any:
    """Create the membership, or change its role or status if named."""
    return await _one(
        state,
        """insert into memberships as m (user_id, org_id, role, status)
           values (%s, %s, coalesce(%s, 'peer_mentor'), coalesce(%s, 'active'))
           on conflict (user_id, org_id) do update set
             role = coalesce(%s, m.role), status = coalesce(%s, m.status)
           returning *""",
        _user(state, sent)["id"],
        sent["org"],
        sent.get("role"),
        sent.get("status"),
        sent.get("role"),
        sent.get("status"),
    )


# Sessions and the provider ------------------------------------------------------------------------


async def _sessions(state: State, sent: Sent) -> Any:
    sessions = state.people.auth.sessions.of(_user(state, sent)["id"])
    return [session.public() for session in sessions]


async def _refresh_tokens(state: State, _: Sent) -> Any:
    """The refresh tokens of all sessions, also used ones."""
    sessions = state.people.auth.sessions.all.values()
    return [token.text for session in sessions for token in session.tokens]


async def _expire_sessions(state: State, sent: Sent) -> Any:
    """Let the next refresh fail with session_expired."""
    state.people.auth.expire(_user(state, sent))
    return {}


async def _revoke_sessions(state: State, sent: Sent) -> Any:
    """Delete the sessions, as a logout on another device does."""
    state.people.auth.sessions.end(_user(state, sent)["id"])
    return {}


async def _refuse_sign_in(state: State, sent: Sent) -> Any:
    """The next `times` calls of /authorize redirect with this error."""
    times = int(sent.pop("times", 1))
    state.people.auth.refuse(times, {name: str(value) for name, value in sent.items()})
    return {}


async def _identity_token(state: State, sent: Sent) -> Any:
    token = auth_flows.identity_token(
        state.config,
        sent["user"],
        nonce=sent.get("nonce"),
        audience=sent.get("audience", auth_flows.AUDIENCE),
        lifetime=sent.get("lifetime"),
    )
    return {"id_token": token}


_ROUTES: dict[str, Callable[[State, Sent], Awaitable[Any]]] = {
    "GET /health": _health,
    "GET /config": _get_config,
    "PATCH /config": _set_config,
    "POST /faults": _add_fault,
    "GET /faults": _faults,
    "DELETE /faults": _remove_faults,
    "GET /requests": _requests,
    "DELETE /requests": _clear_requests,
    "GET /counts": _counts,
    "POST /reset": _reset,
    "POST /schema/reload": _reload_schema,
    "POST /sql": _sql,
    "POST /database/stop": _stop_database,
    "POST /database/start": _start_database,
    "POST /demo": _seed_demo,
    "POST /contacts": _seed_contacts,
    "POST /users": _add_user,
    "DELETE /users": _remove_user,
    "POST /users/ban": _ban,
    "POST /organizations": _add_org,
    "PATCH /organizations": _set_org,
    "PUT /memberships": _set_membership,
    "GET /sessions": _sessions,
    "GET /sessions/tokens": _refresh_tokens,
    "POST /sessions/expire": _expire_sessions,
    "DELETE /sessions": _revoke_sessions,
    "POST /provider/refuse": _refuse_sign_in,
    "POST /provider/identity-token": _identity_token,
}
