"""Bring your own HTTP: the whole loop of a host, here with httpx.

Signs in, registers a visit, and exits when the server has stored it.
Usage: host.py URL KEY FOLDER E-MAIL PASSWORD
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import httpx
from holdfast import Holdfast, HoldfastError

if TYPE_CHECKING:
    from holdfast.types import CompleteRequest, Config, Event, HttpRequest


def send(client: httpx.Client, request: HttpRequest) -> CompleteRequest:
    """Send a request once, unchanged; return its answer or its failure, in the form for `complete`."""
    try:
        response = client.request(
            request["method"],
            request["url"],
            headers=request["headers"],
            content=request["body"],
            timeout=request["timeout_ms"] / 1000,
            follow_redirects=False,  # a redirect would send credentials elsewhere
        )
    except httpx.TransportError as error:
        is_late = isinstance(error, httpx.TimeoutException)
        return {"id": request["id"], "error": "timeout" if is_late else "offline"}
    return {
        "id": request["id"],
        "status": response.status_code,
        "headers": dict(response.headers),
        "body": text(response.content),
    }


def complete(app: Holdfast, answer: CompleteRequest) -> None:
    """Pass an answer on, again while the library asks for that: it may hold the next token."""
    while True:
        try:
            app.complete(answer)
            return
        except HoldfastError as error:
            if not error.retryable:
                raise
        time.sleep(1)


def text(body: bytes) -> str | None:
    """Decode a body; `complete` takes null for one that is not UTF-8."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def show(event: Event) -> None:
    """Show an event to the user."""
    if event["type"] == "decision":
        print("screen:", event["decision"]["screen"])
    elif event["type"] == "sync_completed":
        print("stored on the server:", event["sent"])


def queued(app: Holdfast, item: str) -> bool:
    """Whether the item is still queued; an item leaves the queue when the server has stored it."""
    return app.queue_get({"id": item})["state"] != "stored"


def main(url: str, key: str, folder: str, email: str, password: str) -> None:
    """Run the loop until the visit is stored."""
    config: Config = {
        "data_dir": folder,
        "backend": {"url": url, "api_key": key},
        "auth_methods": [{"id": "password", "flow": "password"}],
        "keystore": {"kind": "file"},  # an app passes its platform's to Holdfast() instead
        "policy": {"biometric": "off"},
    }
    item, seen = "", 0
    with Holdfast(config) as app, httpx.Client() as client:
        decision = app.session_resume()
        if decision["screen"] == "sign_in":
            decision = app.sign_in_complete({"email": email, "password": password})
        while not item or queued(app, item):
            polled = app.poll({"ack": seen})  # new events and requests; acknowledges shown events
            for event in polled["events"]:
                show(event)
                if event["type"] == "decision" and not app.superseded(event):
                    decision = event["decision"]
                seen = event["seq"]  # acknowledge it in the next poll
            for request in polled["requests"]:
                complete(app, send(client, request))
            if decision["screen"] == "home" and not item:
                visit, now = {"type": "visit", "minutes": 45}, int(time.time() * 1000)
                added = app.queue_add({"kind": "activity", "payload": visit, "occurred_at_ms": now})
                item = added["id"]  # the visit is on disk now
            elif not polled["requests"]:
                app.wait(-1 if polled["wake_in_ms"] is None else polled["wake_in_ms"])


if __name__ == "__main__":
    main(*sys.argv[1:])
