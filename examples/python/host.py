"""A whole app in six steps: sign in, choose, queue offline, restart, search, log out.

Usage: host.py [E-MAIL], with HOLDFAST_URL, HOLDFAST_KEY and HOLDFAST_PASSWORD set.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from holdfast import AsyncHoldfast, FileKeyStore

if TYPE_CHECKING:
    from holdfast.types import Config, Decision

EMAIL = sys.argv[1] if len(sys.argv) > 1 else "mentor@example.org"
CONFIG: Config = {
    "data_dir": "app-data",
    "backend": {"url": os.environ["HOLDFAST_URL"], "api_key": os.environ["HOLDFAST_KEY"]},
    "template": "volunteers",
    "policy": {"biometric": "off"},
}


async def settled(app: AsyncHoldfast) -> Decision:
    """The next screen that waits for the user."""
    async for thing in app:
        if "screen" in thing and thing["screen"]["screen"] != "wait":
            break
    if app.screen is None:
        raise RuntimeError("no screen")
    message = app.screen["message"]
    print("screen:", app.screen["screen"], message["text"] if message else "")
    return app.screen


async def first_run(keys: FileKeyStore) -> str:
    """Sign in, choose an organisation, and queue a visit without a network: its id."""
    async with AsyncHoldfast(CONFIG, keys) as app:
        shown = await settled(app)
        if shown["screen"] == "sign_in":
            password = os.environ["HOLDFAST_PASSWORD"]
            await app.sign_in_complete({"email": EMAIL, "password": password})
            shown = await settled(app)
        if shown["screen"] == "select_org":
            await app.org_select({"org_id": shown["orgs"][0]["org_id"]})
            shown = await settled(app)
        if shown["screen"] != "home":
            raise SystemExit(1)  # its message is on the screen
        await app.network_report({"online": False})
        visit = {"type": "visit", "minutes": 45}
        added = await app.queue_add({"kind": "activity", "payload": visit})
        why = await app.queue_explain()
        print("queued:", *(reason["text"] for reason in why["reasons"]))
        return added["id"]  # on disk: a crash does not lose it


async def second_run(keys: FileKeyStore, item: str) -> None:
    """Start again, without a sign-in; search when the visit is sent, and log out."""
    async with AsyncHoldfast(CONFIG, keys) as app:
        await settled(app)
        async for thing in app:
            if "notice" in thing:
                print("notice:", thing["notice"]["text"])  # the server has refused the visit
            elif "sync" in thing and thing["sync"]["contacts_ms"] is not None:
                state = (await app.queue_get({"id": item}))["state"]
                if state in {"stored", "parked"}:
                    print("the visit:", state)
                    break
        found = await app.contact_search({"query": "", "limit": 3})
        print("contacts:", found["total"], *(contact["name"] for contact in found["contacts"]))
        await app.session_logout()  # refused while something is unsent
        await settled(app)


async def main() -> None:
    """Run the app twice."""
    keys = FileKeyStore("app-keys")  # or KeyringKeyStore("org.example.visits")
    item = await first_run(keys)
    async with asyncio.timeout(60):
        await second_run(keys, item)


if __name__ == "__main__":
    asyncio.run(main())
