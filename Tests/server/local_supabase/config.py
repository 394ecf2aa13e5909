"""Settings of a running server. `/_control/config` changes all but the secret."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass
class Config:
    """Settings of a Supabase project's dashboard, of the gateway and of the simulated provider."""

    jwt_secret: str = "local-secret-local-secret-local-secret-0123456789"
    #: Seconds an access token lives (GoTrue: `GOTRUE_JWT_EXP`).
    jwt_lifetime: int = 3600
    #: Seconds in which a rotated refresh token may be used again (hosted default: 10).
    reuse_interval: float = 10.0
    #: Seconds between `/authorize` and the exchange of its code (GoTrue: at least 300).
    flow_state_lifetime: float = 300.0
    #: The URLs to which `/authorize` may return, with `*` and `**` (GoTrue: `URI_ALLOW_LIST`). Another
    #: URL is replaced by `site_url`, silently. None: every URL.
    redirect_allow_list: list[str] | None = None
    site_url: str = "https://site.example.org"
    #: Absolute and idle limits of a session in seconds; None: no limit. Checked at refresh.
    session_timebox: float | None = None
    session_inactivity: float | None = None
    #: GoTrue's "single session per user": older sessions end at their next refresh.
    single_session: bool = False
    #: Token bucket on `/token`: burst, seconds per refill. None: no limit (self-hosted default).
    rate_limit_burst: int | None = None
    rate_limit_refill_s: float = 2.0
    #: PostgREST's db-max-rows, which truncates reads silently (hosted: 1000). None: no limit.
    max_rows: int | None = 1000
    #: 413 for larger bodies (bytes) or, at /rest/v1, longer arrays (rows). None means no limit.
    max_body_bytes: int | None = None
    max_body_rows: int | None = None
    #: Overrides the statement_timeout of every role, in milliseconds. None: the role's own.
    statement_timeout_ms: int | None = None
    #: Seconds added to the `Date` header only.
    date_offset_s: float = 0.0
    #: Refuse requests without one of the two API keys, as Supabase's gateway does.
    require_apikey: bool = True
    #: E-mail of the user who signs in at the simulated provider; None shows a page.
    provider_user: str | None = None
    #: Lifetime in seconds of an identity token minted by the simulated provider.
    id_token_lifetime: float = 300.0

    def public(self) -> dict[str, Any]:
        """All settings but the secret."""
        values = dataclasses.asdict(self)
        del values["jwt_secret"]
        return values

    def change(self, values: dict[str, Any]) -> None:
        """Set the named values. An unknown name raises ValueError and changes nothing."""
        known = {field.name for field in dataclasses.fields(self)} - {"jwt_secret"}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"unknown setting: {', '.join(unknown)}")
        for name, value in values.items():
            setattr(self, name, value)
