"""ABI-4 for the driver: its header compiles alone, and it exports exactly the declared functions."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from driver_stand import ROOT, SOURCES

HEADER = SOURCES / "include" / "holdfast_http.h"
INCLUDES = ["-I", ROOT / "include", "-I", SOURCES / "include"]


@pytest.mark.parametrize(
    "language",
    [
        ["-x", "c", "-std=c89", "-pedantic-errors", "-Wno-long-long"],
        ["-x", "c", "-std=c17"],
        ["-x", "c++", "-std=c++17"],
    ],
)
def test_header_compiles_alone(language: list[str]) -> None:
    compiler = "c++" if "c++" in language else "cc"
    subprocess.run(
        [compiler, *language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *INCLUDES, "-"],
        input=b'#include "holdfast_http.h"\n',
        check=True,
    )


def test_exports_are_those_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "driver.so"
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            *INCLUDES,
            *SOURCES.glob("*.c"),
            "-o",
            path,
        ],
        check=True,
    )
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True
    ).stdout
    exported = {line.split()[-1] for line in listed.splitlines()}
    assert exported == set(re.findall(r"\b(holdfast_http_\w+)\(\w+ \*?\w", HEADER.read_text()))
