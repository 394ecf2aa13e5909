"""The peers: other products on the same work, each run in a process of its own.

peers.py cold (sqlcipher-raw | sqlcipher-passphrase) FOLDER FILE
peers.py add (persist-queue | huey | litequeue | sqlcipher) FOLDER COUNT THREADS
peers.py contacts (fts5 | sqlcipher) FOLDER COUNT SEARCHES
peers.py status tdlib FOLDER COUNT
peers.py drain (supabase-one | supabase-bulk) URL KEY COUNT

Prints what bench.h's report() prints. All of them keep what they are given in the clear, but
SQLCipher; all write with a synced commit for each call (SQLite: write-ahead log, synchronous=FULL).
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import work

RAW_KEY = "x'" + "2b" * 32 + "'"
PASSPHRASE = "correct horse battery staple"
BATCH = 500
#: Items added before the measurement. While a write-ahead log grows, every sync also costs a commit
#: of the file system; SQLite restarts the log after 1,000 pages. A peer removes its log when it
#: closes. The library's and the floor's logs keep their size: they are killed, as apps are.
WARM_UP = 300


def report(samples: list[float], items: int, requests: int = 0) -> None:
    print(json.dumps({"samples": samples, "items": items, "requests": requests}))


# ---- cold start: open and read what a session needs ----


def sqlcipher(path: Path, key: str) -> Any:
    from sqlcipher3 import dbapi2

    connection = dbapi2.connect(str(path), isolation_level=None, check_same_thread=False)
    connection.execute(f'PRAGMA key = "{key}"')
    return connection


def leave_like(source: Path, path: Path, key: str) -> None:
    """Make a file with the schema of `source`, and leave a log as long as its log is.

    A killed app leaves its log, and an app that keeps what the library keeps has as many tables.
    """
    plain = sqlite3.connect(f"file:{source}?mode=ro", uri=True)
    schema = plain.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
    made = sqlcipher(path, key)
    made.execute("PRAGMA journal_mode=WAL")
    for (statement,) in schema.fetchall():
        if "sqlite_sequence" not in statement:
            made.execute(statement.replace("TABLE session(", "TABLE other_session("))
    plain.close()
    made.execute("CREATE TABLE session(tokens TEXT, choice TEXT, memberships TEXT)")
    made.execute("INSERT INTO session VALUES (?, ?, ?)", work.session_texts())
    made.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log = path.with_name(path.name + "-wal")
    number = 0
    while log.stat().st_size < source.with_name(source.name + "-wal").stat().st_size:
        made.execute("INSERT OR REPLACE INTO meta VALUES ('number', ?)", (number,))
        number += 1
    # Without closing, which would remove the log.
    os._exit(0)


def cold(name: str, folder: Path, source: Path) -> None:
    from sqlcipher3 import dbapi2  # noqa: F401 - measure the opening, not the import

    key = RAW_KEY if name == "sqlcipher-raw" else PASSPHRASE
    path = folder / f"{name}.db"
    if not path.exists():
        maker = os.fork()
        if maker == 0:
            leave_like(source, path, key)
        if os.waitpid(maker, 0)[1] != 0:
            sys.exit("the peer's file could not be made")
    start = time.perf_counter()
    connection = sqlcipher(path, key)
    row = connection.execute("SELECT tokens, choice, memberships FROM session").fetchone()
    read = [json.loads(text) for text in row]
    seconds = time.perf_counter() - start
    if not read[0]["access_token"]:
        sys.exit("nothing was read")
    report([seconds], 1)
    sys.stdout.flush()
    # Like the library's host, it ends without closing.
    os._exit(0)


# ---- adding ----


def durable(connection: Any) -> None:
    """Make every commit durable before it returns."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def judge_durability(connection: Any) -> None:
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    level = connection.execute("PRAGMA synchronous").fetchone()[0]
    if mode != "wal" or level != 2:
        sys.exit(f"not durable: {mode}, {level}")


def adder(name: str, folder: Path) -> Callable[[str], object]:
    """Return a function that stores one text durably."""
    if name == "persist-queue":
        from persistqueue import SQLiteQueue
        from persistqueue.serializers import json as as_json

        queue = SQLiteQueue(
            str(folder / name), multithreading=True, auto_commit=True, serializer=as_json
        )
        judge_durability(queue._putter)
        return lambda text: queue.put(json.loads(text))
    if name == "huey":
        from huey import SqliteHuey

        huey = SqliteHuey(filename=str(folder / "huey.db"), fsync=True)

        def register(visit: object) -> None:
            """Do nothing: only the queue is measured."""

        enqueue = huey.task()(register)
        judge_durability(huey.storage.conn)
        return lambda text: enqueue(json.loads(text))
    if name == "litequeue":
        from litequeue import LiteQueue

        queue = LiteQueue(str(folder / "litequeue.db"))
        durable(queue.conn)
        judge_durability(queue.conn)
        lock = threading.Lock()  # one connection for all threads

        def put(text: str) -> object:
            with lock:
                return queue.put(text)

        return put
    connection = sqlcipher(folder / "sqlcipher-queue.db", RAW_KEY)
    durable(connection)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS queue("
        "seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, body TEXT)"
    )
    judge_durability(connection)
    lock = threading.Lock()

    def insert(text: str) -> object:
        visit = json.loads(text)
        with lock:
            return connection.execute(
                "INSERT INTO queue(id, body) VALUES (?, ?)", (str(uuid.uuid4()), json.dumps(visit))
            )

    return insert


