"""Fixtures: the driver, built together with the fake core, and a server on loopback."""

from __future__ import annotations

import ctypes
import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver_stand import KEYS, OK, ROOT, SOURCES, Core, Driver, Server, declare


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The driver, the key stores and the fake core as one library, built once for all workers."""
    of_the_run = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        of_the_run = of_the_run.parent
    path = of_the_run / "driver.so"
    with open(of_the_run / "driver.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            build(path)
    built = ctypes.CDLL(str(path))
    declare(built)
    built.fake_open.restype = ctypes.c_void_p
    built.holdfast_live_count.restype = ctypes.c_int64
    built.fake_completion.restype = ctypes.c_char_p
    built.holdfast_close.argtypes = [ctypes.c_void_p]
    built.holdfast_close.restype = None
    return built


def build(path: Path) -> None:
    """Build them, with the flags of HOLDFAST_HTTP_TEST_FLAGS."""
    flags = os.environ.get("HOLDFAST_HTTP_TEST_FLAGS", "-g").split()
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fPIC",
            "-shared",
            *flags,
            "-I",
            ROOT / "include",
            "-I",
            SOURCES / "include",
            "-I",
            KEYS / "include",
            *sorted(SOURCES.glob("*.c")),
            *sorted(KEYS.glob("*.c")),
            ROOT / "Tests" / "http" / "fake_core.c",
            "-o",
            path.with_suffix(".new"),
            "-lcurl",
            "-ljansson",
            "-lpthread",
        ],
        check=True,
    )
    path.with_suffix(".new").rename(path)


@pytest.fixture(params=["thread", "loop"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test twice: with the driver's own thread, and on the event loop of a host."""
    monkeypatch.setattr(Driver, "threaded", request.param == "thread")
    return str(request.param)


@pytest.fixture
def core(library: ctypes.CDLL) -> Iterator[Core]:
    opened = Core(library)
    yield opened
    opened.close()
    opened.ends_empty()


@pytest.fixture
def driver(core: Core) -> Iterator[Driver]:
    started = Driver(core.library, core.handle)
    assert started.status == OK
    yield started
    started.stop()


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.close()
