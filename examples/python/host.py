"""An asyncio host: signs in, registers a visit, and reports when the server has stored it.

Usage: host.py --backend URL --key KEY [--data FOLDER] [--keyring APP] [--email E-MAIL]
       [--patience SECONDS]

The password comes from HOLDFAST_PASSWORD or a prompt. Run it twice: the second run needs no sign-in.
Run it without a network: the visit stays on disk, and the next run sends it.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import time
from typing import TYPE_CHECKING

from holdfast import AsyncHoldfast, FileKeyStore, KeyringKeyStore

if TYPE_CHECKING:
    from holdfast import KeyStore
    from holdfast.types import Config, Decision, SignInPassword, SyncCompletedEvent


class Host:
    """An app: shows the library's decisions, and calls the library for the user's actions."""

    def __init__(self, app: AsyncHoldfast, patience_s: float) -> None:
        """Use an open library; wait this long for the server."""
        self.app = app
        self.patience_s = patience_s
        self.screens: asyncio.Queue[Decision] = asyncio.Queue()
        self.synced: asyncio.Queue[SyncCompletedEvent] = asyncio.Queue()

    async def follow(self) -> None:
        """Take events for as long as the app runs."""
        async for event in self.app.events():
            if event["type"] == "decision":
                self.screens.put_nowait(event["decision"])
            elif event["type"] == "sync_completed":
                self.synced.put_nowait(event)
            elif event["type"] == "item_parked":
                print("needs attention:", event["reason"]["text"])

    async def settled(self, decision: Decision) -> Decision:
        """While the decision is `wait`, wait for the next one; the library sends it in bounded time."""
        while decision["screen"] == "wait":
            shown = await self.screens.get()
            if shown["number"] > decision["number"]:  # an older event may come after a reply
                decision = shown
        print(f"screen: {decision['screen']} ({decision['reason']})")
        return decision

    async def queued(self, item: str) -> bool:
        """Whether the item is still queued; an item leaves the queue when the server has stored it."""
        return (await self.app.queue_get({"id": item}))["state"] != "stored"

    async def run(self, email: str) -> bool:
        """Register a visit; return whether the server has stored it."""
        decision = await self.settled(await self.app.session_resume())
        if decision["screen"] == "sign_in":
            password = os.environ.get("HOLDFAST_PASSWORD") or getpass.getpass()
            given: SignInPassword = {"email": email, "password": password}
            decision = await self.settled(await self.app.sign_in_complete(given))
        if decision["screen"] == "select_org":
            first = decision["orgs"][0]["org_id"]
            decision = await self.settled(await self.app.org_select({"org_id": first}))
        if decision["screen"] != "home":
            return False
        await self.app.sync_now()  # the user has opened the app: send and fetch at once
        added = await self.app.queue_add(
            {
                "kind": "activity",
                "payload": {"type": "visit", "minutes": 45},
                "occurred_at_ms": int(time.time() * 1000),
            }
        )
        print("registered:", added["id"])  # on disk now: a crash does not lose it
        try:
            async with asyncio.timeout(self.patience_s):
                while await self.queued(added["id"]):
                    await self.synced.get()
        except TimeoutError:
            why = await self.app.queue_explain()
            print("not yet sent:", *(reason["text"] for reason in why["reasons"]))
            return False
        print("stored on the server")
        return True


async def main() -> int:
    """Return the exit status: 0 when the server has stored the visit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", required=True, help="https://PROJECT.supabase.co")
    parser.add_argument("--key", required=True, help="the project's publishable key")
    parser.add_argument("--data", default="app-data", help="the app's folder")
    parser.add_argument("--email", default="solo@example.org")
    parser.add_argument("--keyring", metavar="APP", help="keep keys in the desktop's keyring")
    parser.add_argument("--patience", type=float, default=30, metavar="SECONDS")
    given = parser.parse_args()
    config: Config = {
        "data_dir": given.data,
        "backend": {"url": given.backend, "api_key": given.key},
        "auth_methods": [{"id": "password", "flow": "password", "label": "E-mail"}],
        "policy": {"biometric": "off"},
        "locale": "en",
    }
    keystore: KeyStore = (
        KeyringKeyStore(given.keyring) if given.keyring else FileKeyStore(f"{given.data}.keys")
    )
    async with AsyncHoldfast(config, keystore) as app, asyncio.TaskGroup() as tasks:
        host = Host(app, given.patience)
        following = tasks.create_task(host.follow())
        stored = await host.run(given.email)
        following.cancel()
    return 0 if stored else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
