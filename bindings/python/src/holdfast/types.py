"""What goes into the library and what comes out of it.

Made by tools/generate_types.py from the schema: do not edit."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

__all__ = [
    "AsOf",
    "AuthMethod",
    "AuthMethodConfig",
    "Backend",
    "BackendMemberships",
    "BackendSummary",
    "Banner",
    "BannerCode",
    "BuiltInKeyStore",
    "ClockSetRequest",
    "Code",
    "CompleteReply",
    "CompleteRequest",
    "Config",
    "Contact",
    "ContactEvent",
    "ContactGetReply",
    "ContactGetRequest",
    "ContactSearchReply",
    "ContactSearchRequest",
    "ContactsMapping",
    "ContactsStatus",
    "Count",
    "Counts",
    "Dataset",
    "Decision",
    "DecisionEvent",
    "DecisionReason",
    "Empty",
    "Error",
    "ErrorCode",
    "ErrorReply",
    "Event",
    "EventType",
    "ExplainCode",
    "Explanation",
    "ExportedItem",
    "Figures",
    "Flow",
    "Headers",
    "HttpAnswer",
    "HttpFailure",
    "HttpRequest",
    "Instant",
    "Integer",
    "Item",
    "ItemParkedEvent",
    "ItemReason",
    "ItemState",
    "Membership",
    "MembershipStatus",
    "Message",
    "NeedsIdToken",
    "NeedsPassword",
    "NetworkSetRequest",
    "OpenInBrowser",
    "OpenReply",
    "OrgAccessChangedEvent",
    "OrgListReply",
    "OrgSelectRequest",
    "OrgSummary",
    "Outcome",
    "Payload",
    "Policy",
    "PollReply",
    "PollRequest",
    "PullCompletedEvent",
    "PullProblem",
    "Purpose",
    "QueueAddReply",
    "QueueAddRequest",
    "QueueCancelReply",
    "QueueCancelRequest",
    "QueueEditReply",
    "QueueEditRequest",
    "QueueExplainReply",
    "QueueExplainRequest",
    "QueueExportReply",
    "QueueExportRequest",
    "QueueGetReply",
    "QueueGetRequest",
    "QueueKind",
    "QueueListReply",
    "QueueListRequest",
    "QueueRetryReply",
    "QueueRetryRequest",
    "RoleRoutes",
    "Route",
    "RouteAllowed",
    "RouteCheckReply",
    "RouteCheckRequest",
    "Screen",
    "SessionEndedEvent",
    "SessionLogoutReply",
    "SessionLogoutRequest",
    "SessionStartRequest",
    "SessionStatusReply",
    "SessionUnlockRequest",
    "SignInBeginReply",
    "SignInBeginRequest",
    "SignInCallback",
    "SignInCompleteRequest",
    "SignInIdToken",
    "SignInPassword",
    "StorageRecoveredEvent",
    "Summary",
    "SummaryGetReply",
    "SyncCompletedEvent",
    "SyncNowReply",
    "SyncProgressEvent",
    "SyncStatusReply",
    "Tone",
    "TransportError",
    "Uuid",
]

Integer: TypeAlias = int
"""An integer that every JSON reader represents exactly."""

Count: TypeAlias = int

Instant: TypeAlias = int
"""Milliseconds since 1970 (UTC)."""

Uuid: TypeAlias = str

Route: TypeAlias = str

Code: TypeAlias = str
"""A stable code for programs."""


class Message(TypedDict):
    """A code for programs, and a sentence for users in the configured language."""

    code: Code
    text: str


ErrorCode: TypeAlias = Literal[
    "request.not_json",
    "request.not_an_object",
    "request.too_deep",
    "request.duplicate_key",
    "request.unknown_field",
    "request.missing_field",
    "request.wrong_type",
    "request.invalid_value",
    "session.none",
    "session.locked",
    "session.invalid",
    "session.confirm_unsent",
    "sign_in.unknown_method",
    "sign_in.foreign_callback",
    "sign_in.state_mismatch",
    "sign_in.expired",
    "sign_in.refused",
    "org.none",
    "org.not_a_member",
    "org.revoked",
    "org.disabled",
    "org.unknown_role",
    "queue.unknown_kind",
    "queue.invalid_id",
    "queue.invalid_payload",
    "queue.unknown_column",
    "queue.unknown_dependency",
    "queue.item_too_large",
    "queue.id_taken",
    "queue.not_found",
    "queue.in_flight",
    "contact.not_found",
    "clock.not_manual",
    "keystore.locked",
    "keystore.failed",
    "keystore.key_lost",
    "storage.failed",
    "storage.read_only",
    "storage.newer_version",
    "storage.damaged",
    "storage.full",
    "storage.busy",
    "handle.reentered",
    "handle.closed",
    "handle.forked",
    "handle.too_many",
    "memory.exhausted",
    "internal.defect",
]
"""`noun.reason`; stable."""


class Error(TypedDict):
    """Messages are for developers and never contain user data. `field` is a JSON Pointer into the request."""

    code: ErrorCode
    message: str
    field: str | None
    retryable: bool
    detail: dict[str, Any]


class ErrorReply(TypedDict):
    error: Error


class Empty(TypedDict):
    pass


class QueueKind(TypedDict):
    table: str
    columns: NotRequired[list[str]]
    upload: NotRequired[Literal["table", "rpc"]]
    function: NotRequired[str]


class BackendMemberships(TypedDict):
    """The table of memberships."""

    table: str


class ContactsMapping(TypedDict):
    table: NotRequired[str]
    columns: NotRequired[list[str]]
    withheld: NotRequired[list[str]]


class BackendSummary(TypedDict):
    """The function that returns the figures, and the kind of queued items that are added to them."""

    function: NotRequired[str]
    kind: NotRequired[str]


class Backend(TypedDict):
    url: str
    api_key: str
    queue: NotRequired[dict[str, QueueKind]]
    memberships: NotRequired[BackendMemberships]
    contacts: NotRequired[ContactsMapping]
    summary: NotRequired[BackendSummary]


Flow: TypeAlias = Literal["pkce", "id_token", "password"]


class AuthMethodConfig(TypedDict):
    id: str
    provider: NotRequired[str]
    flow: Flow
    label: NotRequired[str]


class RoleRoutes(TypedDict):
    home: Route
    screens: NotRequired[list[str]]


class Policy(TypedDict):
    """Limits that an organisation sets."""

    session_window_s: NotRequired[Count]
    background_timeout_s: NotRequired[Count]
    offline_limit_s: NotRequired[Count]
    guard_timeout_ms: NotRequired[Count]
    refresh_margin_s: NotRequired[Count]
    biometric: NotRequired[Literal["required", "preferred", "off"]]
    pull_interval_s: NotRequired[Count]
    reconcile_interval_s: NotRequired[Count]
    erase_on_switch: NotRequired[bool]


class BuiltInKeyStore(TypedDict):
    kind: Literal["file"]


class Config(TypedDict):
    """The configuration of holdfast_open(). The defaults fit this project's example backend."""

    data_dir: str
    backend: Backend
    auth_methods: NotRequired[list[AuthMethodConfig]]
    redirect_url: NotRequired[str]
    routes: NotRequired[dict[str, RoleRoutes]]
    policy: NotRequired[Policy]
    locale: NotRequired[Literal["nb", "nn", "en"]]
    keystore: NotRequired[BuiltInKeyStore]
    clock: NotRequired[Literal["system", "manual"]]


