"""Looks for secrets where none may be: in files, in text, and in the memory of a process."""

from __future__ import annotations

import base64
import ctypes
import functools
import json
import os
import re
import subprocess
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path

#: Shorter forms would be found by chance. (Of so many bytes a given string stands in a megabyte of
#: noise once in 250 million.)
LEAST = 6
#: More finds than this in one piece of data are not told apart.
MOST_FINDS = 64

UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def forms(secret: str | bytes) -> dict[str, bytes]:
    """How a secret may look on disk: as it is, in hex, in base64 at any alignment, in UTF-16."""
    raw = secret if isinstance(secret, bytes) else secret.encode("utf-8", "surrogatepass")
    found = {"raw": raw, "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode()}
    for shift in range(3):
        padded = bytes(shift) + raw
        # Characters that also depend on what stands before and behind the secret do not count.
        whole = len(padded) // 3 * 4
        start = (shift * 8 + 5) // 6
        part = base64.b64encode(padded)[start:whole]
        if len(part) >= LEAST:
            found[f"base64+{shift}"] = part
            if b"+" in part or b"/" in part:
                found[f"base64url+{shift}"] = part.translate(bytes.maketrans(b"+/", b"-_"))
    if isinstance(secret, str):
        found["utf-16"] = secret.encode("utf-16-le", "surrogatepass")
        found["utf-16-be"] = secret.encode("utf-16-be", "surrogatepass")
        # As JSON text has it, escaped or not.
        found["escaped"] = json.dumps(secret)[1:-1].encode()
        found["quoted"] = json.dumps(secret, ensure_ascii=False)[1:-1].encode(
            "utf-8", "surrogatepass"
        )
        if UUID_TEXT.fullmatch(secret):
            found["uuid"] = uuid.UUID(secret).bytes
            found["uuid without dashes"] = secret.replace("-", "").encode()
            found["UUID"] = secret.upper().encode()
    return found


def find(data: bytes, secret: str | bytes) -> list[str]:
    """The forms in which the secret stands in the data."""
    return [name for name, form in forms(secret).items() if form in data]


class ScannerError(AssertionError):
    """The scan itself went wrong."""


class Scanner:
    """Many secrets in all their forms, looked for in one pass (scan.c)."""

    def __init__(self, secrets: Mapping[str | bytes, str]) -> None:
        """`secrets`: what to look for, and what to call it in a find."""
        # A form of one secret may be a form of another: the first one's name will do.
        names: dict[bytes, str] = {}
        for secret, name in secrets.items():
            for form, pattern in forms(secret).items():
                if len(pattern) >= LEAST:
                    names.setdefault(pattern, f"{name} ({form})")
        self._names = list(names.values())
        self._patterns = list(names)
        # Where scan.c looks. The patterns themselves lie elsewhere: see find().
        self._text = b"".join(names)
        edges = [0, *accumulate(map(len, names))]
        self._edges = (ctypes.c_uint64 * len(edges))(*edges)
        self._program = compiled()
        self._scan = self._program.scan_make(self._text, self._edges, len(names))
        if not self._scan:
            raise MemoryError

    def __del__(self) -> None:
        """Let go of the table."""
        if getattr(self, "_scan", None):
            self._program.scan_free(self._scan)

    def find(self, data: bytes) -> list[str]:
        """The secrets that stand in the data: `name (form)` each."""
        found = (ctypes.c_int32 * MOST_FINDS)()
        count = self._program.scan_find(self._scan, data, len(data), found, MOST_FINDS)
        indices = set(found[:count])
        # scan.c works in the memory of the process under test: what a defect there writes over its
        # text or its table is no find. (Patterns of zeros stand in every file.)
        untrue = [self._names[index] for index in indices if self._patterns[index] not in data]
        if untrue:
            raise ScannerError(
                f"{len(untrue)} finds that are none, of {untrue[0]}: memory is damaged"
            )
        return sorted(self._names[index] for index in indices)

    def find_in_files(self, paths: Iterable[Path]) -> list[str]:
        """`file: name (form)` for every find in the files, or in their names."""
        finds: list[str] = []
        for path in paths:
            # SQLite's index of its log: page numbers and sums, made anew at the next start. No code
            # of ours writes there; but under load its pages were seen to show a stretch of this
            # very process's memory (of the texts that are looked for, in forms that the library
            # never makes).
            if path.name.endswith("-shm"):
                continue
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                continue  # SQLite removes its log when the last handle is closed
            finds += [f"{path.name}: {find}" for find in self.find(data + path.name.encode())]
        return finds


@functools.cache
def compiled() -> ctypes.CDLL:
    """scan.c, compiled for this process."""
    source = Path(__file__).with_suffix(".c")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "scan.so"
        flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["cc", *flags, "-o", str(target), str(source)], check=True)
        program = ctypes.CDLL(str(target))
    program.scan_make.restype = ctypes.c_void_p
    program.scan_make.argtypes = (
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_uint64),
        ctypes.c_int32,
    )
    program.scan_find.restype = ctypes.c_int64
    program.scan_find.argtypes = (
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_uint64,
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_int64,
    )
    program.scan_free.restype = None
    program.scan_free.argtypes = (ctypes.c_void_p,)
    return program


def files_below(folder: Path) -> list[Path]:
    """Every file below the folder (not what a link leads to)."""
    return sorted(
        Path(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if Path(place, name).is_file() and not Path(place, name).is_symlink()
    )


def scan_files(folder: Path, *secrets: str | bytes) -> list[str]:
    """`file: secret number n (form)` for every find in any file below the folder."""
    scanner = Scanner({secret: f"secret {number}" for number, secret in enumerate(secrets)})
    return scanner.find_in_files(files_below(folder))


def total_size(folder: Path) -> int:
    """Bytes of all files below the folder: what a scan has looked at."""
    return sum(path.stat().st_size for path in files_below(folder))


#: A region as large as this is a sanitizer's book about the memory, not the memory.
SHADOW = 1 << 32


def scan_memory(pid: int, *secrets: str | bytes) -> list[str]:
    """The same in the readable memory of a process (ours or a child's)."""
    finds: list[str] = []
    regions = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for region in regions:
            span, permissions, *_ = region.split()
            name = region.split(maxsplit=5)[5] if len(region.split()) > 5 else "anonymous"
            if "r" not in permissions or name in {"[vvar]", "[vsyscall]", "[vvar_vclock]"}:
                continue
            first, last = (int(edge, 16) for edge in span.split("-"))
            if last - first > SHADOW:
                continue
            try:
                memory.seek(first)
                data = memory.read(last - first)
            except OSError:
                continue
            for number, secret in enumerate(secrets):
                finds += [f"{name}: {form} of secret {number}" for form in find(data, secret)]
    return finds
