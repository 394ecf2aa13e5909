"""The rest of a host around the Python loop of docs/hosts.md; the counterpart of host.c."""

import sys

from loop import Holdfast, follow


def show(app, thing):
    print(*thing, flush=True)
    screen = thing.get("screen", {})
    if screen.get("reason") == "session_missing":
        app.sign_in_complete({"email": "solo@example.org", "password": "holdfast-demo"})
    elif screen.get("reason") == "chosen":
        app.queue_add({"kind": "activity", "payload": {"type": "visit", "minutes": 45}})
    elif thing.get("sync", {}).get("ids"):
        print("sync_completed", flush=True)
        app.close()


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
show(app, {"screen": app.screen})
follow(app, show)
