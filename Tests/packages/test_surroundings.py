"""The tests of the C API and hosts in C where the system gives little.

What phones, sandboxes and containers withhold: /proc, second names of files, /tmp, memory,
descriptors; a locale whose numbers have a comma; and `char` with a sign and without.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import patience

from consumers import ROOT

LIBRARY = ROOT / "build" / "lib" / "libholdfast.so"
FUZZ = ROOT / "Tests" / "fuzz"
PHONES = ROOT / "Tests" / "phones"
#: A file system in memory, which none of the tests hides.
MEMORY = Path("/dev/shm")


def namespaces() -> bool:
    """Whether this user may make a mount namespace."""
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return probe.returncode == 0


needs_namespaces = pytest.mark.skipif(
    not namespaces(), reason="mount namespaces are not allowed here"
)


def hidden(*folders: str) -> list[str]:
    """The start of a command that finds these folders empty, and may not write them."""
    mounts = "; ".join(f"mount -t tmpfs -o ro none {shlex.quote(each)}" for each in folders)
    shell = f'{mounts}; exec "$@"'
    return ["unshare", "-m", "--propagation", "private", "sh", "-ec", shell, "sh"]


def compiled(program: Path, *arguments: object) -> Path:
    """A program or a library for preloading."""
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run(["clang", *flags, "-o", program, *map(str, arguments)], check=True)
    return program


def runs_tests(test: Callable[..., None]) -> Callable[..., None]:
    """A test that runs some tests of the C API again, in a pytest of its own."""
    for mark in (pytest.mark.slow, pytest.mark.timeout(patience(900))):
        test = mark(test)
    return test


def api_tests(before: list[str], tests: list[str], environment: dict[str, str]) -> int:
    """Run tests of the C API; returns how many passed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    inherited = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [*before, *command, *tests],
        cwd=ROOT / "Tests" / "abi",
        env={**inherited, "HOLDFAST_FLAVOUR": "embedded", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(600),
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout.splitlines()[-1], done.stdout
    return int(re.findall(r"(\d+) passed", done.stdout)[0])


@runs_tests
@needs_namespaces
def test_without_proc_processes_respect_each_other() -> None:
    tests = ["test_without_proc.py", "test_queue_processes.py", "-k", "QUE_15 or no_id"]
    assert api_tests(hidden("/proc"), tests, {}) > 5


@runs_tests
def test_no_file_needs_a_second_name(tmp_path: Path) -> None:
    library = compiled(tmp_path / "links.so", "-shared", "-fPIC", PHONES / "links.c")
    # Tests that replace files, set them aside and carry items over
    tests = ["test_lock_is_cryptographic.py", "test_recovery.py", "-k", "ORG_5 or QUE_16 or ATK_14"]
    assert api_tests([], tests, {"LD_PRELOAD": str(library)}) > 5


@pytest.fixture
def comma(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose decimals have a comma."""
    command = ["localedef", "-i", "nb_NO", "-f", "UTF-8", str(tmp_path / "nb_NO.UTF-8")]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("the definitions of locales are missing (package locales)")
    (tmp_path / "comma.py").write_text(
        "import locale, os\n"
        f"os.environ['LOCPATH'] = {str(tmp_path)!r}\n"
        "locale.setlocale(locale.LC_ALL, 'nb_NO.UTF-8')\n"
        "del os.environ['LOCPATH']\n"
        "assert locale.localeconv()['decimal_point'] == ','\n"
    )
    return {"PYTHONPATH": str(tmp_path)}


@runs_tests
def test_numbers_have_points_where_the_locale_has_commas(comma: dict[str, str]) -> None:
    tests = ["-p", "comma", "test_queue_numbers.py", "test_languages.py"]
    assert api_tests([], tests, comma) > 5


@runs_tests
@pytest.mark.parametrize("char", ["signed", "unsigned"])
def test_char_may_have_a_sign_or_none(char: str, tmp_path: Path) -> None:
    # Given the library with its C compiled for this kind of char
    library = f"build/lib-{char}-char/libholdfast.so"
    (ROOT / library).unlink(missing_ok=True)
    archive = ".build-embedded/release/libHoldfastStatic.a"
    subprocess.run(["make", "-s", "-o", archive, "SHELL=/bin/bash", library], cwd=ROOT, check=True)
    # Then its API does what it does elsewhere, in a folder whose name is not ASCII
    tests = ["test_call.py", "test_languages.py", "test_recovery.py"]
    tests += ["-k", "HST_1 or language or QUE_16"]
    folder = tmp_path / "Åse 😀"
    environment = {"HOLDFAST_FLAVOUR": f"{char}-char", "PYTEST_ADDOPTS": f"--basetemp='{folder}'"}
    assert api_tests([], tests, environment) > 10
    # And so does each function of the C alone
    program = portable(tmp_path, f"-f{char}-char")
    done = subprocess.run([program, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder outside of everything that is hidden."""
    folder = MEMORY / f"holdfast-surroundings-{os.getpid()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@needs_namespaces
def test_a_host_runs_with_little_memory_few_descriptors_and_no_folders_of_the_system(
    elsewhere: Path, tmp_path: Path
) -> None:
    # Given the scripts of Tests/fuzz, as a program beside its library
    subprocess.run(
        [sys.executable, FUZZ / "tables.py", "tables", tmp_path / "tables.h"], check=True
    )
    parts = [
        FUZZ / f"{name}.c" for name in ("replay", "judge", "scene", "script", "server", "text")
    ]
    includes = [f"-I{ROOT / 'include'}", f"-I{tmp_path}"]
    libraries = [f"-L{LIBRARY.parent}", "-lholdfast", "-lsodium", "-ljansson"]
    compiled(elsewhere / "replay", *includes, *parts, *libraries)
    shutil.copy(LIBRARY, elsewhere / "libholdfast.so.1")
    scripts = [*(FUZZ / "seeds").iterdir(), *(FUZZ / "regressions").iterdir()]
    for script in scripts:
        shutil.copy(script, elsewhere)
    # When they run in 64 MB with 64 descriptors, without /proc and /tmp
    limits = "ulimit -v 65536; ulimit -n 64; cd /; exec "
    program = shlex.join(map(str, [elsewhere / "replay", *(elsewhere / s.name for s in scripts)]))
    done = subprocess.run(
        [*hidden("/proc", "/tmp"), "sh", "-ec", limits + program],
        env={"LD_LIBRARY_PATH": str(elsewhere), "TMPDIR": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(240),
    )
    # Then every promise holds
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == f"{len(scripts)} scripts replayed\n"


def portable(folder: Path, *flags: str) -> Path:
    sources = [PHONES / "portable.c", *(ROOT / "Sources" / "CPlatform").glob("*.c")]
    include = f"-I{ROOT / 'Sources' / 'CPlatform' / 'include'}"
    defined = [*flags, "-DPLATFORM_PORTABLE", include]
    return compiled(folder / "portable", *defined, *sources, "-ljansson")


def test_the_platform_works_without_what_linux_alone_has(tmp_path: Path) -> None:
    done = subprocess.run(
        [portable(tmp_path), tmp_path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    # The start of a process and the id of the boot are known.
    assert done.stdout == "0 36\n"


@needs_namespaces
def test_the_platform_works_without_proc(elsewhere: Path) -> None:
    program = portable(elsewhere)
    done = subprocess.run(
        [*hidden("/proc"), program, elsewhere], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 0\n"
