"""Builds the C programs of the benchmark, and runs them with the library of a flavour."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "bench"

#: Flavour -> the folder of its library below build/.
FOLDERS = {"embedded": "lib", "runtime": "lib-runtime", "bundled": "lib-bundled"}
FLAVOURS = ("embedded", "runtime")

_LINKED = {
    "host": [f"-L{ROOT / 'build/lib'}", "-lholdfast", "-ljansson"],
    # Its fsync() takes the place of the C library's, also for SQLite.
    "hour": [f"-L{ROOT / 'build/lib'}", "-lholdfast", "-ljansson", "-rdynamic"],
    "answers": [f"-L{ROOT / 'build/lib'}", "-lholdfast", "-ljansson"],
    "floor": ["-lsqlite3", "-lsodium", "-ljansson"],
    "load": ["-ljansson", "-ldl"],
    "spawn": ["-ljansson"],
}
_COMPILED = ["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]


def node() -> str:
    """The Node of the PATH, or the one that comes with basedpyright."""
    named = ["make", "-s", "--no-print-directory", "-C", str(ROOT), "node-path"]
    return subprocess.run(named, capture_output=True, text=True, check=True).stdout.strip()


def library(flavour: str) -> Path:
    return ROOT / "build" / FOLDERS[flavour] / "libholdfast.so"


def path(name: str) -> Path:
    return BUILD / name


def build() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    for name, linked in _LINKED.items():
        sources = [str(HERE / "bench.c"), str(HERE / f"{name}.c")]
        subprocess.run(
            [*_COMPILED, *sources, "-o", str(path(name)), *linked, "-pthread"], check=True
        )


def environment(flavour: str) -> dict[str, str]:
    """Return an environment in which the host and Python load the library of this flavour."""
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(library(flavour).parent),
        "HOLDFAST_LIBRARY": str(library(flavour)),
    }


def output(command: list[str], flavour: str = "embedded") -> str:
    done = subprocess.run(
        command, env=environment(flavour), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)[:2000]}\n{done.stdout}{done.stderr}")
    return done.stdout


def result(text: str) -> dict[str, Any]:
    """Parse the output of report() (bench.h) in the last line."""
    found: dict[str, Any] = json.loads(text.splitlines()[-1])
    return found


def run(name: str, flavour: str, mode: str, folder: str, *more: str) -> dict[str, Any]:
    if mode == "prepare":
        Path(folder).mkdir(parents=True)
        output([str(path(name)), mode, folder, *more], flavour)
        return {}
    return result(output([str(path(name)), mode, folder, *more], flavour))


class Turns:
    """A running program that makes one call for each order."""

    def __init__(self, command: list[str], flavour: str) -> None:
        self._name = " ".join(command)
        self._process = subprocess.Popen(
            command,
            env={**environment(flavour), "BENCH_TURNS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def take(self) -> float:
        """Order the next call; return its seconds."""
        given, told = self._process.stdin, self._process.stdout
        if given is None or told is None:
            raise RuntimeError("no pipes")
        given.write("\n")
        given.flush()
        line = told.readline()
        if not line:
            sys.exit(f"{self._name} has ended")
        return float(line)

    def end(self) -> None:
        self._process.communicate()
        if self._process.returncode != 0:
            sys.exit(f"{self._name} failed")


def spawn(
    count: int, name: str, flavour: str, *arguments: str
) -> tuple[list[float], list[dict[str, Any]]]:
    """Run a program several times; return each run's seconds from outside, and its report."""
    text = output([str(path("spawn")), str(count), str(path(name)), *arguments], flavour)
    outside, reports = [], []
    for line in text.splitlines():
        seconds, _, report = line.partition(" ")
        outside.append(float(seconds))
        reports.append(json.loads(report))
    return outside, reports
