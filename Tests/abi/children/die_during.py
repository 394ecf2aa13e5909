"""Resumes a phone's app, runs one operation, and dies at the n-th file change within it.

die_during.py SPEC OPERATION REQUEST N   (LD_PRELOAD names the killer). Prints the number of changes
if it survives. N may also name a call of the key store, such as "load biometric". In "a+b" it
runs a first, and dies within b. A finger is on the sensor.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys

from support.phone import Phone


def main() -> None:
    spec, operation, request, point = sys.argv[1:5]
    phone = Phone.from_spec(spec)
    app = phone.start(online=False)
    assert app.screen["screen"] == "home", app.screen
    *before, last = operation.split("+")
    for first in before:
        getattr(app, first)()
    phone.keychain.present_finger()
    killer = ctypes.CDLL(None)
    if point.isdigit():
        killer.killer_arm(ctypes.c_long(int(point)))
    else:

        def watch(call: str, name: str) -> None:
            if point == f"{call} {name}":
                os.kill(os.getpid(), signal.SIGKILL)

        phone.keychain.watch = watch
    getattr(app, last)(json.loads(request))
    print(killer.killer_disarm(), flush=True)
    os._exit(0)


main()
