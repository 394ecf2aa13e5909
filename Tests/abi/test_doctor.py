"""HST-4: `holdfast.doctor` against the local backend, for a good project and for each mistake."""

from __future__ import annotations

import base64
import http.server
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from holdfast import HttpTransport, Library, Step, doctor
from holdfast.project import Names, Project
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from local_supabase import LocalSupabase
from refused import refused_port

from support.directory_fixtures import (
    PASSWORD,
    UPLOAD_RIGHT,
    DirectoryFixtures,
    Person,
    altered,
    changed,
    revoked,
)
from support.paths import ROOT
from support.phone import METHODS, ROUTES
from support.sizes import sampled
from support.users import MakePhone, MakeUser

REDIRECT = "app.example://signed-in"


class Examine:
    """Runs the doctor; keeps what was sent."""

    def __init__(self, config: dict[str, Any], library: Library) -> None:
        self.config = config
        self.library = library
        self.sent: list[HttpRequest] = []

    def __call__(
        self,
        change: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> list[Step]:
        """The steps, with `backend` changed."""
        backend = {**self.config["backend"], **(change or {})}
        transport = options.pop("transport", None) or HttpTransport()

        def send(request: HttpRequest) -> Answer:
            self.sent.append(request)
            answer: Answer = transport(request)
            return answer

        steps = doctor(
            {**self.config, "backend": backend},
            library=self.library,
            transport=send,
            timeout_s=options.pop("timeout_s", 60),
            **options,
        )
        text = "\n".join(map(str, steps))
        assert PASSWORD not in text
        assert str(backend["api_key"]) not in text
        for step in steps:
            assert bool(step.advice) == (step.outcome != "ok"), step
            assert step.advice == "" or step.advice.rstrip().endswith((".", "?")), step
        return steps


@pytest.fixture
def examine(backend: LocalSupabase, library: Library, tmp_path: Path) -> Examine:
    """A doctor for the configuration that fits the local backend."""
    return Examine(
        {
            "data_dir": str(tmp_path / "data"),
            "backend": {"url": backend.url, "api_key": backend.anon_key},
            "template": "volunteers",
            "auth_methods": METHODS,
            "redirect_url": REDIRECT,
            "routes": ROUTES,
            "keystore": {"kind": "file"},
            "policy": {"biometric": "preferred"},
        },
        library,
    )


def bad(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.outcome != "ok"]


def only(steps: list[Step], outcome: str = "fail") -> Step:
    """The one step that is not ok."""
    [step] = bad(steps)
    assert step.outcome == outcome, step
    return step


def by_name(steps: list[Step]) -> dict[str, Step]:
    named = {step.name: step for step in steps}
    assert len(named) == len(steps)
    return named


# ---- A good project ------------------------------------------------------------------------------


def test_HST_4_the_doctor_finds_a_good_project_good(examine: Examine) -> None:
    steps = by_name(examine())
    assert bad(list(steps.values())) == []
    assert list(steps) == [
        "configuration",
        "reachable",
        "supabase",
        "api key",
        "data service",
        "sign-in bankid",
        "sign-in vipps",
        "sign-in email",
        "redirect",
        "table memberships (memberships)",
        "table organizations (memberships)",
        "table contacts (contacts)",
        "table activities (queue.activity)",
        "table contacts (queue.contact)",
        "table contact_details (queue.contact_details)",
        "policies of memberships",
        "policies of organizations",
        "policies of contacts",
        "policies of activities",
        "policies of contact_details",
        "function activity_summary (summary)",
        "clock",
        "latency",
    ]
    assert not Path(examine.config["data_dir"]).exists(), "the doctor made the data folder"


def test_HST_4_the_doctor_takes_what_is_the_drivers(examine: Examine) -> None:

    store = {"kind": "secret_service", "name": "com.example.visits"}
    examine.config |= {"keystore": store, "http": {"log_level": 1}}
    assert bad(examine()) == []


def test_HST_4_the_doctor_takes_a_configuration_for_development(examine: Examine) -> None:
    del examine.config["keystore"]
    examine.config["development"] = True
    assert bad(examine()) == []


def test_HST_4_the_doctor_writes_nothing(
    examine: Examine, directory: DirectoryFixtures, sign_in: MakeUser
) -> None:
    """Every call without a user is a GET; with one, no row and no session stays."""
    user = sign_in(contacts=3)
    tables = ["memberships", "organizations", "contacts", "contact_details", "activities"]
    # One row: PostgreSQL may answer the parts of a union in any order.
    count = "select " + ", ".join(f"(select count(*) from {table}) as {table}" for table in tables)
    before = directory.control.sql(count), directory.control.refresh_tokens()
    examine()
    assert {request["method"] for request in examine.sent} == {"GET"}
    steps = examine(email=user.person.email, password=PASSWORD)
    assert bad(steps) == []
    assert (directory.control.sql(count), directory.control.refresh_tokens()) == before
    posted = [request for request in examine.sent if request["method"] == "POST"]
    # Uploads that no table takes, for an id that is no uuid or is there twice.
    inserts = [json.loads(str(each["body"])) for each in posted if "/rest/v1/" in each["url"]]
    for rows in inserts:
        ids = [row["id"] for row in rows]
        assert ids in (["not-a-uuid"], [ids[0], ids[0]])
    # The sign-in and its end.
    assert len(posted) == len(inserts) + 2


@pytest.mark.parametrize("upload", ["table", "rpc"])
def test_HST_4_the_doctor_asks_for_the_names_that_the_library_uses(
    sign_in: MakeUser, directory: DirectoryFixtures, examine: Examine, upload: str
) -> None:

    queue = {"activity": {"table": "activities", "upload": upload}}
    tables = {"queue": queue} if upload == "rpc" else {}
    user = sign_in(contacts=2, tables=tables)
    hit = user.app.contact_search({"query": ""})["contacts"][0]["id"]
    user.app.register(contact_id=hit)
    directory.control.clear_requests()
    user.app.sync_now()
    user.app.contact_get({"id": hit, "live": True})
    user.app.settle()
    used: dict[str, set[str]] = {}
    for entry in directory.control.requests("/rest/v1/"):
        query = dict(urllib.parse.parse_qsl(entry["query"]))
        table = entry["path"].removeprefix("/rest/v1/")
        text = query.get("columns") or query.get("select", "")
        used.setdefault(table, set()).update(re.sub(r"\w+\(.*\)", "", text).split(","))
    steps = examine(tables)
    asked: dict[str, set[str]] = {}
    for request in examine.sent:
        url = urllib.parse.urlsplit(request["url"])
        query = dict(urllib.parse.parse_qsl(url.query))
        table = url.path.removeprefix("/rest/v1/")
        asked.setdefault(table, set()).update(
            re.sub(r"\w+\(.*\)", "", query.get("select", "")).split(",")
        )
    assert {"memberships", "contacts", "rpc/activity_summary"} <= set(used)
    assert ("rpc/submit_activities" if upload == "rpc" else "activities") in used
    for table, columns in used.items():
        assert columns - {""} <= asked[table], table
    assert bad(steps) == []


def test_HST_4_the_doctor_of_an_app_without_sections_asks_for_no_names(examine: Examine) -> None:
    backend = {"memberships": None, "contacts": None, "summary": None, "queue": {}}
    examine.config["routes"] = {"user": {"home": "/"}}
    steps = by_name(examine(backend))
    assert bad(list(steps.values())) == []
    assert [name for name in steps if name.startswith(("table", "function", "policies"))] == []


# ---- Configuration and key -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("https://supabase.com/dashboard/project/abcdefgh", "https://abcdefgh.supabase.co."),
        ("https://supabase.com/dashboard/project/abcdefgh/settings/api", "abcdefgh.supabase.co."),
        ("https://app.supabase.com/project/abcdefgh", "https://abcdefgh.supabase.co."),
        ("https://supabase.com/dashboard/projects", "https://PROJECT.supabase.co."),
        ("https://abcdefgh.supabase.co/rest/v1/", "Write https://abcdefgh.supabase.co."),
        ("https://abcdefgh.supabase.co/auth/v1", "Write https://abcdefgh.supabase.co."),
        ("http://abcdefgh.supabase.co", "https is expected"),
        ("abcdefgh.supabase.co", "http(s)://host"),
        ("https://user@abcdefgh.supabase.co", "http(s)://host"),
    ],
)
def test_HST_4_the_doctor_corrects_an_address(examine: Examine, url: str, advice: str) -> None:
    step = only(examine({"url": url}))
    assert (step.name, step.found.split(":")[0].split(" ")[0]) == ("configuration", "/backend/url")
    assert advice in step.advice
    assert examine.sent == []


