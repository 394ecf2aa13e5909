"""The outcomes of a request: every fault of a mobile network, a gateway and the two services.

No answer here blames an item, and none proves that a session has ended.
"""

from __future__ import annotations

import email.utils
import json
import random
import re
from dataclasses import dataclass, field
from typing import Any

Answer = dict[str, Any]
Json = dict[str, Any]

ERRORS = ("offline", "timeout", "tls", "dns", "refused", "cancelled")
PORTAL = "<html><title>Velkommen til gratis Wi-Fi</title></html>"
HTML = {"content-type": "text/html; charset=utf-8"}
JSON = {"content-type": "application/json; charset=utf-8"}


def _rest(status: int, code: str, message: str = "", **headers: str) -> Answer:
    body = {"code": code, "details": None, "hint": None, "message": message}
    return {"status": status, "headers": {**JSON, **headers}, "body": json.dumps(body)}


def _terse(status: int, code: str) -> Answer:
    """The shape of `client-error-verbosity=minimal`."""
    return {"status": status, "headers": JSON, "body": json.dumps({"code": code, "message": "m"})}


def _auth(status: int, code: str) -> Answer:
    return _terse(status, code)


def _old_auth(status: int, code: str) -> Answer:
    """The shape before API version 2024-01-01 (a gateway may strip the version header)."""
    body = {"code": status, "error_code": code, "msg": "m", "error_id": "e"}
    return {"status": status, "headers": JSON, "body": json.dumps(body)}


def _page(status: int, **headers: str) -> Answer:
    return {"status": status, "headers": {**HTML, **headers}, "body": PORTAL}


#: Answers of portals and gateways.
GATEWAY = (
    _page(200), _page(302, location="http://portal.example/"), _page(511), _page(403), _page(502),
    _page(503), _page(504), _page(520), _page(525), _page(408), _page(429), _page(404), _page(413),
    _page(425), _page(499), _page(500),
    {"status": 200, "headers": {}, "body": ""}, {"status": 204, "headers": {}, "body": ""},
    {"status": 200, "headers": JSON, "body": None},
    {"status": 429, "headers": {"retry-after": "7"}, "body": ""},
    {"status": 503, "headers": {"retry-after": "40"}, "body": "busy"},
    {"status": 503, "headers": {"retry-after": "soon"}, "body": "busy"},
    {"status": 401, "headers": JSON, "body": '{"message":"Invalid authentication credentials"}'},
    {"status": 500, "headers": JSON, "body": '{"message":"An unexpected error occurred"}'},
)  # fmt: skip
#: Portals and firewalls that answer in JSON of their own.
PORTALS = (
    _terse(403, "access_denied"), _terse(400, "blocked_by_policy"), _terse(401, "unauthorized"),
    {"status": 403, "headers": JSON, "body": '{"error":"forbidden","error_description":"proxy"}'},
    {"status": 400, "headers": JSON, "body": '{"error":"invalid_request"}'},
    {"status": 200, "headers": JSON, "body": '{"status":"login_required"}'},
    {"status": 200, "headers": JSON, "body": "[[]]"},
)  # fmt: skip
#: What a firewall refuses, and what it answers. It lets the rest through.
WORDS = "<script>"
FIREWALLS = (
    _page(403), _page(406), _terse(403, "access_denied"), _terse(400, "blocked_by_policy"),
    {"status": 406, "headers": {}, "body": ""},
)  # fmt: skip
#: Answers of an endpoint that fails for long: its policy, its view or its plan is broken.
OUTAGES = (
    _rest(500, "42P17", "infinite recursion detected in policy"), _rest(500, "57014"),
    _rest(404, "42P01"), _page(500), _page(404),
)  # fmt: skip
#: Answers of the data service that say nothing about the items.
DATA = (
    _rest(400, ""), _rest(500, "40P01", "deadlock detected"), _rest(500, "57014", "canceling"),
    _rest(500, "40001"), _rest(503, "53300"), _rest(503, "57P01"), _rest(500, "XX000"),
    _rest(500, "55P03"), _rest(503, "PGRST000"), _rest(503, "PGRST001"), _rest(503, "PGRST002"),
    _rest(504, "PGRST003"), _rest(404, "PGRST205"), _rest(404, "PGRST202"),
    _rest(401, "PGRST303", "JWT expired"), _rest(401, "PGRST301"), _rest(401, "42501"),
    _rest(500, "42P17"), _rest(418, "X1"), _rest(429, "PT429"), _rest(503, "PT503"),
    _rest(503, "08006"), _rest(500, "53400"), _rest(500, "54001"), _rest(500, "57P05"),
    _rest(500, "58030"), _rest(500, "P0002"), _rest(405, "25006"), _rest(406, "PGRST116"),
    _rest(401, "22023", 'role "authenticated" does not exist'), _rest(401, "PGRST302"),
    _rest(401, "PGRST303", "JWT issued at future"), _rest(404, "42P01"), _rest(404, "42883"),
    _rest(400, "42703"), _rest(400, "PGRST204"), _rest(400, "PGRST100"), _rest(500, "PGRST300"),
    _rest(503, "PGRST002", **{"retry-after": "1"}), _rest(429, "LIMIT", **{"retry-after": "9"}),
    _terse(500, "40001"), _terse(503, "PGRST001"), _terse(504, "PGRST003"),
)  # fmt: skip
#: What a schema answers to every insert that refuses all: code and message. No user can mend it.
REFUSALS = (
    ("21000", "UPDATE requires a WHERE clause"),
    ("22P02", 'invalid input syntax for type bigint: "$id"'),
    ("23000", "refused"),
    ("23502", 'null value in column "region" of relation "t" violates not-null constraint'),
    ("23503", 'violates foreign key constraint "activities_user_id_fkey"'),
    ("23505", 'duplicate key value violates unique constraint "activities_user_id_key"'),
    ("23514", 'no partition of relation "t" found for row'),
    ("23P01", 'conflicting key value violates exclusion constraint "activities_org_id_excl"'),
    ("42501", 'new row violates row-level security policy for table "t"'),
    ("42P17", "infinite recursion detected in policy"),
    ("44000", "new row violates check option"),
    ("P0002", "query returned no rows"),
    ("XX000", "internal error"),
)
#: A refused token: the request was not processed.
REFUSED_TOKEN = _rest(401, "PGRST303", "JWT expired")
#: Answers of the auth service that end no session.
AUTH = (
    _auth(409, "conflict"), _auth(422, "hook_timeout"), _auth(422, "hook_timeout_after_retry"),
    _auth(429, "over_request_rate_limit"), _auth(500, "unexpected_failure"),
    _auth(504, "request_timeout"), _auth(500, "session_not_found"),
    _old_auth(500, "unexpected_failure"), _old_auth(429, "over_request_rate_limit"),
    _old_auth(422, "hook_timeout"), _old_auth(409, "conflict"),
    _auth(503, "hook_payload_over_size"),
    {"status": 400, "headers": JSON, "body": "{}"},
)  # fmt: skip
#: Undocumented answers of the auth service.
STRANGE = (
    _auth(400, "something_new"),
    {"status": 400, "headers": JSON, "body": '{"error":"invalid_client"}'},
)


