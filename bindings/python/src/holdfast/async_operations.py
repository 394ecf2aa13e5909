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
        """Set the clock of a handle opened with "clock": "manual"."""
        return cast(Empty, await self._call("clock_set", request))

    async def session_start(self, request: SessionStartRequest) -> Decision:
        """Adopt a session that the host obtained itself."""
        return cast(Decision, await self._call("session_start", request))

    async def sign_in_begin(self, request: SignInBeginRequest) -> SignInBeginReply:
        """Begin a sign-in."""
        return cast(SignInBeginReply, await self._call("sign_in_begin", request))

    async def sign_in_complete(self, request: SignInCompleteRequest) -> Decision:
        """Complete a sign-in."""
        return cast(Decision, await self._call("sign_in_complete", request))

    async def session_resume(self, request: Empty | None = None) -> Decision:
        """The cold-start answer: what to show, from disk alone."""
        return cast(Decision, await self._call("session_resume", request))

    async def session_unlock(self, request: SessionUnlockRequest) -> Decision:
        """What became of the biometric prompt."""
        return cast(Decision, await self._call("session_unlock", request))

    async def session_lock(self, request: Empty | None = None) -> Decision:
        """Lock now."""
        return cast(Decision, await self._call("session_lock", request))

    async def session_background(self, request: Empty | None = None) -> Decision:
        """The app left the screen: idle time starts."""
        return cast(Decision, await self._call("session_background", request))

    async def session_foreground(self, request: Empty | None = None) -> Decision:
        """The app is back."""
        return cast(Decision, await self._call("session_foreground", request))

    async def session_status(self, request: Empty | None = None) -> SessionStatusReply:
        """State, expiry, age of the last validation, what is owed."""
        return cast(SessionStatusReply, await self._call("session_status", request))

    async def session_logout(
        self, request: SessionLogoutRequest | None = None
    ) -> SessionLogoutReply:
        """Log out."""
        return cast(SessionLogoutReply, await self._call("session_logout", request))

    async def org_list(self, request: Empty | None = None) -> OrgListReply:
        """Memberships with role, status and freshness."""
        return cast(OrgListReply, await self._call("org_list", request))

    async def org_select(self, request: OrgSelectRequest) -> Decision:
        """First choice and switch alike."""
        return cast(Decision, await self._call("org_select", request))

    async def route_check(self, request: RouteCheckRequest) -> RouteCheckReply:
        """May this screen open?"""
        return cast(RouteCheckReply, await self._call("route_check", request))

    async def queue_add(self, request: QueueAddRequest) -> QueueAddReply:
        """Register something to be stored on the server, online or not."""
        return cast(QueueAddReply, await self._call("queue_add", request))

    async def queue_list(self, request: QueueListRequest | None = None) -> QueueListReply:
        """Items in the order of registration, paged."""
        return cast(QueueListReply, await self._call("queue_list", request))

    async def queue_get(self, request: QueueGetRequest) -> QueueGetReply:
        """One item."""
        return cast(QueueGetReply, await self._call("queue_get", request))

    async def queue_edit(self, request: QueueEditRequest) -> QueueEditReply:
        """Replace the payload of an item that was not sent."""
        return cast(QueueEditReply, await self._call("queue_edit", request))

    async def queue_cancel(self, request: QueueCancelRequest) -> QueueCancelReply:
        """Remove an item that was not sent."""
        return cast(QueueCancelReply, await self._call("queue_cancel", request))

    async def queue_retry(self, request: QueueRetryRequest | None = None) -> QueueRetryReply:
        """Try parked items again."""
        return cast(QueueRetryReply, await self._call("queue_retry", request))

    async def queue_export(self, request: QueueExportRequest | None = None) -> QueueExportReply:
        """Every item of the owner."""
        return cast(QueueExportReply, await self._call("queue_export", request))

    async def queue_explain(self, request: QueueExplainRequest | None = None) -> QueueExplainReply:
        """Why is nothing sent?"""
        return cast(QueueExplainReply, await self._call("queue_explain", request))

    async def contact_search(self, request: ContactSearchRequest) -> ContactSearchReply:
        """Contacts by any part of the name, from the cache."""
        return cast(ContactSearchReply, await self._call("contact_search", request))

    async def contact_get(self, request: ContactGetRequest) -> ContactGetReply:
        """One contact; withheld columns only live."""
        return cast(ContactGetReply, await self._call("contact_get", request))

    async def summary_get(self, request: Empty | None = None) -> SummaryGetReply:
        """The server's figures as cached, and what is not yet sent on top."""
        return cast(SummaryGetReply, await self._call("summary_get", request))

    async def network_set(self, request: NetworkSetRequest) -> Empty:
        """What the host knows of the network."""
        return cast(Empty, await self._call("network_set", request))

    async def sync_now(self, request: Empty | None = None) -> SyncNowReply:
        """Refresh the cache and send what waits, now."""
        return cast(SyncNowReply, await self._call("sync_now", request))

    async def sync_status(self, request: Empty | None = None) -> SyncStatusReply:
        """What sync has done and will do."""
        return cast(SyncStatusReply, await self._call("sync_status", request))

    async def poll(self, request: PollRequest | None = None) -> PollReply:
        """What the host should do next."""
        return cast(PollReply, await self._call("poll", request))

    async def complete(self, request: CompleteRequest) -> CompleteReply:
        """The answer to a request."""
        return cast(CompleteReply, await self._call("complete", request))
