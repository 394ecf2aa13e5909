"""The README's figures are those that the runs have recorded."""

from __future__ import annotations

import json
import subprocess
import sys

from pages import ROOT

RECORDED = json.loads((ROOT / "docs/figures.json").read_text("utf-8"))


def test_the_readme_has_what_is_recorded() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs/figures.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_sizes_that_are_recorded_are_those_of_the_libraries() -> None:
    # They may be those of a few commits ago, not those of another library.
    for library in ("lib/libholdfast.so", "lib-runtime/libholdfast.so", "lib/libholdfast_http.so"):
        built = (ROOT / "build" / library).stat().st_size
        assert abs(RECORDED[library] - built) <= built / 20, library


def test_every_line_of_the_table_of_reliability_is_shown() -> None:
    lines = [
        line
        for line in (ROOT / "docs/reliability.md").read_text("utf-8").splitlines()
        if line.startswith("| ")
    ]
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = readme.split("| what tries to break it |", 1)[1].split("<!-- /figures -->", 1)[0]
    assert len([line for line in shown.splitlines() if line.startswith("| ")]) == len(lines) - 1
