"""Registers before, on and after a full disk: full_disk.py SPEC (LD_PRELOAD names the killer)."""

from __future__ import annotations

import ctypes
import sys

from holdfast import HoldfastError

from support.phone import Phone


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    app = phone.start(online=False)
    assert app.screen["screen"] == "home", app.screen
    killer = ctypes.CDLL(None)
    before = app.register(minutes=1)
    killer.killer_disk_full(1)
    codes = []
    for _ in range(3):
        try:
            app.register(minutes=2)
            codes.append("accepted")
        except HoldfastError as error:
            codes.append(f"{error.status} {error.code} {error.retryable}")
    killer.killer_disk_full(0)
    assert codes == ["7 storage.full True"] * 3, codes
    after = app.register(minutes=3)
    assert [item["id"] for item in app.queue_list()["items"]] == [before, after]
    phone.close()
    print(before, after)


main()