def test_HST_4_the_doctor_passes_on_what_the_library_refuses(
    examine: Examine, tmp_path: Path
) -> None:
    examine.config["routes"] = {}
    step = only(examine())
    assert step.found == "/routes: request.invalid_value"
    assert "at least one role" in step.advice
    examine.config["routes"] = ROUTES
    examine.config["data_dir"] = "~/data"
    assert "/data_dir" in only(examine()).found
    (tmp_path / "file").write_text("a file")
    examine.config["data_dir"] = str(tmp_path / "file")
    assert only(examine()).found == "/data_dir is a file"
    del examine.config["data_dir"]
    assert only(examine()).found == "/data_dir: request.missing_field"
    del examine.config["backend"]["api_key"]
    examine.config["data_dir"] = "x"
    with pytest.raises(KeyError):
        examine()  # the harness reads it; the doctor itself says
    assert only(doctor(examine.config, library=examine.library)).found == (
        "/backend/api_key: request.missing_field"
    )
    assert only(doctor({}, library=examine.library)).name == "configuration"


def token(**claims: object) -> str:
    parts = [{"alg": "HS256"}, claims]
    coded = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    return ".".join([*coded, "c2ln"])


@pytest.mark.parametrize(
    "key", ["sb_secret_0123456789", token(role="service_role", ref="abcdefgh")]
)
def test_HST_4_a_secret_key_is_said_loudly_and_never_sent(examine: Examine, key: str) -> None:
    step = only(examine({"api_key": key}))
    assert step.name == "api key"
    assert "SECRET KEY" in step.found
    assert "Replace it at once" in step.advice
    assert examine.sent == []


def test_HST_4_a_key_that_shows_its_mistake_is_not_sent(examine: Examine) -> None:
    host = "https://abcdefgh.supabase.co"
    for key, found in (
        (token(role="anon", ref="otherone"), "another project"),
        (token(role="authenticated", sub="x"), "access token"),
        (token(role="anon", ref="abcdefgh", exp=1_600_000_000), "expired"),
    ):
        step = bad(examine({"url": host, "api_key": key}))[-1]
        assert (step.name, step.outcome) == ("api key", "fail")
        assert found in step.found
    assert examine.sent == []


@pytest.mark.parametrize(
    "key", ["sb_publishable_of_another_project", token(role="anon"), "no-form"]
)
def test_HST_4_a_key_that_the_project_refuses(examine: Examine, key: str) -> None:
    step = examine({"api_key": key})[-1]
    assert (step.name, step.outcome, step.found) == ("api key", "fail", "the project refuses it")
    assert "API Keys" in step.advice


