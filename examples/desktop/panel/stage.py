"""The stage of a demo or a test: network, clock and a fingerprint reader that keeps a key.

The app connects to a socket (HOLDFAST_STAGE). Every message is a line of JSON:

  {"operation":"watch"}                       the stage answers with its state, again at every change
  {"operation":"save","value":"..."}          keep the key
  {"operation":"load","prompt":true}          wait for a finger; release the key only for the right one
  {"operation":"erase"}

The key is in this process and never in the app's files. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import socket
import threading
from typing import Any


class Stage:
    """Serves one socket on a thread. `memory` keeps the reader's key beyond this process."""

    def __init__(self, path: str | pathlib.Path, memory: pathlib.Path | None = None) -> None:
        self.path = str(path)
        self.online = True
        self.clock_ms = 0
        self.front = True
        self.enrolled = True
        self.waiting_for_finger = threading.Event()
        self._memory = memory
        self._key: str | None = memory.read_text() if memory and memory.exists() else None
        self._lock = threading.Lock()
        self._watchers: list[socket.socket] = []
        self._prompts: list[socket.socket] = []
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        os.chmod(self.path, 0o600)
        self._listener.listen(16)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Stop. The app learns nothing more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for link in self._watchers + self._prompts:
                link.close()
            self._watchers, self._prompts = [], []
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def set(self, **state: Any) -> None:
        """Change `online`, `clock_ms` or `front`, and tell the app."""
        with self._lock:
            for name, value in state.items():
                setattr(self, name, value)
            for link in list(self._watchers):
                self._tell(link)

    def finger(self, *, accepted: bool = True) -> bool:
        """Put a finger on the reader. False: nobody asked for one."""
        with self._lock:
            prompts, self._prompts = self._prompts, []
            self.waiting_for_finger.clear()
            answered = False
            for link in prompts:
                if select.select([link], [], [], 0)[0]:  # the app has cancelled
                    link.close()
                    continue
                if accepted:
                    self._release(link)
                else:
                    self._answer(link, {"result": "failed"})
                answered = True
            return answered

    # The other side of the socket -----------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._obey, args=(link,), daemon=True).start()

    def _obey(self, link: socket.socket) -> None:
        line = link.makefile("r").readline()
        if not line:
            link.close()
            return
        order = json.loads(line)
        with self._lock:
            match order["operation"]:
                case "watch":
                    self._watchers.append(link)
                    self._tell(link)
                case "save" if self.enrolled:
                    self._keep(order["value"])
                    self._answer(link, {"result": "ok"})
                case "save":
                    self._answer(link, {"result": "not_enrolled"})
                case "erase":
                    self._keep(None)
                    self._answer(link, {"result": "ok"})
                case "load" if self._key is None:
                    self._answer(link, {"result": "not_found"})
                case "load" if order.get("prompt"):
                    self._prompts.append(link)
                    self.waiting_for_finger.set()
                case _:  # without a finger the reader releases nothing
                    self._answer(link, {"result": "cancelled"})

    def _release(self, link: socket.socket) -> None:
        if self._key is None:
            self._answer(link, {"result": "not_found"})
        else:
            self._answer(link, {"result": "ok", "value": self._key})

    def _keep(self, key: str | None) -> None:
        self._key = key
        if self._memory is None:
            return
        if key is None:
            self._memory.unlink(missing_ok=True)
        else:
            self._memory.touch(0o600)
            self._memory.write_text(key)

    @property
    def has_key(self) -> bool:
        """Whether the reader keeps a key."""
        return self._key is not None

    def _tell(self, link: socket.socket) -> None:
        state = {"online": self.online, "clock_ms": self.clock_ms, "front": self.front}
        try:
            link.sendall(json.dumps(state).encode() + b"\n")
        except OSError:  # the app has ended
            link.close()
            self._watchers.remove(link)

    @staticmethod
    def _answer(link: socket.socket, answer: dict[str, str]) -> None:
        with contextlib.suppress(OSError):
            link.sendall(json.dumps(answer).encode() + b"\n")
        link.close()
