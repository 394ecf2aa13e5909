"""The copied tree with all faults, and what is built from it: one test program and one library."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from .faults import Fault
from .paths import HERE, ROOT, SOURCES, WORK
from .rewrite import Rewritten, rewrite

#: Not linked into the copied tree: it has its own, or builds nothing from them.
OWN = ("Sources", "Package.swift", "build")

COMPLAINT = re.compile(r"^(/[^:\n]+\.swift):(\d+):(\d+): error: (.*)$", re.MULTILINE)


class BuildError(RuntimeError):
    """The tree does not compile, and no fault of ours is the cause."""


class Tree:
    """A folder with the tree, its build and the library."""

    def __init__(self, folder: Path = WORK) -> None:
        """Use the folder below `build`; what was built there before is used again."""
        self.folder = folder
        self.root = folder / "tree"
        self.scratch = folder / "scratch"
        self.tests = self.scratch / "debug/HoldfastPackageTests.xctest"
        self.library = folder / "lib-runtime/libholdfast.so"

    def make(self, faults: Mapping[int, Fault]) -> dict[int, Fault]:
        """Build with these faults; returns those that compile."""
        self._link()
        kept = self.compiled(faults)
        while True:
            files = self._write(kept)
            output = self._build()
            if output is None:
                break
            failed = self._blamed(output, files)
            self._note_failures(kept[number] for number in failed)
            for number in failed:
                del kept[number]
        self._link_library()
        return kept

    def compiled(self, faults: Mapping[int, Fault]) -> dict[int, Fault]:
        """Those of the faults that no build has refused."""
        refused = set(self._known_failures())
        return {n: fault for n, fault in faults.items() if _identity(fault) not in refused}

    # ---- the copy ----

    def _link(self) -> None:
        """Everything but the sources is a link: the tests read files beside them."""
        self.root.mkdir(parents=True, exist_ok=True)
        for path in ROOT.iterdir():
            link = self.root / path.name
            if path.name in OWN or path.name.startswith(".") or link.exists():
                continue
            link.symlink_to(path)
        _put(self.root / "Package.swift", (ROOT / "Package.swift").read_bytes())

    def _write(self, faults: Mapping[int, Fault]) -> dict[Path, Rewritten]:
        by_file: dict[str, dict[int, Fault]] = defaultdict(dict)
        for number, fault in faults.items():
            by_file[fault.file][number] = fault
        written, copies = {}, set()
        for source in sorted(path for path in SOURCES.rglob("*") if path.is_file()):
            name = str(source.relative_to(SOURCES))
            copy = self.root / "Sources" / name
            result = rewrite(source.read_bytes(), by_file.get(name, {}))
            _put(copy, result.text)
            copies.add(copy)
            if result.regions:
                written[copy] = result
        for part, folder in (("mutants.c", ""), ("mutants.h", "include")):
            copy = self.root / "Sources/CPlatform" / folder / part
            _put(copy, (HERE / "switch" / part).read_bytes())
            copies.add(copy)
        for path in (self.root / "Sources").rglob("*"):
            if path.is_file() and path not in copies:
                path.unlink()
        return written

    # ---- the build ----

    def _build(self) -> str | None:
        """None after success, else what the compiler wrote."""
        command = ["swift", "build", "-q", "--scratch-path", str(self.scratch)]
        command += ["-debug-info-format", "none", "--build-tests"]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout + done.stderr

    def _blamed(self, output: str, files: Mapping[Path, Rewritten]) -> set[int]:
        """The faults that the compiler refuses."""
        blamed: set[int] = set()
        for path, line, column, _ in COMPLAINT.findall(output):
            rewritten = files.get(Path(path)) or files.get(Path(path).resolve())
            if rewritten is not None:
                blamed |= rewritten.at(int(line), int(column))
        if not blamed:
            raise BuildError(output[-4000:])
        return blamed

    def _link_library(self) -> None:
        """The ordinary flavour. Code that is not optimised needs Swift's shared runtime."""
        info = json.loads(
            subprocess.run(
                ["swiftc", "-print-target-info"], check=True, capture_output=True, text=True
            ).stdout
        )
        resources = Path(info["paths"]["runtimeResourcePath"])
        runtime = resources / "linux"
        versions = self.folder / "holdfast.map"
        versions.write_text("HOLDFAST_1 { global: holdfast_*; local: *; };\n")
        self.library.parent.mkdir(parents=True, exist_ok=True)
        archive = self.scratch / "debug/libHoldfastStatic.a"
        subprocess.run(
            [
                *(str(resources.parents[1] / "bin/clang"), "-shared", "-fuse-ld=lld"),
                *("-o", str(self.library), "-Wl,--whole-archive", str(archive)),
                *("-Wl,--no-whole-archive", str(runtime / platform.machine() / "swiftrt.o")),
                *(
                    f"-L{runtime}",
                    "-lswiftCore",
                    "-lswiftSwiftOnoneSupport",
                    f"-Wl,-rpath,{runtime}",
                ),
                f"-Wl,--version-script={versions}",
                "-Wl,--gc-sections,-z,nodelete,-z,defs,--wrap=free",
                *("-lsqlite3", "-lsodium", "-ljansson", "-lm", "-ldl", "-pthread"),
            ],
            check=True,
        )

    # ---- faults that do not compile ----

    def _known_failures(self) -> list[str]:
        path = self.folder / "refused.txt"
        return path.read_text("utf-8").splitlines() if path.exists() else []

    def _note_failures(self, faults: Iterable[Fault]) -> None:
        with (self.folder / "refused.txt").open("a", encoding="utf-8") as file:
            for fault in faults:
                file.write(_identity(fault) + "\n")


def _identity(fault: Fault) -> str:
    return f"{fault.key}: {fault.change}"


def _put(path: Path, content: bytes) -> None:
    """Write only what has changed, so that the build does only what is needed."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
