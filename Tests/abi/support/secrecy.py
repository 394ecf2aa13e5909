"""Every secret that a test uses, and everything of the library's that may hold none of them.

Tests do not register secrets: `Phone` (requests to the library, events, errors), `Network`
(requests and answers), `KeyChain` and `DirectoryFixtures` do it. After every test, its data
folders, the log at its most verbose level, error replies and events are searched for all of them.
A suite turns this on when its conftest imports the fixture:
`from support.secrecy import no_secret_is_readable`.

What counts: every string in the payloads, sessions, contacts, memberships and requests that pass,
but for the values of PUBLIC fields, times, and strings under LEAST bytes.
"""

from __future__ import annotations

import contextlib
import copy
import json
import mmap
import os
import re
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .scan import LEAST, Scanner, files_below

if TYPE_CHECKING:
    from holdfast import Library

#: A folder into which child processes write what they used and heard (see `for_children`).
FOLDER_OF_CHILDREN = "HOLDFAST_TEST_SECRETS"
#: The most verbose level of holdfast_log().
DEBUG = 3

#: Fields whose values tell nothing of a person: enumerations, and words of the protocol.
PUBLIC = frozenset({
    "type", "kind", "status", "state", "scope", "method", "methods", "outcome", "flow", "provider",
    "providers", "role", "aud", "iss", "amr", "token_type", "column", "field", "error",
    "error_code", "error_description", "code", "message", "msg", "details", "hint", "locale",
})  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ].*|[\d.:+-]+")
#: Requests whose values are no secrets: words and times of the host.
OPEN_REQUESTS = frozenset({
    "open", "clock_set", "complete", "poll", "network_set", "route_check", "session_unlock",
    "sign_in_begin", "session_logout", "queue_list", "queue_export",
})  # fmt: skip

#: What an event has to hold, by type: JSON pointers, `*` for every element. All else is searched.
MAY_STAND_IN_EVENTS = {
    # The screen names the organisation, and offers those that there are. The route is the host's
    # own word for a place, and may be called like a role.
    "decision": [
        "/decision/route",
        "/decision/org/id",
        "/decision/org/name",
        "/decision/org/role",
        "/decision/orgs/*/org_id",
        "/decision/orgs/*/name",
        "/decision/orgs/*/role",
    ],
    # Which item; what is in it the host asks for with queue_get.
    "item_parked": ["/id"],
    # The contact that was asked for.
    "contact": ["/id", "/contact"],
}


class Secrets:
    """What one test used, and what it heard."""

    def __init__(self) -> None:
        self.known: dict[str | bytes, str] = {}
        self.public: set[str | bytes] = set()
        self.folders: dict[Path, None] = {}
        #: (what it is, its text): log lines, events, errors.
        self.heard: list[tuple[str, str]] = []
        self.finds: list[str] = []
        #: Where child processes write down theirs.
        self.children = Path()

    # What is secret ---------------------------------------------------------------------------

    def add(self, what: str, secret: str | bytes | None) -> None:
        """Something that nobody may find."""
        if not secret or secret in self.known or secret in self.public or len(secret) < LEAST:
            return
        if isinstance(secret, str) and TIME.fullmatch(secret):
            return
        if len(set(secret)) == 1:  # filling
            return
        self.known[secret] = what

    def is_public(self, value: str) -> None:
        """What looks like a secret and is none: say so, and say why."""
        self.known.pop(value, None)
        self.public.add(value)

    def add_all(self, what: str, value: object) -> None:
        """Every string of a JSON value, but for those of PUBLIC fields."""
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if name not in PUBLIC:
                    self.add_all(str(name), inner)
        elif isinstance(value, list):
            for inner in value:
                self.add_all(what, inner)
        elif isinstance(value, str):
            self.add(what, value)
            if value.count(".") == 2 and value.startswith("ey"):
                # A token's middle and its signature, each by itself.
                for part in value.split(".")[1:]:
                    self.add(f"part of {what}", part)

    def add_url(self, what: str, url: str) -> None:
        """What an address carries: codes, states, ids."""
        parts = urllib.parse.urlsplit(url)
        for text in (parts.query, parts.fragment):
            for name, value in urllib.parse.parse_qsl(text):
                if name not in PUBLIC or name in {"code", "state"}:
                    self.add(f"{name} of {what}", value)

    # What passes ------------------------------------------------------------------------------

    def request(self, operation: str, request: Mapping[str, Any]) -> None:
        """A request to the library."""
        if operation in OPEN_REQUESTS:
            return
        self.add_all(operation, request)
        if operation == "sign_in_complete" and isinstance(request.get("callback_url"), str):
            self.add_url(operation, request["callback_url"])

    def reply(self, operation: str, status: int, reply: Mapping[str, Any]) -> None:
        """A reply of the library: errors and events are searched; a sign-in's begin is secret."""
        if status != 0:
            self.heard.append((f"the error of {operation}", _text(reply)))
        elif operation == "sign_in_begin":
            self.add("state", reply.get("state"))
            self.add("nonce", reply.get("nonce"))
        elif operation == "poll":
            for event in reply["events"]:
                self.heard.append((f"an event {event['type']}", _text(searched(event))))

    def sent(self, request: Mapping[str, Any]) -> None:
        """An HTTP request on its way to the server."""
        for name, value in request["headers"].items():
            if name.lower() == "authorization":
                self.add_all("token", value.removeprefix("Bearer "))
        with contextlib.suppress(TypeError, ValueError):
            self.add_all(request["purpose"], json.loads(request["body"]))

    def answered(self, answer: Mapping[str, Any]) -> None:
        """An HTTP answer on its way back. (Errors are the server's words.)"""
        if 200 <= answer.get("status", 0) < 300:
            with contextlib.suppress(TypeError, ValueError):
                self.add_all("answer", json.loads(answer["body"]))

    def line(self, level: int, line: str) -> None:
        """A line of the log."""
        self.heard.append((f"a log line of level {level}", line))

    # The search -------------------------------------------------------------------------------

    def search_files(self) -> None:
        """Look into the data folders as they are now."""
        if not self.known or not self.folders:
            return
        # Keys of the built-in key store lie in files of their own: they alone may hold them.
        key_files = {path for folder in self.folders for path in folder.glob("keys/*.key")}
        for path in key_files:
            self.add(f"key {path.stem}", path.read_bytes())
        paths = dict.fromkeys(path for folder in self.folders for path in files_below(folder))
        self.finds += Scanner(self.known).find_in_files(p for p in paths if p not in key_files)

    def search_all(self) -> list[str]:
        """Every find, in files and in what was heard."""
        self.search_files()
        scanner = Scanner(self.known)
        together = "\0".join(text for _, text in self.heard).encode("utf-8", "surrogatepass")
        if scanner.find(together):
            for what, text in self.heard:
                for find in scanner.find(text.encode("utf-8", "surrogatepass")):
                    self.finds.append(f"{what}: {find}: {text[:500]}")
        return list(dict.fromkeys(self.finds))

    def read_children(self, folder: Path) -> None:
        """What child processes have used and heard."""
        for what, value, heard in Notebook.lines(folder):
            if heard:
                self.heard.append((what, value))
            else:
                self.add(what, bytes.fromhex(value[1:]) if value[0] == "x" else value[1:])


