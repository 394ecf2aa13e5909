"""The app of the story: carries out one command for each line of its input, and prints one line for
each. Usage: app.py FOLDER URL KEY
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import AsyncHoldfast, FileKeyStore
from holdfast.keystore import KEY_CANCELLED, PROTECT_DEVICE, KeyStoreAnswer

if TYPE_CHECKING:
    from holdfast.types import Config


class DesktopKeys:
    """Key files, and a prompt for "biometric" that a file answers: its first line, then removed."""

    def __init__(self, folder: Path) -> None:
        """Keep the keys and the answers below this folder."""
        self.files = FileKeyStore(folder / "keys")
        self.answers = folder / "prompts"

    async def load(self, name: str, prompt: str | None) -> bytes | None:
        """Load a key; the user releases "biometric"."""
        key = self.files.load(name)
        if name != "biometric" or key is None:
            return key
        if prompt is None:
            raise KeyStoreAnswer(KEY_CANCELLED)
        answer, _, rest = self.answers.read_text("utf-8").partition("\n")
        self.answers.write_text(rest, "utf-8")
        if answer != "ok":
            raise KeyStoreAnswer(KEY_CANCELLED)
        return key

    async def save(self, name: str, key: bytes, _protection: int) -> None:
        """Save a key."""
        self.files.save(name, key, PROTECT_DEVICE)

    async def erase(self, name: str) -> None:
        """Erase a key."""
        self.files.erase(name)


async def shown(app: AsyncHoldfast) -> str:
    """The next screen that waits for the user, and what it says."""
    async for thing in app:
        if "screen" in thing and thing["screen"]["screen"] != "wait":
            message = thing["screen"]["message"]
            return f"{thing['screen']['screen']} {message['code'] if message else '-'}"
    raise RuntimeError("closed")


async def drained(app: AsyncHoldfast) -> int:
    """How many items were sent until none is left."""
    sent: set[str] = set()
    async for thing in app:
        if "sync" in thing:
            sent |= set(thing["sync"]["ids"])
            if sent and not thing["sync"]["left"]:
                break
    return len(sent)


async def done(app: AsyncHoldfast, command: str, *given: str) -> str:
    """Carry out one command."""
    match command:
        case "start":
            return await shown(app)
        case "sign_in":
            await app.sign_in_complete({"email": given[0], "password": given[1]})
            return await shown(app)
        case "orgs":
            return " ".join(one["org_id"] for one in (await app.org_list())["orgs"])
        case "choose":
            await app.org_select({"org_id": given[0]})
            return await shown(app)
        case "visit":
            visit = {"type": "visit", "minutes": int(given[0])}
            return (await app.queue_add({"kind": "activity", "payload": visit}))["state"]
        case "leave":
            await app.session_background()
            return await shown(app)
        case "unlock":
            await app.session_unlock()
            return await shown(app)
        case "unsent":
            counts = (await app.sync_status())["counts"]
            unsent = counts["pending"] + counts["sending"] + counts["waiting"]
            return f"{unsent} {counts['parked']}"
        case "drain":
            await app.sync_now()
            return str(await drained(app))
        case "search":
            while (found := await app.contact_search({"query": ""}))["as_of_ms"] is None:
                await asyncio.sleep(0.02)
            return str(found["total"])
        case "log_out":
            left = await app.session_logout()
            while (await app.session_status())["owed"]:
                await asyncio.sleep(0.02)
            return f"{left['unsent']} {await shown(app)}"
    raise ValueError(command)


async def main() -> None:
    """Serve commands until the input ends."""
    folder = Path(sys.argv[1])
    config: Config = {
        "data_dir": str(folder / "data"),
        "backend": {"url": sys.argv[2], "api_key": sys.argv[3]},
        "template": "volunteers",
        "policy": {"biometric": "required", "lock_on_background": "at_once"},
    }
    async with AsyncHoldfast(config, DesktopKeys(folder)) as app:
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(">", await done(app, *line.split()), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
