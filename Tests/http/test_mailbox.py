"""The mailbox: a key store whose requests another thread answers, also under the sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from driver_stand import KEYS, ROOT

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_the_mailbox_keeps_its_promises(sanitizer: str, tmp_path: Path) -> None:
    program = tmp_path / "mailbox"
    flags = f"-std=c11 -g -Wall -Wextra -Werror -fsanitize={sanitizer} -pthread".split()
    folders = ["-I", ROOT / "include", "-I", KEYS / "include"]
    sources = [KEYS / "mailbox.c", HERE / "mailbox_test.c"]
    subprocess.run(["cc", *flags, *folders, *sources, "-o", program], check=True)
    subprocess.run([program], check=True)
