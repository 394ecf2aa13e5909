"""Helpers of the sign-in tests: follow the browser, complete, refuse."""

from __future__ import annotations

import http.client
import urllib.parse
from typing import Any

import pytest
from holdfast import HoldfastError

from .phone import App
from .screens import seen


def browse(url: str) -> str:
    """Follow the browser's redirects; returns the app's callback URL."""
    address = urllib.parse.urlsplit(url)
    link = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    try:
        link.request("GET", f"{address.path}?{address.query}")
        answer = link.getresponse()
        answer.read()
        location = answer.getheader("Location")
    finally:
        link.close()
    assert answer.status in {302, 303}, answer.status
    assert location is not None
    return location


def begin(app: App, method: str = "bankid") -> dict[str, Any]:
    return dict(app.sign_in_begin({"method": method}))


def finish(app: App, callback: str) -> None:
    """Complete the sign-in and settle."""
    screen = app.sign_in_complete({"callback_url": callback})
    assert seen(screen) == ("wait", "signing_in")
    assert screen["deadline_ms"] is not None
    app.settle()


def refused(app: App, callback: str) -> str:
    """The error code of a refused callback."""
    with pytest.raises(HoldfastError) as caught:
        app.sign_in_complete({"callback_url": callback})
    assert (caught.value.status, caught.value.field) == (1, "/callback_url")
    return caught.value.code


def settle_sign_in(app: App) -> None:
    """Settle until the sign-in has ended, at most the minute for which it is tried."""
    start = app.phone.monotonic_ms
    while app.screen["screen"] == "wait":
        app.settle_until("screen", within_s=61)
    assert app.phone.monotonic_ms - start <= 61_000
