"""An attacker with the data files and some keys, who knows the format (docs/security.md)."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import shutil
import sqlite3
import tempfile
from pathlib import Path

SODIUM = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
VERSION, NONCE, TAG, KEY = 1, 24, 16, 32
PURPOSES = range(1, 6)
#: The sealed columns of the session row; the last one is the key of the cache.
COLUMNS = ("tokens", "choice", "memberships", "cache_key")


def context(table: str, row: bytes, owner: bytes, column: str, org: bytes = b"") -> bytes:
    """The associated data that a sealed value is bound to."""
    parts = [table.encode(), row, owner, column.encode(), *([org] if org else [])]
    return bytes([VERSION]) + b"".join(len(part).to_bytes(2, "big") + part for part in parts)


def unseal(key: bytes, sealed: bytes | None, associated: bytes) -> bytes | None:
    """The plaintext, or None if this key does not open the value."""
    if not sealed or len(sealed) <= 1 + NONCE + TAG:
        return None
    nonce, cipher = sealed[1 : 1 + NONCE], sealed[1 + NONCE :]
    plain = ctypes.create_string_buffer(len(cipher) - TAG)
    refused = SODIUM.crypto_aead_xchacha20poly1305_ietf_decrypt(
        plain, None, None, cipher, ctypes.c_ulonglong(len(cipher)), associated,
        ctypes.c_ulonglong(len(associated)), nonce, key,
    )  # fmt: skip
    return None if refused else plain.raw.rstrip(b"\0")[:-1]


def derived(key: bytes) -> list[bytes]:
    """The keys that are derived from the device key."""
    keys = []
    for purpose in PURPOSES:
        room = ctypes.create_string_buffer(KEY)
        SODIUM.crypto_kdf_blake2b_derive_from_key(
            room, ctypes.c_size_t(KEY), ctypes.c_uint64(purpose), b"holdfast", key
        )
        keys.append(room.raw)
    return keys


def rows(path: Path, query: str) -> list[tuple[bytes, ...]]:
    """The rows that the query finds in a copy of the file.

    The query runs on a copy: a second SQLite in the app's process would release the locks of the
    first one when it closes the file. A flipped bit can make text of a blob, and text need not be
    UTF-8 then: text is returned as bytes too.
    """
    if not path.exists():
        return []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        for suffix in ("", "-wal"):
            if (file := Path(f"{path}{suffix}")).exists():
                shutil.copy(file, f"{copy}{suffix}")
        with contextlib.closing(sqlite3.connect(copy)) as database:
            database.text_factory = bytes
            return database.execute(query).fetchall()


def vault_keys(folder: Path, *keys: bytes) -> set[bytes]:
    """The vault key, if one of the keys, or a key derived from one, opens a wrap of it."""
    all_keys = [*keys, *(more for key in keys for more in derived(key))]
    query = "SELECT owner, wrap_session, wrap_biometric FROM session"
    found = set()
    for owner, session, biometric in rows(folder / "holdfast.db", query):
        for column, wrap in (("wrap_session", session), ("wrap_biometric", biometric)):
            for key in all_keys:
                plain = unseal(key, wrap, context("session", b"", owner or b"", column))
                if plain is not None:
                    found.add(plain)
    return found


def decrypted(folder: Path, *keys: bytes) -> dict[str, bytes]:
    """Everything of session, organisations and contacts that these keys decrypt."""
    vaults = vault_keys(folder, *keys)
    tried = [*vaults, *keys, *(more for key in keys for more in derived(key))]
    found: dict[str, bytes] = {}
    query = "SELECT owner, tokens, choice, memberships, cache_key FROM session"
    owner = b""
    for session in rows(folder / "holdfast.db", query):
        owner = session[0] or b""
        for column, sealed in zip(COLUMNS, session[1:], strict=True):
            for key in list(tried):
                plain = unseal(key, sealed, context("session", b"", owner, column))
                if plain is not None and column == "cache_key":
                    tried.append(plain)
                elif plain is not None:
                    found[column] = plain
    for row, org, sealed in rows(folder / "cache.db", "SELECT row, org, sealed FROM contact"):
        for key in tried:
            plain = unseal(key, sealed, context("contact", row, owner, "sealed", org))
            if plain is not None:
                found["contacts"] = found.get("contacts", b"") + plain
    blocks = rows(folder / "cache.db", "SELECT number, org, sealed FROM contact_block")
    for number, org, sealed in blocks:
        place = int(number).to_bytes(8, "big")
        for key in tried:
            plain = unseal(key, sealed, context("contact_block", place, owner, "sealed", org))
            if plain is not None:
                found["blocks"] = found.get("blocks", b"") + plain
    return found
