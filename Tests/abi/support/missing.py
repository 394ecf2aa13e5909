"""Keys that the key store does not have, for a while or for good."""

from __future__ import annotations

from holdfast.keystore import KEY_FAILED, KEY_INVALIDATED, KEY_NOT_FOUND

from .phone import App, Phone
from .screens import shown

#: More calls than a test makes.
ALWAYS = 1000
#: What is shown at first, and once the key counts as lost.
WAIT = ("wait", "keystore_failed")
LOST = ("sign_in", "key_lost")
NAMES = ("device", "session", "biometric")
#: The device keys that follow a lost one.
NEXT = ("device_b", "device_c")


def lose(phone: Phone, how: str = "not_found") -> None:
    """From now on the store has no key of the files; `_dead`: and saves none."""
    keychain = phone.keychain
    answer = KEY_INVALIDATED if how.startswith("invalidated") else KEY_NOT_FOUND
    keychain.answer("load", "device", *[answer] * ALWAYS)
    if how.endswith("_dead"):
        for name in NAMES + NEXT:
            keychain.answer("load", name, *[answer] * ALWAYS)
            keychain.answer("save", name, *[KEY_FAILED] * ALWAYS)


def until_lost(app: App) -> None:
    """Follow `wake_in_ms` from the wait to the sign-in."""
    assert shown(app) == WAIT
    app.settle_until("screen", within_s=30)
    assert shown(app) == LOST


def aside(phone: Phone) -> list[str]:
    """The main files that were set aside."""
    return sorted(path.name for path in phone.folder.glob("holdfast.db.*-*[0-9]"))
