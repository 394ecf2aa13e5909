"""docs/benchmarks.md shows the recorded sizes and times."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from pages import ROOT

RECORDED = json.loads((ROOT / "docs/figures.json").read_text("utf-8"))


def test_the_summary_matches_the_recorded_runs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs/figures.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_recorded_sizes_are_those_of_the_libraries() -> None:
    # The recorded sizes may be a few commits old, but not off by more than 5 %.
    for library in ("lib/libholdfast.so", "lib-runtime/libholdfast.so", "lib/libholdfast_http.so"):
        built = (ROOT / "build" / library).stat().st_size
        assert abs(RECORDED[library] - built) <= built / 20, library


def test_every_row_of_reliability_has_a_count_and_a_result() -> None:
    text = (ROOT / "docs/reliability.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \| ([\d,]+) \| ([\w.% ]+) \|$", text, flags=re.MULTILINE)
    assert len(rows) == text.count("\n| ") - 1
    for what, tries, survived in rows:
        assert int(tries.replace(",", "")) > 0
        # Of the faults put into the sources, the tests notice a share.
        if "make mutants" in what:
            assert float(survived.removesuffix(" %")) >= 95
        else:
            assert survived == "all"


def test_the_readme_links_to_the_figures_and_has_none() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for page in ("docs/benchmarks.md", "docs/reliability.md"):
        assert f"]({page})" in readme
    for size in RECORDED.values():
        assert f"{size:,}" not in readme
