"""Look up, connect, pass the proxy, shake hands: each step by itself and timed apart.

Nothing of HTTP is sent to the endpoint and the key is not used.
"""

from __future__ import annotations

import base64
import queue
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from k3check.link.wire.exchange import Failure, FailureKind, Stage
from k3check.link.wire.failures import os_kind
from k3check.link.wire.tls import tls_context

if TYPE_CHECKING:
    from k3check.link.request import LinkRequest
    from k3check.link.wire.proxies import ProxyChoice
    from k3check.link.wire.urls import Base

K = FailureKind
STEP_S = 10.0
_MOST_ADDRESSES = 4
_PROXY_HEAD = 16 * 1024


@dataclass
class Path:
    """How far the way to an endpoint goes.

    Attributes:
        times: seconds by step: ``dns``, ``tcp``, ``proxy``, ``tls``.
        addresses: of the peer, as the resolver gave them.
        dead: addresses that could not be connected to before one that could.
        failure: what stopped it; None if everything works.
        tls: version of TLS.
        expires_in_days: of the server's certificate.
    """

    times: dict[str, float] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    failure: Failure | None = None
    tls: str = ""
    expires_in_days: int | None = None


def resolve(host: str, port: int, timeout: float) -> list[tuple[Any, ...]]:
    """The addresses of a host; the system's resolver cannot be interrupted, so it gets a thread.

    Raises:
        TimeoutError: no answer in time.
        OSError: what the resolver said.
    """
    answers: queue.Queue[list[Any] | BaseException] = queue.Queue()

    def ask() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True, name="k3check-resolver").start()
    try:
        found = answers.get(timeout=timeout)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(found, BaseException):
        raise found
    return found


def _connect(path: Path, host: str, port: int, timeout: float) -> socket.socket | Failure:
    """Look a host up and connect to its first address that answers."""
    peer = f"{host}:{port}"
    begun = time.monotonic()
    try:
        found = resolve(host, port, timeout)
    except TimeoutError:
        return Failure(K.DNS_UNAVAILABLE, Stage.CONNECT, "TimeoutError", "no answer", peer)
    except (OSError, UnicodeError) as error:
        kind = os_kind(error) or K.DNS_NOT_FOUND
        return Failure(kind, Stage.CONNECT, type(error).__name__, str(error), peer)
    path.times["dns"] = time.monotonic() - begun
    path.addresses = tuple(dict.fromkeys(str(item[4][0]) for item in found))
    begun = time.monotonic()
    last: OSError | None = None
    dead: list[str] = []
    for family, kind_, proto, _, address in found[:_MOST_ADDRESSES]:
        sock = socket.socket(family, kind_, proto)
        sock.settimeout(timeout)
        try:
            sock.connect(address)
        except OSError as error:
            sock.close()
            last = error
            dead.append(str(address[0]))
            continue
        path.times["tcp"] = time.monotonic() - begun
        path.dead = tuple(dead)
        return sock
    if isinstance(last, TimeoutError):
        return Failure(K.CONNECT_TIMEOUT, Stage.CONNECT, "TimeoutError", "", peer)
    kind = (os_kind(last) if last else None) or K.OTHER
    return Failure(kind, Stage.CONNECT, type(last).__name__, str(last or ""), peer)


def _tunnel(sock: socket.socket, base: Base, proxy: ProxyChoice) -> Failure | None:
    """Ask an HTTP proxy for a tunnel."""
    target = f"[{base.host}]:{base.port}" if ":" in base.host else f"{base.host}:{base.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    parts = urlsplit(proxy.url)
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
    sock.sendall("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _PROXY_HEAD:
        data = sock.recv(4096)
        if not data:
            return Failure(K.CLOSED, Stage.CONNECT, "", "", proxy.peer, at_proxy=True)
        head += data
    line = head.partition(b"\r\n")[0].decode("latin-1")
    fields = line.split(" ", 2)
    if len(fields) < 2 or not fields[0].startswith("HTTP/"):
        return Failure(K.PROXY_DENIED, Stage.CONNECT, "", line[:200], proxy.peer, at_proxy=True)
    if fields[1].startswith("2"):
        return None
    kind = K.PROXY_AUTH if fields[1] == "407" else K.PROXY_DENIED
    return Failure(kind, Stage.CONNECT, "", " ".join(fields[1:])[:200], proxy.peer, at_proxy=True)


def _handshake(
    path: Path, sock: socket.socket, base: Base, request: LinkRequest, proxy: ProxyChoice
) -> Failure | None:
    peer = f"{base.host}:{base.port}"
    begun = time.monotonic()
    try:
        context = tls_context(request, "https", proxy)
    except (OSError, ssl.SSLError) as error:
        return Failure(K.CA_FILE, Stage.TLS, type(error).__name__, str(error), peer)
    begun = time.monotonic()
    try:
        with context.wrap_socket(sock, server_hostname=base.host) as secure:
            path.times["tls"] = time.monotonic() - begun
            path.tls = secure.version() or ""
            path.expires_in_days = _days_left(secure.getpeercert())
    except TimeoutError:
        return Failure(K.READ_TIMEOUT, Stage.TLS, "TimeoutError", "", peer)
    except (OSError, ValueError) as error:
        kind = os_kind(error) or K.TLS_OTHER
        return Failure(kind, Stage.TLS, type(error).__name__, str(error), peer)
    return None


def _days_left(certificate: Any) -> int | None:
    end = (certificate or {}).get("notAfter")
    if not isinstance(end, str):
        return None
    left = ssl.cert_time_to_seconds(end) - datetime.now(UTC).timestamp()
    return int(left // 86_400)


def walk(base: Base, proxy: ProxyChoice, request: LinkRequest) -> Path:
    """Go the way to the endpoint as a request would, up to the encrypted connection."""
    path = Path()
    timeout = min(STEP_S, request.timeout_s)
    host, port = base.host, base.port or 0
    if proxy.url:
        host, _, number = proxy.peer.rpartition(":")
        host, port = host.strip("[]"), int(number)
    found = _connect(path, host, port, timeout)
    if isinstance(found, Failure):
        at_proxy = bool(proxy.url)
        path.failure = Failure(
            found.kind, found.stage, found.exception, found.text, found.peer, at_proxy
        )
        if found.kind is K.RESET:
            from k3check.link.wire.second_look import refined

            path.failure = refined(path.failure, request, base, proxy)
        return path
    try:
        # What lies behind a SOCKS or TLS proxy is left to the chat itself.
        if proxy.url and proxy.scheme != "http":
            return path
        if proxy.url and base.scheme == "https":
            begun = time.monotonic()
            try:
                path.failure = _tunnel(found, base, proxy)
            except OSError as error:
                kind = K.CONNECT_TIMEOUT if isinstance(error, TimeoutError) else K.RESET
                path.failure = Failure(kind, Stage.CONNECT, type(error).__name__, str(error),
                                       proxy.peer, at_proxy=True)  # fmt: skip
            path.times["proxy"] = time.monotonic() - begun
        if base.scheme == "https" and path.failure is None:
            path.failure = _handshake(path, found, base, request, proxy)
            if path.failure is not None:
                from k3check.link.wire.second_look import refined

                path.failure = refined(path.failure, request, base, proxy)
    finally:
        found.close()
    return path


def direct(base: Base, timeout: float) -> str:
    """What happens without the proxy: ``works``, or why not."""
    path = Path()
    found = _connect(path, base.host, base.port or 0, timeout)
    if isinstance(found, Failure):
        return found.kind.value.replace("-", " ")
    found.close()
    return "works"
