"""Servers that misbehave on purpose: raw sockets on 127.0.0.1, bytes as given."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator
    from typing import Self


@dataclass
class Request:
    """One request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Connection:
    """What a script may do with a connection."""

    sock: socket.socket
    stopped: threading.Event

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def sleep(self, seconds: float) -> None:
        """Wait, but not longer than the server lives."""
        self.stopped.wait(seconds)

    def reset(self) -> None:
        """End with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.sock.close()


def http(
    status: int | str = 200,
    body: bytes | str | dict[str, Any] | list[Any] | None = b"",
    content_type: str | None = "application/json",
    headers: Iterable[tuple[str, str]] = (),
    length: int | None = None,
) -> bytes:
    """A complete response; the connection is closed after it."""
    if isinstance(body, (dict, list)) or body is None:
        body = json.dumps(body).encode()
    elif isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    line = f"{status} X" if isinstance(status, int) else status
    lines = [f"HTTP/1.1 {line}", "Connection: close"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def sse(
    *events: str | dict[str, Any],
    content_type: str = "text/event-stream",
    end: str = "\n\n",
) -> bytes:
    """A stream that ends with the connection."""
    head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {content_type}\r\n\r\n"
    parts = [e if isinstance(e, str) else json.dumps(e) for e in events]
    lines = [p if p.startswith((":", "event:", "data:")) else f"data: {p}" for p in parts]
    return (head + "".join(line + end for line in lines)).encode()


Script = "bytes | Callable[[Connection, Request], None]"


@dataclass
class FaultyServer:
    """Answers the n-th request with the n-th script; the last one serves all further ones."""

    scripts: list[Any]
    tls: ssl.SSLContext | None = None
    greeting: bytes = b""
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.port = self._listener.getsockname()[1]
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    @property
    def base_url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._accepting.join(2)
        self._listener.close()
        for thread in self._threads:
            thread.join(2)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                sock, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        sock.settimeout(5)
        with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as stack:
            stack.callback(sock.close)
            if self.tls is not None:
                sock = self.tls.wrap_socket(sock, server_side=True)
                stack.callback(sock.close)
            self._talk(sock)

    def _talk(self, sock: socket.socket) -> None:
        if self.greeting:
            sock.sendall(self.greeting)
        request = _read(sock)
        if request is None:
            return
        with self._lock:
            self.requests.append(request)
            script = self.scripts[min(len(self.requests), len(self.scripts)) - 1]
        if callable(script):
            script(Connection(sock, self._stopped), request)
        else:
            sock.sendall(script)
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
            sock.settimeout(0.2)
            sock.recv(1)


def _read(sock: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        piece = sock.recv(65536)
        if not piece:
            break
        body += piece
    return Request(method, target, headers, body)


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses connections, and that nobody else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, but not listening
        yield held.getsockname()[1]


def answer(**changes: Any) -> dict[str, Any]:
    """A good chat completion of K3; keyword arguments replace parts of it."""
    message = {"role": "assistant", "content": "k3-nonce", "reasoning_content": "Say the word."}
    message |= changes.pop("message", {})
    choice = {"index": 0, "message": message, "finish_reason": "stop"} | changes.pop("choice", {})
    document = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": "kimi-k3",
        "choices": [choice],
        "usage": {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30},
    }
    document |= changes
    return {k: v for k, v in document.items() if v is not ...}


def chunk(
    delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any
) -> dict[str, Any]:
    """A good chunk of a stream."""
    document = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": "kimi-k3",
        "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}],
    }
    return document | more
