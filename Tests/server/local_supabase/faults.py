"""Faults on demand: which requests they meet, and what then goes wrong."""

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
    """One rule. Delays apply beside any action; `hits` counts how often it has struck."""

    id: int
    action: str
    method: str | None = None
    path: str = "/"
    query: str | None = None
    #: How often it strikes; -1 for ever.
    times: int = 1
    #: How many matching requests pass unharmed first.
    skip: int = 0
    delay_before_ms: float = 0
    delay_after_ms: float = 0
    status: int = 503
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    body: str = ""
    #: Retry-After of `respond`, as seconds or as a date that many seconds ahead.
    retry_after_s: int | None = None
    retry_after_date_s: int | None = None
    #: Rows that `truncate_rows` leaves in the answer.
    keep_rows: int = 0
    #: Whether a drop is a TCP reset (true) or an orderly close without an answer.
    reset: bool = True
    hits: int = 0

    def meets(self, request: Request) -> bool:
        """Whether the rule's match fits the request."""
        return (
            (self.method is None or self.method == request.method)
            and request.path.startswith(self.path)
            and (self.query is None or self.query in request.query)
        )

    def reply(self) -> Reply:
        """The answer of `respond`."""
        headers = dict(self.headers)
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(self.retry_after_s)
        if self.retry_after_date_s is not None:
            ahead = datetime.timedelta(seconds=self.retry_after_date_s)
            moment = datetime.datetime.now(datetime.UTC) + ahead
            headers["Retry-After"] = email.utils.format_datetime(moment, usegmt=True)
        return Reply(self.status, self.body.encode(), headers)

    def truncate(self, reply: Reply) -> Reply:
        """The same answer with fewer rows than it had."""
        try:
            rows = json.loads(reply.body)
        except ValueError:
            return reply
        if not isinstance(rows, list):
            return reply
        return Reply(reply.status, json.dumps(rows[: self.keep_rows]).encode(), reply.headers)


class Faults:
    """The rules in force, oldest first. The first that fits strikes."""

    def __init__(self) -> None:
        self.rules: list[Fault] = []
        self._ids = itertools.count(1)

    def add(self, sent: dict[str, Any]) -> Fault:
        """A rule from its JSON form; raises ValueError naming what is wrong."""
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
        """The rule that strikes this request, counted down; None when it is let through."""
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
        """Remove one rule, or all."""
        self.rules = [] if rule_id is None else [r for r in self.rules if r.id != rule_id]
