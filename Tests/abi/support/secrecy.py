"""Collects every secret that a test uses and searches the library's files and outputs for them.

Tests do not register secrets: `Phone` (requests to the library, events, errors), `Network`
(requests and answers), `KeyChain` and `DirectoryFixtures` do it. After every test, its data
folders, the log at its most verbose level, error replies and events are searched for all of them.
A suite turns this on when its conftest imports the fixture `no_secret_is_readable`
(support/shared_fixtures.py); child processes import this module without pytest.

A secret is every string in payloads, sessions, contacts, memberships and requests, except the
values of PUBLIC fields, times, and strings shorter than LEAST bytes.
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

from .scan import LEAST, Scanner, files_below

if TYPE_CHECKING:
    from holdfast import Library

#: The folder into which child processes write their secrets and outputs.
FOLDER_OF_CHILDREN = "HOLDFAST_TEST_SECRETS"
#: The most verbose level of holdfast_log().
DEBUG = 3

#: Fields whose values are no personal data: enumerations and words of the protocol.
PUBLIC = frozenset({
    "operation",
    "type", "kind", "status", "state", "scope", "method", "methods", "outcome", "flow", "provider",
    "providers", "role", "aud", "iss", "amr", "token_type", "column", "field", "error",
    "error_code", "error_description", "code", "message", "msg", "details", "hint", "locale",
})  # fmt: skip
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ].*|[\d.:+-]+")
#: Requests that hold no secrets: only words and times of the host.
OPEN_REQUESTS = frozenset({
    "open", "clock_set", "complete", "network_report", "route_check", "session_unlock",
    "sign_in_begin", "session_logout", "queue_list", "queue_export",
})  # fmt: skip

#: Fields that news must hold, as JSON pointers by type, `*` for every element. All other fields are
#: searched.
MAY_STAND_IN_NEWS = {
    # The screen names the organisation and offers the others. The route is the host's own name for
    # a screen and may equal the name of a role.
    "screen": [
        "/screen/route",
        "/screen/org/id",
        "/screen/org/name",
        "/screen/org/role",
        "/screen/orgs/*/org_id",
        "/screen/orgs/*/name",
        "/screen/orgs/*/role",
    ],
    # The item's id; the host reads its content with queue_get.
    "item_parked": ["/notice/id"],
    # The ids of the items that were stored.
    "sync": ["/sync/ids"],
    # The contact that the host asked for.
    "contact_get": ["/answer/id", "/answer/contact"],
}


class Secrets:
    """The secrets that one test used, and the outputs of the library."""

    def __init__(self) -> None:
        self.known: dict[str | bytes, str] = {}
        self.public: set[str | bytes] = set()
        self.folders: dict[Path, None] = {}
        #: (description, text) of each log line, event and error.
        self.heard: list[tuple[str, str]] = []
        self.finds: list[str] = []
        #: The folder into which child processes write.
        self.children = Path()

    # Secrets ----------------------------------------------------------------------------------

    def add(self, what: str, secret: str | bytes | None) -> None:
        """Register a secret."""
        if not secret or secret in self.known or secret in self.public or len(secret) < LEAST:
            return
        if isinstance(secret, str) and TIME.fullmatch(secret):
            return
        if len(set(secret)) == 1:  # padding
            return
        self.known[secret] = what

    def is_public(self, value: str) -> None:
        """Exclude a value that looks like a secret; the caller says why."""
        self.known.pop(value, None)
        self.public.add(value)

    def add_all(self, what: str, value: object) -> None:
        """Register every string of a JSON value, except those of PUBLIC fields."""
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
                # A token's payload and its signature, each separately.
                for part in value.split(".")[1:]:
                    self.add(f"part of {what}", part)

    def add_url(self, what: str, url: str) -> None:
        """Register the codes, states and ids in a URL."""
        parts = urllib.parse.urlsplit(url)
        for text in (parts.query, parts.fragment):
            for name, value in urllib.parse.parse_qsl(text):
                if name not in PUBLIC or name in {"code", "state"}:
                    self.add(f"{name} of {what}", value)

    # Traffic ----------------------------------------------------------------------------------

    def request(self, operation: str, request: Mapping[str, Any]) -> None:
        """A request to the library."""
        if operation in OPEN_REQUESTS:
            return
        self.add_all(operation, request)
        if operation == "sign_in_complete" and isinstance(request.get("callback_url"), str):
            self.add_url(operation, request["callback_url"])

    def reply(self, operation: str, status: int, reply: Mapping[str, Any]) -> None:
        """A reply of the library: record errors and events, register state and nonce."""
        if status != 0:
            self.heard.append((f"the error of {operation}", _text(reply)))
        elif operation == "sign_in_begin":
            self.add("state", reply.get("state"))
            self.add("nonce", reply.get("nonce"))

    def given(self, status: int, thing: Mapping[str, Any]) -> None:
        """What `next` gave."""
        if status != 0:
            self.heard.append(("the error of next", _text(thing)))
        elif "request" not in thing:
            name = next(iter(thing), "")
            inner = thing.get(name)
            kind = inner.get("type", inner.get("to", name)) if isinstance(inner, Mapping) else name
            self.heard.append((f"a {kind}", _text(searched(kind, thing))))

    def sent(self, request: Mapping[str, Any]) -> None:
        """An HTTP request to the server."""
        for name, value in request["headers"].items():
            if name.lower() == "authorization":
                self.add_all("token", value.removeprefix("Bearer "))
        with contextlib.suppress(TypeError, ValueError):
            self.add_all(request["purpose"], json.loads(request["body"]))

    def answered(self, answer: Mapping[str, Any]) -> None:
        """An HTTP answer. Errors are left out: they are the server's texts."""
        if 200 <= answer.get("status", 0) < 300:
            with contextlib.suppress(TypeError, ValueError):
                self.add_all("answer", json.loads(answer["body"]))

    def line(self, level: int, line: str) -> None:
        """A line of the log."""
        self.heard.append((f"a log line of level {level}", line))

    # The search -------------------------------------------------------------------------------

    def search_files(self) -> None:
        """Search the data folders in their present state."""
        if not self.known or not self.folders:
            return
        # The built-in key store keeps its keys in files; only these files may hold them.
        key_files = {path for folder in self.folders for path in folder.glob("keys/*.key")}
        for path in key_files:
            self.add(f"key {path.stem}", path.read_bytes())
        paths = dict.fromkeys(path for folder in self.folders for path in files_below(folder))
        self.finds += Scanner(self.known).find_in_files(p for p in paths if p not in key_files)

    def search_all(self) -> list[str]:
        """Every find in files and outputs."""
        self.search_files()
        scanner = Scanner(self.known)
        together = "\0".join(text for _, text in self.heard).encode("utf-8", "surrogatepass")
        if scanner.find(together):
            for what, text in self.heard:
                for find in scanner.find(text.encode("utf-8", "surrogatepass")):
                    self.finds.append(f"{what}: {find}: {text[:500]}")
        return list(dict.fromkeys(self.finds))

    def read_children(self, folder: Path) -> None:
        """Read the secrets and outputs that child processes have written down."""
        for what, value, heard in Notebook.lines(folder):
            if heard:
                self.heard.append((what, value))
            else:
                self.add(what, bytes.fromhex(value[1:]) if value[0] == "x" else value[1:])


