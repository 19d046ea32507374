"""A small endpoint on the loopback that behaves like Kimi K3's: for ``--demo`` and for tests.

It is no model: it answers the questions that the probes ask (repeat a word, call a tool, edit a
file by tools, find a sentence) by reading the request, and refuses what the official service
refuses, with the same bodies. Source: section A of the link specification.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from k3check.link.demo import model as demo_model
from k3check.link.demo import shapes as demo_shapes
from k3check.link.demo.model import Refusal, Reply
from k3check.released import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

MODEL = "kimi-k3"
_MOST_BYTES = 8 * 1024 * 1024
_PREFIX = 256


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Threads end with their connections; waiting for kept-alive ones would delay the end.
    block_on_close = False
    request_queue_size = 64

    def __init__(self, api_key: str, model: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api_key = api_key
        self.model = model
        self.prefixes: set[str] = set()
        self.lock = threading.Lock()

    def cached(self, body: dict[str, Any]) -> int:
        """Tokens of the prompt's beginning that an earlier request had too."""
        messages = json.dumps(body.get("messages") or body.get("input") or "", ensure_ascii=False)
        step = 4 * _PREFIX
        marks = [
            hashlib.sha256(messages[:end].encode("utf-8", "surrogatepass")).hexdigest()
            for end in range(step, len(messages) + 1, step)
        ]
        with self.lock:
            hits = 0
            for mark in marks:
                if mark not in self.prefixes:
                    break
                hits += 1
            self.prefixes.update(marks)
        return hits * _PREFIX


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server
    # A client that leaves a connection open without a request is not waited for for ever.
    timeout = 30

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def _send(self, status: int, document: Any) -> None:
        data = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("content-type", "application/json; charset=utf-8")
        self.send_header("content-length", str(len(data)))
        self.send_header("msh-request-id", secrets.token_hex(8))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, refusal: Refusal) -> None:
        error = {"message": refusal.message, "type": refusal.type}
        if self.path.endswith("/messages"):
            self._send(refusal.status, {"type": "error", "error": error, "request_id": "demo"})
        else:
            self._send(refusal.status, {"error": error})

    def _events(self, events: Iterator[tuple[str, str]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("msh-request-id", secrets.token_hex(8))
        self.end_headers()
        for name, data in events:
            text = (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
            raw = text.encode()
            self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _authorized(self) -> bool:
        bearer = self.headers.get("authorization", "")
        given = bearer.removeprefix("Bearer ") if bearer else self.headers.get("x-api-key", "")
        return secrets.compare_digest(given.encode(), self.server.api_key.encode())

    def do_GET(self) -> None:
        """Answer ``/v1/models``."""
        if not self._authorized():
            self._refuse(demo_model.UNAUTHORIZED)
        elif self.path == "/v1/models":
            card = {"id": self.server.model, "object": "model", "owned_by": "moonshot",
                    "context_length": CONTEXT}  # fmt: skip
            self._send(200, {"object": "list", "data": [card]})
        else:
            self._refuse(demo_model.no_route(self.path))

    def do_POST(self) -> None:
        """Answer chat completions, messages and responses."""
        try:
            length = int(self.headers.get("content-length", "0"))
        except ValueError:
            length = -1
        if not 0 <= length <= _MOST_BYTES:
            self.close_connection = True
            self._refuse(Refusal(413, "invalid_request_error", "request too large"))
            return
        raw = self.rfile.read(length)
        route = self.path.partition("?")[0]
        if route not in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
            self._refuse(demo_model.no_route(self.path))
            return
        if not self._authorized():
            self._refuse(demo_model.UNAUTHORIZED)
            return
        try:
            body = demo_model.parse(raw)
            reply = demo_model.answer(body, self.server.model, self.server.cached(body))
        except (ValueError, RecursionError):
            self._refuse(Refusal(400, "invalid_request_error", "Invalid request: no JSON"))
            return
        except Refusal as refusal:
            self._refuse(refusal)
            return
        self._reply(route, body, reply)

    def _reply(self, route: str, body: dict[str, Any], reply: Reply) -> None:
        streamed = bool(body.get("stream"))
        if route == "/v1/messages" and streamed:
            self._events(demo_shapes.as_message_events(reply))
        elif route == "/v1/messages":
            self._send(200, demo_shapes.as_message(reply))
        elif route == "/v1/responses" and streamed:
            self._events(demo_shapes.as_response_events(reply))
        elif route == "/v1/responses":
            self._send(200, demo_shapes.as_response(reply))
        elif streamed:
            self._events(demo_shapes.as_chunks(reply, body))
        else:
            self._send(200, demo_shapes.as_completion(reply))


class DemoServer:
    """The server as a context manager; it listens on a free port of 127.0.0.1.

    Attributes:
        base_url, api_key, model: what a client needs; the key is new each time.
    """

    def __init__(self, *, model: str = MODEL) -> None:
        self.model = model
        self.api_key = f"sk-demo-{secrets.token_hex(16)}"
        self._server = _Server(self.api_key, model)
        port = self._server.server_address[1]
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
