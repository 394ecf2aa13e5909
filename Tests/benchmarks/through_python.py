"""The library through its Python binding: what a developer of such an app has.

through_python.py status FOLDER COUNT | drain URL KEY COUNT
HOLDFAST_LIBRARY names the library. Prints what bench.h's report() prints.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/python/src"))

import work  # noqa: E402
from holdfast import Holdfast, Runner  # noqa: E402


def report(samples: list[float], items: int, requests: int = 0) -> None:
    print(json.dumps({"samples": samples, "items": items, "requests": requests}))


def status(folder: str, count: int) -> None:
    config: Any = {
        "data_dir": f"{folder}/data",
        "backend": {"url": "http://127.0.0.1:9", "api_key": "public-key"},
        "policy": {"biometric": "off"},
    }
    samples = []
    with Holdfast(config) as app:
        app.session_resume()
        for _ in range(count):
            start = time.perf_counter()
            found = app.session_status()
            samples.append(time.perf_counter() - start)
            if found["state"] != "active":
                sys.exit(str(found))
    report(samples, count)


def drain(url: str, key: str, count: int) -> None:
    """From the first request to the last item that is proved to be stored."""
    with tempfile.TemporaryDirectory() as folder:
        config: Any = {
            "data_dir": folder,
            "backend": {"url": url, "api_key": key},
            "auth_methods": [{"id": "password", "flow": "password", "label": "E-mail"}],
        }
        with Holdfast(config) as app:
            runner = Runner(app)
            app.sign_in_complete({"email": work.EMAIL, "password": work.PASSWORD})
            runner.run_until_idle()
            app.network_set({"online": False})
            for number in range(count):
                app.queue_add(json.loads(work.visit(number)))
            app.network_set({"online": True})
            requests = 0
            start = time.perf_counter()
            while (counts := app.sync_status()["counts"])["pending"] + counts["sending"] > 0:
                requests += len(runner.step().requests)
            seconds = time.perf_counter() - start
            if counts["waiting"] + counts["parked"] > 0:
                sys.exit(f"not all are stored: {counts}")
    report([seconds], count, requests)


def main() -> None:
    if sys.argv[1] == "status":
        status(sys.argv[2], int(sys.argv[3]))
    else:
        drain(sys.argv[2], sys.argv[3], int(sys.argv[4]))


if __name__ == "__main__":
    main()
