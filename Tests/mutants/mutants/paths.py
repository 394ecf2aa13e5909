"""Paths in the source tree and of what is built."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HERE = ROOT / "Tests/mutants"
SOURCES = ROOT / "Sources"
#: Below `build`, where Tests/abi finds the libraries of HOLDFAST_SANITIZER=mutants.
WORK = ROOT / "build/mutants"

EQUIVALENT = HERE / "equivalent.txt"
