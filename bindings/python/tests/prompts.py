"""Key stores that show a prompt, until somebody dismisses it."""

from __future__ import annotations

import threading

from holdfast.keystore import KEY_CANCELLED, KeyStoreAnswer
from holdfast.keystores import MemoryKeyStore
from patience import patience

ASKED = {"id": 9, "operation": "load", "name": "biometric", "prompt": "Unlock"}

#: How long a test waits for what must happen, in seconds.
PATIENCE_S = patience(60)


class Prompting(MemoryKeyStore):
    """It shows a prompt until `cancel`."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()
        self.shown = threading.Event()
        self.dismissed = threading.Event()
        self.cancelled: list[str] = []

    def load(self, name: str) -> bytes | None:
        self.began.set()
        self.shown.set()
        assert self.dismissed.wait(PATIENCE_S), "the prompt stays on the screen"
        raise KeyStoreAnswer(KEY_CANCELLED)

    def cancel(self, name: str) -> None:
        self.cancelled.append(name)
        if self.shown.is_set():
            self.dismissed.set()


class Slow(Prompting):
    """The first `cancel` comes when a load has begun and shows nothing yet."""

    def __init__(self) -> None:
        super().__init__()
        self.early = threading.Event()

    def load(self, name: str) -> bytes | None:
        self.began.set()
        assert self.early.wait(PATIENCE_S)
        return super().load(name)

    def cancel(self, name: str) -> None:
        super().cancel(name)
        self.early.set()
