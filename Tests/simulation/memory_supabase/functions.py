"""The functions of examples/backend/schema.sql."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

from local_supabase import payload, query
from local_supabase.messages import Reply, Request
from local_supabase.rest_errors import RestError

from .changes import change_activities
from .database import Database
from .schema import TABLES, Row
from .values import SqlError, convert, show, write

JSON = {"Content-Type": "application/json; charset=utf-8"}
KNOWN = [
    "id", "org_id", "user_id", "type", "occurred_at", "minutes", "contact_id", "follows", "note",
]  # fmt: skip
#: The most items of one call.
ITEMS = 500
#: The time zone of the organisations' calendar year.
NORWAY = zoneinfo.ZoneInfo("Europe/Oslo")


def call(database: Database, request: Request, name: str, caller: str) -> Reply:
    """Run one as the caller."""
    if request.method == "GET":
        given: Any = dict(query.pairs(request.query))
    else:
        given = payload.parse_json(request.body or b"{}", str)
    if name == "submit_activities" and set(given) == {"items"}:
        with database.transaction():
            answer: Any = submit_activities(database, given["items"], caller)
    elif name == "change_activities" and set(given) == {"items"}:
        with database.transaction():
            answer = change_activities(database, given["items"], caller)
    elif name == "activity_summary" and "org" in given:
        answer = activity_summary(database, caller, given["org"], given.get("since"))
    else:
        message = f"Could not find the function public.{name} in the schema cache"
        raise RestError(404, "PGRST202", message)
    return Reply(200, write(answer), dict(JSON))


def submit_activities(database: Database, items: object, caller: str) -> list[dict[str, Any]]:
    """Insert every item in a sub-transaction of its own; return a result for each."""
    if not isinstance(items, list):
        raise SqlError("22023", "items must be a JSON array")
    if len(items) > ITEMS:
        raise SqlError("22023", f"items has more than {ITEMS} items")
    return [_submit(database, item, caller) for item in items]


def _submit(database: Database, item: object, caller: str) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "id": None, "status": "rejected", "updated_at": None, "sqlstate": None, "message": None,
        "column": None,
    }  # fmt: skip
    try:
        with database.transaction():
            answer["status"] = _store(database, item, caller, answer)
    except SqlError as error:
        answer |= {"sqlstate": error.state, "message": error.message, "column": error.column}
    return answer


def _store(database: Database, item: object, caller: str, answer: dict[str, Any]) -> str:
    table = TABLES["activities"]
    if not isinstance(item, dict):
        raise SqlError("22023", "item is not a JSON object")
    values = {"id": _converted("uuid", item, "id")}
    answer["id"] = values["id"]
    if values["id"] is None:
        raise SqlError("23502", "id is missing", "id")
    stranger = next((name for name in sorted(item) if name not in KNOWN), None)
    if stranger is not None:
        message = f'column "{stranger}" of relation "activities" does not exist'
        raise SqlError("42703", message, stranger)
    for name in KNOWN[1:]:
        column = table.column(name)
        assert column is not None
        values[name] = _converted(column.kind, item, name)
    values["user_id"] = values["user_id"] or caller
    row, is_new = database.insert(table, values, caller, "ignore-duplicates")
    if is_new and row is not None:
        database.check_references(table, row)
        answer["updated_at"] = show(row["updated_at"])
        return "stored"
    existing = database.rows["activities"].get(values["id"])
    mine = (
        existing is not None
        and existing["user_id"] == caller
        and table.select(database, caller, existing)
    )
    return "duplicate" if mine else "conflict"


def _converted(kind: str, item: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - any type
    try:
        return convert(kind, item.get(name))
    except SqlError as error:
        raise SqlError(error.state, error.message, name) from error


def activity_summary(
    database: Database, caller: str, org: str, since: str | None
) -> dict[str, Any]:
    """Sum up the caller's own activities, by default of this calendar year in Norway."""
    if since is None:
        here = database.now().astimezone(NORWAY)
        start = datetime.datetime(here.year, 1, 1, tzinfo=NORWAY)
    else:
        moment = convert("timestamp", since)
        assert isinstance(moment, datetime.datetime)
        start = moment
    own = [row for row in _own(database, caller, org) if row["occurred_at"] >= start]  # type: ignore[operator]
    by_type: dict[str, list[int]] = {}
    for row in own:
        by_type.setdefault(str(row["type"]), []).append(int(str(row["minutes"])))
    return {
        "org_id": org,
        "since": show(start.astimezone(datetime.UTC)),
        "activities": len(own),
        "minutes": sum(sum(minutes) for minutes in by_type.values()),
        "by_type": [
            {"type": kind, "activities": len(by_type[kind]), "minutes": sum(by_type[kind])}
            for kind in sorted(by_type)
        ],
        "as_of": show(database.now()),
    }


def _own(database: Database, caller: str, org: str) -> list[Row]:
    visible = database.visible(TABLES["activities"], caller)
    return [
        row
        for row in visible
        if row["org_id"] == org and row["user_id"] == caller and row["deleted_at"] is None
    ]
