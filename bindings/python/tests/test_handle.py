"""Requests and replies as dicts, exceptions, and which library is loaded.

Tests/abi calls the real library through the same binding.
"""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import holdfast
import pytest
from fake_library import CONFIG, FakeLibrary, Reply, opened, refusal
from holdfast import Holdfast, Library, NoMemoryError, NotFoundError
from holdfast.errors import HoldfastError, InternalError
from holdfast.library import FILE, SYSTEM

PACKAGE = Path(holdfast.__file__).parent


class Failing(FakeLibrary):
    def queue_get(self, _: object) -> Reply:
        return 3, refusal("queue.not_found")

    def org_list(self, _: object) -> tuple[int, None]:
        return 11, None


def test_requests_are_dicts_or_keywords_and_replies_are_dicts() -> None:
    """A `Path` was "Object of type PosixPath is not JSON serializable"."""
    fake = FakeLibrary()
    folder = CONFIG | {"data_dir": Path("/no") / "where"}
    with Holdfast(folder, library=cast(Library, fake)) as app:
        assert fake.config == CONFIG | {"data_dir": "/no/where"}
        assert app.opened["version"] == "9.8.7"
        reply = cast(Any, app.contact_search({"query": "Åse"}))
        assert reply == {"called": "contact_search", "request": {"query": "Åse"}}
        assert app.contact_search(query="Åse") == reply
        with pytest.raises(TypeError, match="not both"):
            cast(Any, app).contact_search({"query": ""}, limit=1)
        assert cast(Any, app.session_resume())["request"] is None
        with pytest.raises(ValueError, match="JSON"):
            app.queue_add({"kind": "activity", "payload": {"minutes": float("nan")}})


def test_an_error_becomes_the_exception_of_its_class() -> None:
    with opened(Failing()) as app:
        with pytest.raises(NotFoundError) as caught:
            app.queue_get({"id": "x"})
        with pytest.raises(NoMemoryError):
            app.org_list()
    error = caught.value
    assert (error.code, error.status, error.message) == ("queue.not_found", 3, "m")
    assert (error.field, error.retryable, error.detail) == (None, False, {})


def test_every_status_has_its_exception() -> None:
    reply = json.loads(refusal("a.b"))
    kinds = {type(HoldfastError.of(status, reply)) for status in range(1, 13)}
    assert len(kinds) == 12
    assert type(HoldfastError.of(99, reply)) is InternalError


def test_a_handle_cannot_be_pickled() -> None:
    with opened(FakeLibrary()) as app, pytest.raises(TypeError, match="data_dir"):
        pickle.dumps(app)


# ---- which library is loaded ----


def found(site: Path, **environment: str) -> str:
    """The path that a new Python finds, and what it says if it cannot load that."""
    say = "import holdfast.library as l; print(l.find()); l.Library.default()"
    done = subprocess.run(
        [sys.executable, "-c", say],
        env={"PYTHONPATH": str(site)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: "), done.stderr
    assert "HOLDFAST_LIBRARY" in done.stderr.splitlines()[-1]
    return done.stdout.strip()


def test_the_library_is_found_and_a_missing_one_is_explained(tmp_path: Path) -> None:
    """The variable's, the package's, that of a source tree, or the system's."""
    site = tmp_path / "bindings" / "python" / "src"
    shutil.copytree(
        PACKAGE, site / "holdfast", ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    built = tmp_path / "build" / "lib" / FILE
    built.parent.mkdir(parents=True)
    built.touch()
    # A folder build/lib above the package must belong to this project
    assert found(site) == SYSTEM
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "holdfast.h").touch()
    assert found(site) == str(built)
    carried = site / "holdfast" / FILE
    carried.touch()
    assert found(site) == str(carried)
    assert found(site, HOLDFAST_LIBRARY="/no/where.so") == "/no/where.so"
