"""Searches files, text and process memory for secrets."""

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

#: Shorter forms would match by chance. (A given string of 6 bytes occurs in a megabyte of random
#: data once in 250 million.)
LEAST = 6
#: At most this many finds are reported for one piece of data.
MOST_FINDS = 64

UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def forms(secret: str | bytes) -> dict[str, bytes]:
    """The encodings in which to search: raw, hex, base64 at any alignment, UTF-16, JSON, UUID."""
    raw = secret if isinstance(secret, bytes) else secret.encode("utf-8", "surrogatepass")
    found = {"raw": raw, "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode()}
    for shift in range(3):
        padded = bytes(shift) + raw
        # Leave out characters that also depend on the bytes before and after the secret.
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
        # As in JSON text, escaped or not.
        found["escaped"] = json.dumps(secret)[1:-1].encode()
        found["quoted"] = json.dumps(secret, ensure_ascii=False)[1:-1].encode(
            "utf-8", "surrogatepass"
        )
        if UUID_TEXT.fullmatch(secret):
            found["uuid"] = uuid.UUID(secret).bytes
            found["uuid without dashes"] = secret.replace("-", "").encode()
            found["UUID"] = secret.upper().encode()
    return found


#: A world is searched twice, mostly for the same secrets.
_forms = functools.lru_cache(maxsize=4096)(forms)


class ScannerError(AssertionError):
    """The scan gave a wrong result."""


class Scanner:
    """Searches for many secrets in all their forms in one pass (scan.c)."""

    def __init__(self, secrets: Mapping[str | bytes, str]) -> None:
        """`secrets` maps each secret to its name in a find."""
        # Two secrets may share a form; the find then carries the name of the first.
        names: dict[bytes, str] = {}
        for secret, name in secrets.items():
            for form, pattern in _forms(secret).items():
                if len(pattern) >= LEAST:
                    names.setdefault(pattern, f"{name} ({form})")
        self._names = list(names.values())
        self._patterns = list(names)
        # The copy that scan.c compares with; find() compares with `_patterns` again.
        self._text = b"".join(names)
        edges = [0, *accumulate(map(len, names))]
        self._edges = (ctypes.c_uint64 * len(edges))(*edges)
        self._program = compiled()
        self._scan = self._program.scan_make(self._text, self._edges, len(names))
        if not self._scan:
            raise MemoryError

    def __del__(self) -> None:
        """Free the table."""
        if getattr(self, "_scan", None):
            self._program.scan_free(self._scan)

    def find(self, data: bytes) -> list[str]:
        """The secrets that occur in the data, each as `name (form)`."""
        found = (ctypes.c_int32 * MOST_FINDS)()
        count = self._program.scan_find(self._scan, data, len(data), found, MOST_FINDS)
        indices = set(found[:count])
        # scan.c shares the process with the library under test. A defect there may overwrite the
        # scanner's text or table; overwritten patterns (zeros occur in every file) are not finds.
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
            # SQLite's index of its log holds page numbers and checksums and is rebuilt at the next
            # start. Our code does not write to it, but under load its pages have shown memory of
            # this process: the search patterns, in forms that the library never produces.
            if path.name.endswith("-shm"):
                continue
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                continue  # SQLite deletes its log when the last handle closes
            if data == bytes(len(data)):
                data = b""  # the reserve for a full disk: it need not be searched for each secret
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
    program.scan_make.argtypes = (ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_int32)
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
    """Every file below the folder; links are not followed."""
    found: list[Path] = []
    folders = [str(folder)] if folder.is_dir() else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    found.append(Path(entry.path))
    return sorted(found)


def scan_files(folder: Path, *secrets: str | bytes) -> list[str]:
    """Every find in the files below the folder, as `file: secret number n (form)`."""
    scanner = Scanner({secret: f"secret {number}" for number, secret in enumerate(secrets)})
    return scanner.find_in_files(files_below(folder))


#: Larger regions are a sanitizer's shadow memory; the scan skips them.
SHADOW = 1 << 32


def scan_memory(pid: int, *secrets: str | bytes) -> list[str]:
    """Every find in the readable memory of a process, as `region: secret n (form)`."""
    finds: list[str] = []
    scanner = Scanner({secret: f"secret {number}" for number, secret in enumerate(secrets)})
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
            finds += [f"{name}: {found}" for found in scanner.find(data)]
    return finds
