"""ABI-4 for the driver and the key stores: a header compiles alone, and all that it declares is exported, and no more."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from driver_stand import KEYS, ROOT, SOURCES

HEADERS = [SOURCES / "include" / "holdfast_http.h", KEYS / "include" / "holdfast_keys.h"]
INCLUDES = [f"-I{folder}" for folder in (ROOT / "include", *(header.parent for header in HEADERS))]


@pytest.fixture(params=HEADERS, ids=["driver", "keys"])
def header(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.mark.parametrize(
    "language",
    [
        ["-x", "c", "-std=c89", "-pedantic-errors", "-Wno-long-long"],
        ["-x", "c", "-std=c17"],
        ["-x", "c++", "-std=c++17"],
    ],
)
def test_header_compiles_alone(header: Path, language: list[str]) -> None:
    compiler = "c++" if "c++" in language else "cc"
    subprocess.run(
        [compiler, *language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *INCLUDES, "-"],
        input=f'#include "{header.name}"\n'.encode(),
        check=True,
    )


def declared(header: Path) -> set[str]:
    """The functions of a header, outside its comments."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text("utf-8"), flags=re.DOTALL)
    return set(re.findall(r"\b(holdfast_\w+)\((?!\*)[^;{)]*\);", text))


def exported(sources: Path, path: Path, *flags: str) -> set[str]:
    """The functions of a library that is made of these sources."""
    subprocess.run(
        ["cc", "-shared", "-fPIC", *flags, *INCLUDES, *sources.glob("*.c"), "-o", path], check=True
    )
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True
    ).stdout
    return {line.split()[-1] for line in listed.splitlines()}


def test_exports_are_those_of_the_header(tmp_path: Path) -> None:
    hidden = exported(SOURCES, tmp_path / "driver.so", "-fvisibility=hidden")
    assert hidden == declared(HEADERS[0])
    assert len(hidden) == 6
    assert exported(KEYS, tmp_path / "keys.so") == declared(HEADERS[1])
