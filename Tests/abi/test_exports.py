"""Exported symbols, the header, and the size of the libraries."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from holdfast import Library

from support.paths import EMULATOR, FLAVOURS, HEADER

#: docs/abi.md promises that the Embedded library, stripped, is smaller.
SIZE_LIMIT = 1_034_000

C_STANDARDS = ["c89", "c99", "c11", "c17"]
COMPILERS = {"gcc": "g++", "clang": "clang++"}


def declared() -> set[str]:
    """The functions that the header declares."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.S)
    return set(re.findall(r"\b(holdfast_\w+)\s*\((?!\s*\*)[^;{]*\)\s*;", text))


def output(*command: str | Path) -> str:
    """The standard output of a command."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    return done.stdout


def test_the_header_declares_what_it_documents() -> None:
    names = declared()
    assert {"holdfast_open", "holdfast_close", "holdfast_free", "holdfast_next"} <= names
    assert "holdfast_log_fn" not in names
    assert len(names) >= 37


@pytest.mark.both_flavours
def test_ABI_4_exported_symbols_are_those_of_the_header(library: Library) -> None:
    lines = output("nm", "-D", "--defined-only", library.path).splitlines()
    symbols = {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] != "A"}
    assert symbols == declared()


@pytest.mark.both_flavours
def test_ABI_4_exported_symbols_carry_the_version(library: Library) -> None:
    lines = output("nm", "-D", "--defined-only", library.path).splitlines()
    versioned = [line.split()[-1] for line in lines if line.split()[-2] != "A"]
    assert all(name.endswith("@@HOLDFAST_1") for name in versioned), versioned


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("standard", C_STANDARDS)
def test_ABI_4_header_compiles_alone_as_c(tmp_path: Path, compiler: str, standard: str) -> None:
    source = tmp_path / "alone.c"
    source.write_text('#include "holdfast.h"\nint main(void) { return HOLDFAST_OK; }\n')
    assert shutil.which(compiler), f"{compiler} is needed"
    compile_strictly(compiler, standard, source)


@pytest.mark.parametrize("compiler", COMPILERS.values())
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_ABI_4_header_compiles_alone_as_cpp(tmp_path: Path, compiler: str, standard: str) -> None:
    source = tmp_path / "alone.cpp"
    source.write_text(
        '#include "holdfast.h"\n#include "holdfast.h"\n'
        "int main() { holdfast *self = nullptr; (void)self; return HOLDFAST_OK; }\n"
    )
    assert shutil.which(compiler), f"{compiler} is needed"
    compile_strictly(compiler, standard, source)


def compile_strictly(compiler: str, standard: str, source: Path) -> None:
    """Compile without linking; any warning is an error."""
    # C89 has no stdint.h; the compilers bring their own, which may use long long.
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", f"-std={standard}", "-fsyntax-only"]
    command = [compiler, *flags, "-I", str(HEADER.parent), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.both_flavours
def test_ABI_4_a_c_program_links_every_function(tmp_path: Path, library: Library) -> None:
    # A C program that names every function links against the library and finds its version.
    uses = "\n".join(f"  if ((void *)&{name} == 0) return 1;" for name in sorted(declared()))
    source = tmp_path / "use.c"
    source.write_text(
        '#include "holdfast.h"\n#include <stdio.h>\n'
        f"int main(void) {{\n{uses}\n  puts(holdfast_version());\n  return 0;\n}}\n"
    )
    program = tmp_path / "use"
    flags = ["-I", str(HEADER.parent), "-o", str(program), str(source), str(library.path)]
    output("cc", *flags, f"-Wl,-rpath,{library.path.parent}")
    assert output(*EMULATOR, program).strip() == library.version()


def test_ABI_4_the_embedded_library_is_small(tmp_path: Path) -> None:
    stripped = tmp_path / "stripped.so"
    output("strip", "--strip-unneeded", "-o", stripped, FLAVOURS["embedded"])
    assert stripped.stat().st_size <= SIZE_LIMIT


@pytest.mark.both_flavours
def test_ABI_4_no_swift_runtime_beside_the_library(flavour: str, library: Library) -> None:
    # The embedded build needs only C libraries; the ordinary one includes Swift's runtime, which is
    # written in C++.
    foreign: tuple[str, ...] = ("libswift", "libFoundation", "libBlocksRuntime", "libdispatch")
    if flavour != "runtime":
        foreign += ("libstdc++", "libgcc_s")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", library.path))
    assert needed, "readelf lists no needed library"
    assert [name for name in needed if name.startswith(foreign)] == []
    # ldd knows the libraries of this machine's processor; the program above needs those of others.
    if not EMULATOR:
        assert "not found" not in output("ldd", library.path)


@pytest.mark.both_flavours
def test_ABI_4_the_soname_carries_the_number_of_the_abi(library: Library) -> None:
    dynamic = output("readelf", "-d", library.path)
    assert re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) == ["libholdfast.so.1"]
    beside = library.path.with_name("libholdfast.so.1")
    assert beside.resolve() == library.path, "the build tree lacks the soname link"


@pytest.mark.both_flavours
def test_the_version_is_three_numbers(library: Library) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", library.version())


def test_the_header_can_be_read_in_ten_minutes() -> None:
    assert len(HEADER.read_text(encoding="utf-8").splitlines()) < 250
