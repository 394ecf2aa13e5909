"""Apps in Java, Go and Rust, on at most 40 lines of glue over the driver."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from local_supabase import LocalSupabase
from patience import patience

from consumers import ROOT, run

EXAMPLES = ROOT / "examples"


def of_a_built_app(test: Callable[..., None]) -> Callable[..., None]:
    """A test of a program that this builds, with the compilers of `make test-languages`."""
    for mark in (pytest.mark.languages, pytest.mark.slow, pytest.mark.timeout(patience(1500))):
        test = mark(test)
    return test


HERE = Path(__file__).parent / "languages"
JARS = [Path("/usr/share/java/jna.jar"), Path("/usr/share/java/gson.jar")]
CRATES = Path("/usr/share/cargo/registry")
GO = shutil.which("go") or next(iter(sorted(map(str, Path("/usr/lib").glob("go-*/bin/go")))), None)

GLUE = {
    "java": EXAMPLES / "java/Holdfast.java",
    "go": EXAMPLES / "go/holdfast/holdfast.go",
    "rust": EXAMPLES / "rust/src/holdfast.rs",
}


@dataclass(frozen=True)
class Host:
    """A built program: its command, and the environment that it needs."""

    command: list[str | Path]
    environment: Mapping[str, str]


def build(command: list[str | Path], folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=os.environ | dict(environment),
        capture_output=True,
        text=True,
        timeout=patience(600),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def java(folder: Path, library: Path, main: str) -> Host:
    if not (shutil.which("javac") and all(jar.exists() for jar in JARS)):
        pytest.skip("a JDK, libjna-java or libgoogle-gson-java is not installed")
    (folder / "out").mkdir()
    path = ":".join(map(str, [folder / "out", *JARS]))
    flags = ["-Xlint:all,-serial", "-Werror", "-cp", path, "-d", "out"]
    build(["javac", *flags, *sorted(folder.glob("*.java"))], folder, {})
    found = f"-Djna.library.path={library}"
    return Host(["java", "-XX:TieredStopAtLevel=1", found, "-cp", path, main], {})


def go(folder: Path, library: Path, main: str) -> Host:
    if GO is None or shutil.which("gcc") is None:
        pytest.skip("golang-go or gcc is not installed")
    environment = {
        "PKG_CONFIG_PATH": str(library / "pkgconfig"),
        "CGO_LDFLAGS": f"-Wl,-rpath,{library}",
        "GOCACHE": str(folder / "cache"),
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
    }
    unformatted = subprocess.run(
        [Path(GO).with_name("gofmt"), "-l", folder], capture_output=True, text=True, check=True
    ).stdout
    assert unformatted == ""
    build([GO, "vet", "./..."], folder, environment)
    build([GO, "build", "-buildvcs=false", "-o", "visits", "."], folder, environment)
    return Host([folder / "visits"], {})


def rust(folder: Path, library: Path, main: str) -> Host:
    if shutil.which("cargo") is None or not list(CRATES.glob("serde_json-*")):
        pytest.skip("cargo or librust-serde-json-dev is not installed")
    (folder / ".cargo").mkdir()
    (folder / ".cargo/config.toml").write_text(
        f'[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "{CRATES}"\n'
    )
    if shutil.which("rustfmt"):
        sources = sorted(folder.glob("src/*.rs"))
        build(["rustfmt", "--edition", "2021", "--check", *sources], folder, {})
    environment = {"RUSTFLAGS": f"-Dwarnings -L{library} -Clink-arg=-Wl,-rpath,{library}"}
    build(["cargo", "build", "-q", "--offline", "--target-dir", "target"], folder, environment)
    return Host([folder / "target/debug/visits"], {})


BUILDERS = {"java": java, "go": go, "rust": rust}


@pytest.fixture(scope="session", params=BUILDERS)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def copied(language: str, folder: Path) -> Path:
    """A copy of the example, which its toolchain may write into."""
    copy = folder / language
    shutil.copytree(EXAMPLES / language, copy, ignore=shutil.ignore_patterns("target", "*.class"))
    return copy


@pytest.fixture(scope="session")
def visits(language: str, installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The example, built."""
    folder = copied(language, tmp_path_factory.mktemp("visits"))
    return BUILDERS[language](folder, installed / "lib", "Visits")


@pytest.fixture(scope="session")
def closing(language: str, installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Host:
    """A program on the example's glue that makes mistakes, and closes in every way."""
    folder = copied(language, tmp_path_factory.mktemp("closing"))
    main = {"java": "Closing.java", "go": "main.go", "rust": "src/main.rs"}[language]
    source = {"java": "Closing.java", "go": "closing.go", "rust": "closing.rs"}[language]
    (folder / main).write_text((HERE / source).read_text("utf-8"), "utf-8")
    return BUILDERS[language](folder, installed / "lib", "Closing")


def activities(backend: LocalSupabase) -> int:
    """Count the activities on the server."""
    return int(backend.control.sql("select count(*) as n from activities")[0]["n"])


def visit(host: Host, folder: Path, backend: LocalSupabase, password: str) -> list[str]:
    """What the app prints."""
    server = {"HOLDFAST_URL": backend.url, "HOLDFAST_KEY": backend.anon_key}
    environment = {**host.environment, **server, "HOLDFAST_PASSWORD": password}
    return run(*host.command, folder=folder, environment=environment).splitlines()


@of_a_built_app
def test_an_app_goes_the_six_steps(visits: Host, backend: LocalSupabase, tmp_path: Path) -> None:
    before = activities(backend)
    told = visit(visits, tmp_path, backend, "holdfast-demo")
    assert [re.sub(r"^(screen: \w+|[^:]*:).*", r"\1", line) for line in told] == [
        *["screen: sign_in", "screen: select_org", "screen: home", "queued:"],
        *["screen: home", "the visit:", "contacts:", "screen: sign_in"],
    ]
    assert "the visit: stored" in told
    assert activities(backend) == before + 1


@of_a_built_app
def test_an_app_with_a_wrong_password_says_that_the_user_is_not_in(
    visits: Host, backend: LocalSupabase, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=r"(?s)password.*the user is not in: sign_in"):
        visit(visits, tmp_path, backend, "wrong")


@of_a_built_app
def test_a_refusal_is_an_error_and_closing_is_safe(closing: Host, tmp_path: Path) -> None:
    printed = run(*closing.command, tmp_path / "data", folder=tmp_path)
    assert printed.splitlines() == [
        "refused: request.missing_field /backend",
        "refused: request.invalid_value /http/connections",
        "refused: request.wrong_type /online",
        "no more news",
        "refused: handle.closed",
        "closed again",
    ]


@pytest.mark.parametrize("language", BUILDERS)
def test_the_glue_has_at_most_40_lines(language: str) -> None:
    lines = GLUE[language].read_text("utf-8").splitlines()
    # The comments of cgo are code
    comment = re.compile(r"\s*(//(?! #)|/\*\*|\*)")
    code = [line for line in lines if line.strip() and not comment.match(line)]
    assert 20 < len(code) <= 40
    assert max(map(len, lines)) <= 100
