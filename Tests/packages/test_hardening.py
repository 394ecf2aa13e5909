"""What the compiler and the linker do against exploits, in each library that is built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from consumers import ROOT, run

LIBRARIES = {
    "embedded": ROOT / "build" / "lib" / "libholdfast.so",
    "runtime": ROOT / "build" / "lib-runtime" / "libholdfast.so",
    "bundled": ROOT / "build" / "lib-bundled" / "libholdfast.so",
    "keys": ROOT / "build" / "lib" / "libholdfast_keys.so",
    "driver": ROOT / "build" / "lib" / "libholdfast_http.so",
}


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Path:
    return LIBRARIES[str(request.param)]


def build_id(file: Path) -> str:
    [found] = re.findall(r"Build ID: ([0-9a-f]{40})", run("readelf", "-n", file))
    return str(found)


def test_debug_information_is_kept_apart(library: Path) -> None:
    debug = ROOT / "build" / "debug" / library.parent.name / f"{library.name}.debug"
    assert build_id(library) == build_id(debug)
    assert ".debug_info" not in run("readelf", "-SW", library)
    assert ".debug_info" in run("readelf", "-SW", debug)


def test_stacks_and_buffers_are_checked(library: Path) -> None:
    imported = run("nm", "-D", "--undefined-only", library)
    assert "__stack_chk_fail" in imported
    assert re.search(r"__\w+_chk@", imported.replace("__stack_chk_fail", ""))


def test_addresses_cannot_be_overwritten(library: Path) -> None:
    headers = run("readelf", "-lW", library)
    assert "GNU_RELRO" in headers
    assert re.search(r"GNU_STACK .* RW  ", headers), "the stack is executable"
    dynamic = run("readelf", "-dW", library)
    assert "BIND_NOW" in dynamic or "NOW" in dynamic
    assert "TEXTREL" not in dynamic
