"""Issue 16, point 9: the example on GLib, a host whose main loop runs the HTTP driver."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from consumers import ROOT, run

EXAMPLE = ROOT / "examples" / "glib"

pytestmark = pytest.mark.skipif(
    subprocess.run(["pkg-config", "--exists", "glib-2.0"], check=False).returncode != 0,
    reason="libglib2.0-dev is not installed",
)


@pytest.fixture(scope="session")
def visits(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built as its README says, and with warnings as errors."""
    folder = tmp_path_factory.mktemp("glib")
    [command] = re.findall(
        "^    (cc .*)$", (EXAMPLE / "README.md").read_text("utf-8"), re.MULTILINE
    )
    command = command.replace("main.c", str(EXAMPLE / "main.c"))
    command += f" -Wall -Wextra -Werror -Wl,-rpath,{installed / 'lib'}"
    found = {"PKG_CONFIG_PATH": f"{installed / 'lib/pkgconfig'}"}
    run("sh", "-c", command, folder=folder, environment=found)
    return folder / "visits"


def activities(backend: LocalSupabase) -> int:
    """Count the activities on the server."""
    return int(backend.control.sql("select count(*) as n from activities")[0]["n"])


def threads(process: int) -> set[str]:
    """The names of a process's threads."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return {(task / "comm").read_text("utf-8").strip() for task in tasks}


def arguments(backend: LocalSupabase) -> list[str]:
    return ["app-data", backend.url, backend.anon_key, "solo@example.org"]


def test_the_app_stores_a_visit_and_stays_signed_in(
    visits: Path, backend: LocalSupabase, tmp_path: Path
) -> None:
    before = activities(backend)
    password = {"HOLDFAST_PASSWORD": "holdfast-demo"}
    first = run(visits, *arguments(backend), folder=tmp_path, environment=password)
    assert "screen: sign_in (session_missing)" in first
    assert first.splitlines()[-1] == "event: sync_completed"
    second = run(visits, *arguments(backend), folder=tmp_path)
    assert "sign_in" not in second
    assert second.splitlines()[-1] == "event: sync_completed"
    assert activities(backend) == before + 2


def test_the_app_has_one_thread(visits: Path, backend: LocalSupabase, tmp_path: Path) -> None:
    # Given an upload that takes its time
    delay = backend.control.delay("/rest/v1/activities", before_ms=2000)
    try:
        app = subprocess.Popen(
            [visits, *arguments(backend)],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOLDFAST_PASSWORD": "holdfast-demo"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert app.stdout is not None
        # When the app is at home, and its request is in flight
        for line in app.stdout:
            if line.startswith("screen: home"):
                break
        # Then nothing but the main loop runs, beside GLib's own thread for signals
        assert threads(app.pid) - {"gmain"} == {"visits"}
        rest = app.stdout.read()
        assert app.wait(30) == 0, rest
    finally:
        backend.control.clear_faults(delay)
    assert rest.splitlines()[-1] == "event: sync_completed"


def test_without_a_password_the_app_ends(
    visits: Path, backend: LocalSupabase, tmp_path: Path
) -> None:
    done = subprocess.run(
        [visits, *arguments(backend)],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "screen: sign_in (session_missing)\n")
