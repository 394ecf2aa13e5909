"""Uses an open handle after fork(), or after a fork by system call: fork.py SPEC [raw]."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys

from holdfast.operations import OPERATIONS

from support.phone import Phone

FORKED = 10
#: The system call that forks, and its arguments. 17 is SIGCHLD.
RAW = {"x86_64": (57,), "aarch64": (220, 17, 0, 0, 0, 0)}


def in_child(phone: Phone, handle: int) -> int:
    """The checks in the child; returns 0 if all pass."""
    library = phone.library
    for name in OPERATIONS:
        status, reply = library.call(name, handle, b"{}")
        if status != FORKED or json.loads(reply or b"{}")["error"]["code"] != "handle.forked":
            print(f"{name} answers {status} {reply!r}", flush=True)
            return 1
    if library.next(handle, 3, -1)[0] != FORKED or library.wake_fd(handle, 3) != -1:
        print("next or wake_fd", flush=True)
        return 1
    library.close(handle)
    # A handle that the child opens works in the child.
    own = phone.open()
    if own.session_resume()["screen"] != "sign_in":
        return 1
    own.close()
    return 0


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    app = phone.open()
    before = app.session_resume()
    if sys.argv[2:] == ["raw"]:
        child = ctypes.CDLL(None).syscall(*RAW[platform.machine()])
    else:
        child = os.fork()
    if child == 0:
        phone.app = None
        os._exit(in_child(phone, app._handle))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    after = app.session_resume()
    assert after == before
    app.close()
    assert phone.library.live() == 0


main()
