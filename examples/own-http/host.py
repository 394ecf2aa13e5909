"""Bring your own HTTP: the whole loop of a host, here with httpx.

Signs in, registers a visit, and exits when the server has stored it.
Usage: host.py URL KEY FOLDER E-MAIL PASSWORD
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import httpx
from holdfast import Holdfast

if TYPE_CHECKING:
    from holdfast.types import CompleteRequest, Config, HttpRequest


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


def text(body: bytes) -> str | None:
    """Decode a body; `complete` takes null for one that is no text."""
    try:
        return None if b"\0" in body else body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def main(url: str, key: str, folder: str, email: str, password: str) -> None:
    """Run the loop until the visit is stored."""
    config: Config = {
        "data_dir": folder,
        "backend": {"url": url, "api_key": key},
        "template": "volunteers",
        "development": True,  # an app passes its platform's key store to Holdfast() instead
    }
    item = ""
    with Holdfast(config) as app, httpx.Client() as client:
        app.session_resume()  # `next` begins with a screen
        while (thing := app.next()) is not None:
            if "request" in thing:
                app.complete(send(client, thing["request"]))
            elif "notice" in thing:
                print("notice:", thing["notice"]["text"])
            elif "sync" in thing and item in thing["sync"]["ids"]:
                print("stored on the server")
                return
            elif "screen" in thing:
                screen = thing["screen"]
                print("screen:", screen["screen"])
                said = screen["message"] or {"code": None, "text": None}
                if said["code"] == "session_missing":
                    app.sign_in_complete({"email": email, "password": password})
                elif screen["screen"] == "home" and not item:
                    visit = {"type": "visit", "minutes": 45}
                    item = app.queue_add({"kind": "activity", "payload": visit})["id"]
                elif screen["screen"] not in {"wait", "home"}:
                    sys.exit(said["text"])


if __name__ == "__main__":
    main(*sys.argv[1:])
