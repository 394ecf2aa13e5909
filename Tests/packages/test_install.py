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
  int fine = holdfast_open(config, NULL, &app, NULL) == HOLDFAST_OK;
  fine = fine && holdfast_http_start(app, NULL, &driver) == HOLDFAST_OK;
  fine = fine && holdfast_session_resume(app, NULL, &reply) == HOLDFAST_OK;
  fine = fine && strstr(reply, "session_missing") != NULL;
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
        for name in ("libholdfast", "libholdfast_http")
        for suffix in ("", ".1", f".{version()}")
    }
    assert files == libraries | {
        "include/holdfast.h",
        "include/holdfast_http.h",
        "lib/cmake/holdfast/holdfast-config-version.cmake",
        "lib/cmake/holdfast/holdfast-config.cmake",
        "lib/pkgconfig/holdfast.pc",
        "lib/pkgconfig/holdfast_http.pc",
        "share/holdfast/holdfast.openrpc.json",
        "share/holdfast/holdfast.schema.json",
    }
    for name in ("libholdfast", "libholdfast_http"):
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
