"""How far a call has got: written by the thread that reads, read by the one that waits."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from k3check.link.wire.exchange import Stage
from k3check.link.wire.limits import Received

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Progress:
    """What the reading thread has reached; the waiting thread looks at it after the cut."""

    started: float
    stage: Stage = Stage.SETUP
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    received: Received = field(default_factory=Received)
    times: dict[str, float] = field(default_factory=dict)
    error: BaseException | None = None
    sockets: list[socket.socket] = field(default_factory=list)
    received_at: float | None = None
    peer_is_proxy: bool = False
    wake: threading.Event = field(default_factory=threading.Event)
    finished: bool = False
    cut: bool = False

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Follow httpcore's events: they alone tell how far a connection got."""
        since = time.monotonic() - self.started
        event = name.partition(".")[2]
        if event == "connect_tcp.started":
            self.stage = Stage.CONNECT
        elif event == "start_tls.started":
            self.stage = Stage.TLS
            self.peer_is_proxy = False
        elif event in ("connect_tcp.complete", "start_tls.complete"):
            self.times["connect" if "tcp" in event else "tls"] = since
            sock = info["return_value"].get_extra_info("socket")
            if sock is not None:
                self.sockets.append(sock)
        elif event == "send_request_headers.started":
            self.stage = Stage.SEND
        elif event == "receive_response_headers.started":
            self.stage = Stage.HEADERS

    def abort(self) -> None:
        """Make every pending read of the other thread return."""
        self.cut = True
        for sock in self.sockets:
            # The plain socket's shutdown: that of an SSLSocket would wait for the other side.
            with contextlib.suppress(OSError, ValueError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
