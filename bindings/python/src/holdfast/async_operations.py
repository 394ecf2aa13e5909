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


class AsyncOperations:
    """The methods of `AsyncHoldfast`; the manual of each is in holdfast.h."""

    async def _call(self, name: str, request: Mapping[str, Any] | None) -> object:
        raise NotImplementedError

    async def clock_set(self, request: ClockSetRequest) -> Empty:
        """Set the clock of a handle that was opened with "clock": "manual"."""
        return cast(Empty, await self._call("clock_set", request))

    async def session_start(self, request: SessionStartRequest) -> Decision:
        """Adopt a session that the host obtained."""
        return cast(Decision, await self._call("session_start", request))

    async def sign_in_begin(self, request: SignInBeginRequest) -> SignInBeginReply:
        """Begin a sign-in."""
        return cast(SignInBeginReply, await self._call("sign_in_begin", request))

    async def sign_in_complete(self, request: SignInCompleteRequest) -> Decision:
        """Complete a sign-in."""
        return cast(Decision, await self._call("sign_in_complete", request))

    async def session_resume(self, request: Empty | None = None) -> Decision:
        """Decide what to show at a cold start, from disk alone."""
        return cast(Decision, await self._call("session_resume", request))

    async def session_unlock(self, request: SessionUnlockRequest) -> Decision:
        """Report the outcome of the biometric prompt."""
        return cast(Decision, await self._call("session_unlock", request))

    async def session_lock(self, request: Empty | None = None) -> Decision:
        """Lock the session now."""
        return cast(Decision, await self._call("session_lock", request))

    async def session_background(self, request: Empty | None = None) -> Decision:
        """Report that the app left the screen."""
        return cast(Decision, await self._call("session_background", request))

    async def session_foreground(self, request: Empty | None = None) -> Decision:
        """Report that the app is back."""
        return cast(Decision, await self._call("session_foreground", request))

    async def session_status(self, request: Empty | None = None) -> SessionStatusReply:
        """Return state, expiry, age of the last validation, and pending requests to the server."""
        return cast(SessionStatusReply, await self._call("session_status", request))

    async def session_logout(
        self, request: SessionLogoutRequest | None = None
    ) -> SessionLogoutReply:
        """Log out, online or offline."""
        return cast(SessionLogoutReply, await self._call("session_logout", request))

    async def org_list(self, request: Empty | None = None) -> OrgListReply:
        """List the memberships with role, status and freshness."""
        return cast(OrgListReply, await self._call("org_list", request))

    async def org_select(self, request: OrgSelectRequest) -> Decision:
        """Choose an organisation, or switch to another."""
        return cast(Decision, await self._call("org_select", request))

    async def route_check(self, request: RouteCheckRequest) -> RouteCheckReply:
        """Check whether a screen may open."""
        return cast(RouteCheckReply, await self._call("route_check", request))

    async def queue_add(self, request: QueueAddRequest) -> QueueAddReply:
        """Queue an item for the server, online or offline."""
        return cast(QueueAddReply, await self._call("queue_add", request))

    async def queue_list(self, request: QueueListRequest | None = None) -> QueueListReply:
        """List queued items in the order of registration, in pages."""
        return cast(QueueListReply, await self._call("queue_list", request))

    async def queue_get(self, request: QueueGetRequest) -> QueueGetReply:
        """Read one queued item."""
        return cast(QueueGetReply, await self._call("queue_get", request))

    async def queue_edit(self, request: QueueEditRequest) -> QueueEditReply:
        """Replace the payload of an item that is not being sent."""
        return cast(QueueEditReply, await self._call("queue_edit", request))

    async def queue_cancel(self, request: QueueCancelRequest) -> QueueCancelReply:
        """Remove an item that is not being sent."""
        return cast(QueueCancelReply, await self._call("queue_cancel", request))

    async def queue_retry(self, request: QueueRetryRequest | None = None) -> QueueRetryReply:
        """Send parked items again."""
        return cast(QueueRetryReply, await self._call("queue_retry", request))

    async def queue_export(self, request: QueueExportRequest | None = None) -> QueueExportReply:
        """Export the user's items."""
        return cast(QueueExportReply, await self._call("queue_export", request))

    async def queue_explain(self, request: QueueExplainRequest | None = None) -> QueueExplainReply:
        """Explain why the queue sends nothing."""
        return cast(QueueExplainReply, await self._call("queue_explain", request))

    async def contact_search(self, request: ContactSearchRequest) -> ContactSearchReply:
        """Search contacts in the cache by any part of the name."""
        return cast(ContactSearchReply, await self._call("contact_search", request))

    async def contact_get(self, request: ContactGetRequest) -> ContactGetReply:
        """Read one contact; fetch withheld columns with `live`."""
        return cast(ContactGetReply, await self._call("contact_get", request))

    async def summary_get(self, request: Empty | None = None) -> SummaryGetReply:
        """Read the cached figures of the server, and what is not yet sent."""
        return cast(SummaryGetReply, await self._call("summary_get", request))

    async def network_set(self, request: NetworkSetRequest) -> Empty:
        """Report whether there is a network."""
        return cast(Empty, await self._call("network_set", request))

    async def sync_now(self, request: Empty | None = None) -> SyncNowReply:
        """Pull and send now."""
        return cast(SyncNowReply, await self._call("sync_now", request))

    async def sync_status(self, request: Empty | None = None) -> SyncStatusReply:
        """Return the state of sync."""
        return cast(SyncStatusReply, await self._call("sync_status", request))

    async def poll(self, request: PollRequest | None = None) -> PollReply:
        """Fetch the host's next requests and events."""
        return cast(PollReply, await self._call("poll", request))

    async def complete(self, request: CompleteRequest) -> CompleteReply:
        """Pass the response to a request."""
        return cast(CompleteReply, await self._call("complete", request))
