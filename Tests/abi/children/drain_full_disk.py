"""Drains and logs out on a full disk: drain_full_disk.py SPEC KEYCHAIN STOCK FILLER."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from holdfast import HoldfastError

from support.filler import fill
from support.keychain import KeyChain
from support.phone import Phone

RESERVE = "holdfast.reserve"


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    shutil.copytree(sys.argv[3], phone.folder)
    phone.keychain = KeyChain(Path(sys.argv[2]))
    app = phone.start(online=False)
    with Path(sys.argv[4]).open("wb", buffering=0) as filler:
        # Items are added until the disk is full
        accepted = [app.register(1 + number, note="x" * 3000) for number in range(150)]
        fill(filler)
        code = ""
        for _ in range(1000):
            try:
                accepted.append(app.register(5))
            except HoldfastError as error:
                code = f"{error.status} {error.code} {error.retryable}"
                break
        assert code == "7 storage.full True", code
        # The queue drains while others take what room there is
        app.go_online()
        while not app.step().idle:
            fill(filler)
        assert app.queue_list()["items"] == []
        # An item is added only when the reserve is whole again: it does not take its room
        try:
            accepted.append(app.register(6))
            assert (phone.folder / RESERVE).stat().st_size == 1 << 20
            app.settle()
        except HoldfastError as error:
            assert error.code == "storage.full", error.code
        sent = [
            row["id"]
            for request in phone.network.sent
            if request["purpose"] == "upload" and request["method"] == "POST"
            for row in json.loads(request["body"] or "[]")
        ]
        fill(filler)
        shown = app.session_logout()
        assert shown["screen"]["screen"] == "sign_in", shown
        fill(filler)
        app.settle()
        # When there is room again, so is the reserve
        filler.truncate(0)
    phone.close()
    phone.start()
    assert (phone.folder / RESERVE).stat().st_size == 1 << 20
    phone.close()
    print(json.dumps([accepted, sent]))


main()
