"""The cross-build of mk/arm64.mk follows Package.swift."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = (ROOT / "Package.swift").read_text()
RULES = (ROOT / "mk" / "arm64.mk").read_text()


def words(name: str) -> list[str]:
    """The value of a variable of mk/arm64.mk."""
    found = re.search(rf"^{name} := (.*)$", RULES, re.MULTILINE)
    assert found is not None, name
    return found[1].split()


def modules() -> dict[str, list[str]]:
    """The core's modules in the manifest's order, each with the modules that it uses."""
    found = re.findall(r'^    core\("(\w+)", on: \[(.*?)\]\)', MANIFEST, re.MULTILINE)
    return {name: re.findall(r'"(\w+)"', used) for name, used in found}


def test_it_compiles_the_manifests_modules_in_its_order() -> None:
    assert list(modules()) == words("ARM64_MODULES")


def test_each_module_follows_those_that_it_uses() -> None:
    done: list[str] = []
    for name, used in modules().items():
        assert {one for one in used if one in modules()} <= set(done), name
        done.append(name)


def test_it_reads_the_manifests_c_modules() -> None:
    names = {one for used in modules().values() for one in used if one not in modules()}
    found = {
        re.search(r"module (\w+)", (ROOT / folder / "module.modulemap").read_text())[1]  # type: ignore[index]
        for folder in words("C_MODULES")
    }
    assert names == found | {"CPlatform"}


def test_it_sets_the_features_of_the_manifest() -> None:
    for kind in ("Upcoming", "Experimental"):
        for feature in re.findall(rf'enable{kind}Feature\("(\w+)"', MANIFEST):
            assert f"-enable-{kind.lower()}-feature {feature}" in RULES
