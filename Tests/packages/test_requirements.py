"""The Python packages of builds and tests are locked by hash, in mk/requirements."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from consumers import ROOT

FOLDER = ROOT / "mk" / "requirements"
#: In the order in which they are installed: each tier adds to the one before.
TIERS = ["demo", "test", "tools"]


def listed(tier: str) -> list[Requirement]:
    """The packages that a tier's list names."""
    lines = (FOLDER / f"{tier}.txt").read_text("utf-8").splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


def entries(tier: str) -> list[tuple[Requirement, list[str]]]:
    """The packages of a lock with their hashes."""
    found = []
    for entry in re.split(r"\n(?=\S)", (FOLDER / f"{tier}.lock").read_text("utf-8").strip()):
        if not entry.startswith("#"):
            named, *hashes = re.split(r"\s*\\\n\s*", entry)
            found.append((Requirement(named), hashes))
    return found


def applicable(*tiers: str) -> dict[str, Requirement]:
    """The packages that the locks have for this platform, by name."""
    return {
        canonicalize_name(one.name): one
        for tier in tiers
        for one, _ in entries(tier)
        if one.marker is None or one.marker.evaluate()
    }


@pytest.mark.parametrize("tier", TIERS)
def test_every_package_has_hashes(tier: str) -> None:
    for requirement, hashes in entries(tier):
        assert [one.operator for one in requirement.specifier] == ["=="], requirement
        assert hashes, requirement
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", one) for one in hashes), requirement


@pytest.mark.parametrize("tier", TIERS)
def test_setup_installs_by_hash_and_nothing_else(tier: str) -> None:
    # Given the commands that install a tier's packages
    command = ["make", "-n", "-B", "--no-print-directory", f".venv/{tier}"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # Then they name the locks, with hashes, and no other package
    installs = [line.split("pip install ", 1)[1] for line in told.splitlines() if "pip " in line]
    options = "-q --no-compile --disable-pip-version-check --require-hashes -r mk/requirements/"
    wanted = TIERS[: TIERS.index(tier) + 1]
    assert installs == [f"{options}{one}.lock" for one in wanted]


@pytest.mark.parametrize("tier", TIERS)
def test_the_lock_has_what_the_list_says(tier: str) -> None:
    locked = applicable(tier)
    for wanted in listed(tier):
        assert str(locked[canonicalize_name(wanted.name)].specifier) == str(wanted.specifier)


def test_locks_agree_on_versions() -> None:
    known: dict[str, str] = {}
    for tier in TIERS:
        for name, one in applicable(tier).items():
            assert known.setdefault(name, str(one.specifier)) == str(one.specifier), name


@pytest.mark.parametrize("tier", TIERS)
def test_the_lock_has_what_its_packages_need(tier: str) -> None:
    # pip refuses a package that no lock names
    known = applicable(*TIERS[: TIERS.index(tier) + 1])
    locked = applicable(tier)
    extras = {name: set(one.extras) for name, one in locked.items()}
    for one in listed(tier):
        extras[canonicalize_name(one.name)] |= one.extras
    for name in locked:
        for text in importlib.metadata.requires(name) or []:
            needed = Requirement(text)
            chosen = [{"extra": extra} for extra in ("", *extras[name])]
            if needed.marker is None or any(needed.marker.evaluate(one) for one in chosen):
                version = next(iter(known[canonicalize_name(needed.name)].specifier)).version
                assert needed.specifier.contains(version, prereleases=True), (name, text)


def test_the_environment_is_that_of_the_locks() -> None:
    assert sys.prefix != sys.base_prefix
    for name, requirement in applicable(*TIERS).items():
        [wanted] = requirement.specifier
        assert importlib.metadata.version(name) == wanted.version, name
