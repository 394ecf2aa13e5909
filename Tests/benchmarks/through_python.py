"""Measures the library through its Python binding, as a Python app uses it.

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

from holdfast import Holdfast, Runner  # noqa: E402

import programs  # noqa: E402
import work  # noqa: E402


def report(samples: list[float], items: int, requests: int = 0) -> None:
    print(json.dumps({"samples": samples, "items": items, "requests": requests}))


def null_server(request: Any) -> Any:
    """Answers the requests of an idle app."""
    membership = {"org_id": work.ORG, "role": "peer_mentor", "status": "active"}
    organization = {"id": work.ORG, "name": "Mentorforeningen Nordlys", "status": "active"}
    bodies: dict[str, object] = {
        "guard": [{**membership, "organizations": organization}],
        "pull": [],
        "validate": {"id": work.USER},
        "upload": [{"id": row["id"]} for row in json.loads(request["body"] or "[]")]
        if request["purpose"] == "upload"
        else [],
    }
    body = bodies.get(request["purpose"], {"activities": 0, "minutes": 0})
    headers = {"content-type": "application/json; charset=utf-8"}
    return {"status": 200, "headers": headers, "body": json.dumps(body)}


def status(folder: str, count: int) -> None:
    config: Any = {
        "data_dir": f"{folder}/data",
        "backend": {"url": "http://127.0.0.1:9", "api_key": "public-key"},
        "template": "volunteers",
        "development": True,
    }
    samples = []
    with Holdfast(config) as app:
        app.session_resume()
        Runner(app, transport=null_server).run_until_idle()
        for _ in range(count):
            start = time.perf_counter()
            found = app.session_status()
            samples.append(time.perf_counter() - start)
            if found["state"] != "active":
                sys.exit(str(found))
    report(samples, count)


def drain(url: str, key: str, count: int) -> None:
    """Measure from the first request to the proof that the last item is stored."""
    with tempfile.TemporaryDirectory(dir=programs.BUILD) as folder:
        config: Any = {
            "data_dir": f"{folder}/data",
            "backend": {"url": url, "api_key": key},
            "template": "volunteers",
            "development": True,
        }
        with Holdfast(config) as app:
            app.sign_in_complete({"email": work.EMAIL, "password": work.PASSWORD})
            Runner(app).run_until_idle()
        programs.run("floor", "embedded", "fill", folder, str(count), "0")
        with Holdfast(config) as app:
            app.session_resume()
            runner = Runner(app)
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
