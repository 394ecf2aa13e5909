"""The ASGI application: reads a request, applies faults, routes it, logs and answers it."""

from __future__ import annotations

import asyncio
import datetime
import email.utils
import socket
import struct
import time
from typing import Any

from . import control_api, gateway, rest
from .faults import Fault
from .messages import Reply, Request
from .server_state import State

#: Key of the connection's transport in the ASGI scope; server.py sets it.
TRANSPORT = "local_supabase.transport"
_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Content-Range, X-Total-Count, Link, X-Supabase-Api-Version",
}


class App:
    """The ASGI application. No framework: the services need paths and bodies unchanged."""

    def __init__(self, state: State) -> None:
        self.state = state

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI entry."""
        if scope["type"] != "http":
            return
        request = await _read_request(scope, receive)
        if request.path.startswith("/_control/"):
            answer = await control_api.handle(
                request, request.path.removeprefix("/_control"), self.state
            )
            await self._send(send, answer)
            return
        entry = self.state.log.begin(request)
        started = time.monotonic()
        fault = self.state.faults.strike(request)
        entry.fault = fault.action if fault else None
        reply = await self._answer(request, fault)
        self.state.log.end(entry, reply, time.monotonic() - started)
        if reply is not None:
            await self._send(send, reply)
        elif fault is not None and fault.action == "hang":
            await receive_disconnect(receive)
        else:
            _drop(scope[TRANSPORT], reset=fault is None or fault.reset)
            await receive_disconnect(receive)

    async def _answer(self, request: Request, fault: Fault | None) -> Reply | None:
        """Handle a request under a fault. Returns None if the connection is to be dropped."""
        if fault is None:
            return await self._route(request)
        await asyncio.sleep(fault.delay_before_ms / 1000)
        if fault.action in {"drop_before", "hang"}:
            return None
        if fault.action == "respond":
            reply: Reply | None = fault.reply()
        else:
            reply = await self._route(request)
            if fault.action == "truncate_rows":
                reply = fault.truncate(reply)
            elif fault.action == "drop_after":
                reply = None
        await asyncio.sleep(fault.delay_after_ms / 1000)
        return reply

    async def _route(self, request: Request) -> Reply:
        state, config = self.state, self.state.config
        refusal = gateway.too_large(request, config)
        if refusal is not None:
            return refusal
        for prefix in ("/auth/v1", "/rest/v1"):
            if request.path != prefix and not request.path.startswith(prefix + "/"):
                continue
            if request.method == "OPTIONS" and request.header("origin") is not None:
                return Reply(
                    200,
                    b"",
                    {
                        "Access-Control-Allow-Methods": "GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD",
                        "Access-Control-Allow-Headers": "*",
                    },
                )
            refusal = gateway.without_key(request, config)
            if refusal is not None:
                return refusal
            path = request.path.removeprefix(prefix)
            if prefix == "/rest/v1":
                return await rest.handle(request, path, config, state.database)
            if state.has_auth:
                return await state.people.handle(request, path)
        return gateway.NO_ROUTE

    async def _send(self, send: Any, reply: Reply) -> None:
        moment = datetime.datetime.now(datetime.UTC)
        moment += datetime.timedelta(seconds=self.state.config.date_offset_s)
        headers = {
            "Date": email.utils.format_datetime(moment, usegmt=True),
            **_CORS,
            **reply.headers,
        }
        if reply.status not in {204, 304}:
            headers["Content-Length"] = str(len(reply.body))
        await send(
            {
                "type": "http.response.start",
                "status": reply.status,
                "headers": [
                    (k.lower().encode(), v.encode("latin-1", "replace")) for k, v in headers.items()
                ],
            }
        )
        await send({"type": "http.response.body", "body": reply.body})


async def _read_request(scope: Any, receive: Any) -> Request:
    chunks = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    headers = tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"])
    host, port = scope["server"][:2]
    return Request(
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("latin-1"),
        headers=headers,
        body=b"".join(chunks),
        base_url=f"http://{host}:{port}",
    )


async def receive_disconnect(receive: Any) -> None:
    """Wait until the peer disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _drop(transport: asyncio.Transport, *, reset: bool) -> None:
    """Close the connection without a response, with a TCP RST if `reset`, else a FIN."""
    if reset:
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