Screen: TypeAlias = Literal["home", "unlock", "sign_in", "select_org", "wait"]

DecisionReason: TypeAlias = Literal[
    "active",
    "session_missing",
    "session_corrupt",
    "session_expired",
    "session_window",
    "background_timeout",
    "clock_moved_back",
    "session_ended",
    "signed_out",
    "key_lost",
    "keystore_locked",
    "keystore_failed",
    "biometric_failed",
    "biometric_cancelled",
    "biometric_lockout",
    "biometric_lockout_permanent",
    "biometric_not_enrolled",
    "biometric_unavailable",
    "biometric_withheld",
    "biometric_off",
    "user_locked",
    "unlocked",
    "first_choice",
    "chosen",
    "switched",
    "no_membership",
    "membership_revoked",
    "org_disabled",
    "role_unknown",
    "guard_pending",
    "signing_in",
    "sign_in_failed",
    "sign_in_expired",
    "sign_in_cancelled",
    "route_forbidden",
    "server_unreachable",
    "denied",
]

BannerCode: TypeAlias = Literal[
    "offline",
    "stale_data",
    "nothing_cached_yet",
    "encrypted_requires_connectivity",
    "queued_not_sent",
]

Tone: TypeAlias = Literal["info", "warning"]


class Banner(TypedDict):
    code: BannerCode
    tone: Tone
    text: str
    as_of_ms: Instant | None


