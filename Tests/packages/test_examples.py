"""The Python examples run against the local backend as their READMEs describe."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from consumers import ROOT, run

EXAMPLES = ROOT / "examples"


def activities(backend: LocalSupabase) -> int:
    """Count the activities on the server."""
    return int(backend.control.sql("select count(*) as n from activities")[0]["n"])


@pytest.fixture
def host(app_python: Path, backend: LocalSupabase) -> Callable[[Path], str]:
    """Runs the asyncio host with only the wheel installed; returns what it prints."""
    environment = {
        "HOLDFAST_URL": backend.url,
        "HOLDFAST_KEY": backend.anon_key,
        "HOLDFAST_PASSWORD": "holdfast-demo",
    }
    script = EXAMPLES / "python" / "host.py"
    return lambda folder: run(app_python, script, folder=folder, environment=environment)


def test_the_asyncio_host_goes_its_seven_steps(
    host: Callable[[Path], str], backend: LocalSupabase, tmp_path: Path
) -> None:
    before = activities(backend)
    lines = host(tmp_path).splitlines()
    screens = [line.split()[1] for line in lines if line.startswith("screen: ")]
    assert screens == ["sign_in", "select_org", "home", "home", "sign_in"]
    assert "queued: You are offline." in lines[3]
    changed, stored = (line for line in lines if line.startswith("visits: "))
    assert {"60 min changing", "20 min deleting"} <= set(re.findall(r"\d+ min \w+", changed))
    assert "60 min stored" in stored
    assert "20 min" not in stored
    assert re.search(r"^contacts: [1-9]\d* \w+", "\n".join(lines), flags=re.MULTILINE)
    assert activities(backend) == before + 2
    assert {path.name for path in tmp_path.iterdir()} == {"app-data", "app-keys"}


def test_bring_your_own_http(backend: LocalSupabase, tmp_path: Path) -> None:
    host = EXAMPLES / "own-http" / "host.py"
    assert len(host.read_text("utf-8").splitlines()) < 90
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
    assert printed.splitlines()[-1] == "stored on the server"
    assert activities(backend) == before + 1


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
