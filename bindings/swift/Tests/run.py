"""Runs the tests of HoldfastKit against a local backend: run.py SWIFT FOLDER [ARGUMENT...].

First it writes the program of README.md, and one of the examples in the comments, into files. It
closes with a line of counts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "server"))

from beside_backend import environment  # noqa: E402

README = HERE.parent / "README.md"
#: What stands in README.md for what a reader fills in.
PLACEHOLDERS = {
    "https://PROJECT.supabase.co": "HOLDFAST_BACKEND",
    "KEY": "HOLDFAST_KEY",
    "PASSWORD": "HOLDFAST_PASSWORD",
}


def counted(report: Path) -> bool:
    """Print how many tests passed and failed; False if none ran or one failed.

    A report is absent if the tests did not end: they crashed, or were not built.
    """
    if not report.exists():
        print("the tests ended without a result", file=sys.stderr)
        return False
    tests = failed = 0
    for suite in ET.parse(report).iter("testsuite"):
        for case in suite.iter("testcase"):
            tests += case.find("skipped") is None
            failed += case.find("failure") is not None
    print(f"{tests - failed} passed, {failed} failed", flush=True)
    return tests > 0 and failed == 0


def write_programs() -> None:
    """Write the program of README.md, and the examples, where Package.swift looks for them."""
    found = re.findall(r"^```swift\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    [first] = [block for block in found if block.startswith("import Foundation")]
    for placeholder, variable in PLACEHOLDERS.items():
        read = f'ProcessInfo.processInfo.environment["{variable}"]!'
        first = first.replace(f'"{placeholder}"', read)
    generator = str(ROOT / "bindings" / "generate" / "swift.py")
    examples = subprocess.check_output([sys.executable, generator], text=True)
    for name, text in {"first": first, "examples": examples}.items():
        path = HERE.parent / ".build-readme" / name / "main.swift"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def main() -> int:
    """Return 0 if every test passed."""
    swift, scratch, *arguments = sys.argv[1:]
    # The options of the core's unit tests (mk/tests.mk), whose objects are used again.
    package = ["-q", "--disable-xctest", "-debug-info-format", "none"]
    package += ["--package-path", str(ROOT), "--scratch-path", scratch]
    write_programs()
    os.environ |= {"HOLDFAST_KIT": "1", "HOLDFAST_README": "1"}
    with environment() as found:
        folder = found["HOLDFAST_FOLDER"]
        build = [swift, "build", "--build-tests", *package]
        if (built := subprocess.run(build, check=False).returncode) != 0:
            return built
        programs = subprocess.check_output([*build, "--show-bin-path"], text=True).strip()
        found["HOLDFAST_PROGRAMS"] = programs
        command = [swift, "test", "--skip-build", *package, *arguments]
        command += ["--xunit-output", f"{folder}/report.xml"]
        status = subprocess.run(command, env=found, check=False).returncode
        passed = counted(Path(folder) / "report.xml")
        return status if passed else status or 1


if __name__ == "__main__":
    sys.exit(main())
