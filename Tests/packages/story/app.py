"""The app of the story: carries out one command for each line of its input, and prints one line for
each. Usage: app.py FOLDER URL KEY
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import AsyncHoldfast, FileKeyStore
from holdfast.keystore import KEY_CANCELLED, PROTECT_DEVICE, KeyStoreAnswer

if TYPE_CHECKING:
    from holdfast.types import Config, Decision, SyncCompletedEvent


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


class App:
    """An app that shows decisions as text."""

    def __init__(self, holdfast: AsyncHoldfast) -> None:
        """Use an open library."""
        self.holdfast = holdfast
        self.decisions: asyncio.Queue[Decision] = asyncio.Queue()
        self.synced: asyncio.Queue[SyncCompletedEvent] = asyncio.Queue()

    async def follow(self) -> None:
        """Take events for as long as the app runs."""
        async for event in self.holdfast.events():
            if event["type"] == "decision":
                self.decisions.put_nowait(event["decision"])
            elif event["type"] == "sync_completed":
                self.synced.put_nowait(event)

    async def shown(self, decision: Decision) -> str:
        """The screen and its reason; waits while the library does."""
        while decision["screen"] == "wait":
            later = await self.decisions.get()
            if later["number"] > decision["number"]:
                decision = later
        return f"{decision['screen']} {decision['reason']}"

    async def done(self, command: str, *given: str) -> str:
        """Carry out one command."""
        app = self.holdfast
        match command:
            case "start":
                return await self.shown(await app.session_resume())
            case "sign_in":
                email, password = given
                reply = await app.sign_in_complete({"email": email, "password": password})
                return await self.shown(reply)
            case "orgs":
                return " ".join(one["org_id"] for one in (await app.org_list())["orgs"])
            case "choose":
                return await self.shown(await app.org_select({"org_id": given[0]}))
            case "visit":
                added = await app.queue_add(
                    {
                        "kind": "activity",
                        "payload": {"type": "visit", "minutes": int(given[0])},
                        "occurred_at_ms": int(time.time() * 1000),
                    }
                )
                return added["state"]
            case "leave":
                return await self.shown(await app.session_background())
            case "unlock":
                return await self.shown(await app.session_unlock({"outcome": "success"}))
            case "unsent":
                counts = (await app.sync_status())["counts"]
                unsent = counts["pending"] + counts["sending"] + counts["waiting"]
                return f"{unsent} {counts['parked']}"
            case "drain":
                await app.sync_now()
                return str(len((await self.synced.get())["ids"]))
            case "log_out":
                left = await app.session_logout()
                while (await app.session_status())["owed"]:
                    await asyncio.sleep(0.02)
                return f"{left['unsent']} {await self.shown(left['decision'])}"
        raise ValueError(command)


async def main() -> None:
    """Serve commands until the input ends."""
    folder = Path(sys.argv[1])
    config: Config = {
        "data_dir": str(folder / "data"),
        "backend": {"url": sys.argv[2], "api_key": sys.argv[3]},
        "auth_methods": [{"id": "password", "flow": "password"}],
        "policy": {"biometric": "required", "lock_on_background": "at_once"},
    }
    async with AsyncHoldfast(config, DesktopKeys(folder)) as holdfast, asyncio.TaskGroup() as tasks:
        app = App(holdfast)
        following = tasks.create_task(app.follow())
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(">", await app.done(*line.split()), flush=True)
        following.cancel()


if __name__ == "__main__":
    asyncio.run(main())
