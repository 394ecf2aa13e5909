"""Uploads that something refuses or breaks, and phones that live through days of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from holdfast.transport import Answer
from holdfast.types import HttpRequest

from .queue import user_of
from .users import MakeUser, SignedIn

HOUR_S = 3600


#: What the firewall does not like.
WORDS = "<script>"


#: What firewalls and portals answer.
REFUSALS: dict[str, Answer] = {
    "html": {
        "status": 403,
        "headers": {"content-type": "text/html"},
        "body": "<html>403 Forbidden</html>",
    },
    "json": {
        "status": 403,
        "headers": {"content-type": "application/json"},
        "body": '{"code":"access_denied","message":"blocked by policy"}',
    },
    "nothing": {"status": 406, "headers": {}, "body": ""},
    # As if the token were refused
    "unauthorized": {"status": 401, "headers": {}, "body": '{"code":"PGRST301","message":"no"}'},
}


class Firewall:
    """Answers requests that it does not let through."""

    def __init__(self, user: SignedIn, form: str, refuses: Callable[[HttpRequest], bool]) -> None:
        self.user = user
        self.refuses = refuses
        self.answer = REFUSALS[form]
        self.refused: list[HttpRequest] = []
        user.phone.network.instead.append(self)

    def __call__(self, request: HttpRequest) -> Answer | None:
        if not self.refuses(request):
            return None
        self.refused.append(request)
        return self.answer

    def end(self) -> None:
        """Let everything through."""
        self.user.phone.network.instead.remove(self)


def has_words(request: HttpRequest) -> bool:
    """Whether the body has what a firewall looks for."""
    return WORDS in (request["body"] or "")


def is_store(request: HttpRequest) -> bool:
    """Whether the request stores items."""
    return request["purpose"] == "upload" and request["method"] == "POST"


def is_alone(request: HttpRequest, item: str) -> bool:
    """Whether the request stores this item only."""
    body = request["body"] or ""
    return item in body and body.count('"type"') == 1


def live(user: SignedIn, seconds: float, until: Callable[[], bool] = lambda: False) -> float:
    """Follow `wake_in_ms` for this time, or until something is true; returns the time it took."""
    phone = user.phone
    start = phone.now_ms
    end = start + round(seconds * 1000)
    while True:
        step = user.app.step()
        if not step.idle:
            continue
        if until() or phone.now_ms >= end:
            return (phone.now_ms - start) / 1000
        left = end - phone.now_ms
        wake = left if step.wake_in_ms is None else min(step.wake_in_ms, left)
        phone.pass_time(max(wake, 1) / 1000)


def patient(sign_in: MakeUser, upload: str = "table", **options: Any) -> SignedIn:  # noqa: ANN401
    """A user whose app is in the foreground for days, and rarely pulls."""
    policy = {"pull_interval_s": 6 * HOUR_S}
    return user_of(sign_in, upload, policy=policy, **options)


HTML = "<html>Please log in</html>"


def coded(status: int, code: str, message: str = "no") -> Answer:
    """An error of the data service."""
    body = json.dumps({"code": code, "message": message})
    return {"status": status, "headers": {"content-type": "application/json"}, "body": body}


def page(status: int) -> Answer:
    """What a proxy or a portal answers."""
    return {"status": status, "headers": {"content-type": "text/html"}, "body": HTML}


def items_in(request: HttpRequest) -> int:
    """How many items the upload has."""
    return (request["body"] or "").count('"type"')


class Fault:
    """Gives some uploads this answer."""

    def __init__(
        self, user: SignedIn, answer: Answer, meets: Callable[[HttpRequest], bool]
    ) -> None:
        self.user = user
        self.answer = answer
        self.meets = meets
        self.met: list[HttpRequest] = []
        user.phone.network.instead.append(self)

    def __call__(self, request: HttpRequest) -> Answer | None:
        if not (is_store(request) and self.meets(request)):
            return None
        self.met.append(request)
        return self.answer

    def end(self) -> None:
        """Let everything through."""
        self.user.phone.network.instead.remove(self)


def holding(*items: str) -> Callable[[HttpRequest], bool]:
    """Whether an upload has one of these items."""
    return lambda request: any(item in (request["body"] or "") for item in items)