class OrgSummary(TypedDict):
    """The organisation whose home is shown."""

    id: Uuid
    name: str
    role: str


MembershipStatus: TypeAlias = Literal["active", "revoked", "disabled"]


class Membership(TypedDict):
    org_id: Uuid
    name: str
    role: str
    status: MembershipStatus
    current: bool


class AuthMethod(TypedDict):
    id: str
    label: str
    flow: Flow


class Decision(TypedDict):
    """The one shape from which a host draws its screens."""

    screen: Screen
    reason: DecisionReason
    route: Route | None
    org: OrgSummary | None
    message: Message | None
    methods: list[AuthMethod]
    orgs: list[Membership]
    banners: list[Banner]
    deadline_ms: Instant | None


ItemState: TypeAlias = Literal["pending", "sending", "waiting", "parked"]


class Counts(TypedDict):
    pending: Count
    sending: Count
    waiting: Count
    parked: Count


Payload: TypeAlias = dict[str, Any]
"""Column names and values, as configured for the kind."""


class ItemReason(TypedDict):
    """Why an item waits or is parked. `sqlstate` and `message` come from the server, if it sent them."""

    code: Code
    text: str
    sqlstate: str | None
    message: str | None


class Item(TypedDict):
    id: Uuid
    seq: Count
    kind: str
    state: ItemState
    payload: Payload
    org_id: Uuid
    depends_on: list[Uuid]
    attempts: Count
    created_ms: Instant
    occurred_at_ms: Instant | None
    reason: ItemReason | None
    field: str | None
    not_before_ms: Instant | None


class ExportedItem(TypedDict):
    """An item in the form that queue_add accepts."""

    kind: str
    payload: Payload
    id: Uuid
    depends_on: NotRequired[list[Uuid]]
    occurred_at_ms: NotRequired[Instant]
    org_id: Uuid
    state: ItemState


ExplainCode: TypeAlias = Literal[
    "nothing_queued",
    "sending",
    "offline",
    "signed_out",
    "locked",
    "token",
    "back_off",
    "organisation",
    "dependency",
    "parked",
    "other_user",
    "schema_not_ready",
    "ready",
]


class Explanation(TypedDict):
    code: ExplainCode
    text: str
    count: Count
    until_ms: Instant | None


Contact: TypeAlias = dict[str, Any]
"""`id`, `name` and the other configured columns."""

Summary: TypeAlias = dict[str, Any]
"""The result of the server's summary function."""

Purpose: TypeAlias = Literal[
    "refresh", "validate", "guard", "upload", "pull", "summary", "revoke", "live", "sign_in"
]

Headers: TypeAlias = dict[str, str]


class HttpRequest(TypedDict):
    """A request to send once over HTTP; pass the response to holdfast_complete(). It carries credentials: do not log it."""

    id: Count
    purpose: Purpose
    method: Literal["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"]
    url: str
    headers: Headers
    body: str | None
    timeout_ms: Count


TransportError: TypeAlias = Literal["offline", "timeout", "tls", "dns", "refused", "cancelled"]


class DecisionEvent(TypedDict):
    """The host must show another screen. Returned once; a newer decision replaces it."""

    seq: Count
    type: Literal["decision"]
    decision: Decision


class SyncProgressEvent(TypedDict):
    """The progress of sending, at most every 200 ms. Returned once."""

    seq: Count
    type: Literal["sync_progress"]
    sent: Count
    parked: Count
    counts: Counts


class SyncCompletedEvent(TypedDict):
    """A sync run has ended: the library can send no further item of this user now. Counts the items that were sent, were parked, and still wait. Returned until acknowledged."""

    seq: Count
    type: Literal["sync_completed"]
    sent: Count
    parked: Count
    waiting: Count
    duration_ms: Count
    message: Message


