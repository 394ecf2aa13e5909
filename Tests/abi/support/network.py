"""The phone's network: real HTTP to the backend, with lost and altered answers on demand."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast import HttpTransport
from holdfast.transport import Answer
from holdfast.types import HttpRequest, TransportError

from . import secrecy


@dataclass
class Network:
    """Forwards requests, unless told otherwise, and records them.

    `ahead_ms` is the lead of the phone's manual clock over the real clock: server times
    in answers move by the same amount.
    """

    ahead_ms: Callable[[], int] = lambda: 0
    up: bool = True
    #: The transport error of every request while the network is down.
    failure: TransportError = "offline"
    sent: list[HttpRequest] = field(default_factory=list)
    #: Changes an answer that arrives: (request, answer) -> answer.
    alter: list[Callable[[HttpRequest, Answer], Answer]] = field(default_factory=list)
    #: Answers in place of the server, which does not see the request; None: go on.
    instead: list[Callable[[HttpRequest], Answer | None]] = field(default_factory=list)
    #: How many answers of a purpose to lose after the server has handled the request.
    lose: dict[str, int] = field(default_factory=dict)
    _http: HttpTransport = field(default_factory=HttpTransport)

    def __call__(self, request: HttpRequest) -> Answer:
        self.sent.append(request)
        secrecy.current.sent(request)
        if not self.up:
            return {"error": self.failure}
        for replace in self.instead:
            if (other := replace(request)) is not None:
                return other
        answer = self._moved(self._http(request))
        secrecy.current.answered(answer)
        if self.lose.get(request["purpose"], 0) > 0:
            self.lose[request["purpose"]] -= 1
            return {"error": "timeout"}
        for change in self.alter:
            answer = change(request, answer)
        return answer

    def replace(self, purpose: str, answer: Answer) -> None:
        """Give this answer to requests of the purpose in place of the server's."""
        self.alter.append(lambda request, real: answer if request["purpose"] == purpose else real)

    def rewrite(self, purpose: str, change: Callable[[Any], Any]) -> None:
        """Change the JSON of the server's answers to requests of the purpose."""

        def alter(request: HttpRequest, real: Answer) -> Answer:
            if request["purpose"] != purpose or "status" not in real or not real["body"]:
                return real
            return {**real, "body": json.dumps(change(json.loads(real["body"])))}

        self.alter.append(alter)

    def purposes(self) -> list[str]:
        """The purposes of the requests, in order."""
        return [request["purpose"] for request in self.sent]

    def count(self, purpose: str) -> int:
        """How many requests had this purpose."""
        return self.purposes().count(purpose)

    def forget(self) -> None:
        """Clear the record."""
        self.sent.clear()

    def _moved(self, answer: Answer) -> Answer:
        ahead_s = self.ahead_ms() / 1000
        if "status" not in answer or abs(ahead_s) < 1:
            return answer
        headers = dict(answer["headers"])
        for name in ("date", "retry-after"):
            if not headers.get(name, "0").isdigit():
                moment = email.utils.parsedate_to_datetime(headers[name]).timestamp() + ahead_s
                headers[name] = email.utils.formatdate(moment, usegmt=True)
        return {**answer, "headers": headers, "body": moved_session(answer["body"], ahead_s)}


def moved_session(body: str | None, ahead_s: float) -> str | None:
    """Move the expiry in a token reply; returns other bodies unchanged."""
    if body is None or '"expires_at"' not in body:
        return body
    value: Any = json.loads(body)
    if not isinstance(value, dict) or "access_token" not in value:
        return body
    value["expires_at"] = int(value["expires_at"] + ahead_s)
    return json.dumps(value)


def real_now_ms() -> int:
    """The time of the real clock, in Unix milliseconds."""
    return int(time.time() * 1000)
