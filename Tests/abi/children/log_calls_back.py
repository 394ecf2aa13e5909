"""A log function that calls the library: log_calls_back.py LIBRARY FOLDER.

Prints the code of the first refusal, and "ended".
"""

from __future__ import annotations

import ctypes
import json
import sys

LINE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    config = {
        "data_dir": sys.argv[2] + "/data",
        "keystore": {"kind": "file"},
        "policy": {"biometric": "off"},
        "auth_methods": [],
        "backend": {"url": "https://example.supabase.co", "api_key": "key"},
    }
    app, reply = ctypes.c_void_p(), ctypes.c_void_p()
    opened = json.dumps(config).encode()
    assert library.holdfast_open(opened, None, ctypes.byref(app), ctypes.byref(reply)) == 0
    codes: list[str] = []

    def line(_context: int, _level: int, _text: bytes) -> None:
        inner = ctypes.c_char_p()
        library.holdfast_session_status(app, None, ctypes.byref(inner))
        codes.append(json.loads(inner.value or b"{}").get("error", {}).get("code", ""))

    function = LINE(line)
    library.holdfast_log(3, function, None)
    library.holdfast_queue_add(app, b'{"kind":1}', ctypes.byref(reply))
    library.holdfast_log(0, None, None)
    print(codes[0])
    print("ended")


main()
