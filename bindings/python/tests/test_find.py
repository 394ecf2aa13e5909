"""Which library is loaded: the variable's, the package's, the source tree's, or the system's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import holdfast
import pytest
from holdfast import Library
from holdfast.library import file_name, find, system_name

PACKAGE = Path(holdfast.__file__).parent
SAY_VERSION = "import holdfast; print(holdfast.Library.default().path, holdfast.version())"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of the package outside the source tree; returns the folder to import it from."""
    target = tmp_path / "site" / "holdfast"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target.parent


def run(site: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a new Python that prints the path of `find`."""
    return subprocess.run(
        [sys.executable, "-c", SAY_VERSION],
        env={"PYTHONPATH": str(site), "PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_variable_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_LIBRARY", "/somewhere/libholdfast.so")
    assert find() == Path("/somewhere/libholdfast.so")


def test_the_library_in_the_package_is_found(installed: Path, stub: Library) -> None:
    carried = installed / "holdfast" / file_name()
    shutil.copy(stub.path, carried)
    assert run(installed).stdout.split() == [str(carried), "9.8.7"]


def test_the_library_of_the_source_tree_is_found(tmp_path: Path, stub: Library) -> None:
    source = tmp_path / "bindings" / "python" / "src"
    shutil.copytree(PACKAGE, source / "holdfast")
    built = tmp_path / "build" / "lib" / file_name()
    built.parent.mkdir(parents=True)
    shutil.copy(stub.path, built)
    # A folder build/lib above the package must belong to this project.
    assert run(source).returncode != 0
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "holdfast.h").touch()
    assert run(source).stdout.split() == [str(built), "9.8.7"]


def test_the_library_of_the_system_is_found(installed: Path, tmp_path: Path, stub: Library) -> None:
    # As after `make install` and ldconfig, or in a folder of the loader's path.
    folder = tmp_path / "lib"
    folder.mkdir()
    shutil.copy(stub.path, folder / system_name())
    found = run(installed, LD_LIBRARY_PATH=str(folder))
    assert found.stdout.split() == [system_name(), "9.8.7"]


def test_a_missing_library_raises_with_instructions(installed: Path) -> None:
    failed = run(installed)
    assert failed.returncode == 1
    last = failed.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {system_name()} cannot be loaded"), last
    assert "HOLDFAST_LIBRARY" in last
