"""Fixtures: the wheel, installed into an empty environment as users do it, and a backend."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from consumers import ROOT, install


@pytest.fixture(scope="session")
def backend() -> Iterator[LocalSupabase]:
    with LocalSupabase(demo=True) as running:
        yield running


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed tree in the place that it was installed for."""
    prefix = tmp_path_factory.mktemp("installed")
    install(Path("/"), str(prefix))
    return prefix


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The wheel that `make wheel` built."""
    found = list((ROOT / "build" / "wheel").glob("holdfast-*.whl"))
    assert len(found) == 1, f"build/wheel holds {found}: run make wheel"
    return found[0]


@pytest.fixture(scope="session")
def app_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with only the wheel installed."""
    folder = tmp_path_factory.mktemp("app")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    # Without an index, an undeclared dependency of the wheel would be missing.
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-q", "--no-index", wheel], check=True)
    return python
