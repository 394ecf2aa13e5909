"""The rest of a host around the Python loop of docs/hosts.md; the counterpart of host.c."""

import sys

from loop import Holdfast, follow


def show(app, event):
    print(event["type"], flush=True)
    if event["type"] == "sync_completed":
        app.close()
    elif event.get("decision", {}).get("screen") == "home":
        visit = {"type": "visit", "minutes": 45}
        app.queue_add({"kind": "activity", "payload": visit, "occurred_at_ms": 1795000000000})


folder, url, key = sys.argv[1:]
app = Holdfast(
    {
        "data_dir": folder,
        "backend": {"url": url, "api_key": key},
        "auth_methods": [{"id": "password", "flow": "password"}],
        "keystore": {"kind": "file"},
        "policy": {"biometric": "off"},
    }
)
app.session_resume()
app.sign_in_complete({"email": "solo@example.org", "password": "holdfast-demo"})
follow(app, show)
