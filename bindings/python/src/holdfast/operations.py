"""One method for every function that takes and gives JSON.

Made by tools/generate_types.py from the schema: do not edit."""

from collections.abc import Mapping
from typing import Any, cast

from .types import (
    ClockSetRequest,
    CompleteReply,
    CompleteRequest,
    ContactGetReply,
    ContactGetRequest,
    ContactSearchReply,
    ContactSearchRequest,
    Decision,
    Empty,
    NetworkSetRequest,
    OrgListReply,
    OrgSelectRequest,
    PollReply,
    PollRequest,
    QueueAddReply,
    QueueAddRequest,
    QueueCancelReply,
    QueueCancelRequest,
    QueueEditReply,
    QueueEditRequest,
    QueueExplainReply,
    QueueExplainRequest,
    QueueExportReply,
    QueueExportRequest,
    QueueGetReply,
    QueueGetRequest,
    QueueListReply,
    QueueListRequest,
    QueueRetryReply,
    QueueRetryRequest,
    RouteCheckReply,
    RouteCheckRequest,
    SessionLogoutReply,
    SessionLogoutRequest,
    SessionStartRequest,
    SessionStatusReply,
    SessionUnlockRequest,
    SignInBeginReply,
    SignInBeginRequest,
    SignInCompleteRequest,
    SummaryGetReply,
    SyncNowReply,
    SyncStatusReply,
)


class Operations:
    """The methods of `Holdfast`; the manual of each is in holdfast.h."""

    def _call(self, name: str, request: Mapping[str, Any] | None) -> object:
        raise NotImplementedError

    def clock_set(self, request: ClockSetRequest) -> Empty:
        """Set the clock of a handle that was opened with "clock": "manual"."""
        return cast(Empty, self._call("clock_set", request))

    def session_start(self, request: SessionStartRequest) -> Decision:
        """Adopt a session that the host obtained."""
        return cast(Decision, self._call("session_start", request))

    def sign_in_begin(self, request: SignInBeginRequest) -> SignInBeginReply:
        """Begin a sign-in."""
        return cast(SignInBeginReply, self._call("sign_in_begin", request))

    def sign_in_complete(self, request: SignInCompleteRequest) -> Decision:
        """Complete a sign-in."""
        return cast(Decision, self._call("sign_in_complete", request))

    def session_resume(self, request: Empty | None = None) -> Decision:
        """Decide what to show at a cold start, from disk alone."""
        return cast(Decision, self._call("session_resume", request))

    def session_unlock(self, request: SessionUnlockRequest) -> Decision:
        """Report the outcome of the biometric prompt."""
        return cast(Decision, self._call("session_unlock", request))

    def session_lock(self, request: Empty | None = None) -> Decision:
        """Lock the session now."""
        return cast(Decision, self._call("session_lock", request))

    def session_background(self, request: Empty | None = None) -> Decision:
        """Report that the app left the screen."""
        return cast(Decision, self._call("session_background", request))

    def session_foreground(self, request: Empty | None = None) -> Decision:
        """Report that the app is back."""
        return cast(Decision, self._call("session_foreground", request))

    def session_status(self, request: Empty | None = None) -> SessionStatusReply:
        """Return state, expiry, age of the last validation, and pending requests to the server."""
        return cast(SessionStatusReply, self._call("session_status", request))

    def session_logout(self, request: SessionLogoutRequest | None = None) -> SessionLogoutReply:
        """Log out, online or offline."""
        return cast(SessionLogoutReply, self._call("session_logout", request))

    def org_list(self, request: Empty | None = None) -> OrgListReply:
        """List the memberships with role, status and freshness."""
        return cast(OrgListReply, self._call("org_list", request))

    def org_select(self, request: OrgSelectRequest) -> Decision:
        """Choose an organisation, or switch to another."""
        return cast(Decision, self._call("org_select", request))

    def route_check(self, request: RouteCheckRequest) -> RouteCheckReply:
        """Check whether a screen may open."""
        return cast(RouteCheckReply, self._call("route_check", request))

    def queue_add(self, request: QueueAddRequest) -> QueueAddReply:
        """Queue an item for the server, online or offline."""
        return cast(QueueAddReply, self._call("queue_add", request))

    def queue_list(self, request: QueueListRequest | None = None) -> QueueListReply:
        """List queued items in the order of registration, in pages."""
        return cast(QueueListReply, self._call("queue_list", request))

    def queue_get(self, request: QueueGetRequest) -> QueueGetReply:
        """Read one queued item."""
        return cast(QueueGetReply, self._call("queue_get", request))

    def queue_edit(self, request: QueueEditRequest) -> QueueEditReply:
        """Replace the payload of an item that is not being sent."""
        return cast(QueueEditReply, self._call("queue_edit", request))

    def queue_cancel(self, request: QueueCancelRequest) -> QueueCancelReply:
        """Remove an item that is not being sent."""
        return cast(QueueCancelReply, self._call("queue_cancel", request))

    def queue_retry(self, request: QueueRetryRequest | None = None) -> QueueRetryReply:
        """Send parked items again."""
        return cast(QueueRetryReply, self._call("queue_retry", request))

    def queue_export(self, request: QueueExportRequest | None = None) -> QueueExportReply:
        """Export the user's items."""
        return cast(QueueExportReply, self._call("queue_export", request))

    def queue_explain(self, request: QueueExplainRequest | None = None) -> QueueExplainReply:
        """Explain why the queue sends nothing."""
        return cast(QueueExplainReply, self._call("queue_explain", request))

    def contact_search(self, request: ContactSearchRequest) -> ContactSearchReply:
        """Search contacts in the cache by any part of the name."""
        return cast(ContactSearchReply, self._call("contact_search", request))

    def contact_get(self, request: ContactGetRequest) -> ContactGetReply:
        """Read one contact; fetch withheld columns with `live`."""
        return cast(ContactGetReply, self._call("contact_get", request))

    def summary_get(self, request: Empty | None = None) -> SummaryGetReply:
        """Read the cached figures of the server, and what is not yet sent."""
        return cast(SummaryGetReply, self._call("summary_get", request))

    def network_set(self, request: NetworkSetRequest) -> Empty:
        """Report whether there is a network."""
        return cast(Empty, self._call("network_set", request))

    def sync_now(self, request: Empty | None = None) -> SyncNowReply:
        """Pull and send now."""
        return cast(SyncNowReply, self._call("sync_now", request))

    def sync_status(self, request: Empty | None = None) -> SyncStatusReply:
        """Return the state of sync."""
        return cast(SyncStatusReply, self._call("sync_status", request))

    def poll(self, request: PollRequest | None = None) -> PollReply:
        """Fetch the host's next requests and events."""
        return cast(PollReply, self._call("poll", request))

    def complete(self, request: CompleteRequest) -> CompleteReply:
        """Pass the response to a request."""
        return cast(CompleteReply, self._call("complete", request))
