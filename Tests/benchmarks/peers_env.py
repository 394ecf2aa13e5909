"""The environment of the peers: a separate venv; each package is installed by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import programs

VENV = programs.ROOT / ".build" / "bench-venv"
LIST = programs.HERE / "peers.txt"


class Peers:
    def __init__(self, *, install: bool = True) -> None:
        """Install the missing packages of peers.txt; those below its second comment constrain.

        Without `install` there are the peers that an earlier run has installed.
        """
        self._python = str(VENV / "bin/python")
        self._missing: dict[str, str] = {}
        self._pinned: list[str] = []
        for block in LIST.read_text().split("# What they need")[0].splitlines():
            if block and not block.startswith("#"):
                self._pinned.append(block)
        if not install:
            found = {path.name.lower() for path in VENV.glob("lib/python*/site-packages/*")}
            for pinned in self._pinned:
                name, version = pinned.split("==")
                if f"{name.replace('-', '_')}-{version}.dist-info" not in found:
                    self._missing[name] = "it is not installed"
            if not Path(self._python).exists():
                self._python = sys.executable
            return
        if not Path(self._python).exists():
            subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        for pinned in self._pinned:
            command = [self._python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            done = subprocess.run(
                [*command, "-c", str(LIST), pinned], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                self._missing[pinned.split("==")[0]] = "pip does not install it"
                print(f"{pinned} cannot be installed:\n{done.stderr.strip()}", file=sys.stderr)

    def has(self, package: str) -> bool:
        return package not in self._missing

    def why(self, package: str) -> str:
        return self._missing.get(package, "")

    def run(self, package: str, *arguments: object) -> dict[str, Any]:
        """Run peers.py and return its report; `package` is the package that it needs."""
        return programs.result(programs.output(self.command(package, *arguments)))

    def command(self, package: str, *arguments: object) -> list[str]:
        if not self.has(package):
            raise RuntimeError(f"{package} is missing")
        return [self._python, str(programs.HERE / "peers.py"), *map(str, arguments)]

    def tdlib(self) -> Path | None:
        """Return TDLib's JSON library from its package."""
        if not self.has("tdjson"):
            return None
        return next(VENV.glob("lib/python*/site-packages/tdjson.libs/libtdjson*"), None)

    def versions(self) -> str:
        found = [pinned.replace("==", " ") for pinned in self._pinned]
        return "peers: " + ", ".join(
            f"{name} (missing)" if name.split()[0] in self._missing else name for name in found
        )
