"""Somebody moves the main file of an app on a full disk: SPEC KEYCHAIN STOCK FILLER."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from holdfast import HoldfastError

from support.filler import fill
from support.keychain import KeyChain
from support.phone import Phone


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    shutil.copytree(sys.argv[3], phone.folder)
    phone.keychain = KeyChain(Path(sys.argv[2]))
    app = phone.start(online=False)
    main_file = phone.folder / "holdfast.db"
    codes = []
    with Path(sys.argv[4]).open("wb", buffering=0) as filler:
        fill(filler)
        main_file.rename(phone.folder / "moved")
        for _ in range(3):
            try:
                app.session_status()
                codes.append("")
            except HoldfastError as error:
                codes.append(error.code)
    phone.close()
    print(json.dumps(codes))


main()
