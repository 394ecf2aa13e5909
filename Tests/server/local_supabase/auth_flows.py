"""Sign-in through a simulated BankID or Vipps: PKCE flows and identity tokens."""

from __future__ import annotations

import hashlib
import hmac
import html
import re
import secrets
import time
import urllib.parse
from typing import Any

from . import jwt
from .auth_errors import AuthError, OAuthError
from .config import Config
from .messages import Reply

#: Issuer and signing secret of identity tokens. A real provider has its own keys.
ISSUER = "https://identity.example.org"
SECRET = "simulated-provider-secret-simulated-provider-0123"
AUDIENCE = "holdfast-local"
_CHALLENGE = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def is_provider(name: str) -> bool:
    """Whether the provider is enabled: bankid, vipps and every `custom:` provider."""
    return name in {"bankid", "vipps"} or re.fullmatch(r"custom:[a-z0-9_-]+", name) is not None


# /authorize ---------------------------------------------------------------------------------------


def may_return_to(target: str, config: Config) -> bool:
    """Whether the project allows the redirect (GoTrue: `utilities.IsRedirectURLValid`)."""
    if config.redirect_allow_list is None:
        return True
    parts = urllib.parse.urlsplit(target)
    site = urllib.parse.urlsplit(config.site_url)
    if (parts.scheme, parts.hostname) == (site.scheme, site.hostname):
        return True
    whole = parts._replace(fragment="").geturl()
    return any(_glob(entry).fullmatch(whole) for entry in config.redirect_allow_list)


def expired_link(target: str, config: Config) -> Reply:
    """The answer to a mail's link that has expired (GoTrue: `verifyGet`)."""
    if not target or not may_return_to(target, config):
        target = config.site_url
    facts = {
        "error": "access_denied",
        "error_code": "otp_expired",
        "error_description": "Email link is invalid or has expired",
    }
    parts = urllib.parse.urlsplit(target)
    place = parts._replace(query="", fragment=urllib.parse.urlencode(facts)).geturl()
    return Reply(303, b"", {"Location": place})


def _glob(entry: str) -> re.Pattern[str]:
    """A pattern of the allow list: `*` and `?` stop at a dot and at a slash, `**` does not."""
    parts = {"**": ".*", "*": "[^./]*", "?": "[^./]"}
    words = re.split(r"(\*\*|\*|\?)", entry)
    return re.compile("".join(parts.get(word, re.escape(word)) for word in words), re.DOTALL)


def check_authorize(
    asked: dict[str, str], refusal: dict[str, str] | None, config: Config
) -> Reply | None:
    """Return the error redirect of a refusal or cancellation. Bad parameters raise AuthError.

    A redirect that the project does not allow is replaced in `asked`.
    """
    if not is_provider(asked.get("provider", "")):
        raise AuthError(
            400, "validation_failed", "Unsupported provider: Provider could not be found"
        )
    target = asked.get("redirect_to", "")
    if not target:
        raise AuthError(400, "validation_failed", "redirect_to is missing")
    if not may_return_to(target, config):
        target = asked["redirect_to"] = config.site_url
    if asked.get("cancel"):
        refusal = {
            "error": "access_denied",
            "error_code": "access_denied",
            "error_description": "The user cancelled",
        }
    if refusal is not None:
        return redirect(target, refusal)
    challenge, method = asked.get("code_challenge", ""), asked.get("code_challenge_method", "")
    if not _CHALLENGE.fullmatch(challenge) or method.lower() not in {"s256", "plain"}:
        raise AuthError(
            400, "validation_failed", "PKCE flow requires code_challenge and code_challenge_method"
        )
    return None


def redirect(target: str, extra: dict[str, str]) -> Reply:
    """Redirect to the app. The query parameters of its URL are kept."""
    parts = urllib.parse.urlsplit(target)
    query = urllib.parse.parse_qsl(parts.query, keep_blank_values=True) + list(extra.items())
    url = parts._replace(query=urllib.parse.urlencode(query)).geturl()
    return Reply(302, b"", {"Location": url})


def page(emails: list[str], asked: dict[str, str]) -> Reply:
    """A page with a button for each user."""
    hidden = "".join(
        f'<input type="hidden" name="{html.escape(k)}" value="{html.escape(v)}">'
        for k, v in asked.items()
    )
    people = "".join(
        f'<p><button name="user" value="{html.escape(email)}">{html.escape(email)}</button>'
        for email in emails
    )
    title = html.escape(f"Simulated {asked['provider']}")
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>'
        f'<form>{hidden}{people}<p><button name="cancel" value="1">Cancel</button></form></html>'
    )
    return Reply(200, text.encode(), {"Content-Type": "text/html; charset=utf-8"})


# grant_type=pkce ----------------------------------------------------------------------------------


def verifies(verifier: str, challenge: str, method: str) -> bool:
    """Whether the verifier matches the challenge (RFC 7636)."""
    if method == "s256":
        verifier = jwt.encode_bytes(hashlib.sha256(verifier.encode()).digest())
    return hmac.compare_digest(verifier.encode(), challenge.encode())


# grant_type=id_token ------------------------------------------------------------------------------


def identity_token(
    config: Config,
    email: str,
    *,
    nonce: str | None = None,
    audience: str = AUDIENCE,
    lifetime: float | None = None,
    now: float | None = None,
    token_id: str | None = None,
) -> str:
    """Make an identity token. `nonce` is the raw nonce; the token contains its hash."""
    moment = int(time.time() if now is None else now)
    claims: dict[str, Any] = {
        "iss": ISSUER,
        "aud": audience,
        "sub": f"person-{email}",
        "email": email,
        "iat": moment,
        "exp": int(moment + (config.id_token_lifetime if lifetime is None else lifetime)),
        "jti": token_id or secrets.token_hex(8),
    }
    if nonce is not None:
        claims["nonce"] = hashlib.sha256(nonce.encode()).hexdigest()
    return jwt.sign(claims, SECRET)


def read_identity(sent: dict[str, Any], now: float) -> tuple[dict[str, Any], str]:
    """Verify an identity token and return its claims and provider (rules: token_oidc.go)."""
    token, provider = sent.get("id_token") or "", str(sent.get("provider") or "")
    if not token:
        raise OAuthError("invalid request", "id_token required")
    if not provider and not (sent.get("client_id") and sent.get("issuer")):
        raise OAuthError("invalid request", "provider or client_id and issuer required")
    if not is_provider(provider):
        raise AuthError(400, "provider_disabled", f"Provider {provider} is not enabled")
    try:
        claims = jwt.verify(str(token), SECRET)
    except jwt.BadToken as error:
        raise OAuthError("invalid request", "Bad ID token") from error
    if claims.get("iss") != ISSUER or claims.get("exp", 0) < now:
        raise OAuthError("invalid request", "Bad ID token")
    audience = claims.get("aud")
    if audience != AUDIENCE:
        raise OAuthError("invalid request", f"Unacceptable audience in id_token: [{audience}]")
    nonce, expected = str(sent.get("nonce") or ""), str(claims.get("nonce") or "")
    if bool(nonce) != bool(expected):
        raise OAuthError(
            "invalid request", "Passed nonce and nonce in id_token should either both exist or not."
        )
    if nonce and not hmac.compare_digest(hashlib.sha256(nonce.encode()).hexdigest(), expected):
        raise OAuthError("invalid nonce", "Nonces mismatch")
    return claims, provider
