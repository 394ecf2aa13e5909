"""The Python packages of the build and the tests are those of mk/requirements.lock."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from consumers import ROOT

LOCK = ROOT / "mk" / "requirements.lock"
FILES = [
    ROOT / ".ci" / "requirements.txt",
    *ROOT.glob("Tests/*/requirements.txt"),
    *ROOT.glob("bindings/python/requirements*.txt"),
]


def entries() -> list[tuple[Requirement, list[str]]]:
    """The packages of the lock with their hashes."""
    found = []
    for entry in re.split(r"\n(?=\S)", LOCK.read_text("utf-8").strip()):
        if not entry.startswith("#"):
            named, *hashes = re.split(r"\s*\\\n\s*", entry)
            found.append((Requirement(named), hashes))
    return found


def applicable() -> dict[str, Requirement]:
    """The packages that the lock has for this platform, by name."""
    return {
        canonicalize_name(one.name): one
        for one, _ in entries()
        if one.marker is None or one.marker.evaluate()
    }


def test_lock_19_every_package_has_hashes() -> None:
    """Finding 19: pip installed whatever the index had under a version's name."""
    for requirement, hashes in entries():
        assert [one.operator for one in requirement.specifier] == ["=="], requirement
        assert hashes, requirement
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", one) for one in hashes), requirement


def test_lock_19_setup_installs_with_hashes_and_nothing_else() -> None:
    """Finding 19: `make setup` names the lock, and no file without hashes."""
    command = ["make", "-n", "-B", "--no-print-directory", ".venv/stamp"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    [install] = [line for line in told.splitlines() if "pip install" in line]
    assert install.split("pip install ", 1)[1].split() == [
        "-q",
        "--disable-pip-version-check",
        "--require-hashes",
        "-r",
        "mk/requirements.lock",
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_lock_19_the_lock_has_what_the_requirements_say(file: Path) -> None:
    """Finding 19: after a change of a requirements file, `make lock` is needed."""
    locked = applicable()
    named = [line.partition("#")[0].strip() for line in file.read_text("utf-8").splitlines()]
    for line in filter(None, named):
        wanted = Requirement(line)
        assert str(locked[canonicalize_name(wanted.name)].specifier) == str(wanted.specifier)


def test_lock_19_the_lock_has_what_its_packages_need() -> None:
    """Finding 19: with --require-hashes, pip refuses a package that the lock does not name."""
    locked = applicable()
    extras = {name: one.extras for name, one in locked.items()}
    for file in FILES:
        for line in file.read_text("utf-8").splitlines():
            if named := line.partition("#")[0].strip():
                one = Requirement(named)
                extras[canonicalize_name(one.name)] |= one.extras
    for name in locked:
        for text in importlib.metadata.requires(name) or []:
            needed = Requirement(text)
            chosen = [{"extra": extra} for extra in ("", *extras[name])]
            if needed.marker is None or any(needed.marker.evaluate(one) for one in chosen):
                version = next(iter(locked[canonicalize_name(needed.name)].specifier)).version
                assert needed.specifier.contains(version, prereleases=True), (name, text)


def test_lock_19_the_environment_is_that_of_the_lock() -> None:
    """Finding 19: the tests run with the locked versions."""
    assert sys.prefix != sys.base_prefix
    for name, requirement in applicable().items():
        [wanted] = requirement.specifier
        assert importlib.metadata.version(name) == wanted.version, name
