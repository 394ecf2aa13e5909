"""What the library costs, beside the floor and beside what others offer: one run, one table.

Absolute times say little on a shared machine; ratios of figures taken side by side hold. Every row
has its contenders run in turn, round after round, behind one that does not count; a ratio is the
median of the rounds' ratios. The table goes into docs/benchmarks.md.

QUICK=1: fewer and smaller rounds, to try the benchmark itself; nothing is written.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import check
import programs
import work
from peers_env import Peers

sys.path.insert(0, str(programs.ROOT / "Tests/server"))

QUICK = os.environ.get("QUICK", "") not in ("", "0")
PAGE = programs.ROOT / "docs" / "benchmarks.md"
FIGURES = programs.ROOT / "docs" / "benchmarks.json"
NAMES = {"embedded": "Embedded", "runtime": "runtime", "floor": "floor", "bundled": "bundled"}

#: Why a target is missed, by the row's first words. A miss without a reason is a fault.
EXPLAINED: dict[str, str] = {
    "load": "on the edge: SQLite's own library is 0.7 MB of it; the bundled build has it inside",
    "cold start, in process": "ordinary Swift makes its types' tables at first use",
    "cold start, whole process": (
        "the loader's work for four libraries is in both figures; ordinary Swift's own comes on top"
    ),
    "smallest call": (
        "no SQL is left in it; half of it is the reply, made and written by jansson, which the "
        "floor has too; then locks, clocks and a look whether the file is still the same one"
    ),
    "queue_add, durable, 1 thread": "the disk's syncs vary more than the contenders differ",
    "queue_add, durable, 4 threads": (
        "the disk's syncs, and who gets the lock, vary more than the contenders differ"
    ),
    "drain of 10,000 with 1 % bad": (
        "halving sends every item twice and each request is leased on the disk before it leaves; "
        "where the kind is uploaded by a function (upload: rpc) bad items cost nothing"
    ),
    "contacts: next searches": "as the floor does the same, it is the machine that takes turns",
}


def explanation(what: str) -> str | None:
    return next((why for words, why in EXPLAINED.items() if what.startswith(words)), None)


@dataclass
class Series:
    """What one contender took, in seconds, round by round."""

    rounds: list[list[float]] = field(default_factory=list)

    def figure(self, quantile: float) -> float:
        samples = sorted(sample for samples in self.rounds for sample in samples)
        return samples[min(len(samples) - 1, int(quantile * len(samples)))]

    @property
    def p50(self) -> float:
        return self.figure(0.5)

    @property
    def p99(self) -> float:
        return self.figure(0.99)


Contender = Callable[[], list[float]]


def contest(rounds: int, contenders: dict[str, Contender]) -> dict[str, Series]:
    """Everyone in turn, `rounds` times, after a round that does not count; who begins moves on."""
    found = {name: Series() for name in contenders}
    order = list(contenders)
    for number in range(rounds + 1):
        for name in order:
            samples = contenders[name]()
            if number > 0:
                found[name].rounds.append(samples)
        order.append(order.pop(0))
    return found


def take_turns(
    rounds: int, calls: int, commands: dict[str, tuple[list[str], str]]
) -> dict[str, Series]:
    """Like `contest`, but the processes are there all the time and take turns call by call."""
    processes = {name: programs.Turns(*command) for name, command in commands.items()}
    found = {name: Series() for name in commands}
    order = list(commands)
    for number in range(rounds + 1):
        taken: dict[str, list[float]] = {name: [] for name in order}
        for _ in range(calls):
            for name in order:
                taken[name].append(processes[name].take())
            order.append(order.pop(0))
        for name in order:
            if number > 0:
                found[name].rounds.append(taken[name])
    for process in processes.values():
        process.end()
    return found


def ratio(ours: Series, theirs: Series, figure: Callable[[list[float]], float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(
        figure(mine) / figure(its) for mine, its in zip(ours.rounds, theirs.rounds, strict=True)
    )


def seconds(value: float) -> str:
    for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * scale >= 1 or unit == "µs":
            digits = 0 if value * scale >= 100 else 1 if value * scale >= 10 else 2
            return f"{value * scale:.{digits}f} {unit}"
    return ""


def both(series: Series) -> str:
    """p50 and p99."""
    return f"{seconds(series.p50)} ({seconds(series.p99)})"


def rate(series: Series, items: int) -> str:
    return f"{items / series.p50:,.0f}/s"


@dataclass
class Row:
    what: str
    embedded: str
    runtime: str
    floor: str = "—"
    ratios: str = "—"
    target: str = "—"
    met: bool | None = None
    peers: str = "—"

    @property
    def verdict(self) -> str:
        if self.met is None:
            return "recorded"
        if self.met:
            return "met"
        return f"missed: {explanation(self.what) or 'not explained'}"

    def cells(self) -> list[str]:
        return [
            self.what,
            self.embedded,
            self.runtime,
            self.floor,
            self.ratios,
            self.target,
            self.peers,
            self.verdict,
        ]


HEADER = ["what", "Embedded", "runtime", "floor", "ratio", "target", "peers", ""]


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rounds = 3 if QUICK else 7
        self.rows: list[Row] = []
        self.peers = Peers()
        self.peer_folder = folder / "peers"
        self.peer_folder.mkdir()
        programs.build()
        #: Signed in and at rest.
        self.empty = folder / "empty"
        programs.run("host", "embedded", "prepare", str(self.empty), work.session())
        #: With a few items that wait, in a log that nobody has closed: what a start finds.
        self.rest = folder / "rest"
        shutil.copytree(self.empty, self.rest)
        programs.run("host", "embedded", "add", str(self.rest), "10", "1")
        #: The same after some days of use.
        self.warm = self.folder / "warm"
        shutil.copytree(self.rest, self.warm)
        programs.run("floor", "embedded", "warm", str(self.warm))

    # ---- pieces ----

    def copy(self, template: Path, name: str) -> Path:
        place = self.folder / f"copy-{name}"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(template, place)
        # What is still to be written back would be somebody's sync.
        subprocess.run(["sync", "-f", str(place)], check=True)
        return place

    def filled(self, name: str, items: int, with_bad: bool = False) -> Path:
        place = self.folder / name
        if not place.exists():
            shutil.copytree(self.empty, place)
            programs.run("floor", "embedded", "fill", str(place), str(items), str(int(with_bad)))
            programs.run("floor", "embedded", "warm", str(place))
        return place

    def program(self, flavour: str) -> str:
        return "floor" if flavour == "floor" else "host"

    def samples(self, flavour: str, mode: str, folder: Path, *more: object) -> list[float]:
        name = self.program(flavour)
        given = [str(value) for value in more]
        found: list[float] = programs.run(name, flavour_of(flavour), mode, str(folder), *given)[
            "samples"
        ]
        return found

    def ours(self, make: Callable[[str], Contender], floor: bool = True) -> dict[str, Contender]:
        names = [*programs.FLAVOURS, *(["floor"] if floor else [])]
        return {name: make(name) for name in names}

    def ratios(
        self, found: dict[str, Series], figure: Callable[[list[float]], float]
    ) -> list[float]:
        return [ratio(found[flavour], found["floor"], figure) for flavour in programs.FLAVOURS]

    def add_row(self, row: Row) -> None:
        self.rows.append(row)
        print("  " + " | ".join(cell for cell in row.cells() if cell != "—"), flush=True)

    def peer(self, package: str, *arguments: object) -> Contender:
        return lambda: self.peers.run(package, *arguments)["samples"]

    # ---- rows ----

    def cold_start(self) -> None:
        """In process and as a whole process, from the same runs."""
        times = 5 if QUICK else 20
        whole: dict[str, list[list[float]]] = {}

        def start(name: str) -> Contender:
            place = self.copy(self.rest, f"cold-{name}")
            program = "floor" if name.startswith("floor") else "host"
            more = ["0" if name == "floor, unchecked" else "1"] if program == "floor" else []

            def run() -> list[float]:
                outside, reports = programs.spawn(
                    times, program, flavour_of(name), "cold", str(place), *more
                )
                whole.setdefault(name, []).append(outside)
                return [report["samples"][0] for report in reports]

            return run

        contenders = {
            name: start(name) for name in [*programs.FLAVOURS, "floor", "floor, unchecked"]
        }
        peers = {"raw key": "sqlcipher-raw", "passphrase": "sqlcipher-passphrase"}
        for name, mode in peers.items():
            if self.peers.has("sqlcipher3-binary"):
                contenders[name] = several(
                    self.peer("sqlcipher3-binary", "cold", mode, self.peer_folder),
                    2 if QUICK else 5,
                )
        found = contest(self.rounds, contenders)
        ratios = self.ratios(found, statistics.median)
        told = [f"SQLCipher, {name}: {both(found[name])}" for name in peers if name in found]
        unchecked = [
            ratio(found[flavour], found["floor, unchecked"], statistics.median)
            for flavour in programs.FLAVOURS
        ]
        self.add_row(
            Row(
                "cold start, in process",
                both(found["embedded"]),
                both(found["runtime"]),
                both(found["floor"]),
                times_text(ratios),
                "≤ 1.5 ×",
                max(ratios) <= 1.5,
                told_or_missing(told, self.peers, "sqlcipher3-binary"),
            )
        )
        self.add_row(
            Row(
                "the same against a floor that does not check the file",
                both(found["embedded"]),
                both(found["runtime"]),
                both(found["floor, unchecked"]),
                times_text(unchecked),
            )
        )
        outside = {name: Series(rounds[1:]) for name, rounds in whole.items()}
        ratios = self.ratios(outside, statistics.median)
        self.add_row(
            Row(
                "cold start, whole process",
                both(outside["embedded"]),
                both(outside["runtime"]),
                both(outside["floor"]),
                times_text(ratios),
                "≤ 1.3 ×",
                max(ratios) <= 1.3,
            )
        )

    def load(self) -> None:
        resident: dict[str, list[int]] = {}

        def open_it(name: str, file: str) -> Contender:
            def run() -> list[float]:
                _, reports = programs.spawn(5, "load", "embedded", file)
                resident.setdefault(name, []).extend(report["items"] for report in reports)
                return [report["samples"][0] for report in reports]

            return run

        contenders = {name: open_it(name, str(programs.library(name))) for name in programs.FOLDERS}
        library = self.peers.tdlib()
        if library is not None:
            contenders["tdlib"] = open_it("tdlib", str(library))
        found = contest(self.rounds, contenders)
        memory = {name: statistics.median(values) for name, values in resident.items()}

        def cell(name: str) -> str:
            return f"{seconds(found[name].p50)}, {memory[name] / 1024:.2f} MB"

        told = [f"TDLib: {cell('tdlib')}"] if library is not None else []
        self.add_row(
            Row(
                "load: dlopen, resident memory",
                cell("embedded"),
                cell("runtime"),
                f"bundled: {cell('bundled')}",
                "—",
                "≤ 0.5 ms, ≤ 1 MB (Embedded)",
                found["embedded"].p50 <= 0.5e-3 and memory["embedded"] <= 1024,
                told_or_missing(told, self.peers, "tdjson"),
            )
        )

    def add(self) -> None:
        count = 100
        for threads in (1, 4):

            def make(name: str, threads: int = threads) -> Contender:
                place = self.copy(self.warm, f"add-{name}")
                return lambda: self.samples(name, "add", place, count, threads)

            def told_to(name: str) -> tuple[list[str], str]:
                place = str(self.copy(self.warm, f"add-{name}"))
                program = str(programs.path(self.program(name)))
                return [program, "add", place, "1000000", "1"], flavour_of(name)

            contenders = self.ours(make)
            commands = {name: told_to(name) for name in (*programs.FLAVOURS, "floor")}
            peers = {
                "persist-queue": "persist-queue",
                "huey": "huey",
                "litequeue": "litequeue",
                "SQLCipher": "sqlcipher3-binary",
            }
            for name, package in peers.items():
                if self.peers.has(package):
                    mode = "sqlcipher" if name == "SQLCipher" else name
                    given = ["add", mode, self.peer_folder]
                    contenders[name] = self.peer(package, *given, count, threads)
                    commands[name] = (self.peers.command(package, *given, 1_000_000, 1), "embedded")
            if threads == 1:
                found = take_turns(3 if QUICK else 11, count, commands)
            else:
                found = contest(3 if QUICK else 11, contenders)
            # By the mean: the seldom commit that moves the log into the file counts too.
            rates = [1 / value for value in self.ratios(found, statistics.fmean)]
            told = [
                f"{name}: {both(found[name])}"
                if name in found
                else f"{name}: missing ({self.peers.why(package)})"
                for name, package in peers.items()
            ]
            self.add_row(
                Row(
                    f"queue_add, durable, {threads} thread{'s' if threads > 1 else ''}",
                    both(found["embedded"]),
                    both(found["runtime"]),
                    both(found["floor"]),
                    rates_text(rates),
                    "≥ 0.9 × the rate",
                    min(rates) >= 0.9,
                    "; ".join(told),
                )
            )

    def add_without_disk(self) -> None:
        """Where a sync costs nothing, what is left is the calls' own work."""
        if first_line("findmnt", "-n", "-o", "FSTYPE", "-T", "/dev/shm") != "tmpfs":
            return
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:

            def make(name: str) -> Contender:
                place = Path(memory, name)
                shutil.copytree(self.warm, place)
                return lambda: self.samples(name, "add", place, 300, 1)

            found = contest(self.rounds, self.ours(make))
        rates = [1 / value for value in self.ratios(found, statistics.median)]
        self.add_row(
            Row(
                "queue_add, in memory instead of on a disk",
                both(found["embedded"]),
                both(found["runtime"]),
                both(found["floor"]),
                rates_text(rates),
            )
        )

    def add_to_many(self) -> None:
        sizes = [100, 10_000, 100_000 if QUICK else 1_000_000]
        places = {size: self.filled(f"queued-{size}", size) for size in sizes}
        commands: dict[str, tuple[list[str], str]] = {}
        for flavour in programs.FLAVOURS:
            for size in sizes:
                place = self.copy(places[size], f"{flavour}-{size}")
                command = [str(programs.path("host")), "pile", str(place), "1000000"]
                commands[f"{flavour} {size}"] = (command, flavour)
        # Few calls: at a hundred queued there are to be about a hundred.
        found = take_turns(5, 20, commands)
        ratios = [
            ratio(
                found[f"{flavour} {sizes[-1]}"], found[f"{flavour} {sizes[0]}"], statistics.median
            )
            for flavour in programs.FLAVOURS
        ]

        def cell(flavour: str) -> str:
            return ", ".join(seconds(found[f"{flavour} {size}"].p50) for size in sizes)

        self.add_row(
            Row(
                f"queue_add at {', '.join(f'{size:,}' for size in sizes)} queued",
                cell("embedded"),
                cell("runtime"),
                "—",
                f"last to first: {times_text(ratios)}",
                "≤ 1.25 ×",
                max(ratios) <= 1.25,
            )
        )
        for place in [*places.values(), *(Path(command[2]) for command, _ in commands.values())]:
            shutil.rmtree(place)

    def drain(self) -> None:
        items = 10_000 if QUICK else 100_000
        template = self.filled(f"queued-{items}", items)

        def make(name: str) -> Contender:
            return lambda: self.samples(name, "drain", self.copy(template, "drain"), items)

        found = contest(2 if QUICK else 5, self.ours(make))
        rates = [1 / value for value in self.ratios(found, statistics.median)]
        self.add_row(
            Row(
                f"drain of {items:,}, null server: the library's share",
                rate(found["embedded"], items),
                rate(found["runtime"], items),
                rate(found["floor"], items),
                rates_text(rates),
                "≥ 0.7 × the rate",
                min(rates) >= 0.7,
            )
        )
        shutil.rmtree(template)

    def drain_bad(self) -> None:
        items = 2_000 if QUICK else 10_000
        templates = {
            "clean": self.filled("clean", items),
            "bad": self.filled("bad", items, with_bad=True),
        }
        contenders: dict[str, Contender] = {}
        for flavour in programs.FLAVOURS:
            for kind, template in templates.items():

                def run(flavour: str = flavour, template: Path = template) -> list[float]:
                    return self.samples(flavour, "drain", self.copy(template, "bad-drain"), items)

                contenders[f"{flavour} {kind}"] = run
        found = contest(2 if QUICK else 5, contenders)
        ratios = [
            ratio(found[f"{flavour} bad"], found[f"{flavour} clean"], statistics.median)
            for flavour in programs.FLAVOURS
        ]

        def cell(flavour: str) -> str:
            bad, clean = (found[f"{flavour} {kind}"].p50 for kind in ("bad", "clean"))
            return f"{seconds(bad)}, clean {seconds(clean)}"

        self.add_row(
            Row(
                f"drain of {items:,} with 1 % bad, null server: the library's share",
                cell("embedded"),
                cell("runtime"),
                "—",
                f"to the clean drain: {times_text(ratios)}",
                "≤ 2 ×",
                max(ratios) <= 2,
            )
        )

    def drain_to_postgresql(self) -> None:
        from local_supabase import LocalSupabase

        items = 1_000 if QUICK else 10_000
        one_by_one = items // 20
        script = str(programs.HERE / "through_python.py")
        with LocalSupabase(demo=True) as backend:
            place = [backend.url, backend.anon_key]

            def ours(flavour: str) -> Contender:
                command = [sys.executable, script, "drain", *place, str(items)]

                def run() -> list[float]:
                    found: list[float] = programs.result(programs.output(command, flavour))[
                        "samples"
                    ]
                    return found

                return run

            contenders = self.ours(ours, floor=False)
            if self.peers.has("supabase"):
                contenders["one by one"] = self.peer(
                    "supabase", "drain", "supabase-one", *place, one_by_one
                )
                contenders["in bulk"] = self.peer(
                    "supabase", "drain", "supabase-bulk", *place, items
                )
            found = contest(2 if QUICK else 5, contenders)
        told = []
        if "in bulk" in found:
            told = [
                "supabase-py, which keeps nothing on disk: one by one"
                f" {rate(found['one by one'], one_by_one)}, in bulk {rate(found['in bulk'], items)}"
            ]
        self.add_row(
            Row(
                f"drain of {items:,} to the local backend on PostgreSQL, in Python",
                rate(found["embedded"], items),
                rate(found["runtime"], items),
                peers=told_or_missing(told, self.peers, "supabase"),
            )
        )

    def contacts(self) -> None:
        count, searches = 10_000, 60 if QUICK else 300
        parts = ("ingest", "first", "next")
        found: dict[str, dict[str, Series]] = {part: {} for part in parts}

        def keep(name: str, number: int, taken: dict[str, list[float]]) -> None:
            for part, samples in taken.items():
                series = found[part].setdefault(name, Series())
                if number > 0:
                    series.rounds.append(samples)

        def one(name: str) -> dict[str, list[float]]:
            place = self.copy(self.rest, "contacts")
            ingest = self.samples(name, "ingest", place, count)
            first, *later = self.samples(name, "search", place, searches)
            return {"ingest": ingest, "first": [first], "next": later}

        def peer(package: str, mode: str) -> dict[str, list[float]]:
            ingest, first, *later = self.peers.run(
                package, "contacts", mode, self.peer_folder, count, searches
            )["samples"]
            return {"ingest": [ingest], "first": [first], "next": later}

        peers = {
            "FTS5, in clear": ("", "fts5"),
            "SQLCipher, LIKE": ("sqlcipher3-binary", "sqlcipher"),
        }
        for number in range((2 if QUICK else 5) + 1):
            for name in (*programs.FLAVOURS, "floor"):
                keep(name, number, one(name))
            for name, (package, mode) in peers.items():
                if not package or self.peers.has(package):
                    keep(name, number, peer(package, mode))
        titles = {
            "ingest": f"contacts: ingest of {count:,}",
            "first": "contacts: first search after unlock",
            "next": "contacts: next searches",
        }
        for part in parts:
            series = found[part]
            told = [
                f"{name}: {both(series[name]) if part == 'next' else seconds(series[name].p50)}"
                if name in series
                else f"{name}: missing ({self.peers.why(package)})"
                for name, (package, _) in peers.items()
            ]

            def cell(name: str, part: str = part, series: dict[str, Series] = series) -> str:
                return both(series[name]) if part == "next" else seconds(series[name].p50)

            worst = max(series[flavour].p99 for flavour in programs.FLAVOURS)
            self.add_row(
                Row(
                    titles[part],
                    cell("embedded"),
                    cell("runtime"),
                    cell("floor"),
                    times_text(self.ratios(series, statistics.median)),
                    "p99 ≤ 1 ms" if part == "next" else "—",
                    worst <= 1e-3 if part == "next" else None,
                    "; ".join(told),
                )
            )

    def status(self) -> None:
        count = 2_000

        def make(name: str) -> Contender:
            place = self.copy(self.rest, f"status-{name}")
            return lambda: self.samples(name, "status", place, count)

        def python(flavour: str) -> Contender:
            place = self.copy(self.rest, f"status-python-{flavour}")
            script = str(programs.HERE / "through_python.py")
            command = [sys.executable, script, "status", str(place), str(count)]
            return lambda: programs.result(programs.output(command, flavour))["samples"]

        contenders = self.ours(make)
        contenders |= {f"Python {flavour}": python(flavour) for flavour in programs.FLAVOURS}
        library = self.peers.tdlib()
        if library is not None:
            contenders["td_execute"] = lambda: programs.result(
                programs.output([str(programs.path("load")), str(library), str(count)])
            )["samples"]
            contenders["td_execute, Python"] = self.peer("tdjson", "status", "tdlib", "-", count)
        found = contest(self.rounds, contenders)

        def told(name: str) -> str:
            if library is None:
                return f"td_execute: missing ({self.peers.why('tdjson')})"
            return f"td_execute: {both(found[name])}"

        self.add_row(
            Row(
                "smallest call, session_status, from C",
                both(found["embedded"]),
                both(found["runtime"]),
                both(found["floor"]),
                times_text(self.ratios(found, statistics.median)),
                "≤ 2 µs",
                max(found[flavour].p50 for flavour in programs.FLAVOURS) <= 2e-6,
                told("td_execute"),
            )
        )
        self.add_row(
            Row(
                "the same from Python",
                both(found["Python embedded"]),
                both(found["Python runtime"]),
                peers=told("td_execute, Python"),
            )
        )

    def sizes(self) -> None:
        found = check.sizes()
        library = self.peers.tdlib()
        told = []
        if library is not None:
            stripped = self.folder / "tdjson.so"
            subprocess.run(["strip", "-o", str(stripped), str(library)], check=True)
            told = [f"TDLib: {stripped.stat().st_size / 1e6:.1f} MB"]
        self.add_row(
            Row(
                "size of the .so, stripped",
                f"{found['embedded'] / 1e6:.2f} MB",
                f"{found['runtime'] / 1e6:.2f} MB",
                f"bundled: {found['bundled'] / 1e6:.2f} MB",
                "—",
                "≤ 0.64, ≤ 7, bundled ≤ 2.7 MB",
                found["embedded"] <= 640_000
                and found["runtime"] <= 7_000_000
                and found["bundled"] <= 2_700_000,
                told_or_missing(told, self.peers, "tdjson"),
            )
        )

    def instructions(self) -> None:
        place = self.folder / "callgrind"
        check.prepared(place)
        found = {flavour: check.counts(flavour, place) for flavour in programs.FLAVOURS}
        for name in check.COUNTED:
            self.add_row(
                Row(
                    f"instructions of the library's own, {name}",
                    f"{found['embedded'][name]:,}",
                    f"{found['runtime'][name]:,}",
                    target="`make bench-check`: no rise over 5 %",
                )
            )

    def run(self) -> None:
        for part in (
            self.sizes,
            self.load,
            self.cold_start,
            self.status,
            self.add,
            self.add_without_disk,
            self.add_to_many,
            self.drain,
            self.drain_bad,
            self.drain_to_postgresql,
            self.contacts,
            self.instructions,
        ):
            started = time.monotonic()
            part()
            print(f"  ({part.__name__}: {time.monotonic() - started:.0f} s)", flush=True)


