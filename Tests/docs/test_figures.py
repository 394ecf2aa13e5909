"""docs/benchmarks.md shows the recorded sizes, instructions and times."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from pages import ROOT

RECORDED = json.loads((ROOT / "docs/figures.json").read_text("utf-8"))


def test_the_summary_matches_the_recorded_runs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs/figures.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "library",
    [
        "lib/libholdfast.so",
        "lib/libholdfast_http.so",
        # `make test` builds only the library that is shipped
        pytest.param("lib-runtime/libholdfast.so", marks=pytest.mark.slow),
    ],
)
def test_the_recorded_sizes_are_those_of_the_libraries(library: str) -> None:
    # The recorded sizes may be a few commits old, but not off by more than 5 %.
    built = (ROOT / "build" / library).stat().st_size
    assert abs(RECORDED[library] - built) <= built / 20


def test_the_page_has_the_size_of_every_package() -> None:
    """Issue 18: what an app fetches, in each language."""
    page = (ROOT / "docs/benchmarks.md").read_text("utf-8")
    for language in ("Python", "Java", "Kotlin", "OkHttp", "Node"):
        assert re.search(rf"^\| {language}.*\| [\d,]+ bytes \|$", page, re.MULTILINE), language


@pytest.mark.slow  # `make test` builds no wheel
def test_the_recorded_size_of_the_wheel_is_its_size() -> None:
    (wheel,) = [name for name in RECORDED if name.startswith("wheel/")]
    (built,) = (ROOT / "build").glob(wheel)
    assert abs(RECORDED[wheel] - built.stat().st_size) <= RECORDED[wheel] / 20


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


def test_the_page_has_the_size_of_every_variant() -> None:
    """No row said how large the library is on a phone."""
    page = (ROOT / "docs/benchmarks.md").read_text("utf-8")
    for library in ("lib", "lib-bundled", "lib-musl", "lib-arm64", "lib-arm64-bundled"):
        assert f"{RECORDED[f'{library}/libholdfast.so']:,} bytes" in page
    # An app carries this one.
    assert RECORDED["lib-arm64-bundled/libholdfast.so"] <= 1_950_000


def test_the_page_has_the_instructions_of_both_flavours() -> None:
    page = (ROOT / "docs/benchmarks.md").read_text("utf-8")
    recorded = json.loads((ROOT / "Tests/benchmarks/recorded.json").read_text("utf-8"))
    flavours = recorded["x86_64"]["instructions"]
    assert set(flavours) == {"embedded", "runtime"}
    for calls in flavours.values():
        assert f"| {' | '.join(f'{count:,}' for count in calls.values())} |" in page
