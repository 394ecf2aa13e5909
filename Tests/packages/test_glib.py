"""Issue 16, point 9: the example on GLib, a host whose main loop runs the HTTP driver."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import psycopg
import pytest
from local_supabase import LocalSupabase
from patience import eventually, patience

from consumers import ROOT, run

EXAMPLE = ROOT / "examples" / "glib"

pytestmark = [
    pytest.mark.slow,  # of the desktop's packages
    pytest.mark.skipif(
        subprocess.run(["pkg-config", "--exists", "glib-2.0"], check=False).returncode != 0,
        reason="libglib2.0-dev is not installed",
    ),
]


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


def waits_for_a_lock(backend: LocalSupabase) -> bool:
    """Whether a statement of the data service waits for a lock."""
    waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
    return backend.control.sql(waiting) != []


def arguments(backend: LocalSupabase) -> list[str]:
    return ["app-data", backend.url, backend.anon_key, "solo@example.org"]


def test_the_app_stores_a_visit_and_stays_signed_in(
    visits: Path, backend: LocalSupabase, tmp_path: Path
) -> None:
    before = activities(backend)
    password = {"HOLDFAST_PASSWORD": "holdfast-demo"}
    first = run(visits, *arguments(backend), folder=tmp_path, environment=password)
    assert "screen: sign_in (session_missing)" in first
    assert first.splitlines()[-1] == "stored on the server"
    second = run(visits, *arguments(backend), folder=tmp_path)
    assert "sign_in" not in second
    assert second.splitlines()[-1] == "stored on the server"
    assert activities(backend) == before + 2


def test_the_app_has_one_thread(visits: Path, backend: LocalSupabase, tmp_path: Path) -> None:
    # Given an upload that waits in the database
    limit = backend.control.config()["statement_timeout_ms"]
    backend.control.set(statement_timeout_ms=600_000)
    try:
        with psycopg.connect(backend.dsn) as holder:
            holder.execute("lock table activities in share mode")
            app = subprocess.Popen(
                [visits, *arguments(backend)],
                cwd=tmp_path,
                env={"PATH": "/usr/bin:/bin", "HOLDFAST_PASSWORD": "holdfast-demo"},
                stdout=subprocess.PIPE,
                text=True,
            )
            eventually(lambda: waits_for_a_lock(backend), what="the request is in flight")
            # Then nothing but the main loop runs, beside GLib's own thread for signals
            assert threads(app.pid) - {"gmain"} == {"visits"}
        rest, _ = app.communicate(timeout=patience(120))
    finally:
        backend.control.set(statement_timeout_ms=limit)
    assert app.returncode == 0, rest
    assert "screen: home" in rest
    assert rest.splitlines()[-1] == "stored on the server"


def test_without_a_password_the_app_ends(
    visits: Path, backend: LocalSupabase, tmp_path: Path
) -> None:
    done = subprocess.run(
        [visits, *arguments(backend)],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=patience(240),
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "screen: sign_in (session_missing)\n")