def several(run: Contender, times: int) -> Contender:
    """One sample each of so many processes."""
    return lambda: [run()[0] for _ in range(times)]


def flavour_of(name: str) -> str:
    return name if name in programs.FOLDERS else "embedded"


def times_text(ratios: list[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in ratios) + " ×"


def rates_text(ratios: list[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in ratios)


def told_or_missing(told: list[str], peers: Peers, package: str) -> str:
    return "; ".join(told) if told else f"{package}: missing ({peers.why(package)})"


# ---- the machine, and the page ----


def first_line(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip().splitlines()[0] if done.returncode == 0 else "?"


def machine(folder: Path) -> list[str]:
    processor = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text())
    kernel = ".".join(platform.release().split(".")[:2])
    file_system = first_line("findmnt", "-n", "-o", "FSTYPE", "-T", str(folder))
    versions = [f"Swift {version_of('swift', '--version')}", f"Python {platform.python_version()}"]
    versions += [
        f"{name} {first_line('pkg-config', '--modversion', package)}"
        for name, package in (
            ("SQLite", "sqlite3"),
            ("libsodium", "libsodium"),
            ("jansson", "jansson"),
        )
    ]
    system_name = system.group(1) if system else "?"
    hardware = f"{processor}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.machine()}"
    return [
        f"{hardware}; Linux {kernel}, {system_name}; {file_system}",
        ", ".join(versions),
    ]


def version_of(*command: str) -> str:
    found = re.search(r"(\d+\.\d+(\.\d+)?)", first_line(*command))
    return found.group(1) if found else "?"


def table(rows: list[Row]) -> str:
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines)


def write_page(bench: Bench) -> None:
    """Between the marks; what stands around them is written by hand."""
    text = PAGE.read_text()
    begin, end = "<!-- written by make bench -->", "<!-- to here -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if not after:
        sys.exit(f"{PAGE.name} has no marks")
    about = "\n".join(f"- {line}" for line in [*machine(bench.folder), bench.peers.versions()])
    PAGE.write_text(f"{before}{begin}\n{about}\n\n{table(bench.rows)}\n{end}{after}")


def write_figures(bench: Bench) -> None:
    """What the README shows: Embedded beside the floor, p50 alone."""
    figures = []
    for row in bench.rows:
        if row.floor == "—" or row.floor.startswith("bundled"):
            continue
        figures.append(
            {
                "name": row.what,
                "value": row.embedded.split(" (")[0],
                "floor": row.floor.split(" (")[0],
                "ratio": row.ratios.split(" / ")[0],
            }
        )
    about = {"machine": machine(bench.folder)[0].split(";")[0], "figures": figures}
    FIGURES.write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n")
    subprocess.run([sys.executable, str(FIGURES.parent / "figures.py"), "--write"], check=True)


def main() -> None:
    programs.BUILD.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=programs.BUILD) as folder:
        bench = Bench(Path(folder))
        bench.run()
        print()
        for line in [*machine(bench.folder), bench.peers.versions()]:
            print(line)
        print()
        print(table(bench.rows))
        if not QUICK:
            write_page(bench)
            write_figures(bench)
        (programs.BUILD / "samples.json").write_text(
            json.dumps([row.__dict__ for row in bench.rows], indent=1, ensure_ascii=False)
        )
    print(f"\n{time.monotonic() - started:.0f} s")
    missed = [row.what for row in bench.rows if row.met is False and explanation(row.what) is None]
    if missed and not QUICK:
        sys.exit("missed and not explained: " + "; ".join(missed))


if __name__ == "__main__":
    main()
