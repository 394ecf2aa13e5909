"""holdfast_build_info(): the versions of the library and of the libraries in it."""

from __future__ import annotations

import ctypes
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from holdfast import Library

pytestmark = pytest.mark.both_flavours

#: Which function of which shared library names its version.
SYSTEM = {
    "sqlite": ("libsqlite3.so.0", "sqlite3_libversion"),
    "libsodium": ("libsodium.so.23", "sodium_version_string"),
    "jansson": ("libjansson.so.4", "jansson_version_str"),
}


def system_version(name: str) -> str:
    """The version of a library of the system, which the loader has in this process already."""
    file, function = SYSTEM[name]
    call = ctypes.CDLL(file)[function]
    call.restype = ctypes.c_char_p
    text: bytes = call()
    return text.decode("ascii")


#: What the cross-built libraries say that they are.
CROSS = {"arm64": "embedded", "arm64-bundled": "bundled"}


def bundled_version(library: Library, name: str) -> str:
    """The version of a library in the bundle, from the bill of materials of its build."""
    bill = json.loads((library.path.parent / "holdfast.cdx.json").read_text("utf-8"))
    [component] = [one for one in bill["components"] if one["name"] == name]
    version: str = component["version"]
    return version


def test_lock_19_the_libraries_inside_are_named(library: Library, flavour: str) -> None:
    info = library.build_info()
    named = CROSS.get(flavour, flavour)
    assert info == {
        "version": library.version(),
        "abi": 1,
        "flavour": named,
        **{
            name: bundled_version(library, name) if named == "bundled" else system_version(name)
            for name in SYSTEM
        },
    }


def test_lock_19_the_text_is_static(library: Library) -> None:
    fresh = ctypes.CDLL(str(library.path))
    fresh.holdfast_build_info.restype = ctypes.c_void_p
    with ThreadPoolExecutor(8) as threads:
        [start] = set(threads.map(lambda _: fresh.holdfast_build_info(), range(64)))
    assert start and json.loads(ctypes.string_at(start)) == library.build_info()


def test_the_number_of_the_abi_is_that_of_the_soname(library: Library) -> None:
    name = Path(f"{library.path}.{library.build_info()['abi']}")
    assert name.resolve() == library.path.resolve()
    with pytest.raises(OSError):
        ctypes.CDLL(f"{library.path}.{library.build_info()['abi'] + 1}")
