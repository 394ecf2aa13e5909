"""A phone and its app: the device outlives the app, and the test moves its clocks."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from holdfast import Library
from holdfast.errors import ClosedError
from holdfast.handle import encode
from holdfast.keystore import (
    KEY_CANCELLED,
    KEY_FAILED,
    KEY_INVALIDATED,
    KEY_LOCKOUT,
    KEY_LOCKOUT_PERMANENT,
    KEY_NOT_ENROLLED,
    KEY_UNAVAILABLE,
    KeyStore,
)
from holdfast.library import ALL
from holdfast.types import ClockSetRequest, Decision

from . import contract, secrecy
from .directory_fixtures import Backend, DirectoryFixtures, Organisation, Person, Reached
from .keychain import KeyChain
from .loop import Host, Round, Thing
from .network import Network, moved_session, real_now_ms

#: The home route and allowed screens of each role of the example backend.
ROUTES = {
    "peer_mentor": {"home": "/mentor", "screens": ["/mentor", "/activities", "/contacts/*"]},
    "coordinator": {
        "home": "/coordinator",
        "screens": ["/coordinator", "/contacts/*", "/reports/*"],
    },
    "org_admin": {"home": "/admin", "screens": ["*"]},
}
METHODS = [
    {"id": "bankid", "provider": "bankid", "flow": "pkce", "label": "BankID"},
    {"id": "vipps", "provider": "vipps", "flow": "pkce", "label": "Vipps"},
    {"id": "email", "provider": "email", "flow": "password", "label": "E-post"},
]
POLICY = {
    "session_window_s": 43200,
    "background_timeout_s": 300,
    "offline_limit_s": 1209600,
    "guard_timeout_ms": 2500,
    "refresh_margin_s": 90,
    "biometric": "required",
}
#: The lifetime of an access token on the backend, in seconds.
TOKEN_S = 3600


#: How the user may answer a prompt, and what the key store answers then.
PROMPTS = {
    "failed": KEY_FAILED,
    "cancelled": KEY_CANCELLED,
    "lockout": KEY_LOCKOUT,
    "lockout_permanent": KEY_LOCKOUT_PERMANENT,
    "not_enrolled": KEY_NOT_ENROLLED,
    "invalidated": KEY_INVALIDATED,
    "unavailable": KEY_UNAVAILABLE,
}


class App(Host):
    """An open Holdfast that checks replies and what `next` gives against the schema (ABI-5).

    It is opened as a worker, so that a test can set its clocks before somebody comes.
    """

    def __init__(self, phone: Phone, config: dict[str, Any]) -> None:
        self.phone = phone
        #: All that the library gave so far, except requests.
        self.events: list[Thing] = []
        #: What the app shows now.
        self.shown: Decision | None = None
        secrecy.listen(phone.library)
        config = {"role": "worker", **config}
        super().__init__(cast(Any, config), phone.key_store, library=phone.library)
        contract.judge_reply("open", 0, cast(dict[str, Any], self.opened))
        contract.judge_accepted_request("open", config)

    def raw(self, name: str, request: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
        """Make one call."""
        sent = None if request is None else encode(request)
        secrecy.current.request(name, request or {})
        status, reply = self.library.call(name, self._handle, sent)
        heard = None if reply is None else json.loads(reply)
        contract.judge_reply(name, status, heard)
        secrecy.current.reply(name, status, heard or {})
        if status == 0:
            contract.judge_accepted_request(name, dict(request or {}))
        return self._decode(name, status, reply)

    def next(self, timeout_ms: int = -1, *, what: int = ALL) -> Any:  # noqa: ANN401
        """The next thing; None when the handle is closed."""
        status, reply = self.library.next(self._handle, what, timeout_ms)
        heard = None if reply is None else json.loads(reply)
        contract.judge_next(status, heard)
        secrecy.current.given(status, heard or {})
        return None if status == ClosedError.status else self._decode("next", status, reply)

    def see(self, shown: Any) -> None:  # noqa: ANN401
        """A screen `home` is that of an organisation, if the app has organisations."""
        self.shown = shown
        has_any = self.phone.config["backend"].get("memberships", {}) is not None
        if shown["screen"] == "home":
            assert (shown["org"] is not None) == has_any, shown

    # The host's loop --------------------------------------------------------------------------

    def take(self, what: int = ALL) -> Round:
        """Take all that the library gives now."""
        taken = super().take(what)
        self.events += taken.events
        return taken

    def step(self) -> Round:
        """Take all, then send and complete each request in turn."""
        return self.round(self.phone.network)

    def settle(self, limit: int = 100) -> list[Thing]:
        """Take, send and complete until the library is idle; returns what came."""
        before = len(self.events)
        for _ in range(limit):
            if self.step().idle:
                return self.events[before:]
        raise AssertionError(f"still busy after {limit} rounds")

    def settle_until(self, wanted: str, within_s: float = 600) -> list[Thing]:
        """Settle and follow `wake_in_ms` until an event of this type arrives."""
        before = len(self.events)
        for _ in range(200):
            step = self.step()
            if any(event["type"] == wanted for event in self.events[before:]):
                self.settle()
                return self.events[before:]
            if step.idle:
                assert step.wake_in_ms is not None, f"wake_in_ms is null before {wanted} arrived"
                within_s -= step.wake_in_ms / 1000
                assert within_s >= 0, f"no {wanted} in time"
                self.phone.pass_time(max(step.wake_in_ms, 1) / 1000)
        raise AssertionError(f"no {wanted} after 200 rounds")

    def of_type(self, kind: str) -> list[Thing]:
        """The events of this type so far."""
        return [event for event in self.events if event["type"] == kind]

    @property
    def screen(self) -> Decision:
        """What the app shows now."""
        assert self.shown is not None, "no screen yet"
        return self.shown

    # What users do ----------------------------------------------------------------------------

    def sign_in(self, person: Person, org: Organisation | None = None) -> Decision:
        """Sign in with a session that the host obtained, choose `org` if required, and settle."""
        self.session_adopt({"session": self.phone.session(person)})
        self.settle()
        if org is not None:
            self.org_select({"org_id": org.id})
            self.settle()
        return self.screen

    def touch(self) -> Decision:
        """Answer the biometric prompt with the enrolled finger."""
        self.phone.keychain.present_finger()
        return cast(Decision, self.session_unlock())

    def unlock(self, outcome: str) -> Decision:
        """Answer the biometric prompt in another way: the key store tells the library how."""
        if outcome != "success":
            self.phone.keychain.answer("load", "biometric", PROMPTS[outcome])
        return cast(Decision, self.session_unlock())

    def register(self, minutes: int = 30, **more: Any) -> str:  # noqa: ANN401
        """Register an activity that happens now; returns its id."""
        payload = {"type": "visit", "minutes": minutes, **more}
        occurred = self.phone.now_ms
        added = self.queue_add({"kind": "activity", "payload": payload, "occurred_at_ms": occurred})
        return added["id"]

    def go_offline(self) -> None:
        """Cut the network and report it to the library."""
        self.phone.network.up = False
        self.network_report({"online": False})

    def go_online(self) -> None:
        """Restore the network and report it to the library."""
        self.phone.network.up = True
        self.network_report({"online": True})

    def reconnect(self) -> None:
        """Restore the network and settle."""
        self.go_online()
        self.settle()

    def wait(self, seconds: float) -> None:
        """Advance both clocks and settle."""
        self.phone.pass_time(seconds)
        self.settle()

    def sync(self) -> None:
        """Ask for a synchronisation and settle."""
        self.sync_now()
        self.settle()


class Phone:
    """The device: files, keychain, clocks and network. At most one of its apps is open."""

    def __init__(
        self,
        folder: Path,
        library: Library,
        backend: Backend,
        *,
        clock: str = "manual",
        policy: Mapping[str, Any] | None = None,
        tables: Mapping[str, Any] | None = None,
        **config: Any,  # noqa: ANN401
    ) -> None:
        self.folder = folder
        secrecy.current.folders[folder] = None
        self.library = library
        self.backend = backend
        self.directory = DirectoryFixtures(backend)
        self.keychain = KeyChain(folder.with_suffix(".keychain"))
        self.manual = clock == "manual"
        self.now_ms = real_now_ms()
        self.monotonic_ms = 7_200_000
        #: None: the machine's boot id, until the phone is restarted. A handle stores its boot id: a
        #: lease of another boot is void.
        self.boot_id: str | None = None
        self.network = Network(ahead_ms=self.ahead_ms)
        self.app: App | None = None
        self.config: dict[str, Any] = {
            "data_dir": str(folder),
            "backend": {"url": backend.url, "api_key": backend.anon_key, **(tables or {})},
            "template": "volunteers",
            "auth_methods": METHODS,
            "redirect_url": "app.example://signed-in",
            "routes": ROUTES,
            "policy": {**POLICY, **(policy or {})},
            "locale": "nb",
            "clock": clock,
            **config,
        }

    def spec(self) -> str:
        """The phone as JSON, for a child process that continues with it (see `from_spec`)."""
        return json.dumps(
            {
                "folder": str(self.folder),
                "library": str(self.library.path),
                "backend": [self.backend.url, self.backend.anon_key],
                "now_ms": self.now_ms,
                "monotonic_ms": self.monotonic_ms,
                "boot_id": self.boot_id,
                "config": self.config,
            }
        )

    @classmethod
    def from_spec(cls, text: str) -> Phone:
        """The phone of `spec`, in a child process."""
        spec = json.loads(text)
        folder = Path(spec["folder"])
        phone = cls(folder, Library(spec["library"]), Reached(*spec["backend"]))
        phone.config = spec["config"]
        phone.manual = phone.config["clock"] == "manual"
        phone.now_ms, phone.monotonic_ms = spec["now_ms"], spec["monotonic_ms"]
        phone.boot_id = spec["boot_id"]
        return phone

    def twin(self, folder: Path) -> Phone:
        """A copy of the phone with its files and keys; its app must be closed."""
        assert self.app is None
        shutil.copytree(self.folder, folder)
        made = Phone.from_spec(json.dumps({**json.loads(self.spec()), "folder": str(folder)}))
        made.config = {**self.config, "data_dir": str(folder)}
        made.library = self.library
        shutil.copy(self.keychain.path, made.keychain.path)
        return made

    @property
    def key_store(self) -> KeyStore | None:
        """The key store that the library gets as functions."""
        return self.keychain

    def ahead_ms(self) -> int:
        """The lead of the phone's clock over the real clock, in milliseconds."""
        return self.now_ms - real_now_ms() if self.manual else 0

    def session(self, person: Person) -> Any:  # noqa: ANN401
        """A session that the host obtained, with its end moved to the phone's time."""
        session = self.directory.session(person)
        return json.loads(moved_session(json.dumps(session), self.ahead_ms() / 1000) or "")

    # The app ------------------------------------------------------------------------------------

    def open(self) -> App:
        """Open the app without resuming; closes an open one first."""
        self.close()
        self.app = App(self, self.config)
        self._set_clock()
        return self.app

    def close(self) -> None:
        """Close the app."""
        if self.app is not None:
            # Search now: the database's log still holds values that were written and deleted.
            secrecy.current.search_files()
            self.app.close()
            self.app = None

    def start(self, *, online: bool = True) -> App:
        """Open the app and resume, as a cold start does; the decision is in `app.screen`."""
        app = self.open()
        if not online:
            app.go_offline()
        app.session_resume()
        return app

    def another(self) -> App:
        """Start the app in another process, as it were; the open one stays open."""
        self.app = None
        return self.start()

    # Time ---------------------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        """Advance both clocks."""
        self.now_ms += round(seconds * 1000)
        self.monotonic_ms += round(seconds * 1000)
        self._set_clock()

    def set_wall_clock(self, by_seconds: float) -> None:
        """Set the wall clock; the monotonic clock stays as it is."""
        self.now_ms += int(by_seconds * 1000)
        self._set_clock()

    def reboot(self, off_for_s: float = 60) -> None:
        """Restart the device: the app is closed and the monotonic clock starts at zero."""
        self.close()
        self.now_ms += int(off_for_s * 1000)
        self.monotonic_ms = 30_000
        self.boot_id = str(uuid.uuid4())

    def _set_clock(self) -> None:
        if self.app is not None and self.manual:
            request: ClockSetRequest = {"now_ms": self.now_ms, "monotonic_ms": self.monotonic_ms}
            if self.boot_id is not None:
                request["boot_id"] = self.boot_id
            self.app.clock_set(request)


class FilePhone(Phone):
    """A phone without a keychain: the library uses its own key files."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        options["policy"] = {"biometric": "preferred", **(options.get("policy") or {})}
        super().__init__(*arguments, **{"keystore": {"kind": "file"}, **options})

    @property
    def key_store(self) -> None:
        return None