class Notebook:
    """Lines of JSON that outlive a killed process: shared mappings of files.

    Not written to: children count, refuse or die at writes (killer.c), and these are not theirs.
    """

    SIZE = 1 << 18

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open(self.SIZE)

    def _open(self, size: int) -> None:
        self._process, self._at = os.getpid(), 0
        with (self.folder / f"{uuid.uuid4().hex}.jsonl").open("w+b") as file:
            file.truncate(size)
            self._room = mmap.mmap(file.fileno(), size)

    def write(self, value: object) -> None:
        """One more line."""
        line = json.dumps(value).encode("ascii") + b"\n"
        # After a fork the parent goes on in the other one.
        if os.getpid() != self._process or self._at + len(line) > len(self._room):
            self._open(max(self.SIZE, len(line)))
        self._room[self._at : self._at + len(line)] = line
        self._at += len(line)

    @staticmethod
    def lines(folder: Path) -> Iterator[Any]:
        """What was written by all processes, as far as the lines are whole."""
        for path in sorted(folder.glob("*.jsonl")):
            with path.open("rb") as file:
                for line in file:
                    if line.startswith(b"\0"):
                        break
                    with contextlib.suppress(ValueError):
                        yield json.loads(line)


class SecretsOfAChild(Secrets):
    """In a child process: everything is noted at once, since the child may be killed."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._notebook = Notebook(folder)

    def add(self, what: str, secret: str | bytes | None) -> None:
        before = len(self.known)
        super().add(what, secret)
        if len(self.known) > before and secret is not None:
            told = f"x{secret.hex()}" if isinstance(secret, bytes) else f"t{secret}"
            self._write(what, told, heard=False)

    def reply(self, operation: str, status: int, reply: Mapping[str, Any]) -> None:
        super().reply(operation, status, reply)
        self._write_heard()

    def line(self, level: int, line: str) -> None:
        super().line(level, line)
        self._write_heard()

    def _write_heard(self) -> None:
        for what, text in self.heard:
            self._write(what, text, heard=True)
        self.heard.clear()

    def _write(self, what: str, value: str, *, heard: bool) -> None:
        self._notebook.write([what, value, heard])


def searched(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event without what it has to hold (MAY_STAND_IN_EVENTS)."""
    left = copy.deepcopy(dict(event))
    if event["type"] == "decision" and event["decision"]["message"] is not None:
        # The sentence that says which organisation is closed.
        for org in event["decision"]["orgs"]:
            message = left["decision"]["message"]
            message["text"] = message["text"].replace(org["name"], "")
    for pointer in MAY_STAND_IN_EVENTS.get(event["type"], []):
        _remove(left, pointer.split("/")[1:])
    return left


def _remove(value: object, steps: list[str]) -> None:
    first, *rest = steps
    if first == "*" and isinstance(value, list):
        for inner in value:
            _remove(inner, rest)
    elif isinstance(value, dict) and first in value:
        if rest:
            _remove(value[first], rest)
        else:
            del value[first]


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _begin() -> Secrets:
    folder = os.environ.get(FOLDER_OF_CHILDREN)
    return SecretsOfAChild(Path(folder)) if folder else Secrets()


#: Those of the test that runs now.
current = _begin()
_libraries: list[Library] = []


def listen(library: Library) -> None:
    """The library's log is searched too."""
    if library not in _libraries:
        _libraries.append(library)
        library.set_log(DEBUG, _hear)


def _hear(level: int, line: str) -> None:
    current.line(level, line)


@pytest.fixture(autouse=True)
def no_secret_is_readable(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Secrets]:
    """After every test: no secret that it used stands in a data folder, the log, errors, events."""
    global current
    current = Secrets()
    for library in _libraries:
        library.set_log(DEBUG, _hear)  # the test before may have changed it
    current.children = tmp_path_factory.mktemp("secrets")
    monkeypatch.setenv(FOLDER_OF_CHILDREN, str(current.children))
    yield current
    current.read_children(current.children)
    finds = current.search_all()
    assert not finds, "secrets are readable:\n" + "\n".join(finds[:50])
