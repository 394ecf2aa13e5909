"""A key store that behaves like a phone's keychain and fails on demand."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from pathlib import Path

from holdfast.keystore import (
    KEY_FAILED,
    KEY_INVALIDATED,
    KEY_LOCKED,
    KEY_NOT_ENROLLED,
    KEY_OK,
    PROTECT_BIOMETRIC,
    KeyStoreAnswer,
)

from . import secrecy


class KeyChain:
    """Keys outlive the process. "biometric" loads once per touch of a finger."""

    def __init__(self, path: Path) -> None:
        #: Stands for the secure element: outside the app's folder, read again at every call.
        self.path = path
        #: Whether the device was unlocked since its start; before that no key is readable.
        self.unlocked_since_boot = True
        self.enrolled = True
        #: How often each call happened: ("load", "device"), …
        self.calls: Counter[tuple[str, str]] = Counter()
        #: Hook at the start of every call, with arguments such as ("load", "device").
        self.watch: Callable[[str, str], None] = lambda _call, _name: None
        self._touches = 0
        self._script: dict[tuple[str, str], deque[int]] = defaultdict(deque)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write({})

    # Called by the test -----------------------------------------------------------------------

    def names(self) -> set[str]:
        """The names of the stored keys."""
        return {name for name, entry in self._read().items() if not entry.get("gone")}

    def stored(self, name: str) -> bytes:
        """The key itself, as an attacker with the secure element's content has it."""
        return bytes.fromhex(str(self._read()[name]["key"]))

    def present_finger(self) -> None:
        """Touch the sensor: the next load of the biometric key succeeds."""
        self._touches = 1

    def take_finger_away(self) -> None:
        """Undo `present_finger`."""
        self._touches = 0

    def change_enrolment(self) -> None:
        """Add a finger: this erases every key behind biometrics."""
        entries = self._read()
        for name, entry in entries.items():
            if entry["protection"] == PROTECT_BIOMETRIC:
                entries[name] = {"key": "", "protection": PROTECT_BIOMETRIC, "gone": True}
        self._write(entries)

    def replace(self, name: str, key: bytes) -> None:
        """Replace the key by another one."""
        secrecy.current.add(f"key {name}", key)
        entries = self._read()
        entries[name]["key"] = key.hex()
        self._write(entries)

    def answer(self, call: str, name: str, *answers: int) -> None:
        """Script the results of the next calls; KEY_OK performs the call."""
        self._script[call, name].extend(answers)

    def forget_script(self) -> None:
        """Drop the script: later calls behave normally."""
        self._script.clear()

    # Called by the library --------------------------------------------------------------------

    def load(self, name: str) -> bytes | None:
        self._begin("load", name)
        entry = self._read().get(name)
        if not self.unlocked_since_boot:
            raise KeyStoreAnswer(KEY_LOCKED)
        if entry is None:
            return None
        if entry.get("gone"):
            raise KeyStoreAnswer(KEY_INVALIDATED)
        if entry["protection"] == PROTECT_BIOMETRIC:
            if not self.enrolled:
                raise KeyStoreAnswer(KEY_NOT_ENROLLED)
            if self._touches == 0:
                raise KeyStoreAnswer(KEY_FAILED)
            self._touches -= 1
        return bytes.fromhex(str(entry["key"]))

    def save(self, name: str, key: bytes, protection: int) -> None:
        secrecy.current.add(f"key {name}", key)
        self._begin("save", name)
        if not self.unlocked_since_boot:
            raise KeyStoreAnswer(KEY_LOCKED)
        if protection == PROTECT_BIOMETRIC and not self.enrolled:
            raise KeyStoreAnswer(KEY_NOT_ENROLLED)
        self._write({**self._read(), name: {"key": key.hex(), "protection": protection}})

    def erase(self, name: str) -> None:
        self._begin("erase", name)
        self._write({n: entry for n, entry in self._read().items() if n != name})

    def _begin(self, call: str, name: str) -> None:
        self.calls[call, name] += 1
        self.watch(call, name)
        script = self._script[call, name]
        if script and (answer := script.popleft()) != KEY_OK:
            raise KeyStoreAnswer(answer)

    def _read(self) -> dict[str, dict[str, object]]:
        entries: dict[str, dict[str, object]] = json.loads(self.path.read_text(encoding="ascii"))
        return entries

    def _write(self, entries: dict[str, dict[str, object]]) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(entries), encoding="ascii")
        fresh.replace(self.path)
