"""Fills a disk with the queue, drains it and logs out: SPEC KEYCHAIN STOCK SIZE OTHERS END.

SIZE is the length of each item's note, in characters of four bytes. OTHERS names a
file that others fill the disk with after every step, or is empty. END is "drain", or "discard":
the user logs out at once and discards the queue.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from holdfast import HoldfastError

from support import filler
from support.keychain import KeyChain
from support.phone import App, Phone


def fill(others: str) -> None:
    """Others take what room there is."""
    if others:
        with Path(others).open("ab", buffering=0) as file:
            filler.fill(file)


def add_until_full(app: App, size: int) -> list[str]:
    """Add items until the disk has no room for one more; returns their ids."""
    accepted: list[str] = []
    while len(accepted) < 5000:
        try:
            accepted.append(app.register(1, note="\U0001f331" * size))
        except HoldfastError as error:
            assert (error.status, error.code) == (7, "storage.full"), error
            return accepted
    raise AssertionError("the disk did not fill")


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    shutil.copytree(sys.argv[3], phone.folder)
    phone.keychain = KeyChain(Path(sys.argv[2]))
    size, others = int(sys.argv[4]), sys.argv[5]
    app = phone.start(online=False)
    accepted = add_until_full(app, size)
    if others:
        # The app is restarted: the log is gone, and others take its room
        phone.close()
        fill(others)
        app = phone.start(online=False)
        if app.screen["screen"] == "unlock":
            app.touch()
        assert app.screen["screen"] == "home", app.screen
    if sys.argv[6] == "discard":
        confirmed = app.queue_list({"limit": 1})["counts"]["pending"]
        assert confirmed == len(accepted), confirmed
        reply = app.session_logout({"unsent": "discard", "confirm_unsent": confirmed})
        assert reply["screen"]["screen"] == "sign_in", reply
        assert reply["unsent"] == confirmed, reply
        phone.close()
        print(json.dumps([accepted, [], 0]))
        return
    # The queue drains, in this process
    app.go_online()
    fill(others)
    for _ in range(1000):
        if app.step().idle:
            break
        fill(others)
    left = app.queue_list({"limit": 1})["counts"]
    assert left["pending"] + left["sending"] + left["waiting"] == 0, left
    if not others:
        # The file has room where the items were, and takes new ones
        accepted += [app.register(2) for _ in range(5)]
        app.settle()
    fill(others)
    shown = app.session_logout({"unsent": "keep"})
    assert shown["screen"]["screen"] == "sign_in", shown
    app.settle()
    if others:
        Path(others).unlink()
    phone.close()
    sent = [
        row["id"]
        for request in phone.network.sent
        if request["purpose"] == "upload" and request["method"] == "POST"
        for row in json.loads(request["body"] or "[]")
    ]
    print(json.dumps([accepted, sent, left["parked"]]))


main()