class ItemParkedEvent(TypedDict):
    """The library parked an item; the user must edit, retry or cancel it. `field` is the column, if the server named one. Returned until acknowledged."""

    seq: Count
    type: Literal["item_parked"]
    id: Uuid
    reason: Message
    field: str | None


class SessionEndedEvent(TypedDict):
    """The session has ended. `reason` is the server's proof, refresh_token_not_found, refresh_token_already_used, session_not_found, session_expired, user_banned, user_not_found or invalid_grant, or session_corrupt for an unreadable record. Returned until acknowledged."""

    seq: Count
    type: Literal["session_ended"]
    reason: Code


class OrgAccessChangedEvent(TypedDict):
    """The user lost access to the chosen organisation, or has a role there that `routes` does not have. Returned until acknowledged."""

    seq: Count
    type: Literal["org_access_changed"]
    reason: Literal["membership_revoked", "org_disabled", "role_unknown"]


class StorageRecoveredEvent(TypedDict):
    """The library set a damaged file aside as `file`. `salvaged` counts the items that it carried over, `lost` those that it could not read; `session` says whether it carried the session over. Returned until acknowledged."""

    seq: Count
    type: Literal["storage_recovered"]
    file: str
    salvaged: Count
    lost: Count
    session: bool
    message: Message


class ContactEvent(TypedDict):
    """The result of contact_get with `live`. `contact` is null if the contact is gone or could not be fetched; `message` says which. Returned once."""

    seq: Count
    type: Literal["contact"]
    request: Count
    id: Uuid
    contact: Contact | None
    message: Message | None


Dataset: TypeAlias = Literal["contacts", "summary"]

PullProblem: TypeAlias = Literal["loop"]


class PullCompletedEvent(TypedDict):
    """A pull of contacts or figures has ended. Counts the rows that were stored, removed and skipped; `problem` says why the pull was given up. Returned once."""

    seq: Count
    type: Literal["pull_completed"]
    dataset: Dataset
    rows: Count
    removed: Count
    skipped: Count
    problem: PullProblem | None


EventType: TypeAlias = Literal[
    "decision",
    "sync_progress",
    "sync_completed",
    "item_parked",
    "session_ended",
    "org_access_changed",
    "storage_recovered",
    "contact",
    "pull_completed",
]

Event: TypeAlias = (
    DecisionEvent
    | SyncProgressEvent
    | SyncCompletedEvent
    | ItemParkedEvent
    | SessionEndedEvent
    | OrgAccessChangedEvent
    | StorageRecoveredEvent
    | ContactEvent
    | PullCompletedEvent
)


class OpenReply(TypedDict):
    version: str
    recovered: bool


class ClockSetRequest(TypedDict):
    now_ms: Instant
    monotonic_ms: NotRequired[Integer]
    boot_id: NotRequired[str]


class SessionStartRequest(TypedDict):
    session: dict[str, Any]


class SignInBeginRequest(TypedDict):
    method: str


class OpenInBrowser(TypedDict):
    url: str
    state: str


class NeedsIdToken(TypedDict):
    needs: list[Literal["id_token", "nonce"]]
    nonce: str


class NeedsPassword(TypedDict):
    needs: list[Literal["email", "password"]]


SignInBeginReply: TypeAlias = OpenInBrowser | NeedsIdToken | NeedsPassword


class SignInCallback(TypedDict):
    callback_url: str


class SignInIdToken(TypedDict):
    id_token: str
    nonce: str
    method: NotRequired[str]


class SignInPassword(TypedDict):
    email: str
    password: str
    method: NotRequired[str]


SignInCompleteRequest: TypeAlias = SignInCallback | SignInIdToken | SignInPassword

Outcome: TypeAlias = Literal[
    "success",
    "failed",
    "cancelled",
    "lockout",
    "lockout_permanent",
    "not_enrolled",
    "invalidated",
    "unavailable",
]


class SessionUnlockRequest(TypedDict):
    outcome: Outcome


class SessionStatusReply(TypedDict):
    state: Literal["signed_out", "locked", "active"]
    stale: bool
    user_id: Uuid | None
    expires_ms: Instant | None
    validated_ms: Instant | None
    validated_age_ms: Integer | None
    owed: list[Literal["refresh", "validation", "guard", "revoke"]]
    clock_offset_ms: Integer
    generation: Count


