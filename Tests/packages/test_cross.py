"""The cross-builds of mk/cross.sh follow Package.swift."""

from __future__ import annotations

import re
import zipfile

import pytest

from consumers import ROOT, run

MANIFEST = (ROOT / "Package.swift").read_text()
RULES = (ROOT / "mk" / "cross.sh").read_text()


def words(name: str) -> list[str]:
    """The value of a variable of mk/cross.sh."""
    found = re.search(rf'^{name}="(.*)"$', RULES, re.MULTILINE)
    assert found is not None, name
    return found[1].split()


def modules() -> dict[str, list[str]]:
    """The core's modules in the manifest's order, each with the modules that it uses."""
    found = re.findall(r'^    core\("(\w+)", on: \[(.*?)\]\)', MANIFEST, re.MULTILINE)
    return {name: re.findall(r'"(\w+)"', used) for name, used in found}


def test_it_compiles_the_manifests_modules_in_its_order() -> None:
    assert list(modules()) == words("modules")


def test_each_module_follows_those_that_it_uses() -> None:
    done: list[str] = []
    for name, used in modules().items():
        assert {one for one in used if one in modules()} <= set(done), name
        done.append(name)


def test_it_reads_the_manifests_c_modules() -> None:
    names = {one for used in modules().values() for one in used if one not in modules()}
    found = {
        re.search(r"module (\w+)", (ROOT / folder / "module.modulemap").read_text())[1]  # type: ignore[index]
        for folder in words("c_modules")
    }
    assert names == found | {"CPlatform", "COperations"}


def test_it_sets_the_features_of_the_manifest() -> None:
    for kind in ("Upcoming", "Experimental"):
        for feature in re.findall(rf'enable{kind}Feature\("(\w+)"', MANIFEST):
            assert f"-enable-{kind.lower()}-feature {feature}" in RULES


#: The largest allowed size of the library with SQLite, libsodium and jansson inside.
SIZE_LIMIT = 2_000_000
CARRIED = ROOT / "build" / "lib-arm64-bundled" / "libholdfast.so"
WHEELS = sorted((ROOT / "build" / "wheel-arm64").glob("*.whl"))


@pytest.mark.skipif(not WHEELS, reason="`make test-arm64-full` builds the wheel for arm64")
def test_the_wheel_for_arm64_names_its_processor_and_is_small() -> None:
    [wheel] = WHEELS
    assert re.fullmatch(r"holdfast-[\d.]+-py3-none-manylinux_2_\d+_aarch64\.whl", wheel.name)
    tag = wheel.stem.split("-")[-1]
    verdict = " ".join(run(ROOT / ".venv" / "bin" / "auditwheel", "show", wheel).split())
    assert f'is consistent with the following platform tag: "{tag}"' in verdict
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("holdfast/libholdfast.so") == CARRIED.read_bytes()
    assert CARRIED.stat().st_size <= SIZE_LIMIT
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", CARRIED))
    assert {name for name in needed if not re.match(r"lib[cm]\.so\.6$|ld-linux", name)} == set()
