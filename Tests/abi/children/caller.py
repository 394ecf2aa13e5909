"""Makes the calls that it is told, one a line as [NAME, REQUEST]: caller.py SPEC.

Prints "ready" when the app is open, "calling" before a call and ["result", CODE] after it, where
CODE is null without an error. During a call it prints "device" when the library loads that key.
"""

from __future__ import annotations

import json
import sys

from holdfast import HoldfastError

from support.phone import Phone


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    app = phone.start(online=False)
    assert app.screen["screen"] == "home", app.screen

    def tell(call: str, name: str) -> None:
        if (call, name) == ("load", "device"):
            print("device", flush=True)

    phone.keychain.watch = tell
    print("ready", flush=True)
    for line in sys.stdin:
        name, request = json.loads(line)
        print("calling", flush=True)
        try:
            getattr(app, name)(request)
            code = None
        except HoldfastError as error:
            code = error.code
        print(json.dumps(["result", code]), flush=True)
    phone.close()


main()
