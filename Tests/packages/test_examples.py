"""The Python examples run against the local backend as their READMEs describe."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from local_supabase import LocalSupabase
from patience import patience

from consumers import ROOT, run

EXAMPLES = ROOT / "examples"


def activities(backend: LocalSupabase) -> int:
    """Count the activities on the server."""
    return int(backend.control.sql("select count(*) as n from activities")[0]["n"])


@pytest.fixture
def host(app_python: Path, backend: LocalSupabase) -> list[str | Path]:
    """The command that runs the asyncio host with only the wheel installed."""
    script = EXAMPLES / "python" / "host.py"
    waits = ["--patience", f"{patience(120):g}"]
    return [app_python, script, "--backend", backend.url, "--key", backend.anon_key, *waits]


PASSWORD = {"HOLDFAST_PASSWORD": "holdfast-demo"}


def test_the_asyncio_host_signs_in_once(
    host: list[str | Path], backend: LocalSupabase, tmp_path: Path
) -> None:
    before = activities(backend)
    first = run(*host, folder=tmp_path, environment=PASSWORD)
    assert "screen: sign_in (session_missing)" in first
    assert first.splitlines()[-1] == "stored on the server"
    second = run(*host, folder=tmp_path)
    assert "sign_in" not in second
    assert second.splitlines()[-1] == "stored on the server"
    assert activities(backend) == before + 2
    assert {path.name for path in tmp_path.iterdir()} == {"app-data", "app-data.keys"}


def test_the_asyncio_host_keeps_items_while_the_server_is_away(
    host: list[str | Path], backend: LocalSupabase, tmp_path: Path
) -> None:
    # Given a signed-in user and a server that does not answer
    run(*host, folder=tmp_path, environment=PASSWORD)
    before = activities(backend)
    backend.control.drop_before("/rest/v1", times=1000)
    try:
        done = subprocess.run(
            [*host, "--patience", "2"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        backend.control.clear_faults()
    # Then the host says why nothing is sent, and the next run also sends the kept item
    assert done.returncode == 1, done.stderr
    assert "not yet sent:" in done.stdout, done.stdout
    run(*host, folder=tmp_path)
    assert activities(backend) == before + 2


def test_bring_your_own_http(backend: LocalSupabase, tmp_path: Path) -> None:
    host = EXAMPLES / "own-http" / "host.py"
    assert len(host.read_text("utf-8").splitlines()) < 110
    before = activities(backend)
    printed = run(
        sys.executable,
        host,
        backend.url,
        backend.anon_key,
        "data",
        "solo@example.org",
        "holdfast-demo",
        folder=tmp_path,
        environment={"PYTHONPATH": str(ROOT / "bindings" / "python" / "src")},
    )
    assert printed.splitlines()[0] == "screen: home"
    assert activities(backend) == before + 1


def test_bring_your_own_http_passes_an_answer_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that was full for a moment ended the example, and with it the answer."""
    monkeypatch.syspath_prepend(ROOT / "bindings" / "python" / "src")
    from holdfast.errors import HoldfastError

    host = runpy.run_path(str(EXAMPLES / "own-http" / "host.py"))
    failures = [HoldfastError("storage.full", "the disk is full", retryable=True)] * 2
    taken: list[object] = []

    class App:
        def complete(self, answer: object) -> None:
            if failures:
                raise failures.pop()
            taken.append(answer)

    naps: list[float] = []
    monkeypatch.setattr("time.sleep", naps.append)
    host["complete"](App(), {"id": 1})
    assert (taken, len(naps)) == ([{"id": 1}], 2)
    failures.append(HoldfastError("handle.closed", "the handle is closed"))
    with pytest.raises(HoldfastError):
        host["complete"](App(), {"id": 2})


@pytest.mark.parametrize("example", ["python/host.py", "own-http/host.py"])
def test_the_examples_are_typed(example: str, app_python: Path) -> None:
    mypy = ROOT / ".venv" / "bin" / "mypy"
    environment = {"MYPYPATH": str(ROOT / "bindings" / "python" / "src")}
    run(
        mypy,
        "--strict",
        "--cache-dir",
        app_python.parent / "mypy",
        EXAMPLES / example,
        environment=environment,
    )