#: Statuses that refuse a request before it is processed. The simulation never sends them after the
#: server acted: the library takes them as proof that nothing was stored (and charges no attempt,
#: QUE-5).
REFUSED = frozenset({401, 413})


def refused(request: dict[str, Any], code: str, message: str) -> Answer:
    """Refuse an upload with this code: as a whole, or each row of a function's."""
    sent = json.loads(request["body"])
    rows = sent["items"] if isinstance(sent, dict) else sent
    texts = [message.replace("$id", row["id"]) for row in rows]
    if isinstance(sent, list):
        return _rest(403 if code == "42501" else 400, code, texts[0])
    results = [
        {
            "id": row["id"], "status": "rejected", "sqlstate": code, "message": text,
            "column": "region" if code == "23502" else None,
        }
        for row, text in zip(rows, texts, strict=True)
    ]  # fmt: skip
    return {"status": 200, "headers": JSON, "body": json.dumps(results)}


def is_refused_on_the_way(answer: Answer) -> bool:
    """Whether something else than the service refused one small item for what is in it.

    Independent of the library's own rules.
    """
    status = answer.get("status") or 0
    if not 400 <= status < 500 or status in {401, 407, 408, 416, 425, 429}:
        return False
    return not is_of_the_data_service(answer)


def is_of_the_data_service(answer: Answer) -> bool:
    """Whether the data service gave this answer, and not something on the way to it."""
    try:
        body = json.loads(answer.get("body") or "")
    except ValueError:
        return False
    if (answer.get("status") or 0) < 400:
        return isinstance(body, list) and all(isinstance(row, dict) for row in body)
    code = body.get("code") if isinstance(body, dict) else None
    return code == "" or bool(re.fullmatch("PGRST[0-9]{3}|[0-9A-Z]{5}", str(code)))


DISTORTIONS = ("cut", "fewer rows", "not text", "empty", "old")


@dataclass(frozen=True)
class Fate:
    """The outcome of one request."""

    #: Milliseconds until the request reaches the server; None: never.
    there: int | None
    #: Milliseconds until the answer reaches the device; None: never.
    back: int | None
    #: Replaces the server's answer, whether or not the server acted.
    instead: Answer | None = None
    #: One of `DISTORTIONS` for the server's answer.
    distortion: str | None = None
    #: Deliver the answer a second time, this many milliseconds later.
    again: int | None = None


