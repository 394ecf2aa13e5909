"""A whole app in seven steps: sign in, choose, queue offline, restart, correct, search, log out.

Usage: host.py [E-MAIL], with HOLDFAST_URL, HOLDFAST_KEY and HOLDFAST_PASSWORD set.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from holdfast import AsyncHoldfast, FileKeyStore

if TYPE_CHECKING:
    from holdfast.types import Config, Decision, ListedItem

EMAIL = sys.argv[1] if len(sys.argv) > 1 else "mentor@example.org"
CONFIG: Config = {
    "data_dir": "app-data",
    "backend": {
        "url": os.environ["HOLDFAST_URL"],
        "api_key": os.environ["HOLDFAST_KEY"],
        "queue": {  # what is stored stays in the cache, and can be corrected
            "activity": {"table": "activities", "own": {}, "change": {}, "delete": "deleted_at"}
        },
    },
    "template": "volunteers",
    "policy": {"biometric": "off"},
}


async def settled(app: AsyncHoldfast) -> Decision:
    """The next screen that waits for the user; an app draws it."""
    shown = await app.settled()
    message = shown["message"]
    print("screen:", shown["screen"], message["text"] if message else "")
    return shown


async def add(app: AsyncHoldfast, minutes: int) -> str:
    """Register a visit: its id. It is on disk, and a crash does not lose it."""
    visit = {"type": "visit", "minutes": minutes}
    return (await app.queue_add(kind="activity", payload=visit))["id"]


async def sent(app: AsyncHoldfast) -> None:
    """Return when everything is sent, or needs its user, and the contacts are here."""
    async for thing in app:
        if "notice" in thing:
            print("notice:", thing["notice"]["text"])  # the server has refused a visit
        elif "sync" in thing and thing["sync"]["contacts_ms"] is not None:
            counts = (await app.sync_status())["counts"]
            if counts["pending"] + counts["sending"] + counts["waiting"] == 0:
                return


async def first_run(keys: FileKeyStore) -> tuple[str, str]:
    """Sign in, choose an organisation, and queue two visits without a network: their ids."""
    async with AsyncHoldfast(CONFIG, keys) as app:
        shown = await settled(app)
        if shown["screen"] == "sign_in":
            password = os.environ["HOLDFAST_PASSWORD"]
            await app.sign_in_complete(email=EMAIL, password=password)
            shown = await settled(app)
        if shown["screen"] == "select_org":
            await app.org_select(org_id=shown["orgs"][0]["org_id"])
            shown = await settled(app)
        if shown["screen"] != "home":
            raise SystemExit(1)  # its message is on the screen
        await app.network_report(online=False)
        added = await add(app, 45), await add(app, 20)
        why = await app.queue_explain()
        print("queued:", *(reason["text"] for reason in why["reasons"]))
        return added


async def show_own(app: AsyncHoldfast) -> list[ListedItem]:
    """The user's newest visits, stored and queued."""
    items = (await app.item_list(kind="activity", limit=2))["items"]
    print("visits:", *(f"{item['payload']['minutes']} min {item['state']}" for item in items))
    return items


async def correct(app: AsyncHoldfast, visit: str, mistake: str) -> None:
    """Change a stored visit, and take another one back; that needs no network, either."""
    await app.network_report(online=False)
    await app.queue_edit(id=visit, payload={"minutes": 60})
    await app.queue_cancel(id=mistake)
    await show_own(app)
    await app.network_report(online=True)
    await sent(app)
    for item in await show_own(app):
        if item["conflict"]:  # others have changed the same
            for column in item["conflict"]["columns"]:
                print("conflict:", column["name"], column["theirs"], "or", column["mine"])
            # The user's value stands; queue_cancel leaves the row as it is
            await app.queue_retry(id=item["id"], overwrite=True)
            await sent(app)


async def second_run(keys: FileKeyStore, visit: str, mistake: str) -> None:
    """Start again, without a sign-in; when the visits are sent, correct, search, and log out."""
    async with AsyncHoldfast(CONFIG, keys) as app:
        await settled(app)
        await sent(app)
        await correct(app, visit, mistake)
        found = await app.contact_search(query="", limit=3)
        print("contacts:", found["total"], *(contact["name"] for contact in found["contacts"]))
        await app.session_logout()  # refused while something is unsent
        await settled(app)


async def main() -> None:
    """Run the app twice."""
    keys = FileKeyStore("app-keys")  # or KeyringKeyStore("org.example.visits")
    visits = await first_run(keys)
    async with asyncio.timeout(60):
        await second_run(keys, *visits)


if __name__ == "__main__":
    asyncio.run(main())
