"""The examples of the READMEs pass mypy --strict and pyright's strict mode, with the wheel."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pages import ROOT, blocks

pytestmark = pytest.mark.slow  # two type checkers, twice

READMES = ["README.md", "bindings/python/README.md"]

WRONG = """
from holdfast import Holdfast


def wrong(app: Holdfast) -> int:
    return app.session_status()["state"]
"""


def checked(checker: str, folder: Path, app_python: Path) -> tuple[int, str]:
    """The exit status and output of a checker for the files of a folder."""
    tools = ROOT / ".venv" / "bin"
    commands: dict[str, list[str | Path]] = {
        "mypy": [tools / "mypy", "--strict", "--python-executable", app_python, "."],
        # basedpyright is pyright with its files, and a Node.js, in wheels: it downloads nothing.
        "pyright": [tools / "basedpyright", "--pythonpath", app_python],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        commands[checker],
        cwd=folder,
        env=os.environ | nowhere,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_examples_have_no_type_errors(checker: str, app_python: Path, tmp_path: Path) -> None:
    count = 0
    for readme in READMES:
        # One after another: an example may go on from those before it.
        texts = blocks(readme, "python")
        count += len(texts)
        (tmp_path / f"example_{readme.count('/')}.py").write_text("\n".join(texts), "utf-8")
    assert count >= 2
    status, told = checked(checker, tmp_path, app_python)
    assert status == 0, told


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_type_error_is_found(checker: str, app_python: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG, "utf-8")
    status, told = checked(checker, tmp_path, app_python)
    assert status == 1
    assert "int" in told and "wrong.py" in told