def test_HST_4_a_key_that_only_the_health_check_refuses(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    """Gateways differ in what they ask a key for."""
    body = json.dumps({"message": "Invalid API key"})
    for path in ("/auth/v1/health", "/auth/v1/settings", "/rest/v1/"):
        directory.control.clear_faults()
        directory.control.respond(path, 401, body=body, times=1)
        assert examine()[-1].name == "api key", path


# ---- The network and the host --------------------------------------------------------------------


def test_HST_4_nobody_listens(examine: Examine) -> None:
    with refused_port() as port:
        step = only(examine({"url": f"http://127.0.0.1:{port}"}))
    assert (step.name, step.outcome) == ("reachable", "fail")
    assert "host and port" in step.advice


@pytest.mark.parametrize(
    ("error", "found", "advice"),
    [
        ("dns", "is not known", "paused for long"),
        ("offline", "no connection", "network"),
        ("timeout", "does not answer within 60 s", "firewall"),
        ("tls", "no TLS connection", "certificate"),
    ],
)
def test_HST_4_a_network_that_fails(examine: Examine, error: str, found: str, advice: str) -> None:
    # After "tls" the doctor itself greets this server, which waits for the rest of the greeting.
    limit = 0.3 if error == "tls" else 60
    step = only(examine(transport=lambda request: {"error": error}, timeout_s=limit))
    assert step.name == "reachable"
    assert found in step.found
    assert advice in step.advice


def test_HST_4_a_name_that_nobody_knows(examine: Examine) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", unknown)
        step = only(examine({"url": "https://abcdefgh.supabase.co", "api_key": "sb_publishable_x"}))
    assert "abcdefgh.supabase.co is not known" in step.found


def test_HST_4_a_project_that_hangs(examine: Examine, directory: DirectoryFixtures) -> None:
    directory.control.hang("/auth/v1/health", times=1)
    step = only(examine(timeout_s=0.3))
    assert "does not answer within 0.3 s" in step.found


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody signed."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    made += ["-subj", "/CN=localhost", "-keyout", str(path) + ".key", "-out", str(path)]
    subprocess.run(made, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(str(path) + ".key").read_text())
    return path


def test_HST_4_a_certificate_that_nobody_trusts(examine: Examine, certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(context) as port:
        step = only(examine({"url": f"https://localhost:{port}"}))
    assert "no TLS connection" in step.found
    assert "self-signed certificate" in step.found


class Quiet(http.server.BaseHTTPRequestHandler):
    """Answers every request with 501."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server on this machine; its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def test_HST_4_https_for_a_server_without_tls(examine: Examine) -> None:
    with serving() as port:
        step = only(examine({"url": f"https://127.0.0.1:{port}"}))
    assert (step.name, step.outcome) == ("reachable", "fail")
    assert "wrong version number" in step.found


#: What the server answers to the first request, and what the doctor says.
HOSTS: dict[str, tuple[int, str, dict[str, str], str, str]] = {
    "paused": (540, "<html>Project paused</html>", {}, "the project is paused", "Restore it"),
    "portal": (200, "<html>Welcome to the hotel</html>", {}, "not Supabase's", "portal"),
    "portal that redirects": (
        302,
        "",
        {"Location": "https://portal.example.org/login?a=b"},
        "https://portal.example.org",
        "portal",
    ),
    "http that leads to https": (
        308,
        "",
        {"Location": "https://x.example.org/auth/v1/health"},
        "it sends on to https://x.example.org",
        "https",
    ),
    "another server": (404, "<html>Not Found</html>", {}, "there is no /auth/v1", "another server"),
    "another server's JSON": (200, '{"hello":"world"}', {}, "not Supabase's", "another server"),
    "overloaded": (503, "", {}, "answers 503", "dashboard"),
    "too many": (429, "{}", {}, "too many requests", "Wait"),
}


@pytest.mark.parametrize("case", HOSTS)
def test_HST_4_a_host_that_is_not_the_project(
    examine: Examine, directory: DirectoryFixtures, case: str
) -> None:
    status, body, headers, found, advice = HOSTS[case]
    directory.control.respond("/auth/v1/health", status, body=body, headers=headers, times=1)
    step = only(examine())
    assert step.name == "supabase"
    assert found in step.found
    assert advice in step.advice


def test_HST_4_a_path_too_many(examine: Examine, backend: LocalSupabase) -> None:
    step = only(examine({"url": f"{backend.url}/project"}))
    assert (step.name, step.found) == ("supabase", "there is no /auth/v1")


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (404, "<html>", "there is no /rest/v1"),
        (200, "<html>", "not Supabase's"),
        (503, '{"code":"PGRST002","message":"x"}', "answers 503"),
        (406, '{"code":"PGRST106","message":"x"}', "does not expose the schema"),
    ],
)
def test_HST_4_a_data_service_that_is_not_there(
    examine: Examine, directory: DirectoryFixtures, status: int, body: str, found: str
) -> None:
    directory.control.respond("/rest/v1/", status, body=body, times=1)
    step = only(examine())
    assert step.name == "data service"
    assert found in step.found


def test_HST_4_a_clock_ten_minutes_off(examine: Examine, directory: DirectoryFixtures) -> None:
    for offset, where in ((600, "10 minutes behind"), (-600, "10 minutes ahead of")):
        directory.control.set(date_offset_s=offset)
        step = only(examine(), "warn")
        assert step.name == "clock"
        assert where in step.found


def test_HST_4_a_slow_project(examine: Examine) -> None:
    http = HttpTransport()

    def slow(request: HttpRequest) -> Answer:
        answer = http(request)
        clock[0] += 3
        return answer

    clock = [0.0]
    real = time.monotonic
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: real() + clock[0])
        step = only(examine(transport=slow), "warn")
    assert step.name == "latency"


# ---- Sign-in -------------------------------------------------------------------------------------


def test_HST_4_a_method_that_is_off(examine: Examine, directory: DirectoryFixtures) -> None:
    external = {"bankid": True, "vipps": False, "email": False}
    settings = json.dumps({"external": external})
    directory.control.respond("/auth/v1/settings", 200, body=settings, times=1)
    steps = by_name(examine())
    assert [step.name for step in bad(list(steps.values()))] == ["sign-in vipps", "sign-in email"]
    assert steps["sign-in email"].found == "the provider email is off in the project"


def test_HST_4_a_method_that_the_project_does_not_tell_of(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    settings = json.dumps({"external": {"email": True, "vipps": True}})
    directory.control.respond("/auth/v1/settings", 200, body=settings, times=1)
    assert only(examine(), "warn").name == "sign-in bankid"


def test_HST_4_no_method(examine: Examine) -> None:
    examine.config["auth_methods"] = []
    assert only(examine(), "warn").found == "auth_methods is empty"


@pytest.mark.parametrize(
    ("listed", "outcome"),
    [
        ([REDIRECT], "ok"),
        (["app.example://**"], "ok"),
        (["app.example://other"], "fail"),
        ([], "fail"),
    ],
)
def test_HST_4_a_redirect_that_the_project_does_not_list(
    examine: Examine, directory: DirectoryFixtures, listed: list[str], outcome: str
) -> None:
    directory.control.set(redirect_allow_list=listed)
    try:
        step = by_name(examine())["redirect"]
    finally:
        directory.control.set(redirect_allow_list=None)
    assert step.outcome == outcome
    if outcome == "fail":
        assert "https://site.example.org" in step.found
        assert REDIRECT in step.advice


def test_HST_4_a_redirect_that_does_not_show(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    directory.control.respond("/auth/v1/verify", 404, body="404 page not found", times=1)
    step = only(examine(), "warn")
    assert (step.name, REDIRECT in step.advice) == ("redirect", True)


# ---- Tables, columns, policies and functions -----------------------------------------------------

#: How the schema is changed and changed back; what the doctor says, step by step.
SCHEMA: dict[str, tuple[tuple[str, str], dict[str, str]]] = {
    "memberships table": (
        altered("table {} rename to {}", "memberships", "members"),
        {"table memberships (memberships)": "there is no such table"},
    ),
    "memberships column": (
        altered("table memberships rename column {} to {}", "status", "state"),
        {"table memberships (memberships)": "has no column status"},
    ),
    "organisations table": (
        altered("table {} rename to {}", "organizations", "orgs"),
        {"table organizations (memberships)": "there is no such table"},
    ),
    "two columns of contacts": (
        (
            "alter table contacts rename column municipality to town;"
            " alter table contacts rename column deleted_at to gone_at",
            "alter table contacts rename column town to municipality;"
            " alter table contacts rename column gone_at to deleted_at",
        ),
        {
            "table contacts (contacts)": "has no columns municipality, deleted_at",
            "table contacts (queue.contact)": "has no column municipality",
        },
    ),
    "network-only column": (
        altered("function {}(contacts) rename to {}", "phone", "mobile"),
        {"table contacts (contacts)": "has no column phone"},
    ),
    "queue column": (
        altered("table activities rename column {} to {}", "minutes", "length"),
        {"table activities (queue.activity)": "has no column minutes"},
    ),
    "summary function": (
        altered("function {} rename to {}", "activity_summary", "figures"),
        {"function activity_summary (summary)": "there is no such function with the argument org"},
    ),
    "open table": (
        (
            "alter table contacts disable row level security; grant select on contacts to anon",
            "alter table contacts enable row level security; revoke select on contacts from anon",
        ),
        {"policies of contacts": "OPEN TO THE WORLD"},
    ),
    "policy for everybody": (
        (
            'create policy "all" on organizations for select to anon using (true);'
            " grant select on organizations to anon",
            'drop policy "all" on organizations; revoke select on organizations from anon',
        ),
        {"policies of organizations": "OPEN TO THE WORLD"},
    ),
}


@pytest.mark.parametrize("mistake", sampled(SCHEMA, 3))
def test_HST_4_a_schema_that_does_not_fit(
    examine: Examine, directory: DirectoryFixtures, mistake: str
) -> None:
    change, expected = SCHEMA[mistake]
    directory.organisation(contacts=1)
    with changed(directory, *change):
        found = {step.name: step.found for step in bad(examine())}
    for name, text in expected.items():
        assert text in found.pop(name)
    # A renamed table breaks what refers to it, and nothing else.
    assert all("organizations" in text or "memberships" in name for name, text in found.items())
    assert bad(examine()) == []


def test_HST_4_a_closed_table_is_good_whether_rows_or_grants_close_it(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    directory.organisation(contacts=1)
    grant, revoke = "grant select on contacts to anon", "revoke select on contacts from anon"
    with changed(directory, grant, revoke):
        step = by_name(examine())["policies of contacts"]
    assert (step.outcome, "no rows without a user" in step.found) == ("ok", True)


def test_HST_4_a_name_in_the_configuration_that_is_near(examine: Examine) -> None:
    step = only(examine({"queue": {"activity": {"table": "activitys"}}}))
    assert step.name == "table activitys (queue.activity)"
    assert "/backend/queue/activity: did you mean activities?" in step.advice


def test_HST_4_an_upload_function(examine: Examine) -> None:
    kind: dict[str, Any] = {"table": "activities", "upload": "rpc"}
    steps = by_name(examine({"queue": {"activity": kind}}))
    assert steps["function submit_activities (queue.activity)"].outcome == "ok"
    kind["function"] = "activity_summary"
    step = only(examine({"queue": {"activity": kind}}))
    assert "there is no such function with the argument items" in step.found
    assert "did you mean activity_summary(org, since)?" in step.advice
    assert step.name == "function activity_summary (queue.activity)"


def test_HST_4_an_upload_function_that_writes_for_an_empty_list(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    with changed(
        directory,
        "create table calls (at timestamptz); grant insert on calls to anon;"
        " create function noting(items jsonb) returns json language sql"
        " as $$ insert into calls values (now()); select '[]'::json $$",
        "drop function noting; drop table calls",
    ):
        kind = {"table": "activities", "upload": "rpc", "function": "noting"}
        step = only(examine({"queue": {"activity": kind}}), "warn")
        assert directory.control.sql("select count(*) as n from calls") == [{"n": 0}]
    assert "writes even when there is nothing to store" in step.found


# ---- With a user ---------------------------------------------------------------------------------


def as_user(examine: Examine, person: Person, **backend: Any) -> list[Step]:  # noqa: ANN401
    return examine(backend, email=person.email, password=PASSWORD)


def test_HST_4_the_doctor_checks_what_a_user_may_do(
    examine: Examine, sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=3)
    directory.control.set(max_rows=2)
    steps = by_name(as_user(examine, user.person))
    assert bad(list(steps.values())) == []
    assert steps["memberships (memberships)"].found == "1 usable"
    assert steps["contacts"].found == steps["contacts, live"].found == "the user reads them"
    assert steps["max_rows"].found.startswith("2:")
    assert steps["function activity_summary (summary) for the user"].outcome == "ok"
    for kind in ("activity", "contact", "contact_details"):
        assert "may insert" in steps[f"upload of {kind}"].found
    kind_of_rpc = {"activity": {"table": "activities", "upload": "rpc"}}
    steps = by_name(as_user(examine, user.person, queue=kind_of_rpc))
    assert steps["function submit_activities (queue.activity) for the user"].outcome == "ok"


def test_HST_4_an_access_token_is_used_and_its_session_goes_on(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    person = directory.person(directory.organisation(contacts=1))
    session = directory.session(person)
    steps = examine(access_token=session["access_token"])
    assert by_name(steps)["user"].outcome == "ok"
    assert bad(steps) == []
    assert bad(examine(access_token=session["access_token"])) == []
    assert session["access_token"] not in "".join(map(str, steps))
    secret = token(role="service_role")
    sent = len(examine.sent)
    step = only(examine(access_token=secret))
    assert "SECRET KEY" in step.found
    assert secret not in json.dumps(examine.sent[sent:])
    step = only(examine(access_token="x.y.z"))
    assert (step.name, "refuses the access token" in step.found) == ("user", True)


def test_HST_4_a_user_who_cannot_sign_in(examine: Examine, directory: DirectoryFixtures) -> None:
    person = directory.person()
    step = only(examine(email=person.email, password="not-the-password"))
    assert step.found == "the sign-in failed: invalid_credentials"
    assert "password is wrong" in step.advice
    body = json.dumps({"code": "email_not_confirmed", "message": "x"})
    directory.control.respond("/auth/v1/token", 400, body=body, times=1)
    assert "Confirm the address" in only(as_user(examine, person)).advice


def test_HST_4_a_user_without_a_membership(examine: Examine, directory: DirectoryFixtures) -> None:
    step = only(as_user(examine, directory.person()))
    assert (step.name, step.found) == ("memberships (memberships)", "the user sees none")


def test_HST_4_a_user_whose_membership_is_no_use(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    org = directory.organisation(contacts=1)
    person = directory.person(org, role="peer_mentor")
    examine.config["routes"] = {"coordinator": ROUTES["coordinator"]}
    step = only(as_user(examine, person), "warn")
    assert step.advice == "Add to /routes: peer_mentor."
    examine.config["routes"] = ROUTES
    directory.control.set_membership(person.id, org.id, status="ended")
    steps = bad(as_user(examine, person))
    assert steps[0].found == "1, and none is usable"


#: A policy holds for the first of these instead of for users.
ROLES = ("service_role", "authenticated")


#: How the rights are changed and changed back; what the doctor says.
RIGHTS: dict[str, tuple[tuple[str, str], str, str]] = {
    "policy of memberships": (
        altered('policy "own memberships" on memberships to {}', *ROLES),
        "memberships (memberships)",
        "the user sees none",
    ),
    "policy of organisations": (
        altered('policy "own organisations" on organizations to {}', *ROLES),
        "memberships (memberships)",
        "not its organisation",
    ),
    "grant of organisations": (
        revoked("select on organizations"),
        "memberships (memberships)",
        "no right to select (table organizations)",
    ),
    "grant of contacts": (
        revoked("select on contacts"),
        "contacts",
        "no right to select (table contacts)",
    ),
    "policy of contacts": (
        altered('policy "read contacts" on contacts to {}', *ROLES),
        "contacts",
        "the user sees none",
    ),
    "grant of the summary": (
        (
            "revoke execute on function activity_summary from authenticated, public",
            "grant execute on function activity_summary to authenticated",
        ),
        "function activity_summary (summary) for the user",
        "may not use it",
    ),
    "grant of an upload": (UPLOAD_RIGHT, "upload of activity", "no right to insert"),
    "grant of one column": (
        revoked("insert (note) on activities"),
        "upload of activity",
        "no right to insert",
    ),
}


@pytest.mark.parametrize("mistake", sampled(RIGHTS, 3))
def test_HST_4_a_right_that_a_user_lacks(
    examine: Examine, directory: DirectoryFixtures, mistake: str
) -> None:
    change, name, found = RIGHTS[mistake]
    person = directory.person(directory.organisation(contacts=1))
    with changed(directory, *change):
        steps = {step.name: step for step in bad(as_user(examine, person))}
    assert found in steps[name].found
    assert bad(as_user(examine, person)) == []


def test_HST_4_a_table_whose_ids_are_not_unique(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    person = directory.person(directory.organisation(contacts=1))
    with changed(
        directory,
        "create table notes (id uuid, org_id uuid, text text);"
        " grant select, insert on notes to authenticated",
        "drop table notes",
    ):
        queue = {"note": {"table": "notes", "columns": ["text"]}}
        step = only(as_user(examine, person, queue=queue))
        assert step.found == "the column id has no unique constraint"
        # A table that is partitioned by organisation has both columns in its key
        whole = {"note": {**queue["note"], "primary_key": "id_and_org_id"}}
        step = only(as_user(examine, person, queue=whole))
        assert step.found == "the columns id, org_id have no unique constraint"
        directory.control.sql("alter table notes add primary key (id, org_id)")
        assert bad(as_user(examine, person, queue=whole)) == []
        assert (
            '"primary_key": "id_and_org_id"' in only(as_user(examine, person, queue=queue)).advice
        )
        directory.control.sql("alter table notes drop constraint notes_pkey")
        directory.control.sql("alter table notes alter id type text")
        directory.control.reload_schema()
        step = only(as_user(examine, person, queue=queue))
        assert step.found == "the column id is no uuid"
        assert directory.control.sql("select count(*) as n from notes") == [{"n": 0}]


NOTES = "create table notes ({}, user_id uuid, text text)"


SILENT: dict[str, tuple[str, dict[str, str]]] = {
    "id bigint": (
        NOTES.format("id bigint primary key, org_id uuid"),
        {"table notes (queue.note)": "the column id is bigint, and no uuid"},
    ),
    "org_id bigint": (
        NOTES.format("id uuid primary key, org_id bigint"),
        {"table notes (queue.note)": "the column org_id is bigint, and no uuid"},
    ),
    "id and org_id integer": (
        NOTES.format("id int primary key, org_id int"),
        {
            "table notes (queue.note)": "the column id is integer, and no uuid;"
            " the column org_id is integer, and no uuid"
        },
    ),
    "id timestamp": (
        NOTES.format("id timestamptz primary key, org_id uuid"),
        {"table notes (queue.note)": "id is timestamp with time zone, and no uuid"},
    ),
    "org_id text": (
        NOTES.format("id uuid primary key, org_id text"),
        {"upload of note": "the column org_id is no uuid"},
    ),
    "a column that is never sent": (
        NOTES.format("id uuid primary key, org_id uuid, region text not null"),
        {"upload of note": "the column region must have a value, and is never sent"},
    ),
    "such a column behind others that are sent": (
        "create type mood as enum ('good'); create table notes (user_id uuid not null,"
        " text int not null, id uuid primary key, org_id uuid not null, at timestamptz not null,"
        " region int not null)",
        {"upload of note": "the column region must have a value, and is never sent"},
    ),
    "no right to select": (
        NOTES.format("id uuid primary key, org_id uuid"),
        {"upload of note": "the user has no right to select (table notes)"},
    ),
}


@pytest.mark.parametrize("fault", SILENT)
def test_FIX_23_a_table_of_which_no_item_can_be_stored(
    examine: Examine, directory: DirectoryFixtures, fault: str
) -> None:
    change, expected = SILENT[fault]
    person = directory.person(directory.organisation(contacts=1))
    kind = {"table": "notes", "columns": ["user_id", "text", "at"] if "at " in change else ["text"]}
    rights = "insert" if fault == "no right to select" else "select, insert"
    with changed(
        directory,
        f"{change}; revoke all on notes from anon, authenticated;"
        f" grant {rights} on notes to authenticated",
        "drop table notes; drop type if exists mood",
    ):
        steps = bad(as_user(examine, person, queue={"note": kind}))
        assert directory.control.sql("select count(*) as n from notes") == [{"n": 0}]
        assert {step.name: step.outcome for step in steps} == dict.fromkeys(expected, "fail")
        for step in steps:
            assert expected[step.name] in step.found
            assert "alter" in step.advice or "grant select (id)" in step.advice
        if next(iter(expected)).startswith("table"):
            assert [step.name for step in bad(examine({"queue": {"note": kind}}))] == list(expected)


def test_FIX_23_organisations_whose_ids_are_no_uuids(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    """The library reads no such membership: the doctor says so at once, also without a user."""
    with changed(
        directory,
        "create table teams (user_id uuid, org_id bigint, role text, status text, updated_at"
        " timestamptz); grant select on teams to authenticated",
        "drop table teams",
    ):
        found = bad(examine({"memberships": {"table": "teams"}}))
    wrong = ("table teams (memberships)", "the column org_id is bigint, and no uuid")
    assert wrong in {(step.name, step.found) for step in found}


def test_FIX_23_columns_with_values_of_their_own_are_good(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    """Defaults, triggers and values of every type: nothing is wrong, and nothing is stored."""
    person = directory.person(directory.organisation(contacts=1))
    kind = {"table": "notes", "columns": ["a", "b", "c", "d", "e", "f"]}
    with changed(
        directory,
        "create table notes (id uuid primary key, org_id uuid not null, a text not null,"
        " b int not null, c timestamptz not null, d uuid not null, e boolean not null,"
        " f jsonb not null check (f ? 'never'), g text not null default 'x', h text not null);"
        " create function fill_h() returns trigger language plpgsql as"
        " $$ begin new.h := 'x'; return new; end $$;"
        " create trigger fill before insert on notes for each row execute function fill_h();"
        " grant select, insert on notes to authenticated",
        "drop table notes; drop function fill_h",
    ):
        assert bad(as_user(examine, person, queue={"note": kind})) == []
        assert directory.control.sql("select count(*) as n from notes") == [{"n": 0}]


# ---- Changes and deletions -----------------------------------------------------------------------

#: The kind `activity` with all that its user may correct.
CORRECTED: dict[str, Any] = {
    "table": "activities",
    "own": {},
    "change": {"function": "change_activities", "id": "change_id"},
    "delete": "deleted_at",
}
OWN_ROWS = (
    'alter policy "read own activities" on activities using (user_id = (select auth.uid()){}'
    " and org_id = any (array(select private.active_organizations())))"
)
CHANGES, DELETIONS = "changes of activity", "deletions of activity"
#: A change of a row does not move its time.
NO_TRIGGER = altered("table activities {} trigger touch", "disable", "enable")


#: How the schema is changed and changed back; what each step says.
CORRECTIONS: dict[str, tuple[tuple[str, str], dict[str, str]]] = {
    "grants of columns": (
        revoked("update (note, minutes) on activities"),
        {CHANGES: "no right to update minutes, note (table activities)"},
    ),
    "grant of the id of the last change": (
        revoked("update (change_id) on activities"),
        {CHANGES: "no right to update change_id (table activities)"},
    ),
    "grant of the mark": (
        revoked("update (deleted_at) on activities"),
        {DELETIONS: "no right to update deleted_at (table activities)"},
    ),
    "policy": (
        altered('policy "change own activities" on activities to {}', *ROLES),
        {CHANGES: "no policy lets the user change", DELETIONS: "no policy lets the user change"},
    ),
    "check of the policy": (
        (
            'alter policy "change own activities" on activities with check (false)',
            'alter policy "change own activities" on activities with check (user_id ='
            " (select auth.uid()) and org_id = any (array(select private.active_organizations())))",
        ),
        {CHANGES: "refuses an own row after", DELETIONS: "refuses an own row after"},
    ),
    "trigger": (NO_TRIGGER, {CHANGES: "a change does not move updated_at"}),
    "policy that hides deleted rows": (
        (OWN_ROWS.format(" and deleted_at is null"), OWN_ROWS.format("")),
        {DELETIONS: "a policy hides a deleted row"},
    ),
    "no function": (
        altered("function {} rename to {}", "change_activities", "change_them"),
        {
            "function change_activities (queue.activity.change)": "there is no such function",
            "function change_activities (queue.activity.change) for the user": "no such function",
        },
    ),
    "grant of the function": (
        revoked("execute on function change_activities"),
        {"function change_activities (queue.activity.change) for the user": "may not use it"},
    ),
    "columns": (
        (
            "alter table activities rename change_id to last_change;"
            " alter table activities rename deleted_at to gone_at",
            "alter table activities rename last_change to change_id;"
            " alter table activities rename gone_at to deleted_at",
        ),
        {"table activities (queue.activity)": "has no columns deleted_at, change_id"},
    ),
    "grant of reading": (
        (
            "revoke select on activities from authenticated;"
            " grant select (id, org_id, user_id) on activities to authenticated",
            "grant select on activities to authenticated",
        ),
        {"own rows of activity": "no right to select (table activities)"},
    ),
}


def with_a_row(directory: DirectoryFixtures) -> Person:
    """A peer mentor with one activity."""
    org = directory.organisation(contacts=1)
    person = directory.person(org, role="peer_mentor")
    directory.control.sql(
        "insert into activities (org_id, user_id, type, occurred_at, minutes)"
        " values (%s, %s, 'x', now(), 30)",
        org.id,
        person.id,
    )
    return person


def test_HST_4_a_project_whose_rows_can_be_corrected_is_good(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    person = with_a_row(directory)
    every = "select * from activities order by id"
    before = directory.control.sql(every)
    steps = by_name(as_user(examine, person, queue={"activity": CORRECTED}))
    assert bad(list(steps.values())) == []
    assert "moves updated_at" in steps[CHANGES].found
    assert "still sees them" in steps[DELETIONS].found
    assert steps["function change_activities (queue.activity.change)"].outcome == "ok"
    assert steps["function change_activities (queue.activity.change) for the user"].outcome == "ok"
    assert directory.control.sql(every) == before
    sent = {r["method"] for r in examine.sent if "/rest/v1/activities?" in r["url"]}
    assert sent == {"GET", "POST", "PATCH"}
    without = by_name(examine({"queue": {"activity": CORRECTED}}))
    assert not {CHANGES, DELETIONS, "own rows of activity"} & set(without)


@pytest.mark.parametrize("mistake", sampled(CORRECTIONS, 5))
def test_HST_4_a_project_whose_rows_cannot_be_corrected(
    examine: Examine, directory: DirectoryFixtures, mistake: str
) -> None:
    change, expected = CORRECTIONS[mistake]
    person = with_a_row(directory)
    with changed(directory, *change):
        before = directory.control.sql("select * from activities order by id")
        steps = {s.name: s for s in bad(as_user(examine, person, queue={"activity": CORRECTED}))}
        assert directory.control.sql("select * from activities order by id") == before
    # The summary reads these columns, too.
    found = {name: step for name, step in steps.items() if "summary" not in name}
    assert set(found) == set(expected)
    for name, text in expected.items():
        assert found[name].outcome == "fail"
        assert text in found[name].found
    assert bad(as_user(examine, person, queue={"activity": CORRECTED})) == []


def test_HST_4_a_deletion_alone_needs_the_trigger(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    kind = {"table": "activities", "own": {}, "delete": "deleted_at"}
    person = with_a_row(directory)
    with changed(directory, *NO_TRIGGER):
        step = only(as_user(examine, person, queue={"activity": kind}))
    assert (step.name, "does not move updated_at" in step.found) == (DELETIONS, True)


def test_HST_4_rows_that_are_deleted_need_the_privilege(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    """It shows without a row, and no row is deleted to see more."""
    person = with_a_row(directory)
    kind = {**CORRECTED, "delete": "row"}
    step = only(as_user(examine, person, queue={"activity": kind}))
    assert step.name == DELETIONS
    assert "no right to delete (table activities)" in step.found
    with changed(directory, *reversed(revoked("delete on activities"))):
        assert bad(as_user(examine, person, queue={"activity": kind})) == []
    assert directory.control.sql("select 1 from activities where user_id = %s", person.id) != []


def test_HST_4_own_rows_need_a_user_and_a_version_that_no_item_carries(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    kind = {"table": "plain", "columns": ["minutes"], "own": {}, "change": {}}
    made = "create table plain (id uuid primary key, minutes int)"
    with changed(directory, made, "drop table plain"):
        step = only(examine({"queue": {"visit": kind}}))
    assert (step.name, step.found) == (
        "table plain (queue.visit)",
        "has no columns org_id, user_id, updated_at",
    )
    assert "docs/own-table.md" in step.advice


def test_HST_4_without_an_own_row_the_policies_do_not_show(
    examine: Examine, directory: DirectoryFixtures
) -> None:
    person = directory.person(directory.organisation(contacts=1))
    steps = bad(as_user(examine, person, queue={"activity": CORRECTED}))
    assert [(step.name, step.outcome) for step in steps] == [(CHANGES, "warn"), (DELETIONS, "warn")]
    assert {step.advice for step in steps} == {"Register one in the app, and run the doctor again."}


@pytest.mark.parametrize("answer", [(400, {"code": "PGRST122", "message": "x"}), (200, [])])
def test_HST_4_a_data_service_that_undoes_nothing_is_sent_no_change_of_a_row(
    examine: Examine, directory: DirectoryFixtures, answer: tuple[int, Any]
) -> None:
    person = with_a_row(directory)
    directory.control.respond(
        "/rest/v1/activities", answer[0], body=json.dumps(answer[1]), method="PATCH", times=9
    )
    steps = bad(as_user(examine, person, queue={"activity": CORRECTED}))
    assert [(step.name, step.outcome) for step in steps] == [(CHANGES, "warn"), (DELETIONS, "warn")]
    assert all("nothing was tried" in step.found for step in steps)
    [row] = directory.control.sql("select id from activities where user_id = %s", person.id)
    patched = [str(r["url"]) for r in examine.sent if r["method"] == "PATCH"]
    assert len(patched) == 2
    assert not any(row["id"] in url for url in patched)


# ---- The command ---------------------------------------------------------------------------------


def run(*arguments: str, **names: str) -> tuple[int, str, str]:
    """Exit code and output of `python -m holdfast doctor`."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "doctor", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "bindings/python/src"), **names},
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout, done.stderr


def command(examine: Examine, folder: Path, *more: str, **names: str) -> tuple[int, str, str]:
    """The same with the configuration in a file of this folder."""
    file = folder / "config.json"
    file.write_text(json.dumps(examine.config))
    return run(str(file), *more, HOLDFAST_LIBRARY=str(examine.library.path), **names)


def test_HST_4_the_command_prints_a_line_for_each_step(
    examine: Examine, directory: DirectoryFixtures, tmp_path: Path
) -> None:
    code, printed, _ = command(examine, tmp_path)
    assert code == 0
    assert {line[:4] for line in printed.splitlines()} == {"ok  "}
    person = directory.person(directory.organisation(contacts=1))
    code, printed, _ = command(
        examine, tmp_path, "--email", person.email, "--json", HOLDFAST_PASSWORD=PASSWORD
    )
    steps = json.loads(printed)
    assert code == 0
    usable = {"outcome": "ok", "found": "1 usable", "advice": ""}
    assert {"name": "memberships (memberships)", **usable} in steps
    examine.config["backend"]["api_key"] = "sb_publishable_wrong"
    code, printed, _ = command(examine, tmp_path)
    assert code == 1
    [failed] = [line for line in printed.splitlines() if line.startswith("fail")]
    assert failed == "fail  api key: the project refuses it"
    assert printed.splitlines()[-1].startswith("      Copy the publishable")


def test_HST_4_the_command_says_which_file_it_cannot_read(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    for content in (None, "{", "[]"):
        if content is not None:
            file.write_text(content)
        code, printed, errors = run(str(file))
        assert (code, printed) == (2, "")
        assert str(file) in errors


def test_HST_4_the_command_says_how_to_give_a_password_without_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")
    code, printed, errors = run(str(file), "--email", "a@example.org")
    assert (code, printed) == (2, "")
    assert errors.splitlines() == ["no terminal can ask for a password: set HOLDFAST_PASSWORD"]


def test_HST_4_make_doctor_runs_it(examine: Examine, tmp_path: Path) -> None:
    made = subprocess.run(
        ["make", "-n", "doctor", "CONFIG=a b.json", "EMAIL=kari@example.org"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "-m holdfast doctor 'a b.json' --email 'kari@example.org'" in made


def test_HST_4_the_methods_of_the_doctor_are_the_default_ones(phones: MakePhone) -> None:
    phone = phones()
    del phone.config["auth_methods"]
    shown = [method["id"] for method in phone.start().screen["methods"]]
    backend = {"url": "https://x.supabase.co", "api_key": "k"}
    assert [method for _, _, method in Names.of({"backend": backend}).methods] == shown


def test_HST_4_a_date_that_cannot_be_read_is_no_clock(examine: Examine) -> None:
    http = HttpTransport()

    def undated(request: HttpRequest) -> Answer:
        answer = http(request)
        headers = {**answer["headers"], "date": "yesterday"}
        return {**answer, "headers": headers}

    assert only(examine(transport=undated), "warn").found == "the project sends no Date"
    project = Project(Names.of(examine.config), undated, 1)
    assert project.auth("health").ahead_s is None
