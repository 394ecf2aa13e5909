# ruff: noqa: D102, D103, D107, ANN401 (a script, whose functions say by their names what they do)
"""The tour: a volunteer's phone on the shell of this folder, the local backend, and a thief.

In five acts the network fails, the app is killed three times, an answer is lost and a mistake is
corrected. At the end every item that the app called stored must be on the server exactly once, as it
was corrected, and no secret may be readable in the app's folder. Usage: demo.py [PATH_OF_holdfast-shell]; the exit status is 0 if every check passed.
"""

from __future__ import annotations

import http.client
import json
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from local_supabase.launcher import LocalSupabase
from patience import eventually, patience

SHELL = pathlib.Path(__file__).resolve().parents[2] / "build" / "bin" / "holdfast-shell"
MENTOR, ORG = "mentor@example.org", "Mentorforeningen Nordlys"
UPLOADS = "/rest/v1/activities"
#: Longer than the shell's background_timeout_s; shorter and longer than a token's life.
PAUSE_S, TOKEN_S = 3, 6
BOLD, DIM, RED, GREEN, CYAN = 1, 2, 31, 32, 36


def why(screen: dict[str, Any]) -> str:
    """The code of what the screen says."""
    return screen["message"]["code"] if screen["message"] else "needs no explanation"


