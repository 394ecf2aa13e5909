"""One of several processes that need a refresh at the same moment: refresh_together.py SPEC.

Prints "ready", waits for a line, then polls like any host until no refresh is due. Prints its final
state.
"""

from __future__ import annotations

import json
import sys
import time

from support.phone import Phone


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    app = phone.start()
    assert app.screen["screen"] == "home", app.screen
    print("ready", flush=True)
    sys.stdin.readline()
    give_up = time.monotonic() + 60
    while "refresh" in app.session_status()["owed"]:
        assert time.monotonic() < give_up, "the refresh did not happen in time"
        if app.step().idle:
            time.sleep(0.02)
    status = app.session_status()
    sent = [request["purpose"] for request in phone.network.sent]
    app.close()
    print(
        json.dumps(
            {
                "generation": status["generation"],
                "expires_ms": status["expires_ms"],
                "state": status["state"],
                "refreshes": sent.count("refresh"),
                "ended": len(app.of_type("session_ended")),
            }
        )
    )


main()
