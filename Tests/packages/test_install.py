"""The files of `make install`, and programs that are built against them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from consumers import ROOT, install, run

#: Prints the version; valid C89 and C++.
PROGRAM = r"""
#include <holdfast.h>
#include <holdfast_http.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const char *config = "{\"data_dir\":\"data\",\"keystore\":{\"kind\":\"file\"},"
                       "\"policy\":{\"biometric\":\"off\"},\"auth_methods\":[],\"backend\":"
                       "{\"url\":\"http://127.0.0.1:9\",\"api_key\":\"k\"}}";
  holdfast *app = NULL;
  holdfast_http *driver = NULL;
  char *reply = NULL;
  int fine = holdfast_open(config, NULL, &app, &reply) == HOLDFAST_OK;
  fine = fine && strstr(reply, "session_missing") != NULL;
  fine = fine && holdfast_http_start(app, NULL, &driver) == HOLDFAST_OK;
  holdfast_free(reply);
  holdfast_http_stop(driver);
  holdfast_close(app);
  puts(holdfast_version());
  return fine && holdfast_live_count() == 0 ? 0 : 1;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C CXX)
find_package(holdfast {version} REQUIRED)
add_executable(as_c main.c)
set_target_properties(as_c PROPERTIES C_STANDARD 90 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
target_link_libraries(as_c PRIVATE holdfast::http)
add_executable(as_cpp main.cpp)
set_target_properties(as_cpp PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
target_link_libraries(as_cpp PRIVATE holdfast::http)
"""

#: C89 has neither stdint.h nor long long; compilers and their headers provide both.
DIALECTS = {
    "gcc": ["-std=c89"],
    "clang": ["-std=c89"],
    "g++": ["-std=c++17"],
    "clang++": ["-std=c++17"],
}
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]


def version() -> str:
    """Return the library's version from its source."""
    [text] = re.findall('"(.*)"', (ROOT / "Sources/Base/Version.swift").read_text("utf-8"))
    return str(text)


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed tree that was moved to another place, as packagers do."""
    stage = tmp_path_factory.mktemp("stage")
    install(stage, "/opt/holdfast")
    return stage / "opt" / "holdfast"


def write_program(folder: Path, suffix: str) -> Path:
    """The source of the program."""
    source = folder / f"main.{suffix}"
    source.write_text(PROGRAM, "utf-8")
    return source


def compiler_path(name: str) -> str:
    """Find a compiler; `make` puts the Swift toolchain's clang on the path."""
    path = shutil.which(name)
    assert path, f"{name} is needed"
    return path


def test_every_file_has_its_place(prefix: Path) -> None:
    files = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    libraries = {
        f"lib/{name}.so{suffix}"
        for name in ("libholdfast", "libholdfast_http", "libholdfast_keys")
        for suffix in ("", ".1", f".{version()}")
    }
    assert files == libraries | {
        "lib/libholdfast.a",
        "lib/libholdfast_http.a",
        "lib/libholdfast_keys.a",
        "include/holdfast.h",
        "include/holdfast_http.h",
        "include/holdfast_keys.h",
        "lib/cmake/holdfast/holdfast-config-version.cmake",
        "lib/cmake/holdfast/holdfast-config.cmake",
        "lib/pkgconfig/holdfast.pc",
        "lib/pkgconfig/holdfast_http.pc",
        "lib/pkgconfig/holdfast_keys.pc",
        "share/holdfast/holdfast.openrpc.json",
        "share/holdfast/holdfast.schema.json",
    }
    for name in ("libholdfast", "libholdfast_http", "libholdfast_keys"):
        assert (prefix / f"lib/{name}.so.1").readlink() == Path(f"{name}.so.{version()}")
        assert f"[{name}.so.1]" in run("readelf", "-d", prefix / f"lib/{name}.so")


def test_libdir_moves_the_libraries(tmp_path: Path) -> None:
    install(tmp_path, "/usr", "LIBDIR=/usr/lib/x86_64-linux-gnu")
    libraries = tmp_path / "usr/lib/x86_64-linux-gnu"
    assert (libraries / "libholdfast.so.1").is_file()
    assert "libdir=/usr/lib/x86_64-linux-gnu" in (libraries / "pkgconfig/holdfast.pc").read_text()
    assert "${_holdfast_libdir}/../../include" in (
        libraries / "cmake/holdfast/holdfast-config.cmake"
    ).read_text("utf-8")


@pytest.mark.parametrize("compiler", DIALECTS)
def test_a_program_builds_with_pkg_config(compiler: str, prefix: Path, tmp_path: Path) -> None:
    source = write_program(tmp_path, "cpp" if compiler.endswith("++") else "c")
    environment = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    # The present place of the tree, not the one it was installed for.
    ask = ["pkg-config", f"--define-variable=prefix={prefix}"]
    ask += [f"--define-variable=libdir={prefix / 'lib'}", "--cflags", "--libs", "holdfast_http"]
    flags = run(*ask, environment=environment).split()
    program = tmp_path / "program"
    run(compiler_path(compiler), *DIALECTS[compiler], *STRICT, source, "-o", program, *flags)
    found = {"LD_LIBRARY_PATH": str(prefix / "lib")}
    assert run(program, folder=tmp_path, environment=found).strip() == version()
    assert "libholdfast.so.1" in run("readelf", "-d", program)


def static_flags(package: str, installed: Path) -> list[str]:
    """What pkg-config says about the archives."""
    environment = {"PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    return run(
        "pkg-config", "--static", "--cflags", "--libs", package, environment=environment
    ).split()


def needed(program: Path) -> set[str]:
    """The shared libraries that a program names."""
    return set(re.findall(r"\(NEEDED\) .*\[(.*)\]", run("readelf", "-d", program)))


def test_a_static_program_needs_no_library(installed: Path, tmp_path: Path) -> None:
    without_driver = "".join(
        line for line in PROGRAM.splitlines(keepends=True) if "http_" not in line.split("{")[0]
    ).replace("  holdfast_http *driver = NULL;\n", "")
    source = tmp_path / "main.c"
    source.write_text(without_driver, "utf-8")
    program = tmp_path / "program"
    flags = static_flags("holdfast", installed)
    run("cc", "-static", source, "-o", program, *flags)
    assert needed(program) == set()
    assert run(program, folder=tmp_path).strip() == version()


def test_a_program_with_the_driver_links_the_archives(installed: Path, tmp_path: Path) -> None:
    """libcurl stays shared: Debian has no archives of all that its own needs."""
    source = write_program(tmp_path, "c")
    program = tmp_path / "program"
    names = ("holdfast", "holdfast_http", "holdfast_keys")
    archive = {f"-l{name}": f"-l:lib{name}.a" for name in names}
    flags = [archive.get(flag, flag) for flag in static_flags("holdfast_http", installed)]
    run("cc", *STRICT, source, "-o", program, *flags)
    libraries = needed(program)
    assert not any("holdfast" in library for library in libraries)
    assert any("libcurl" in library for library in libraries)
    assert run(program, folder=tmp_path).strip() == version()


def test_a_program_that_does_not_link_statically_needs_nothing_else(installed: Path) -> None:
    """Without --static, pkg-config names neither SQLite nor libcurl."""
    environment = {"PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    said = run("pkg-config", "--libs", "holdfast_http", environment=environment).split()
    assert [word for word in said if word.startswith("-l")] == ["-lholdfast_http", "-lholdfast"]


@pytest.mark.parametrize("name", ["holdfast", "holdfast_http", "holdfast_keys"])
def test_an_archive_shows_only_the_functions_of_its_header(installed: Path, name: str) -> None:
    """A host's own function of the same name as one within would clash."""
    listed = run("nm", "-g", "--defined-only", installed / f"lib/lib{name}.a")
    shown = {words[2] for words in map(str.split, listed.splitlines()) if len(words) == 3}
    text = (installed / f"include/{name}.h").read_text("utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    assert shown == set(re.findall(r"\b(holdfast_\w+)\((?!\*)[^;{)]*\);", text))


def test_an_archive_zeroes_what_it_frees(installed: Path) -> None:
    """The archive calls its own free(), which zeroes the block first, as the shared one does."""
    symbols = run("readelf", "-sW", installed / "lib/libholdfast.a")
    assert re.search(r" FUNC +LOCAL .* __wrap_free$", symbols, flags=re.MULTILINE)
    assert not re.search(r" GLOBAL .* (__real_free|__wrap_free)$", symbols, flags=re.MULTILINE)
    # Calls of free() itself come from __wrap_free alone.
    moved = run("readelf", "-rW", installed / "lib/libholdfast.a")
    assert len(re.findall(r" free(?: |$)", moved, flags=re.MULTILINE)) <= 4


@pytest.mark.parametrize(("c", "cpp"), [("gcc", "g++"), ("clang", "clang++")])
def test_a_program_builds_with_cmake(c: str, cpp: str, prefix: Path, tmp_path: Path) -> None:
    write_program(tmp_path, "c")
    write_program(tmp_path, "cpp")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(version=version()), "utf-8")
    configure = ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    configure += [f"-DCMAKE_C_COMPILER={compiler_path(c)}"]
    configure += [f"-DCMAKE_CXX_COMPILER={compiler_path(cpp)}"]
    configure += [f"-DCMAKE_{language}_FLAGS={' '.join(STRICT)}" for language in ("C", "CXX")]
    run(*configure, folder=tmp_path)
    run("cmake", "--build", "build", folder=tmp_path)
    for program in ("as_c", "as_cpp"):
        assert run(tmp_path / "build" / program, folder=tmp_path).strip() == version()


def test_cmake_refuses_another_version(prefix: Path, tmp_path: Path) -> None:
    write_program(tmp_path, "c")
    write_program(tmp_path, "cpp")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(version="99.0"), "utf-8")
    done = subprocess.run(
        ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert f"version: {version()}" in done.stderr
