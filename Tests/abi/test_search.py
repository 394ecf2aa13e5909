# ruff: noqa: RUF001
"""Contact search: matches parts of names, ranks, is fast, and works only while unlocked."""

from __future__ import annotations

import itertools
import random
import unicodedata
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from support import contact_data, scan
from support.contact_data import pull
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.hosted import HostedLibrary
from support.phone import App, FilePhone
from support.sizes import sized
from support.users import MakeUser, SignedIn
from support.waking import another

pytestmark = pytest.mark.both_flavours


def found(app: App, query: str, limit: int = 50) -> list[str]:
    """The names that a query finds, in order."""
    return [
        contact["name"]
        for contact in app.contact_search({"query": query, "limit": limit})["contacts"]
    ]


def test_CAC_5_thousands_of_contacts_are_searched_and_locked(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    count = sized(1_000, 10_000)
    contact_data.fill(directory.control, user.org.id, count)
    pull(user, after_s=60)
    rows = contact_data.truth(directory.control, user.org.id)
    assert user.app.contact_search({"query": ""})["total"] == len(rows) == count
    # A locked session refuses searches.
    user.app.session_lock()
    assert error_of(user.app.contact_search, {"query": "Kari"}).code == "session.locked"
    user.app.touch()
    user.app.go_offline()
    # OFF-7: parts of words in names and places, without regard to diacritics and case
    chance = random.Random(7)
    everything = list(rows.values())
    queries = ["ase", "ostby", "Å", "ø", "aa", "o'b", "sveen-moe", "kárášjohka", "nguyen", "zoe"]
    for _ in range(120):
        name, place, _ = chance.choice(everything)
        parts = []
        for word in chance.sample((name + " " + place).split(), chance.randint(1, 2)):
            start = chance.randrange(len(word))
            parts.append(word[start : start + chance.randint(1, 6)])
        query = " ".join(parts)
        queries.append(chance.choice([query, query.upper(), query.lower()]))
    for query in queries:
        expected = contact_data.hits(rows, query)
        reply = user.app.contact_search({"query": query, "limit": 200})
        listed = {contact["id"] for contact in reply["contacts"]}
        assert reply["total"] == len(expected), query
        assert listed <= expected, query
        assert len(listed) == min(200, len(expected)), query
        assert reply["as_of_ms"] is not None


NAMES = [
    "Kari Berg", "Berit Karlsen", "Oskar Lund", "Anne Kari Lie", "Åse Aas", "Ola Østby",
    "Æsa Zakariassen", "Zara Ås", "Øyvind Li", "Per Aamot", "Pål O'Brien", "Liv-Kari Moe",
]  # fmt: skip


@pytest.fixture
def listed(sign_in: MakeUser, directory: DirectoryFixtures) -> App:
    """An app with cached contacts of these names."""
    user = sign_in()
    for name in NAMES:
        directory.contact(
            user.org, name, municipality="Karasjok" if name == "Ola Østby" else "Oslo"
        )
    pull(user, after_s=60)
    return user.app


def test_the_best_match_comes_first(listed: App) -> None:
    assert found(listed, "kar") == [
        "Kari Berg",  # the name starts with the query
        "Anne Kari Lie", "Berit Karlsen", "Liv-Kari Moe",  # a word of the name starts with it
        "Oskar Lund", "Æsa Zakariassen",  # the query is inside a word of the name
        "Ola Østby",  # the place starts with it
    ]  # fmt: skip
    assert found(listed, "kari be") == ["Kari Berg"]
    assert found(listed, "be kari") == ["Kari Berg"]
    assert found(listed, "kar", limit=2) == ["Kari Berg", "Anne Kari Lie"]


def test_names_sort_by_the_norwegian_alphabet(listed: App) -> None:
    assert found(listed, "") == [
        "Anne Kari Lie", "Berit Karlsen", "Kari Berg", "Liv-Kari Moe", "Ola Østby", "Oskar Lund",
        "Per Aamot", "Pål O'Brien", "Zara Ås", "Æsa Zakariassen", "Øyvind Li", "Åse Aas",
    ]  # fmt: skip


#: What each query finds.
QUERIES = [
    ("aas", ["Åse Aas", "Zara Ås", "Æsa Zakariassen", "Ola Østby"]),
    ("ås", ["Åse Aas", "Zara Ås", "Æsa Zakariassen", "Ola Østby"]),
    ("åmot", ["Per Aamot"]),
    ("OBRIEN", ["Pål O'Brien"]),
    ("o\N{RIGHT SINGLE QUOTATION MARK}brien", ["Pål O'Brien"]),
    ("livkari", []),
    ("liv-kari", ["Liv-Kari Moe"]),
    ("  kari   berg  ", ["Kari Berg"]),
    ("\N{COMBINING RING ABOVE}", []),
    ("%", []),
    ("_", []),
    ("\N{RIGHT-TO-LEFT OVERRIDE}kari be", ["Kari Berg"]),
    ("kari " * 40, ["Kari Berg", "Anne Kari Lie", "Liv-Kari Moe", "Æsa Zakariassen"]),
]


def test_queries_match_despite_case_marks_and_spaces(listed: App) -> None:
    for query, expected in QUERIES:
        assert found(listed, query) == expected, query


def test_names_in_other_scripts_are_found(user: SignedIn, directory: DirectoryFixtures) -> None:
    names = {
        "יוסף כהן": ["כהן", "יוס"],
        "יוֹסֵף לֵוִי": ["לוי"],
        "محمّد عَلي": ["محمد", "علي"],
        "Nguyễn Thị Ánh": ["nguyen thi anh", "ễ"],
        "A\u030asmund Bo\u0308e": ["åsmund", "asm böe"],
        "ΓΙΏΡΓΟΣ Παπαδοπουλος": ["παπα"],
        "Ольга ЁЖИКОВА": ["ольга", "ёжик"],
        "李小龍": ["小"],
        "\u202eolleH": ["olleh"],
        "Z\u0335\u0322\u0321a\u0300\u0301\u0302lgo": ["zalgo"],
        "👩‍🦰 Emoji": ["emoji", "👩"],
    }
    for name in names:
        directory.contact(user.org, name)
    pull(user, after_s=60)
    for name, queries in names.items():
        for query in queries:
            assert name in found(user.app, query), query


#: Blocks of Unicode whose letters people's names have.
BLOCKS = {
    "Latin-1 Supplement": (0xC0, 0xFF), "Latin Extended-A": (0x100, 0x17F),
    "Latin Extended-B": (0x180, 0x24F), "IPA Extensions": (0x250, 0x2AF),
    "Greek and Coptic": (0x370, 0x3FF), "Cyrillic": (0x400, 0x52F), "Armenian": (0x531, 0x587),
    "Hebrew": (0x5D0, 0x5EA), "Arabic": (0x620, 0x6D3), "Devanagari": (0x904, 0x961),
    "Bengali": (0x985, 0x9E1), "Tamil": (0xB85, 0xBD7), "Sinhala": (0xD85, 0xDDE),
    "Georgian": (0x10A0, 0x10FF), "Hangul Jamo": (0x1100, 0x11FF), "Cherokee": (0x13A0, 0x13F5),
    "Georgian Extended": (0x1C90, 0x1CBF), "Latin Extended Additional": (0x1E00, 0x1EFF),
    "Greek Extended": (0x1F00, 0x1FFF), "Kana": (0x3041, 0x30FF),
    "Hangul Syllables": (0xAC00, 0xAD7F), "Latin ligatures": (0xFB00, 0xFB17),
    "Deseret": (0x10400, 0x1044F), "Adlam": (0x1E900, 0x1E943),
}  # fmt: skip


def letters_of(block: tuple[int, int]) -> list[str]:
    """The block's letters, and what stands beside them in words, such as vowel signs."""
    characters = map(chr, range(block[0], block[1] + 1))
    return [each for each in characters if unicodedata.category(each) in {"Lu", "Ll", "Lo", "Mc"}]


def spellings(letter: str) -> dict[str, str]:
    """How else people, keyboards and systems write a letter."""
    composed = unicodedata.normalize("NFC", letter)
    apart = unicodedata.normalize("NFD", letter)
    others = {
        "as it is": letter, "composed": composed, "apart": apart, "small": letter.lower(),
        "without marks": "".join(each for each in apart if not unicodedata.combining(each)),
        "small, apart": unicodedata.normalize("NFD", letter.lower()),
    }  # fmt: skip
    # The capital of a small iota below a letter is an iota beside it.
    if "\N{COMBINING GREEK YPOGEGRAMMENI}" not in apart:
        others |= {"large": letter.upper(), "folded": letter.casefold()}
    return others


@pytest.mark.slow
def test_FIX_20_case_and_marks_are_ignored_in_every_script(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    """Each letter of a block begins a word of its own, so that no other letter is taken for it."""
    tags = ["".join(pair) for pair in itertools.product("bcdf", "ghjk")]
    names = {}
    for block, span in BLOCKS.items():
        letters = letters_of(span)
        for start in range(0, len(letters), len(tags)):
            some = list(zip(letters[start : start + len(tags)], tags, strict=False))
            names[f"{block} from U+{ord(letters[start]):04X}"] = some
    directory.control.sql(
        "insert into contacts (org_id, name) select %s, name from unnest(%s::text[]) as row(name)",
        user.org.id,
        [" ".join(map("".join, some)) for some in names.values()],
    )
    pull(user, after_s=60)
    missed = []
    for place, some in names.items():
        name = " ".join(map("".join, some))
        for way in spellings("A"):
            words = [spellings(letter).get(way, letter) + tag for letter, tag in some]
            # Every second word, then the others: a query has at most 256 bytes.
            if any(name not in found(user.app, " ".join(words[half::2])) for half in (0, 1)):
                missed.append(f"{place}, {way}")
    assert missed == []


def test_FIX_20_marks_and_apostrophes_inside_words_are_ignored(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    """Whole names, as people of these languages write them, and other people search for them."""
    spelled = {
        "ΓΙΏΡΓΟΣ": ["γιώργος", "γιωργος", "Γιώργοσ"],
        "Ґалаґан Зоряна": ["ґалаґан", "ҐАЛАҐАН", "галаган"],
        "Əliyev Ɗanladi": ["əliyev", "ƏLIYEV", "ɗanladi", "danladi"],
        "Արմեն ՊԵՏՐՈՍՅԱՆ": ["արմեն", "ԱՐՄԵՆ", "պետրոսյան"],
        "Андрей Соловьёв": ["андреи\u0306", "андреи", "соловьев"],
        "ガードナー がく": ["か\u3099く", "カ\u3099ート\u3099ナー", "かく"],
        "한글 이름": [unicodedata.normalize("NFD", "한글"), "하", "이르"],
        "آمنة أحمد": ["ا\u0653منة", "امنة", "احمد", "ا\u0654حمد"],
        "Mūḥammad": ["muhammad", "MU\u0304H\u0323AMMAD"],
        "ג׳ורג׳": ["גורג"],
        "Iġnaċju Ħ’Attard": ["ignacju", "hattard", "ĦATTARD"],
    }
    for name in spelled:
        directory.contact(user.org, name)
    pull(user, after_s=60)
    for name, queries in spelled.items():
        for query in queries:
            assert name in found(user.app, query), (name, query)


def test_FIX_29_the_exact_letter_comes_before_its_likes(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    """Letters that only fold to those of the query come after all that have these letters."""
    for name, place in (
        ("Ærlend Lie", "Oslo"), ("Anna Vik", "Oslo"), ("Håkon Lie", "Oslo"), ("Åse Lund", "Oslo"),
        ("Bo Lie", "Ås"), ("Lise A\u030aby", "Oslo"), ("Aage Moe", "Oslo"), ("Ivar Moe", "Oslo"),
        ("René Dis", "Oslo"), ("Renee Dis", "Oslo"), ("Renate Dis", "Oslo"),
        ("Øst Dis", "Oslo"), ("Ost Dis", "Oslo"), ("Öst Dis", "Oslo"),
    ):  # fmt: skip
        directory.contact(user.org, name, municipality=place)
    pull(user, after_s=60)
    exact = ["Åse Lund", "Lise A\u030aby", "Håkon Lie", "Bo Lie"]
    for query in ("å", "Å", "a\u030a", "A\u030a"):
        everything = found(user.app, query)
        assert everything[:4] == exact, query
        assert {"Anna Vik", "Ærlend Lie", "Aage Moe"} < set(everything[4:]), query
        for limit in range(1, 5):
            assert found(user.app, query, limit) == exact[:limit], (query, limit)
    for query, order in {
        "æ": ["Ærlend Lie"],
        "aa": ["Aage Moe"],
        "a": ["Aage Moe", "Anna Vik", "Ivar Moe", "Renate Dis"],
        "ø dis": ["Øst Dis", "Ost Dis", "Öst Dis"],
        "ö dis": ["Öst Dis", "Ost Dis", "Øst Dis"],
        "ost": ["Ost Dis"],
        "é": ["René Dis"],
        "rene": ["Renee Dis", "René Dis"],
        "rené dis": ["René Dis", "Renee Dis"],
    }.items():
        assert found(user.app, query)[: len(order)] == order, query


def test_a_pull_keeps_the_index_up_to_date(user: SignedIn, directory: DirectoryFixtures) -> None:
    ids = [directory.contact(user.org, name) for name in ("Berit Lund", "Dag Lund")]
    pull(user, after_s=60)
    assert found(user.app, "lund") == ["Berit Lund", "Dag Lund"]
    directory.control.sql("update contacts set name = 'Åge Lund' where id = %s", ids[0])
    directory.control.sql("update contacts set deleted_at = now() where id = %s", ids[1])
    directory.contact(user.org, "Cato Lund")
    pull(user, after_s=60)
    assert found(user.app, "lund") == ["Cato Lund", "Åge Lund"]
    assert found(user.app, "berit") == []
    for turn in range(40):
        directory.control.sql(
            "update contacts set name = %s where id = %s", f"Ny {turn} Lund", ids[0]
        )
        pull(user, after_s=60)
    assert found(user.app, "lund") == ["Cato Lund", "Ny 39 Lund"]


def test_contacts_pulled_by_another_process_are_found(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=2)
    assert user.app.contact_search({"query": "Felles"})["total"] == 0
    with another(user.phone) as other:
        directory.contact(user.org, "Felles Prøve")
        other.sync_now()
        other.settle()
        assert found(user.app, "felles") == ["Felles Prøve"]


def test_a_query_that_is_too_long_is_refused(listed: App) -> None:
    error = error_of(listed.contact_search, {"query": "å" * 129})
    assert (error.code, error.field) == ("request.invalid_value", "/query")


def test_CAC_5_after_a_lock_no_name_stays_in_memory(
    hosted: HostedLibrary, tmp_path: Path, backend: LocalSupabase, directory: DirectoryFixtures
) -> None:
    org = directory.organisation()
    name = "Ragnfrid Ytterdalsvoll"
    directory.contact(org, name)
    phone = FilePhone(tmp_path / "phone", hosted, backend)
    app = phone.start()
    app.sign_in(directory.person(org))
    assert found(app, "ytterdal") == [name]
    in_memory = [name, "ragnfrid ytterdalsvoll"]
    assert scan.scan_memory(hosted.pid, *in_memory) != [], "the scan does not find a planted secret"
    app.session_lock()
    assert scan.scan_memory(hosted.pid, *in_memory) == []
    phone.close()


# One contact --------------------------------------------------------------------------------------


def test_OFF_6_a_lock_discards_undelivered_live_details(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    contact = directory.contact(user.org, "Prøve", phone="+47 000 00 001")
    pull(user, after_s=60)
    app = user.app
    app.contact_get({"id": contact, "live": True})
    for request in app.poll()["requests"]:
        app.complete({"id": request["id"], **user.phone.network(request)})  # type: ignore[typeddict-item]
    app.session_lock()
    [event] = [event for event in app.poll()["events"] if event["type"] == "contact"]
    assert event["contact"] is None  # type: ignore[typeddict-item]
    app.touch()
    app.settle()
    assert len(app.of_type("contact")) == 1
    assert user.phone.network.count("live") == 1


def test_a_contact_of_another_organisation_is_not_shown(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    contact = directory.contact(user.org, "Prøve")
    second = directory.organisation()
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")
    pull(user, after_s=60)
    user.app.org_select({"org_id": second.id})
    assert error_of(user.app.contact_get, {"id": contact}).code == "contact.not_found"
    assert user.app.contact_search({"query": "prøve"})["total"] == 0
    user.app.org_select({"org_id": user.org.id})
    assert user.app.contact_get({"id": contact})["contact"]["name"] == "Prøve"
