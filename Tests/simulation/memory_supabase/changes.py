"""change_activities of examples/backend/schema.sql: many changes and deletions in one call."""

from __future__ import annotations

from typing import Any

from .database import Database
from .schema import TABLES, Row
from .values import SqlError, Value, convert, show

#: The most items of one call.
ITEMS = 500
#: Of these classes an error is not the item's: the whole call fails.
PASSING = ("40", "53", "55", "57")
Answer = dict[str, Any]


def change_activities(database: Database, items: object, caller: str) -> list[Answer]:
    """Change or delete every row in a sub-transaction of its own; return a result for each."""
    if not isinstance(items, list):
        raise SqlError("22023", "items must be a JSON array")
    if len(items) > ITEMS:
        raise SqlError("22023", f"items has more than {ITEMS} items")
    return [_change(database, item, caller) for item in sorted(items, key=lambda i: str(i["id"]))]


def _change(database: Database, item: Answer, caller: str) -> Answer:
    answer: Answer = {
        "id": item["id"], "status": "rejected", "updated_at": None, "row": None, "sqlstate": None,
        "message": None, "column": None,
    }  # fmt: skip
    try:
        with database.transaction():
            answer |= _settle(database, item, caller)
    except SqlError as error:
        if error.state[:2] in PASSING:
            raise
        status = "not_allowed" if error.state == "42501" else "rejected"
        answer |= {
            "status": status, "sqlstate": error.state, "message": error.message,
            "column": error.column,
        }  # fmt: skip
    return answer


def _settle(database: Database, item: Answer, caller: str) -> Answer:
    table = TABLES["activities"]
    row = database.rows["activities"].get(convert("uuid", item["id"]))
    if row is None or not table.select(database, caller, row):
        return {"status": "gone"}
    if not table.update(database, caller, row):
        return {"status": "not_allowed"}
    if row["updated_at"] != convert("timestamp", item["updated_at"]):
        return {"status": "changed", "updated_at": show(row["updated_at"]), "row": _shown(row)}
    changed = database.update(table, row, _wanted(database, item), caller)
    database.check_references(table, changed)
    return {"status": "stored", "updated_at": show(changed["updated_at"])}


def _wanted(database: Database, item: Answer) -> dict[str, Value]:
    table = TABLES["activities"]
    sent = {"deleted_at": "now"} if item["operation"] == "delete" else dict(item["columns"])
    if "change_id" in item:
        sent["change_id"] = item["change_id"]
    for name in sent:
        if name not in table.updatable:
            raise SqlError("42703", f'column "{name}" cannot be changed', name)
    return database.converted(table, list(sent), sent, True)


def _shown(row: Row) -> Answer:
    keys = ("id", "org_id", "user_id", "created_at", "updated_at")
    return {name: show(value) for name, value in row.items() if name not in keys}
