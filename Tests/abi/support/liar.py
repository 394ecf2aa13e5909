"""A key store that answers OK and lies."""

from __future__ import annotations

from .keychain import KeyChain
from .phone import Phone


class Liar(KeyChain):
    """Answers OK to everything. `lie`: forgets, changes, keeps, shortens, mixes."""

    lie = ""

    def save(self, name: str, key: bytes, protection: int) -> None:
        if self.lie == "forgets":
            return
        if self.lie == "mixes" and name != "biometric":
            name = "device"
        super().save(name, bytes(32) if self.lie == "changes" else key, protection)

    def load(self, name: str) -> bytes | None:
        if self.lie == "mixes" and name != "biometric":
            name = "device"
        key = super().load(name)
        return key[:16] if key and self.lie == "shortens" else key

    def erase(self, name: str) -> None:
        if self.lie != "keeps":
            super().erase(name)


def with_liar(phone: Phone) -> Liar:
    """Replace the phone's keychain by one that can lie."""
    phone.keychain = Liar(phone.keychain.path)
    return phone.keychain