class Tour:
    """What is printed, checked and written down."""

    def __init__(self) -> None:
        self.crosses = 0
        #: Every item that the app called stored: its id, its note and its minutes, None: taken back.
        self.ledger: dict[str, tuple[str, int | None]] = {}

    def paint(self, colour: int, text: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if sys.stdout.isatty() else text

    def act(self, title: str) -> None:
        print("\n" + self.paint(BOLD, title))

    def say(self, text: str) -> None:
        print(f"\n   {text}")

    def note(self, text: str) -> None:
        print(self.paint(DIM, f"     {text}"), flush=True)

    def check(self, holds: object, text: str) -> None:
        self.crosses += not holds
        print(
            self.paint(GREEN, "   ✓ ") if holds else self.paint(RED, "   ✗ "),
            text,
            sep="",
            flush=True,
        )

    def show(self, screen: dict[str, Any]) -> None:
        org = screen["org"] or {"name": "", "role": ""}
        offers = [method["label"] for method in screen["methods"]]
        offers += [choice["name"] for choice in screen["orgs"]]
        where = [screen["route"] or "", org["name"], org["role"], " · ".join(offers)]
        name = self.paint(CYAN, f"→ {screen['screen']}")
        print(f"     {name} ({why(screen)})  {'  '.join(filter(None, where))}")
        for text in [screen["message"], *screen["banners"]]:
            if text:
                self.note(f"  “{text['text']}”")


class App:
    """The app, from a start to its end: the shell, as a process of its own."""

    #: Operations after which the library gives a screen.
    SCREENS = ("resume", "unlock", "lock", "background", "complete", "logout", "select")

    def __init__(
        self, tour: Tour, program: str, place: pathlib.Path, backend: LocalSupabase
    ) -> None:
        self.tour, self.control = tour, backend.control
        self.status = ""
        self.screen: dict[str, Any] = {}
        self.screens = 0
        self.sync: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [program, str(place / "data"), backend.url, backend.anon_key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self.screen = self._reply()["screen"]
        tour.check(self.status == "OK", "the library is open on its folder")
        tour.show(self.screen)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("END {}")

    def _take(self) -> tuple[str, dict[str, Any]]:
        """The next line; what it says about the app is noted."""
        word, _, rest = self._lines.get(timeout=patience(60)).partition(" ")
        given = json.loads(rest) if rest.startswith("{") else {}
        if word == "screen":
            self.screen, self.screens = given, self.screens + 1
        elif word == "sync" and given["message"]:
            self.sync.append(given)
        elif word == "notice":
            self.tour.note(f"notice: {given['text']}")
        return word, given

    def _reply(self) -> dict[str, Any]:
        while True:
            word, given = self._take()
            if word.isupper():
                self.status = word
                return given

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Make a call. After one whose purpose is a screen, wait for that, and while it is `wait`."""
        before = self.screens
        self.send(f"{operation} {json.dumps(request)}")
        reply = self._reply()
        if self.status == "OK" and operation.endswith(self.SCREENS):
            self.until(lambda: self.screens > before and self.screen["screen"] != "wait")
            self.tour.show(self.screen)
        return reply

    def until(self, holds: Callable[[], object]) -> None:
        while not holds():
            if self._take()[0] == "END":
                raise RuntimeError("the app has ended")

    def shows(self, screen: str, text: str) -> None:
        self.tour.check(self.screen["screen"] == screen, text)

    def unlock(self, finger: str = "") -> None:
        if finger:
            self.send(f"finger {finger}")
        self.call("session_unlock")

    def register(self, kind: str, minutes: int, note: str, **more: Any) -> str:
        payload = {"type": kind, "minutes": minutes, "note": f"Tur: {note}", **more}
        depends = {"depends_on": [more["follows"]]} if "follows" in more else {}
        now = int(time.time() * 1000)
        reply = self.call(
            "queue_add", kind="activity", payload=payload, occurred_at_ms=now, **depends
        )
        self.tour.check(self.status == "OK", f"stored on disk: {kind}, {minutes} min")
        self.tour.ledger[reply["id"]] = (payload["note"], minutes)
        return str(reply["id"])

    def find(self, query: str, **more: Any) -> list[dict[str, Any]]:
        return list(self.call("contact_search", query=query, **more).get("contacts", []))

    def own(self) -> dict[str, tuple[str, Any]]:
        """The user's own activities, stored and queued, as the app lists them: state and minutes."""
        items = self.call("item_list", kind="activity")["items"]
        return {item["id"]: (item["state"], item["payload"]["minutes"]) for item in items}

    def counts(self) -> dict[str, int]:
        return dict(self.call("sync_status")["counts"])

    def read_ms(self) -> list[int]:
        """When contacts, own activities and figures were read last; 0: never."""
        status = self.call("sync_status")
        return [
            part["as_of_ms"] or 0
            for part in (status["contacts"], *status["own"], status["summary"])
        ]

    def sent(self, count: int) -> None:
        """Wait for the end of the run that has sent the rest."""
        self.until(lambda: self.sync)
        outcome = self.sync.pop()
        fits = (outcome["sent"], outcome["parked"], outcome["left"]) == (count, 0, 0)
        self.tour.check(fits, f"the app says: {count} sent, none parked, none left")
        self.tour.check(sum(self.counts().values()) == 0, "the queue is empty")

    def rows(self) -> int:
        """How many rows of the tour the server has."""
        counted = "select count(*) as n from public.activities where note like 'Tur: %%'"
        return int(self.control.sql(counted)[0]["n"])

    def die(self) -> None:
        self.tour.say("SIGKILL ends the process: no handler runs.")
        self.process.kill()
        self.process.wait()

    def quit(self) -> None:
        self.send("quit")
        self.tour.check(self.process.wait(patience(20)) == 0, "its process exited normally")


# The acts -----------------------------------------------------------------------------------------


def browser(url: str) -> str:
    """BankID in the browser, as the mentor: the address to which it returns."""
    address = urllib.parse.urlsplit(url)
    link = http.client.HTTPConnection(address.netloc, timeout=patience(20))
    link.request("GET", f"{address.path}?{address.query}&user={urllib.parse.quote(MENTOR)}")
    location = link.getresponse().getheader("location", "")
    link.close()
    return location


def sign_in(app: App) -> None:
    tour = app.tour
    app.shows("sign_in", "the app asks for a sign-in, by BankID or Vipps")
    tour.say("The person signs in with BankID in the browser (PKCE).")
    callback = browser(app.call("sign_in_begin", method="bankid")["url"])
    tour.check("code=" in callback, "the browser comes back with a code")
    app.call("sign_in_complete", callback_url="app.holdfast.example://signed-in?code=x")
    app.shows("sign_in", f"a forged code signs nobody in ({why(app.screen)})")
    app.call("sign_in_complete", callback_url=callback)
    app.shows("select_org", "a member of several organisations must choose")
    tour.say(f"The person chooses {ORG}.")
    [org] = [org for org in app.screen["orgs"] if org["name"] == ORG]
    app.call("org_select", org_id=org["org_id"])
    app.shows("home", "home of the role peer_mentor")


def act_1(app: App) -> None:
    """Signed in, then no network, then killed."""
    tour, control = app.tour, app.control
    sign_in(app)

    tour.say("The app fetches contacts and summary for offline use.")
    began = time.time() * 1000
    app.call("sync_now")
    # Until all of it was read since: then no request is on its way.
    while any(read < began for read in app.read_ms()):
        app._take()
    cached = app.call("contact_search", query="", limit=3)
    for contact in cached["contacts"]:
        tour.note(f"{contact['name']}, {contact['municipality']}")
    tour.check(cached["total"] == 30, "30 contacts are cached, encrypted")
    year = app.call("summary_get")["summary"]
    tour.check(
        (year["activities"], year["minutes"]) == (2, 75), "this year: 2 activities, 75 minutes"
    )

    tour.say("The train enters a tunnel: the server drops every connection from now on.")
    for path in ("/auth/", "/rest/"):
        control.drop_before(path, times=-1)
    app.call("network_report", online=False)
    control.clear_requests()
    contact = app.find("håkon")[0]["id"]
    first = app.register("samtale", 45, "kaffe og prat på biblioteket", contact_id=contact)
    app.register("telefon", 20, "ringte dagen etter, går bedre", contact_id=contact, follows=first)
    app.register("gruppe", 90, "gåtur rundt vannet, seks møtte opp")
    tour.check(sum(app.counts().values()) == 3, "three items are queued")
    tour.check(app.rows() == 0, "the server has none of them")

    tour.say("The phone goes into the pocket.")
    app.call("session_background")
    app.die()


def locked(app: App) -> None:
    """Nothing opens without a finger."""
    app.tour.check(app.find("håkon") == [], f"the app shows no contacts ({app.status})")
    for outcome in ("", "failed"):
        app.tour.say(
            "The app claims a finger that was not there." if not outcome else "A wrong finger."
        )
        app.unlock(outcome)
        app.tour.check(app.screen["screen"] != "home", "that does not unlock: there is no key")
        app.tour.check(app.call("session_status")["state"] == "locked", "the session is locked")
        app.tour.check(app.find("håkon") == [], "the app still shows no contacts")


def act_2(app: App) -> None:
    """Started again without a network."""
    tour = app.tour
    app.call("network_report", online=False)
    app.shows("unlock", "it was away for longer than the policy allows: the app asks for a finger")
    locked(app)

    tour.say("Now the person puts a finger on the reader.")
    app.unlock("ok")
    app.shows("home", "the app shows home, from the cache alone")
    banners = {banner["code"]: banner for banner in app.screen["banners"]}
    tour.check("offline" in banners, "a banner says that there is no network")
    tour.check(banners.get("stale_data", {}).get("as_of_ms"), "a banner says how old the data is")

    [contact] = app.find("hakon")[:1]
    tour.check(contact["name"].startswith("Håkon"), f"“hakon” finds {contact['name']}")
    card = app.call("contact_get", id=contact["id"], live=True)
    tour.check(card["needs_network"] and card["message"], "phone and address are never cached")
    tour.note(f"  “{card['message']['text']}”")

    tour.say("The person registers two more.")
    app.register("samtale", 30, "møtte en ny deltaker i Bø")
    app.register("hjemmebesøk", 45, "så på søknaden sammen, ærlig prat")
    more = app.call("summary_get")["queued"]
    tour.check(
        (more["activities"], more["minutes"]) == (5, 230), "the summary counts unsent items, too"
    )
    reasons = {reason["code"]: reason["text"] for reason in app.call("queue_explain")["reasons"]}
    tour.check("offline" in reasons, f"queue_explain says why: “{reasons.get('offline')}”")
    denied = app.call("route_check", route="/admin")
    tour.check(
        not denied["allow"], f"a mentor may not open /admin: back to {denied['screen']['route']}"
    )
    tour.check(app.control.requests() == [], "the app sent no request while offline")
    app.quit()


def act_3(app: App) -> None:
    """Back online: an answer is lost, then killed in the middle of an upload."""
    tour, control = app.tour, app.control
    tour.say("The train leaves the tunnel; the access token has expired. The server stores the first upload,"
             " but its answer is lost.")  # fmt: skip
    control.clear_faults()
    control.drop_after(UPLOADS, method="POST")
    control.clear_requests()
    app.shows("unlock", "the app asks for a finger")
    app.unlock("ok")
    app.shows("home", "home")
    app.sent(5)
    tour.check(control.count("/auth/v1/token", "POST") == 1, "the session was refreshed once")
    tour.check(
        control.faults()[0]["hits"] == 1, "an answer was lost after the server had stored the rows"
    )
    tour.check(control.count(UPLOADS, "POST") >= 2, "so the upload was sent again")
    tour.check(app.rows() == 5, "the server has five rows, each once")

    tour.say("The person registers two more online. The server stores them but answers late.")
    control.clear_faults()
    control.delay(UPLOADS, after_ms=8000, method="POST")
    app.register("kurs", 120, "kveldskurs for nye likepersoner")
    app.register("telefon", 10, "avtalte tid på mandag")
    eventually(lambda: app.rows() >= 6, what="the server has one of them")
    tour.check(
        app.counts()["sending"] >= 1, "one is in flight: stored there, not yet confirmed here"
    )
    app.die()


def named(tour: Tour, text: str) -> str:
    """The id of the activity whose note has the text."""
    [item] = [item for item, (note, _) in tour.ledger.items() if text in note]
    return item


def on_server(app: App, item: str) -> tuple[int, bool]:
    """Its minutes on the server, and whether it is taken back."""
    asked = "select minutes, deleted_at from public.activities where id::text = %s"
    [row] = app.control.sql(asked, item)
    return row["minutes"], row["deleted_at"] is not None


def act_4(app: App) -> None:
    """Everything has arrived, and there is a mistake in it."""
    tour, control = app.tour, app.control
    control.clear_faults()
    app.shows("home", "home, without a sign-in")
    app.sent(2)
    tour.check(app.rows() == 7, "the server has seven rows")

    tour.say("Another tunnel. The person looks through the activities of the week.")
    control.drop_before("/rest/", times=-1)
    app.call("network_report", online=False)
    short, twice = named(tour, "kveldskurs"), named(tour, "avtalte tid")
    own = app.own()
    kept = all(own.get(item) == ("stored", minutes) for item, (_, minutes) in tour.ledger.items())
    tour.check(kept, "the app lists all seven as stored, from the disk")

    tour.say("The course took 180 minutes, not 120; one call was registered that was none.")
    app.call("queue_edit", id=short, payload={"minutes": 180})
    app.call("queue_cancel", id=twice)
    own = app.own()
    tour.check(own[short] == ("changing", 180), "the list shows 180 minutes, to be changed")
    tour.check(own[twice][0] == "deleting", "and the call as one to be taken back")
    stored = on_server(app, short), on_server(app, twice)
    tour.check(stored == ((120, False), (10, False)), "the server knows nothing of it")
    for item, minutes in ((short, 180), (twice, None)):
        tour.ledger[item] = (tour.ledger[item][0], minutes)
    app.die()


def act_5(app: App) -> None:
    """The corrections arrive; log out."""
    tour, control = app.tour, app.control
    tour.say("Back online. The server changes the row, but its answer is lost.")
    control.clear_faults()
    control.drop_after(UPLOADS, method="PATCH")
    control.clear_requests()
    app.shows("home", "home, without a sign-in")
    app.sent(2)
    tour.check(control.faults()[0]["hits"] == 1, "an answer was lost")
    stored = [on_server(app, named(tour, text)) for text in ("kveldskurs", "avtalte tid")]
    tour.check(stored == [(180, False), (10, True)], "180 minutes there, and no call")
    tour.check(app.rows() == 7, "in the seven rows that it had: none was added")
    tour.check(named(tour, "avtalte tid") not in app.own(), "the list has the call no more")

    tour.say("The person logs out.")
    reply = app.call("session_logout", unsent="keep")
    tour.check(reply.get("unsent") == 0, "no item was left unsent")
    app.shows("sign_in", "the app is signed out")
    eventually(
        lambda: not control.sessions(MENTOR), what="the session has ended on the server, too"
    )
    app.call("session_resume")
    app.shows("sign_in", "the next start asks for a sign-in")
    app.quit()


# The server and the disk --------------------------------------------------------------------------


def check_server(tour: Tour, control: Any) -> None:
    tour.act("The rows on the server")
    tour.check(len(tour.ledger) == 7, f"the app called {len(tour.ledger)} items stored")
    rows = control.sql(
        "select id::text, note, case when deleted_at is null then minutes end as minutes"
        " from public.activities where note like 'Tur: %%'")  # fmt: skip
    stored = [(row["id"], (row["note"], row["minutes"])) for row in rows]
    for item, (note, minutes) in tour.ledger.items():
        told = "taken back" if minutes is None else f"{minutes} min"
        tour.check(stored.count((item, (note, minutes))) == 1, f"{item} once  {note}, {told}")
    tour.check(len(stored) == len(tour.ledger), f"there are no other rows: {len(stored)} in all")
    chain = "select 1 from activities a join activities b on b.id = a.follows where a.note like 'Tur: %%'"
    tour.check(len(control.sql(chain)) == 1, "the reference from one activity to another is intact")


def forms(secret: str) -> Iterator[bytes]:
    """A text as UTF-8 and UTF-16; a UUID also as plain hex and as its 16 bytes."""
    yield secret.encode()
    yield secret.encode("utf-16-le")
    try:
        number = uuid.UUID(secret)
    except ValueError:
        return
    yield number.hex.encode()
    yield number.bytes


class Thief:
    """Copies the app's folder, and looks for secrets in its bytes."""

    def __init__(self, tour: Tour, control: Any, place: pathlib.Path) -> None:
        self.tour, self.control, self.place = tour, control, place
        self.tokens: set[str] = set()

    def secrets(self) -> dict[bytes, str]:
        """Every form of every secret, and what it is. A logout deletes tokens from the server."""
        self.tokens |= set(self.control.refresh_tokens())
        known = {
            "eyJhbGci": "a JSON web token",
            MENTOR: "the e-mail address",
            "peer_mentor": "the role",
        }
        known |= dict.fromkeys(self.tokens, "a refresh token")
        known |= dict.fromkeys((note for note, _ in self.tour.ledger.values()), "a note")
        for table, columns in {"public.organizations": "id name", "public.contacts": "id name",
                               "auth.users": "id"}.items():  # fmt: skip
            for column in columns.split():
                rows = self.control.sql(f"select {column}::text as v from {table}")
                known |= dict.fromkeys((row["v"] for row in rows), f"{column} of {table}")
        found = {form: what for secret, what in known.items() for form in forms(secret)}
        return found | {key.read_bytes(): "a key" for key in (self.place / "data.keys").iterdir()}

    def look(self, when: str) -> None:
        secrets = self.secrets()
        files = [file for file in (self.place / "data").rglob("*") if file.is_file()]
        text = b"|".join(file.read_bytes() for file in files)
        found = sorted({what for secret, what in secrets.items() if secret in text})
        self.tour.check(b"SQLite format 3" in text, "the search works: it finds SQLite's header")
        said = f"{when}: none of {len(secrets)} secrets is readable in {len(files)} files, {len(text) // 1024} kB"
        self.tour.check(not found and self.tokens and len(secrets) > 100, said)
        for what in found:
            self.tour.note(f"found: {what}")


def play(tour: Tour, program: str, place: pathlib.Path, backend: LocalSupabase) -> None:
    control, thief = backend.control, Thief(tour, backend.control, place)
    control.sql(
        "insert into public.activities (org_id, user_id, type, occurred_at, minutes, note)"
        " select o.id, u.id, 'samtale', now(), m, 'fra før' from public.organizations o, auth.users u,"
        " (values (30), (45)) v(m) where o.name = %s and u.email = %s", ORG, MENTOR)  # fmt: skip
    control.set(jwt_lifetime=TOKEN_S)
    for number, act in enumerate((act_1, act_2, act_3, act_4, act_5), start=1):
        tour.act(f"{number}  {act.__doc__}")
        if number in (2, 3):
            tour.say(f"{PAUSE_S} seconds pass.")
            time.sleep(PAUSE_S)
        if number == 3:
            control.set(jwt_lifetime=3600)
        app = App(tour, program, place, backend)
        try:
            act(app)
        finally:
            app.process.kill()
            app.process.wait()
        thief.look("a thief copies the folder now")
    check_server(tour, control)


def main() -> int:
    """Return 0 if every check passed."""
    program = sys.argv[1] if len(sys.argv) > 1 else str(SHELL)
    tour = Tour()
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-tour-") as folder,
        LocalSupabase(demo=True) as backend,
    ):
        tour.act(f"Holdfast, a tour, in {folder} and on {backend.url}")
        play(tour, program, pathlib.Path(folder), backend)
    tour.act(
        "Every check passed." if tour.crosses == 0 else f"{tour.crosses} checks failed: see ✗."
    )
    return 0 if tour.crosses == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