class Notebook:
    """Lines of JSON in shared file mappings, which outlive a killed process.

    Appending calls no write(), at which killer.c would count, fail or kill the child.
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
        """Append a line."""
        line = json.dumps(value).encode("ascii") + b"\n"
        # After a fork, the child opens its own file.
        if os.getpid() != self._process or self._at + len(line) > len(self._room):
            self._open(max(self.SIZE, len(line)))
        self._room[self._at : self._at + len(line)] = line
        self._at += len(line)

    @staticmethod
    def lines(folder: Path) -> Iterator[Any]:
        """The complete lines of all processes."""
        for path in sorted(folder.glob("*.jsonl")):
            with path.open("rb") as file:
                for line in file:
                    if line.startswith(b"\0"):
                        break
                    with contextlib.suppress(ValueError):
                        yield json.loads(line)


class SecretsOfAChild(Secrets):
    """The secrets of a child process, written down at once since it may be killed."""

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


def searched(kind: str, thing: Mapping[str, Any]) -> dict[str, Any]:
    """What `next` gave without the fields that it must hold (MAY_STAND_IN_NEWS)."""
    left = copy.deepcopy(dict(thing))
    if kind == "screen" and left["screen"]["message"] is not None:
        # The message may name the closed organisation.
        message = left["screen"]["message"]
        for org in left["screen"]["orgs"]:
            message["text"] = message["text"].replace(org["name"], "")
    for pointer in MAY_STAND_IN_NEWS.get(kind, []):
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


def _of_this_process() -> Secrets:
    folder = os.environ.get(FOLDER_OF_CHILDREN)
    return SecretsOfAChild(Path(folder)) if folder else Secrets()


#: The secrets of the running test.
current = _of_this_process()
_libraries: list[Library] = []


def listen(library: Library) -> None:
    """Record the library's log."""
    if library not in _libraries:
        _libraries.append(library)
        library.set_log(DEBUG, _hear)


def _hear(level: int, line: str) -> None:
    current.line(level, line)


def begin() -> Secrets:
    """A test begins: its secrets and outputs are collected anew."""
    global current
    current = Secrets()
    for library in _libraries:
        library.set_log(DEBUG, _hear)  # the previous test may have changed it
    return current