class SessionLogoutRequest(TypedDict):
    scope: NotRequired[Literal["local", "global"]]
    discard: NotRequired[bool]
    confirm_unsent: NotRequired[Count]


class SessionLogoutReply(TypedDict):
    unsent: Count
    decision: Decision


class OrgListReply(TypedDict):
    orgs: list[Membership]
    freshness: Literal["confirmed", "cached", "none"]
    as_of_ms: Instant | None


class OrgSelectRequest(TypedDict):
    org_id: str


class RouteCheckRequest(TypedDict):
    route: str


class RouteAllowed(TypedDict):
    allow: Literal[True]


RouteCheckReply: TypeAlias = RouteAllowed | Decision


class QueueAddRequest(TypedDict):
    kind: str
    payload: Payload
    id: NotRequired[str]
    depends_on: NotRequired[list[str]]
    occurred_at_ms: NotRequired[Instant]
    org_id: NotRequired[str]
    state: NotRequired[ItemState]


class QueueAddReply(TypedDict):
    id: Uuid
    state: ItemState


class QueueListRequest(TypedDict):
    state: NotRequired[ItemState]
    after: NotRequired[Count]
    limit: NotRequired[int]


class QueueListReply(TypedDict):
    items: list[Item]
    next: Count | None
    counts: Counts


class QueueGetRequest(TypedDict):
    id: str


class QueueGetReply(TypedDict):
    item: Item


class QueueEditRequest(TypedDict):
    id: str
    payload: Payload


class QueueEditReply(TypedDict):
    id: Uuid
    state: ItemState


class QueueCancelRequest(TypedDict):
    id: str


class QueueCancelReply(TypedDict):
    id: Uuid
    released: Count


class QueueRetryRequest(TypedDict):
    id: NotRequired[str]


class QueueRetryReply(TypedDict):
    retried: Count


class QueueExportRequest(TypedDict):
    state: NotRequired[ItemState]


class QueueExportReply(TypedDict):
    items: list[ExportedItem]


class QueueExplainRequest(TypedDict):
    id: NotRequired[str]


class QueueExplainReply(TypedDict):
    reasons: list[Explanation]
    counts: Counts


class ContactSearchRequest(TypedDict):
    query: str
    limit: NotRequired[int]


class ContactSearchReply(TypedDict):
    contacts: list[Contact]
    total: Count
    as_of_ms: Instant | None
    banners: list[Banner]


class ContactGetRequest(TypedDict):
    id: str
    live: NotRequired[bool]


class ContactGetReply(TypedDict):
    contact: Contact
    withheld: list[str]
    message: Message | None
    as_of_ms: Instant | None
    request: Count | None
    banners: list[Banner]


class Figures(TypedDict):
    activities: Count
    minutes: Count


class SummaryGetReply(TypedDict):
    summary: Summary | None
    as_of_ms: Instant | None
    sent: Figures
    queued: Figures
    banners: list[Banner]


class NetworkSetRequest(TypedDict):
    online: bool


class SyncNowReply(TypedDict):
    started: bool
    reason: Code | None


class AsOf(TypedDict):
    as_of_ms: Instant | None


class ContactsStatus(TypedDict):
    as_of_ms: Instant | None
    reconciled_ms: Instant | None
    skipped: Count
    problem: PullProblem | None


class SyncStatusReply(TypedDict):
    running: bool
    counts: Counts
    last_completed_ms: Instant | None
    not_before_ms: Instant | None
    contacts: ContactsStatus
    summary: AsOf


class PollRequest(TypedDict):
    ack: NotRequired[Count]


class PollReply(TypedDict):
    requests: list[HttpRequest]
    events: list[Event]
    wake_in_ms: Count | None


class HttpAnswer(TypedDict):
    id: Count
    status: int
    headers: NotRequired[Headers]
    body: NotRequired[str | None]


class HttpFailure(TypedDict):
    id: Count
    error: TransportError


CompleteRequest: TypeAlias = HttpAnswer | HttpFailure


class CompleteReply(TypedDict):
    accepted: bool