def fate(chance: random.Random, purpose: str, roughness: float, now_s: float, version: int) -> Fate:
    """Draw an outcome. `roughness` from 0 to 1 is the probability of a fault."""
    there, back = chance.randrange(1, 400), chance.randrange(1, 400)
    again = chance.randrange(1, 5000) if chance.random() < roughness / 4 else None
    if chance.random() >= roughness:
        return Fate(there, back, again=again)
    kind = chance.randrange(12)
    if kind == 0:
        return Fate(None, back, {"error": chance.choice(ERRORS)})
    if kind == 1:
        # The answer is lost after the server committed.
        return Fate(there, back, {"error": chance.choice(ERRORS)})
    if kind == 2:
        return Fate(there if chance.random() < 0.5 else None, None)
    if kind == 3:
        return Fate(there, back + chance.choice((4000, 30_000, 90_000)), again=again)
    if kind == 4:
        return Fate(there, back, distortion=chance.choice(DISTORTIONS))
    acted = there if chance.random() < 0.3 else None
    answer = _trouble(chance, purpose, now_s, version)
    if answer["status"] in REFUSED:
        acted = None
    return Fate(acted, back, answer, again=again)


def _trouble(chance: random.Random, purpose: str, now_s: float, version: int) -> Answer:
    if version >= 2 and (version >= 3 or purpose != "upload") and chance.random() < 0.1:
        return dict(chance.choice(PORTALS))
    own = AUTH if purpose in {"refresh", "validate", "sign_in", "revoke"} else DATA
    answer = dict(chance.choice(GATEWAY if chance.random() < 0.5 else own))
    if purpose in {"refresh", "validate"} and chance.random() < 0.05:
        answer = dict(chance.choice(STRANGE))
    if answer["status"] in {429, 503} and chance.random() < 0.3:
        ahead = email.utils.formatdate(now_s + chance.randrange(1, 120), usegmt=True)
        answer["headers"] = {**answer["headers"], "Retry-After": ahead}
    return answer


#: What may become of a list of memberships or contacts: the number of its rows is lost, or a filter
#: so that pages repeat; a row is added, or a value changed, that nobody can use.
LISTS = ("no count", "repeated", "another row", "another value")
#: A row that cannot be used, and a value.
_UNUSABLE: tuple[Any, ...] = (None, 7, {}, {"id": 7, "org_id": "oslo"}, [[]])
_VALUE = "12345678901234567000"


def changed_list(answer: Answer, request: Json, how: str | None) -> Answer:
    """Return the answer with its list changed; other answers unchanged."""
    is_list = request["purpose"] in ("guard", "pull") and answer["status"] in (200, 206)
    if how is None or not is_list:
        return answer
    headers = {name: text for name, text in answer["headers"].items() if name != "content-range"}
    rows = json.loads(answer["body"])
    if how == "repeated" and not rows and request["purpose"] == "guard":
        # As if the filter after which a page begins were ignored.
        rows = [{"org_id": "00000000-0000-4000-8000-000000000000"}]
    elif how == "another row":
        rows.append(_UNUSABLE[len(request["url"]) % len(_UNUSABLE)])
    elif how == "another value" and rows:
        body = json.dumps([{**row, "more": "@"} for row in rows])
        return {**answer, "headers": headers, "body": body.replace('"@"', _VALUE, 1)}
    return {**answer, "headers": headers, "body": json.dumps(rows)}


def distorted(answer: Answer, distortion: str | None) -> Answer:
    """Return the server's answer as it arrives."""
    body = answer.get("body")
    if distortion is None or not isinstance(body, str):
        return answer
    if distortion == "cut":
        return {**answer, "body": body[: len(body) // 2]}
    if distortion == "not text":
        return {**answer, "body": None}
    if distortion == "empty":
        return {**answer, "body": ""}
    try:
        rows = json.loads(body)
    except ValueError:
        return answer
    if distortion == "old":
        return _as_of_old(answer, rows)
    # A shortened page of a read would look like the last page: only its size tells.
    if not isinstance(rows, list) or answer["status"] != 201:
        return answer
    return {**answer, "body": json.dumps(rows[: len(rows) // 2])}


def _as_of_old(answer: Answer, value: Any) -> Answer:  # noqa: ANN401 - JSON
    """Return the answer in the shape of an old auth service: no `expires_at`, OAuth errors."""
    if not isinstance(value, dict):
        return answer
    if "access_token" in value:
        value = {name: inner for name, inner in value.items() if name != "expires_at"}
        value["expires_in"] = float(value["expires_in"])
    elif value.get("code") in {"refresh_token_not_found", "refresh_token_already_used"}:
        value = {"error": "invalid_grant", "error_description": value["message"]}
    return {**answer, "body": json.dumps(value)}


@dataclass
class InFlightRequest:
    """A request in flight."""

    number: int
    request: dict[str, Any]
    #: When the library handed it out, in true time.
    since_ms: int
    #: How many files of the device had been set aside by then.
    files: int = 0
    fate: Fate | None = None
    reaches_ms: int | None = None
    returns_ms: int | None = None
    answer: Answer | None = None
    reached: bool = False
    answered: int = field(default=0)
