"""Measures the costs of the library beside the floor and beside other products, in one table.

Absolute times mean little on a shared machine; ratios of figures taken side by side are reliable.
In every row the contenders run in turn, round after round; the first round does not count. A ratio
is the median of the rounds' ratios. The table goes into docs/benchmarks.md.

QUICK=1: fewer and smaller rounds, to try the benchmark itself; writes no page.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import check
import programs
import work
from measure import Contender, Series, contest, ratio, several, take_turns
from page import (
    Row,
    both,
    explanation,
    first_line,
    machine,
    rate,
    rates_text,
    seconds,
    table,
    times_text,
    told_or_missing,
    write_figures,
    write_page,
)
from peers_env import Peers

sys.path.insert(0, str(programs.ROOT / "Tests/server"))

QUICK = os.environ.get("QUICK", "") not in ("", "0")


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rounds = 3 if QUICK else 7
        self.rows: list[Row] = []
        self.peers = Peers()
        self.peer_folder = folder / "peers"
        self.peer_folder.mkdir()
        programs.build()
        #: The files of a signed-in, idle app.
        self.empty = folder / "empty"
        programs.run("host", "embedded", "prepare", str(self.empty), work.session())
        #: The same with a few queued items in an open write-ahead log, as a cold start finds it.
        self.rest = folder / "rest"
        shutil.copytree(self.empty, self.rest)
        programs.run("host", "embedded", "add", str(self.rest), "10", "1")
        #: The same after some days of use: the log has its final size.
        self.warm = self.folder / "warm"
        shutil.copytree(self.rest, self.warm)
        programs.run("floor", "embedded", "warm", str(self.warm))

    # ---- pieces ----

    def copy(self, template: Path, name: str) -> Path:
        place = self.folder / f"copy-{name}"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(template, place)
        # Otherwise a contender's sync would also write back this copy.
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
        """Measure in process and as a whole process, in the same runs."""
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
            # Use the mean: it includes the rare commit that checkpoints the log.
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
        """Measure in memory, where syncs are free, to see the work of the calls alone."""
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
        # Few calls, so that the queue of a hundred stays at about a hundred.
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

        def node(mode: str, flavour: str) -> Contender:
            place = self.copy(self.rest, f"status-node-{mode}-{flavour}")
            script = str(programs.HERE / "through_node.mjs")
            command = [programs.node(), script, mode, str(place), str(count)]
            return lambda: programs.result(programs.output(command, flavour))["samples"]

        contenders = self.ours(make)
        contenders |= {f"Python {flavour}": python(flavour) for flavour in programs.FLAVOURS}
        contenders |= {
            f"Node {mode} {flavour}": node(mode, flavour)
            for mode in NODE_MODES
            for flavour in programs.FLAVOURS
        }
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
        for mode, title in NODE_MODES.items():
            through = [found[f"Node {mode} {flavour}"] for flavour in programs.FLAVOURS]
            added = [
                one.p50 - found[flavour].p50
                for one, flavour in zip(through, programs.FLAVOURS, strict=True)
            ]
            self.add_row(
                Row(
                    f"the same from Node, {title}",
                    both(through[0]),
                    both(through[1]),
                    "—",
                    f"over C: {' / '.join(seconds(one) for one in added)}",
                    "≤ 10 µs over C",
                    max(added) <= 1e-5,
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
                "≤ {embedded:.2f}, ≤ {runtime:.1f}, bundled ≤ {bundled:.1f} MB".format(
                    **{name: limit / 1e6 for name, limit in check.LIMITS.items()}
                ),
                all(found[name] <= limit for name, limit in check.LIMITS.items()),
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


#: How an app calls through_node.mjs, and the title of the row.
NODE_MODES = {"sync": "callSync", "burst": "100 at once", "single": "each awaited"}


def flavour_of(name: str) -> str:
    return name if name in programs.FOLDERS else "embedded"


def main() -> None:
    programs.BUILD.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=programs.BUILD) as folder:
        bench = Bench(Path(folder))
        bench.run()
        print()
        about = [*machine(bench.folder), bench.peers.versions()]
        for line in about:
            print(line)
        print()
        print(table(bench.rows))
        if not QUICK:
            write_page(bench.rows, about)
            write_figures(bench.rows, about[0].split(";")[0])
        (programs.BUILD / "samples.json").write_text(
            json.dumps([row.__dict__ for row in bench.rows], indent=1, ensure_ascii=False)
        )
    print(f"\n{time.monotonic() - started:.0f} s")
    missed = [row.what for row in bench.rows if row.met is False and explanation(row.what) is None]
    if missed and not QUICK:
        sys.exit("missed and not explained: " + "; ".join(missed))


if __name__ == "__main__":
    main()
