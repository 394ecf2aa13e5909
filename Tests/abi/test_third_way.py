"""The third way of a key store: the same tests with a host that is asked for its keys in `poll`.

Issue 16, point 3. A fast share of the suite runs here with the key store `host` (see
support/requested.py); HOLDFAST_KEY_STORE=host in the environment runs any other test that way. A
test that needs functions is marked `functions`, with the reason.
"""

from __future__ import annotations

import test_lock_is_cryptographic
import test_session_resume
import test_session_unlock
import test_sign_in
import test_sign_in_cancel

SHARE = (
    test_session_resume,
    test_session_unlock,
    test_sign_in,
    test_sign_in_cancel,
    test_lock_is_cryptographic,
)

for _module in SHARE:
    for _name, _value in vars(_module).items():
        # Its tests, and the fixtures that they use. Two tests of one name would hide each other.
        assert not (_name.startswith("test_") and _name in globals()), _name
        globals().setdefault(_name, _value)
