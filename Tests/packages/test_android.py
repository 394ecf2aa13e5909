"""What Android asks of a library, and the script that builds one (bindings/android)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from consumers import ROOT

ANDROID = ROOT / "bindings" / "android"

#: A C library, and a library that uses it.
SYSTEM = "int getpid(void) { return 0; }"
FINE = "int getpid(void); int holdfast_one(void) { return getpid(); }"

#: What bindings/android/build.sh links with.
OPTIONS = [
    "-Wl,-z,max-page-size=16384,-z,common-page-size=16384",
    "-Wl,--pack-dyn-relocs=android,-soname,libholdfast.so",
]

Build = Callable[..., Path]


@pytest.fixture(params=["aarch64", "x86_64"])
def build(tmp_path: Path, request: pytest.FixtureRequest) -> Build:
    """Links a library for Android against a C library of the test."""
    compiler = ["clang", f"--target={request.param}-linux-android24", "-nostdlib", "-fuse-ld=lld"]

    def link(source: str, *options: str, system: str = "libc.so", pic: str = "-fPIC") -> Path:
        libraries = [tmp_path / system, tmp_path / "libholdfast.so"]
        contents = [SYSTEM, source]
        given: list[list[str]] = [[f"-Wl,-soname,{system}"], [*options, str(libraries[0])]]
        for library, content, more in zip(libraries, contents, given, strict=True):
            (tmp_path / "source.c").write_text(content)
            command = [*compiler, "-shared", pic, "-o", library, tmp_path / "source.c", *more]
            subprocess.run([str(word) for word in command], check=True)
        return libraries[1]

    return link


def check(library: Path) -> tuple[int, str]:
    """The status of bindings/android/check.py and what it says."""
    done = subprocess.run(
        [sys.executable, ANDROID / "check.py", library],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def test_a_library_that_follows_every_rule_passes(build: Build) -> None:
    assert check(build(FINE, *OPTIONS)) == (0, "")


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        (FINE, [OPTIONS[1], "-Wl,-z,max-page-size=4096"], "pages of 16 kB"),
        (FINE, [OPTIONS[0], "-Wl,-soname,libholdfast.so.1"], "without a version"),
        (
            "static int a; int *b = &a; int *c = &a;",
            [*OPTIONS, "-Wl,--pack-dyn-relocs=relr"],
            "since API 30",
        ),
        (
            "__thread int a; int b(void) { return a; }",
            [*OPTIONS, "-fno-emulated-tls"],
            "since API 29",
        ),
    ],
    ids=["pages", "name", "relocations", "thread-local"],
)
def test_each_broken_rule_is_named(
    build: Build, source: str, options: list[str], said: str
) -> None:
    status, errors = check(build(source, *options))
    assert status == 1
    assert said in errors, errors


def test_a_library_that_the_system_lacks_is_named(build: Build) -> None:
    status, errors = check(build(FINE, *OPTIONS, system="libsqlite3.so"))
    assert (status, errors.count("it needs libsqlite3.so")) == (1, 1), errors


def test_text_relocations_are_refused(build: Build) -> None:
    source = 'extern int b; __asm__(".text; .quad b"); int a(void) { return 1; } int b;'
    options = [*OPTIONS, "-Wl,-z,notext", "-Wl,-Bsymbolic"]
    status, errors = check(build(source, *options))
    assert status == 1
    assert "text relocations" in errors, errors


def test_a_library_of_this_machine_is_not_androids() -> None:
    status, errors = check(ROOT / "build" / "lib" / "libholdfast.so")
    assert status == 1
    assert "libc.so.6, " in errors


@pytest.mark.parametrize(
    ("home", "said"),
    [(None, "ANDROID_NDK_HOME must name the folder"), ("empty", "holds no NDK")],
)
def test_without_an_ndk_the_script_says_so(tmp_path: Path, home: str | None, said: str) -> None:
    environment = {key: text for key, text in os.environ.items() if key != "ANDROID_NDK_HOME"}
    if home is not None:
        environment["ANDROID_NDK_HOME"] = str(tmp_path / home)
    out = tmp_path / "out"
    done = subprocess.run(
        [ANDROID / "build.sh", out],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()
