"""Faults on demand: which requests they match, and what they do."""

from __future__ import annotations

import dataclasses
import datetime
import email.utils
import itertools
import json
from typing import Any

from .messages import Reply, Request

ACTIONS = {"drop_before", "drop_after", "delay", "respond", "hang", "truncate_rows"}
_MATCH = {"method", "path", "query"}
_FIELDS = {
    "match",
    "action",
    "times",
    "skip",
    "delay_before_ms",
    "delay_after_ms",
    "status",
    "headers",
    "body",
    "retry_after_s",
    "retry_after_date_s",
    "keep_rows",
    "reset",
}


@dataclasses.dataclass
class Fault:
    """One fault. Delays combine with any action; `hits` counts the affected requests."""

    id: int
    action: str
    method: str | None = None
    path: str = "/"
    query: str | None = None
    #: The number of requests to affect; -1: no limit.
    times: int = 1
    #: The number of matching requests to let through first.
    skip: int = 0
    delay_before_ms: float = 0
    delay_after_ms: float = 0
    status: int = 503
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    body: str = ""
    #: Retry-After of `respond`, as seconds or as a date that many seconds ahead.
    retry_after_s: int | None = None
    retry_after_date_s: int | None = None
    #: The number of rows that `truncate_rows` returns.
    keep_rows: int = 0
    #: Whether a drop is a TCP reset (true) or an orderly close without a response.
    reset: bool = True
    hits: int = 0

    def meets(self, request: Request) -> bool:
        """Whether the fault matches the request."""
        return (
            (self.method is None or self.method == request.method)
            and request.path.startswith(self.path)
            and (self.query is None or self.query in request.query)
        )

    def reply(self) -> Reply:
        """The response of `respond`."""
        headers = dict(self.headers)
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(self.retry_after_s)
        if self.retry_after_date_s is not None:
            ahead = datetime.timedelta(seconds=self.retry_after_date_s)
            moment = datetime.datetime.now(datetime.UTC) + ahead
            headers["Retry-After"] = email.utils.format_datetime(moment, usegmt=True)
        return Reply(self.status, self.body.encode(), headers)

    def truncate(self, reply: Reply) -> Reply:
        """The same response with fewer rows."""
        try:
            rows = json.loads(reply.body)
        except ValueError:
            return reply
        if not isinstance(rows, list):
            return reply
        return Reply(reply.status, json.dumps(rows[: self.keep_rows]).encode(), reply.headers)


class Faults:
    """The active faults, oldest first. The first that matches applies."""

    def __init__(self) -> None:
        self.rules: list[Fault] = []
        self._ids = itertools.count(1)

    def add(self, sent: dict[str, Any]) -> Fault:
        """Add a fault from its JSON form. Raises ValueError with the reason."""
        match = sent.get("match", {})
        unknown = sorted((set(sent) - _FIELDS) | (set(match) - _MATCH))
        if unknown:
            raise ValueError(f"unknown field: {', '.join(unknown)}")
        if sent.get("action") not in ACTIONS:
            raise ValueError(f"action must be one of {', '.join(sorted(ACTIONS))}")
        body = sent.get("body", "")
        values = {k: v for k, v in sent.items() if k not in {"match", "body"}}
        rule = Fault(
            id=next(self._ids),
            **values,
            **match,
            body=body if isinstance(body, str) else json.dumps(body),
        )
        self.rules.append(rule)
        return rule

    def strike(self, request: Request) -> Fault | None:
        """Return the fault for this request and count it, or None."""
        for rule in self.rules:
            if not rule.meets(request) or rule.times == 0:
                continue
            if rule.skip > 0:
                rule.skip -= 1
                continue
            rule.times -= rule.times > 0
            rule.hits += 1
            return rule
        return None

    def remove(self, rule_id: int | None) -> None:
        """Remove one fault, or all."""
        self.rules = [] if rule_id is None else [r for r in self.rules if r.id != rule_id]
