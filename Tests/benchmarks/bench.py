"""Cold start, enqueue and drain, each against a floor in plain C, in one run.

Absolute times say little on a shared machine; the ratios hold. The floor does only what cannot be
left out of the same promise: the same synced commits, seals and JSON, with no rules around them.
"""

from __future__ import annotations

import base64
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build"
RUNS = 7
ITEMS = 2000
LOOPBACK_ITEMS = 100_000

sys.path[:0] = [str(ROOT / "bindings/python/src"), str(ROOT / "examples/backend")]


def compiled(name: str, *flags: str) -> Path:
    program = BUILD / "bin" / f"bench-{name}"
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [
        "cc",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{ROOT / 'include'}",
        str(HERE / f"{name}.c"),
        "-o",
        str(program),
        *flags,
    ]
    subprocess.run(command, check=True)
    return program


def session() -> str:
    """A session as the auth service would give it; nobody verifies it here."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    user = "0a000000-0000-4000-8000-000000000001"
    claims = {"sub": user, "exp": int(time.time()) + 36000, "pad": "x" * 600}
    token = f"{part({'alg': 'HS256'})}.{part(claims)}.{'s' * 43}"
    return json.dumps(
        {
            "session": {
                "access_token": token,
                "refresh_token": "abcdefghijkl",
                "token_type": "bearer",
                "expires_in": 36000,
                "user": {"id": user},
            }
        }
    )


def run(program: Path, mode: str, folder: str, *more: str) -> float:
    done = subprocess.run(
        [program, mode, folder, *more], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{program.name} {mode}: {done.stderr}")
    return float(done.stdout)


def loopback(count: int) -> None:
    """A queue drained to the local backend: requests, PostgreSQL and all, by Python's runner."""
    from holdfast import Holdfast, Runner
    from local_supabase import LocalSupabase

    with tempfile.TemporaryDirectory() as folder, LocalSupabase(demo=True) as backend:
        config = {
            "data_dir": folder,
            "backend": {"url": backend.url, "api_key": backend.anon_key},
            "auth_methods": [{"id": "password", "flow": "password", "label": "E-mail"}],
        }
        with Holdfast(config) as app:  # type: ignore[arg-type]
            runner = Runner(app)
            app.sign_in_complete({"email": "solo@example.org", "password": "holdfast-demo"})
            runner.run_until_idle()
            app.network_set({"online": False})
            for number in range(count):
                payload = {"type": "visit", "minutes": number % 1440 + 1}
                app.queue_add({"kind": "activity", "payload": payload, "occurred_at_ms": 1795000000000})
            app.network_set({"online": True})
            start = time.monotonic()
            runner.run_until_idle(limit=count)
            seconds = time.monotonic() - start
        stored = backend.control.sql("select count(*) as n from activities")[0]["n"]
    if stored != count:
        sys.exit(f"{stored} of {count} are stored")
    print(f"\ndrain of {count:,} on loopback: {seconds:.1f} s, {count / seconds:,.0f} items/s")


def main() -> None:
    host = compiled(
        "host", f"-L{BUILD / 'lib'}", "-lholdfast", "-ljansson", f"-Wl,-rpath,{BUILD / 'lib'}"
    )
    floor = compiled("floor", "-lsqlite3", "-lsodium", "-ljansson")
    times: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        run(host, "prepare", folder, session())
        run(floor, "prepare", folder)
        for _ in range(RUNS):
            for mode, more in (("cold", ()), ("enqueue", (str(ITEMS),)), ("drain", ())):
                for name, program in (("holdfast", host), ("floor", floor)):
                    times.setdefault((mode, name), []).append(run(program, mode, folder, *more))
    print(f"{'':10} {'holdfast':>12} {'C floor':>12}   ratio of each pair: median (least - most)")
    for mode, unit, each in (
        ("cold", "ms", 1),
        ("enqueue", "µs/item", ITEMS),
        ("drain", "µs/item", ITEMS),
    ):
        ours, theirs = times[mode, "holdfast"], times[mode, "floor"]
        scale = (1e3 if unit == "ms" else 1e6) / each
        ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
        print(
            f"{mode:10} {statistics.median(ours) * scale:8.2f} {unit:>7} {statistics.median(theirs) * scale:8.2f}"
            f"   {statistics.median(ratios):.2f} ({ratios[0]:.2f} - {ratios[-1]:.2f})"
        )
    size = (BUILD / "lib/libholdfast.so").stat().st_size
    loopback(LOOPBACK_ITEMS)
    print(f"\nlibholdfast.so {size:,} bytes; {RUNS} runs, {ITEMS} items each")


if __name__ == "__main__":
    main()
