"""Measures the times of the library beside the floor, in one table.

Absolute times mean little on a shared machine; ratios of figures taken side by side are reliable.
In every row the contenders run in turn, round after round; the first round does not count. A ratio
is the median of the rounds' ratios. The table goes into docs/benchmarks.md.

QUICK=1: fewer and smaller rounds, to try the benchmark itself; writes no page.
No figure fails the run: a machine under load would break it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import device
import programs
import work
from measure import Contender, Series, contest, ratio, take_turns
from page import (
    Row,
    both,
    explanation,
    growth,
    machine,
    rate,
    rates_text,
    seconds,
    table,
    times_text,
    write_page,
)

QUICK = os.environ.get("QUICK", "") not in ("", "0")

#: What host.c asks with a long queue; queue_add has a row of its own.
QUEUE_CALLS = [
    "queue_list",
    "queue_list parked",
    "queue_explain",
    "item_list",
    "summary_get",
    "sync_status",
    "session_status",
    "next",
    "queue_cancel",
]


def list_all(place: Path) -> None:
    """Put the floor's items into the list that item_list reads, beside those of the library."""
    programs.run("host", "embedded", "pile", str(place), "1")
    with contextlib.closing(sqlite3.connect(place / "data/holdfast.db")) as database, database:
        database.execute(
            "UPDATE queue SET list = (SELECT max(list) FROM queue), "
            "listed_ms = coalesce(listed_ms, seq)"
        )


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rounds = 3 if QUICK else 7
        self.rows: list[Row] = []
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

    # ---- rows ----

    def cold_start(self) -> None:
        """Measure in process and as a whole process, in the same runs."""
        times = 5 if QUICK else 20
        whole: dict[str, list[list[float]]] = {}

        def start(name: str) -> Contender:
            place = self.copy(self.rest, f"cold-{name}")

            def run() -> list[float]:
                outside, reports = programs.spawn(
                    times, self.program(name), flavour_of(name), "cold", str(place)
                )
                whole.setdefault(name, []).append(outside)
                return [report["samples"][0] for report in reports]

            return run

        inside = contest(self.rounds, self.ours(start))
        outside = {name: Series(rounds[1:]) for name, rounds in whole.items()}
        for title, found, target, limits in (
            ("cold start, in process", inside, "≤ 1.25 / 1.5 ×", (1.25, 1.5)),
            ("cold start, whole process", outside, "≤ 1.3 ×", (1.3, 1.3)),
        ):
            ratios = self.ratios(found, statistics.median)
            embedded, runtime, floor = (both(found[name]) for name in (*programs.FLAVOURS, "floor"))
            is_met = all(ratio <= limit for ratio, limit in zip(ratios, limits, strict=True))
            self.add_row(Row(title, embedded, runtime, floor, times_text(ratios), target, is_met))

    def load(self) -> None:
        resident: dict[str, list[int]] = {}

        def open_it(name: str, file: str) -> Contender:
            def run() -> list[float]:
                _, reports = programs.spawn(5, "load", "embedded", file)
                resident.setdefault(name, []).extend(report["items"] for report in reports)
                return [report["samples"][0] for report in reports]

            return run

        contenders = {name: open_it(name, str(programs.library(name))) for name in programs.FOLDERS}
        found = contest(self.rounds, contenders)
        memory = {name: statistics.median(values) for name, values in resident.items()}

        def cell(name: str) -> str:
            return f"{seconds(found[name].p50)}, {memory[name] / 1024:.2f} MB"

        self.add_row(
            Row(
                "load: dlopen, resident memory",
                cell("embedded"),
                cell("runtime"),
                f"bundled: {cell('bundled')}",
                "—",
                "≤ 0.5 ms, ≤ 1 MB (Embedded)",
                found["embedded"].p50 <= 0.5e-3 and memory["embedded"] <= 1024,
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
            if threads == 1:
                found = take_turns(3 if QUICK else 11, count, commands)
            else:
                found = contest(3 if QUICK else 11, contenders)
            # Use the mean: it includes the rare commit that checkpoints the log.
            rates = [1 / value for value in self.ratios(found, statistics.fmean)]
            self.add_row(
                Row(
                    f"queue_add, durable, {threads} thread{'s' if threads > 1 else ''}",
                    both(found["embedded"]),
                    both(found["runtime"]),
                    both(found["floor"]),
                    rates_text(rates),
                    "≥ 0.9 × the rate",
                    min(rates) >= 0.9,
                )
            )

    def add_from_many_threads(self) -> None:
        """Calls a second from 8 threads, against the best number of threads of the floor."""
        count, most = 800, 8
        floors = {f"floor, {threads}": threads for threads in (1, 2, 4, most)}

        def make(name: str, threads: int) -> Contender:
            place = self.copy(self.warm, f"add-{name}")
            return lambda: self.samples(name.split(",")[0], "add", place, count, threads)

        contenders = {name: make(name, most) for name in programs.FLAVOURS}
        contenders |= {name: make(name, threads) for name, threads in floors.items()}
        found = contest(3 if QUICK else 11, contenders)
        best = [
            max(
                threads / statistics.fmean(found[name].rounds[at])
                for name, threads in floors.items()
            )
            for at in range(len(found["floor, 1"].rounds))
        ]
        rates = [
            statistics.median(
                most / statistics.fmean(ours) / theirs
                for ours, theirs in zip(found[name].rounds, best, strict=True)
            )
            for name in programs.FLAVOURS
        ]
        self.add_row(
            Row(
                "queue_add, durable, 8 threads",
                both(found["embedded"]),
                both(found["runtime"]),
                f"the best of 1, 2, 4 and 8 threads: {statistics.median(best):,.0f} calls a second",
                rates_text(rates),
                "≥ 0.9 × the floor's best rate",
                min(rates) >= 0.9,
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

    def ask_with_many(self) -> None:
        """What calls cost with 1,000,000 items queued, to what they cost with 100."""
        sizes = [100, 100_000 if QUICK else 1_000_000]
        places = {size: self.filled(f"queued-{size}", size) for size in sizes}
        for place in places.values():
            list_all(place)
        grown: dict[str, dict[str, float]] = {flavour: {} for flavour in programs.FLAVOURS}
        for call in QUEUE_CALLS:
            commands = {
                f"{flavour} {size}": (
                    [str(programs.path("host")), "ask", str(places[size]), "1000000", call],
                    flavour,
                )
                for flavour in programs.FLAVOURS
                for size in sizes
            }
            found = take_turns(5, 20, commands)
            for flavour in programs.FLAVOURS:
                few, many = (found[f"{flavour} {size}"] for size in sizes)
                grown[flavour][call] = ratio(many, few, statistics.median)
        self.add_row(growth(sizes, [grown[flavour] for flavour in programs.FLAVOURS]))
        for place in places.values():
            shutil.rmtree(place)

    def item_list(self) -> None:
        """The first page of the user's stored and queued items."""
        rows = 2_000
        template = self.copy(self.empty, "own")
        programs.run("host", "embedded", "own", str(template), str(rows))

        def make(name: str) -> Contender:
            place = self.copy(template, f"own-{name}")
            return lambda: self.samples(name, "ask", place, 100, "item_list")

        found = contest(self.rounds, self.ours(make, floor=False))
        self.add_row(
            Row(
                f"item_list, first page of 50, of {rows:,} stored items",
                both(found["embedded"]),
                both(found["runtime"]),
                target="≤ 5 ms",
                met=max(found[flavour].p50 for flavour in programs.FLAVOURS) <= 5e-3,
            )
        )

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
        items = 2_000 if QUICK else 20_000
        templates = {
            "clean": self.filled("clean", items),
            "bad": self.filled("bad", items, with_bad=True),
        }
        contenders: dict[str, Contender] = {}
        requests: dict[str, int] = {}
        for flavour in programs.FLAVOURS:
            for kind, template in templates.items():

                def run(
                    flavour: str = flavour, kind: str = kind, template: Path = template
                ) -> list[float]:
                    place = str(self.copy(template, "bad-drain"))
                    found = programs.run("host", flavour, "drain", place, str(items))
                    requests[kind] = found["requests"]
                    samples: list[float] = found["samples"]
                    return samples

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
                f"drain of {items:,} with 1 % bad items, null server: the library's share",
                cell("embedded"),
                cell("runtime"),
                f"{requests['bad']:,} requests, clean {requests['clean']:,}",
                f"to the clean drain: {times_text(ratios)}",
                "≤ 3 ×",
                max(ratios) <= 3,
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

        for number in range((2 if QUICK else 5) + 1):
            for name in (*programs.FLAVOURS, "floor"):
                keep(name, number, one(name))
        titles = {
            "ingest": f"contacts: ingest of {count:,}",
            "first": "contacts: first search after unlock",
            "next": "contacts: next searches",
        }
        targets = {"first": ("≤ 10 ms", 0.5, 10e-3), "next": ("p99 ≤ 1 ms", 0.99, 1e-3)}
        for part, series in found.items():
            embedded, runtime, floor = (
                both(series[name]) if part == "next" else seconds(series[name].p50)
                for name in (*programs.FLAVOURS, "floor")
            )
            ratios = self.ratios(series, statistics.median)
            row = Row(titles[part], embedded, runtime, floor, times_text(ratios))
            if part in targets:
                row.target, quantile, limit = targets[part]
                row.met = all(
                    series[flavour].figure(quantile) <= limit for flavour in programs.FLAVOURS
                )
            self.add_row(row)

    def many_contacts(self) -> None:
        count = 10_000 if QUICK else 100_000
        template = self.folder / "many-contacts"
        shutil.copytree(self.rest, template)
        programs.run("host", "embedded", "ingest", str(template), str(count))

        def search(name: str) -> Contender:
            return lambda: self.samples(name, "search", self.copy(template, "many"), 0)

        found = contest(2 if QUICK else 5, self.ours(search, floor=False))
        times = [found[flavour].p50 for flavour in programs.FLAVOURS]
        self.add_row(
            Row(
                f"contacts: first search after unlock, of {count:,}",
                seconds(times[0]),
                seconds(times[1]),
                target="≤ 100 ms",
                met=max(times) <= 0.1,
            )
        )

        def peak(flavour: str) -> int:
            place = str(self.copy(self.rest, "peak"))
            return int(programs.run("host", flavour, "peak", place, str(count))["items"])

        peaks = [max(peak(flavour) for _ in range(3)) for flavour in programs.FLAVOURS]
        self.add_row(
            Row(
                f"contacts: pull of {count:,}, peak of memory over rest",
                f"{peaks[0] / 1024:.1f} MB",
                f"{peaks[1] / 1024:.1f} MB",
                target="≤ 24 MB",
                met=max(peaks) <= 24 * 1024,
            )
        )
        shutil.rmtree(template)

    def status(self) -> None:
        count = 2_000

        def make(name: str) -> Contender:
            place = self.copy(self.rest, f"status-{name}")
            return lambda: self.samples(name, "status", place, count)

        def node(mode: str, flavour: str) -> Contender:
            place = self.copy(self.rest, f"status-node-{mode}-{flavour}")
            script = str(programs.HERE / "through_node.mjs")
            command = [programs.node(), script, mode, str(place), str(count)]
            return lambda: programs.result(programs.output(command, flavour))["samples"]

        contenders = self.ours(make)
        contenders |= {
            f"Node {mode} {flavour}": node(mode, flavour)
            for mode in NODE_MODES
            for flavour in programs.FLAVOURS
        }
        found = contest(self.rounds, contenders)

        self.add_row(
            Row(
                "smallest call, session_status, from C",
                both(found["embedded"]),
                both(found["runtime"]),
                both(found["floor"]),
                times_text(self.ratios(found, statistics.median)),
                "≤ 2 µs",
                max(found[flavour].p50 for flavour in programs.FLAVOURS) <= 2e-6,
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

    def answers(self) -> None:
        """Measure what the dearest answer costs, in one process per shape."""
        found = {flavour: device.answers(flavour, self.empty) for flavour in programs.FLAVOURS}
        worst = {
            flavour: max(shapes, key=lambda shape: shapes[shape][1])
            for flavour, shapes in found.items()
        }

        def cell(flavour: str) -> str:
            size, times = found[flavour][worst[flavour]]
            return f"{size / 1e6:.0f} MB, {times:.1f} × ({worst[flavour]})"

        self.add_row(
            Row(
                f"memory for an answer of 14 MB, the dearest of {len(device.SHAPES)} shapes",
                cell("embedded"),
                cell("runtime"),
                target="≤ 8 ×",
                met=all(found[flavour][worst[flavour]][1] <= 8 for flavour in programs.FLAVOURS),
            )
        )

    def run(self) -> None:
        for part in (
            self.load,
            self.cold_start,
            self.status,
            self.add,
            self.add_from_many_threads,
            self.add_to_many,
            self.ask_with_many,
            self.item_list,
            self.drain,
            self.drain_bad,
            self.contacts,
            self.many_contacts,
            self.answers,
        ):
            started = time.monotonic()
            part()
            print(f"  ({part.__name__}: {time.monotonic() - started:.0f} s)", flush=True)


#: How an app calls through_node.mjs, and the title of the row.
NODE_MODES = {"burst": "100 at once", "single": "each awaited"}


def flavour_of(name: str) -> str:
    return name if name in programs.FOLDERS else "embedded"


def main() -> None:
    programs.BUILD.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=programs.BUILD) as folder:
        bench = Bench(Path(folder))
        bench.run()
        print()
        about = machine(bench.folder)
        for line in about:
            print(line)
        print()
        print(table(bench.rows))
        if not QUICK:
            write_page(bench.rows, about)
        (programs.BUILD / "samples.json").write_text(
            json.dumps([row.__dict__ for row in bench.rows], indent=1, ensure_ascii=False)
        )
    print(f"\n{time.monotonic() - started:.0f} s")
    missed = [row.what for row in bench.rows if row.met is False and explanation(row.what) is None]
    if missed and not QUICK:
        print("missed and not explained (page.py): " + "; ".join(missed))


if __name__ == "__main__":
    main()
