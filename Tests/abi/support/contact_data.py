"""Thousands of contacts with Norwegian names: makes them, compares server and cache, searches."""

from __future__ import annotations

import functools
import random
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_supabase import Control

from . import attacker, secrecy
from .phone import App

if TYPE_CHECKING:
    from support.directory_fixtures import DirectoryFixtures
    from support.users import SignedIn

# The most common first names, surnames and municipalities in Statistics Norway's lists, and Sámi
# and foreign ones for their letters.
FIRST = """
Anne Inger Kari Marit Ingrid Liv Eva Anna Maria Ida Åse Bjørg Gunn Turid Sissel Wenche Solveig Randi
Tone Hilde Bente Nina Kristin Astrid Cæcilie Frøydis Målfrid Ragnhild Ingebjørg Aud Jan Per Bjørn
Ole Lars Kjell Knut Svein Arne Thomas Hans Geir Tor Morten Øyvind Terje Odd Erik Håkon Pål Kåre
Asbjørn Jørgen Sjur Ánne Máret Niillas Aslak Mohamed Fatima Nguyễn Łukasz Šime Zoë André
""".split()  # noqa: SIM905
LAST = """
Hansen Johansen Olsen Larsen Andersen Pedersen Nilsen Kristiansen Jensen Karlsen Johnsen Pettersen
Eriksen Berg Haugen Hagen Johannessen Andreassen Jacobsen Dahl Jørgensen Henriksen Lund Halvorsen
Sørensen Jakobsen Moen Gundersen Iversen Strand Solberg Svendsen Eide Knutsen Martinsen Bakken Bøe
Østby Ødegård Åsen Sæther Næss Røed Grønli Bråten Løvås Skjærvø Kvæven Aamodt Haaland Eira Gaup
Somby Ahmed Ali Kowalski O'Brien Sveen-Moe
""".split()  # noqa: SIM905
PLACES = """
Oslo Bergen Trondheim Stavanger Bærum Kristiansand Drammen Asker Lillestrøm Fredrikstad Sandnes
Tromsø Ålesund Bodø Tønsberg Halden Røros Vadsø Kárášjohka Guovdageaidnu Ås Måsøy Værøy Træna
Øygarden Sør-Varanger Aure
""".split()  # noqa: SIM905
RELATIONS = ["pårørende", "bruker", "medlem", "fastlege"]


def people(count: int, seed: int) -> list[tuple[str, str, str]]:
    """Random (name, municipality, relation) triples."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        first = chance.choice(FIRST)
        if chance.random() < 0.2:
            first += chance.choice([" ", "-"]) + chance.choice(FIRST)
        name = f"{first} {chance.choice(LAST)}"
        if chance.random() < 0.1:
            name = unicodedata.normalize("NFD", name)
        made.append((name, chance.choice(PLACES), chance.choice(RELATIONS)))
    return made


def change_behind_the_cursor(directory: DirectoryFixtures, org: str) -> None:
    """Change all names and set the rows' times back, so that only a reconcile asks for them."""
    with directory.times_as_given():
        directory.control.sql(
            "update contacts set name = name || ' Ny', updated_at = updated_at - interval '1 hour' "
            "where org_id = %s",
            org,
        )


def fill(control: Control, org: str, count: int, seed: int = 1) -> list[tuple[str, str, str]]:
    """Insert `count` contacts in one statement; returns their triples."""
    made = people(count, seed)
    columns = [list(column) for column in zip(*made, strict=True)]
    control.sql(
        "with made as (insert into contacts (org_id, name, municipality, relation) "
        "select %s, name, place, relation from "
        "unnest(%s::text[], %s::text[], %s::text[]) as row(name, place, relation) "
        "returning id, org_id) insert into contact_details (contact_id, org_id, phone) "
        "select id, org_id, '+47 000' from made",
        org, *columns,
    )  # fmt: skip
    return made


#: After this time the next pull reconciles.
DAY_S = 86_400

Rows = dict[str, tuple[Any, Any, Any]]


def truth(control: Control, org: str) -> Rows:
    """The organisation's contacts on the server, without deleted ones."""
    query = "select * from contacts where org_id = %s and deleted_at is null"
    rows = control.sql(query, org)
    return {str(r["id"]): (r["name"], r["municipality"], r["relation"]) for r in rows}


def pull(user: SignedIn, after_s: float = 0) -> list[dict[str, Any]]:
    """Advance the time and pull; returns what the log says of the pulls of contacts."""
    user.phone.pass_time(after_s)
    before = len(secrecy.current.heard)
    user.app.sync()
    return pulled(before)


#: The line of the log about a pull of contacts that has ended.
PULLED = re.compile(r"contacts pulled: (\d+) rows, (\d+) removed, (\d+) not usable, (\w+)")


def pulled(since: int = 0) -> list[dict[str, Any]]:
    """What the log says of the pulls of contacts."""
    found = [PULLED.fullmatch(line) for _, line in secrecy.current.heard[since:]]
    return [
        {
            "rows": int(one[1]),
            "removed": int(one[2]),
            "skipped": int(one[3]),
            "problem": None if one[4] == "done" else one[4],
        }
        for one in found
        if one
    ]


def cached(app: App) -> Rows:
    """The contacts that the app shows; at most 200, the limit of one search."""
    reply = app.contact_search({"query": "", "limit": 200})
    assert reply["total"] == len(reply["contacts"]), "too many contacts for this test"
    rows: list[Any] = list(reply["contacts"])
    return {r["id"]: (r.get("name"), r.get("municipality"), r.get("relation")) for r in rows}


def sealed(folder: Path) -> list[bytes]:
    """The sealed values in the cache file."""
    query = (
        "SELECT sealed FROM contact UNION ALL SELECT sealed FROM contact_block "
        "UNION ALL SELECT sealed FROM dataset WHERE sealed NOT NULL"
    )
    return [blob for (blob,) in attacker.rows(folder / "cache.db", query)]


def left_on_disk(folder: Path, blobs: list[bytes]) -> int:
    """How many of these values still have their middle in a file of the folder."""
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return sum(any(blob[30:90] in data for data in files) for blob in blobs)


# Searching ----------------------------------------------------------------------------------------

LETTERS = {"ø": "o", "æ": "ae", "ß": "ss", "đ": "d", "ŋ": "n", "ŧ": "t", "ł": "l", "œ": "oe"}


@functools.cache
def words(text: str) -> list[str]:
    """The folded words of a text: an independent implementation of the library's rule."""
    plain = "".join(
        LETTERS.get(letter, letter)
        for letter in unicodedata.normalize("NFD", text.lower())
        if not unicodedata.combining(letter)
    )
    plain = plain.replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "")
    while "aa" in plain:
        plain = plain.replace("aa", "a")
    return "".join(letter if letter.isalnum() else " " for letter in plain).split()


def hits(rows: Rows, query: str) -> set[str]:
    """The contacts that a query must find: all for a blank one, none for signs alone."""
    wanted = words(query)
    if not wanted and query.strip(" "):
        return set()
    return {
        ident
        for ident, (name, place, _) in rows.items()
        if all(
            any(part in word for word in words(name or "") + words(place or "")) for part in wanted
        )
    }
