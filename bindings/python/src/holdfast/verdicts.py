"""What a reply of a project, or its absence, means to `holdfast.doctor`."""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
import urllib.parse
from typing import TYPE_CHECKING

from .connections import proxy_for

if TYPE_CHECKING:
    from .project import Project, Reply


def better_url(url: str) -> str:
    """What to write instead of an address that is near the project's URL; empty for others."""
    parts = urllib.parse.urlsplit(url)
    if parts.hostname in {"supabase.com", "www.supabase.com", "app.supabase.com"}:
        named = re.match(r"(?:/dashboard)?/project/([a-z0-9]+)", parts.path)
        project = named[1] if named else "PROJECT"
        return f"This is the dashboard's address. Write https://{project}.supabase.co."
    for service in ("/rest/v1", "/auth/v1"):
        if service in parts.path:
            plain = parts._replace(path=parts.path.partition(service)[0], query="", fragment="")
            return f"The library adds {service} itself. Write {plain.geturl()}."
    return ""


def is_loopback(url: str) -> bool:
    """Whether the URL leads to this machine."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def unreachable(error: str, project: Project) -> tuple[str, str]:
    """Why there is no response, and what to do."""
    url, host = urllib.parse.urlsplit(project.names.url), project.names.host
    if error == "dns":
        return (
            f"the name {url.hostname} is not known",
            "Check /backend/url letter by letter, and whether this machine has a network. A project"
            " that was deleted, or is paused for long, has no name: look in the dashboard.",
        )
    if error == "tls":
        why = tls_reason(url, project.timeout_s)
        return (
            f"no TLS connection to {host}{why and ': '}{why}",
            "The certificate is not one that this machine trusts for this name. Check the URL, the"
            " machine's clock and certificates, and whether a proxy or a portal is in between.",
        )
    if error == "timeout":
        return (
            f"{host} does not answer within {project.timeout_s:g} s",
            "A firewall may drop the connection, the project may be overloaded, or the server"
            " speaks no TLS (a local project's URL begins with http): try another network, and look"
            " in the dashboard.",
        )
    if error == "refused":
        return (
            f"{host} refuses the connection, or does not speak HTTP",
            "Check host and port in /backend/url; start the local project (supabase start).",
        )
    return (
        f"no connection to {host}",
        "Connect this machine to a network, and check its proxy (https_proxy).",
    )


def tls_reason(url: urllib.parse.SplitResult, timeout_s: float) -> str:
    """Why the handshake fails; empty behind a proxy, or if it does not."""
    if proxy_for(url) is not None or not url.hostname:
        return ""
    try:
        with (
            socket.create_connection((url.hostname, url.port or 443), timeout_s) as link,
            ssl.create_default_context().wrap_socket(link, server_hostname=url.hostname),
        ):
            return ""
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except ssl.SSLError as error:
        return (error.reason or "").lower().replace("_", " ")
    except OSError:
        return ""


def foreign(reply: Reply, service: str) -> tuple[str, str]:
    """What a response is that the service cannot have sent, and what to do."""
    if reply.error:
        return f"no answer from {service}: {reply.error}", "Try again; look in the dashboard."
    if reply.status == 540:
        return "the project is paused", "Restore it in the dashboard, and wait some minutes."
    if 300 <= reply.status < 400:
        target = urllib.parse.urlsplit(reply.headers.get("location", ""))
        origin = f"{target.scheme}://{target.netloc}" if target.netloc else "another path"
        return (
            f"it sends on to {origin}",
            "Write the project's own URL, with https: the library follows no redirect. Where a"
            " network asks to sign in first (a portal), do that.",
        )
    if reply.status == 429:
        return "too many requests", "Wait a minute, and try again."
    if reply.status >= 500:
        return (
            f"{service} answers {reply.status}",
            "The project starts, is overloaded, or its database is down: look in the dashboard.",
        )
    if reply.status == 404:
        return (
            f"there is no {service}",
            "The host is another server, or /backend/url has a path too many: write the Project URL"
            " of the dashboard's Settings > Data API.",
        )
    return (
        "the answer is not Supabase's",
        "The host is another server, or a portal of the network answers in its place: open the URL"
        " in a browser.",
    )


def odd(reply: Reply) -> tuple[str, str]:
    """A response that says neither yes nor no."""
    if reply.error:
        return f"no answer: {reply.error}", "Try again."
    code = reply.code if re.fullmatch("[A-Za-z0-9_]{1,40}", reply.code) else ""
    return (
        f"the answer is {reply.status} {code}".rstrip(),
        "Look the code up in PostgREST's or PostgreSQL's list of errors, and in the project's log.",
    )


def no_grant(right: str, reply: Reply, table: str) -> tuple[str, str]:
    """The user lacks a privilege."""
    return (
        f"the user has no right to {right}{table_of(reply)}",
        f"grant {right} on public.{table} to authenticated (for each table, and each column that"
        " the library sends or reads).",
    )


def unknown_column(reply: Reply, asked: list[str]) -> str:
    """The column that the message names, of those that were asked for."""
    found = re.search(r'column (?:"?\w+"?\.)?"?(\w+)"? does not exist', reply.message)
    return found[1] if found and found[1] in asked else ""


def suggested(reply: Reply) -> str:
    """The name that the server suggests."""
    found = re.search(r"Perhaps you meant [a-z ]*'?\w+\.(\w+(?:\([\w, ]*\))?)", reply.message)
    return found[1] if found else ""


def table_of(reply: Reply) -> str:
    """The table or function to which the server refuses access."""
    found = re.search(r"permission denied for (table|view|function|schema) \"?(\w+)", reply.message)
    return f" ({found[1]} {found[2]})" if found else ""


def type_of(reply: Reply) -> str:
    """The type of a column that does not take a value; empty where the server does not name it."""
    found = re.search(r"invalid input (?:syntax for type|value for enum) ([\w ]+)", reply.message)
    return found[1].strip() if found else ""


def empty_column(reply: Reply) -> str:
    """The column that must have a value and has none."""
    found = re.search(r'column "(\w+)"', reply.message)
    return found[1] if reply.code == "23502" and found else ""