def add(name: str, folder: Path, count: int, threads: int) -> None:
    keep = adder(name, folder)
    # The same protocol as turn_comes() in bench.h.
    turns = "BENCH_TURNS" in os.environ
    samples: list[float] = []
    for number in range(WARM_UP):
        keep(work.visit(number))

    def some(first: int) -> None:
        mine = []
        for number in range(first, first + count // threads):
            if turns and not sys.stdin.readline():
                break
            text = work.visit(number)
            start = time.perf_counter()
            keep(text)
            mine.append(time.perf_counter() - start)
            if turns:
                print(f"{mine[-1]:.9f}", flush=True)
        samples.extend(mine)

    started = [
        threading.Thread(target=some, args=(number * (count // threads),))
        for number in range(threads)
    ]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    report(samples, count)


# ---- contacts ----


def contacts(name: str, folder: Path, count: int, searches: int) -> None:
    rows = [work.contact(number) for number in range(count)]
    path = folder / f"contacts-{name}.db"
    path.unlink(missing_ok=True)

    def connect() -> Any:
        if name == "sqlcipher":
            return sqlcipher(path, RAW_KEY)
        import sqlite3

        return sqlite3.connect(path, isolation_level=None)

    connection = connect()
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    if name == "sqlcipher":
        connection.execute("CREATE TABLE contact(id TEXT PRIMARY KEY, name, municipality, body)")
        put = "INSERT INTO contact VALUES (?, ?, ?, ?)"
    else:
        connection.execute(
            "CREATE VIRTUAL TABLE contact USING fts5("
            "id UNINDEXED, name, municipality, body UNINDEXED,"
            " tokenize=\"unicode61 remove_diacritics 2\", prefix='2 3')"
        )
        put = "INSERT INTO contact VALUES (?, ?, ?, ?)"
    pages = [json.dumps(rows[at : at + BATCH]) for at in range(0, count, BATCH)]
    start = time.perf_counter()
    for page in pages:
        connection.execute("BEGIN")
        for row in json.loads(page):
            connection.execute(put, (row["id"], row["name"], row["municipality"], json.dumps(row)))
        connection.execute("COMMIT")
    samples = [time.perf_counter() - start]
    connection.close()
    connection = connect()
    for number in range(searches + 1):
        words = work.query(number).split()
        start = time.perf_counter()
        if name == "sqlcipher":
            # SQLite folds the case of ASCII only, and no diacritics.
            where = " AND ".join(["(name LIKE ? OR municipality LIKE ?)"] * len(words))
            given = [f"%{word}%" for word in words for _ in range(2)]
            found = connection.execute(
                f"SELECT body FROM contact WHERE {where} ORDER BY name LIMIT 50", given
            ).fetchall()
        else:
            # Finds only beginnings of words.
            match = " ".join(f'"{word}"*' for word in words)
            found = connection.execute(
                "SELECT body FROM contact WHERE contact MATCH ? ORDER BY rank LIMIT 50", (match,)
            ).fetchall()
        json.dumps([json.loads(body) for (body,) in found])
        samples.append(time.perf_counter() - start)
    report(samples, count)


# ---- the smallest call ----


def status(count: int) -> None:
    import tdjson

    tdjson.td_execute(b'{"@type":"setLogVerbosityLevel","new_verbosity_level":0}')
    samples = []
    for _ in range(count):
        start = time.perf_counter()
        reply = tdjson.td_execute(json.dumps({"@type": "getLogVerbosityLevel"}).encode())
        found = json.loads(reply)
        samples.append(time.perf_counter() - start)
        if found["@type"] != "logVerbosityLevel":
            sys.exit(str(found))
    report(samples, count)


# ---- sending ----


def drain(name: str, url: str, key: str, count: int) -> None:
    """Send rows of one user like the library: ignore duplicates and return the new ids."""
    from supabase import create_client

    client = create_client(url, key)
    client.auth.sign_in_with_password({"email": work.EMAIL, "password": work.PASSWORD})
    membership = client.table("memberships").select("org_id").execute().data[0]
    rows = [
        {
            "id": str(uuid.uuid4()),
            "org_id": membership["org_id"],
            **json.loads(work.visit(number))["payload"],
        }
        for number in range(count)
    ]
    size = 1 if name == "supabase-one" else BATCH
    table = client.table("activities")
    start = time.perf_counter()
    requests = 0
    for at in range(0, count, size):
        stored = table.upsert(
            rows[at : at + size], ignore_duplicates=True, on_conflict="id"
        ).execute()
        requests += 1
        if len(stored.data) != len(rows[at : at + size]):
            sys.exit("not all are stored")
    report([time.perf_counter() - start], count, requests)


def main() -> None:
    mode, name, *rest = sys.argv[1:]
    if mode == "cold":
        cold(name, Path(rest[0]), Path(rest[1]))
    elif mode == "add":
        add(name, Path(rest[0]), int(rest[1]), int(rest[2]))
    elif mode == "contacts":
        contacts(name, Path(rest[0]), int(rest[1]), int(rest[2]))
    elif mode == "status":
        status(int(rest[1]))
    elif mode == "drain":
        drain(name, rest[0], rest[1], int(rest[2]))
    else:
        sys.exit(64)


if __name__ == "__main__":
    main()
