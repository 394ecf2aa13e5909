"""Tests of the binding alone, with a small scripted C library in place of the core."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from holdfast import Library

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The C library, compiled against the real header, so that a wrong signature does not build."""
    folder = tmp_path_factory.mktemp("stub")
    target = folder / "libholdfast.so"
    flags = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "include")]
    command = ["cc", *flags, "-o", str(target), str(HERE / "stub.c")]
    subprocess.run(command, check=True)
    return Library(target)


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test, every reply is released."""
    yield
    if "stub" in request.fixturenames:
        assert request.getfixturevalue("stub").live() == 0
