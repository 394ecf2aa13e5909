"""Looks for secrets where none may be: in files, and in the memory of a process."""

from __future__ import annotations

import base64
import json
import re
import uuid
from pathlib import Path


def forms(secret: str | bytes) -> dict[str, bytes]:
    """How a secret may look on disk: as it is, in hex, in base64 at any alignment, in UTF-16."""
    raw = secret if isinstance(secret, bytes) else secret.encode("utf-8")
    found = {"raw": raw, "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode()}
    for shift in range(3):
        padded = bytes(shift) + raw
        # Characters that also depend on what stands before and behind the secret do not count.
        whole = len(padded) // 3 * 4
        start = (shift * 8 + 5) // 6
        for name, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
            part = encode(padded)[start:whole]
            if len(part) >= 12:
                found[f"{name}+{shift}"] = part
    if isinstance(secret, str):
        found["utf-16"] = secret.encode("utf-16-le")
        found["utf-16-be"] = secret.encode("utf-16-be")
        if not secret.isascii():
            found["escaped"] = json.dumps(secret)[1:-1].encode()
        if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", secret):
            found["uuid"] = uuid.UUID(secret).bytes
            found["uuid without dashes"] = secret.replace("-", "").encode()
    return found


def find(data: bytes, secret: str | bytes) -> list[str]:
    """The forms in which the secret stands in the data."""
    return [name for name, form in forms(secret).items() if form in data]


def scan_files(folder: Path, *secrets: str | bytes) -> list[str]:
    """`file: form of secret number n` for every find in any file below the folder."""
    finds: list[str] = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes() + path.name.encode()
        for number, secret in enumerate(secrets):
            finds += [f"{path.name}: {form} of secret {number}" for form in find(data, secret)]
    return finds


def total_size(folder: Path) -> int:
    """Bytes of all files below the folder: what a scan has looked at."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


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
            try:
                memory.seek(first)
                data = memory.read(last - first)
            except OSError:
                continue
            for number, secret in enumerate(secrets):
                finds += [f"{name}: {form} of secret {number}" for form in find(data, secret)]
    return finds
