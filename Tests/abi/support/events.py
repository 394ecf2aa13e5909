"""Notices: handles that raise them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.transport import Answer
from holdfast.transport import answered as answered_by

from .phone import App
from .queue import BAD_MINUTES, add
from .refusals import coded
from .users import SignedIn


@contextmanager
def second_handle(user: SignedIn) -> Iterator[App]:
    """Another open handle on the same folder, resumed; the first stays open."""
    user.phone.app = None
    other = user.phone.start()
    try:
        yield other
    finally:
        other.close()
        user.phone.app = user.app


def rejected(request: Any) -> Answer:  # noqa: ANN401
    """The server's answer to an upload of which it refuses every row."""
    body = json.loads(str(request["body"]))
    if isinstance(body, list):
        return coded(400, "23514", 'violates check constraint "activities_minutes_check"')
    rows = next(iter(body.values()))
    results = [{"id": row["id"], "status": "rejected", "sqlstate": "23514"} for row in rows]
    return {"status": 200, "headers": {}, "body": json.dumps(results)}


def answered(app: App, request: Any) -> None:  # noqa: ANN401
    """Complete a request: an upload is rejected, all else reaches the server."""
    upload = request["purpose"] == "upload"
    answer = rejected(request) if upload else app.phone.network(request)
    app.complete(answered_by(request, answer))


def park(app: App, count: int) -> list[str]:
    """Park `count` items; returns their ids.

    Many items are parked in few requests if they go through the function, which answers for each
    row (`RPC`).
    """
    for _ in range(count):
        add(app, minutes=BAD_MINUTES)
    while app.queue_list({"limit": 1})["counts"]["parked"] < count:
        for request in app.poll()["requests"]:
            answered(app, request)
    return [item["id"] for item in parked_items(app)]


def parked_items(app: App) -> list[Any]:
    """All parked items."""
    items: list[Any] = []
    after: Any = 0
    while after is not None:
        page = app.queue_list({"state": "parked", "after": after, "limit": 200})
        items += page["items"]
        after = page["next"]
    return items
