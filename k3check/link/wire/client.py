"""The one place that sends anything: one call, bounded in time and size, with the key kept home.

A call runs in its own thread. The waiting side owns the clock: at the deadline it shuts the socket
down, so that neither a server that drips one byte a second nor a resolver that hangs can hold the
check longer. Redirects are never followed, cookies never kept, variables never read behind our
back. Source: sections F2 and F3 of the link specification, measured with httpx 0.28.
"""

from __future__ import annotations

import json
import threading
import time
import zlib
from dataclasses import replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Self

from k3check import __version__
from k3check.link.progress import Progress
from k3check.link.wire.exchange import Call, Ended, Exchange, Failure, FailureKind, Stage
from k3check.link.wire.limits import Caps, UnaskedEncodingError, read_events, read_plain
from k3check.link.wire.tls import tls_context
from k3check.link.wire.urls import Base

if TYPE_CHECKING:
    import httpx

    from k3check.link.request import LinkRequest
    from k3check.link.wire.proxies import ProxyChoice

CONNECT_S = 10.0
WRITE_S = 30.0
READ_S = 120.0
STALL_S = 60.0
# How long a finished stream may keep its connection before that is worth a note.
_CLOSE_S = 0.5
_HEADER_BYTES = 100 * 1024
_CUT = (FailureKind.BODY_CUT, FailureKind.RESET, FailureKind.CLOSED)


class Client:
    """Sends calls to one endpoint.

    Args:
        request: what is checked.
        proxy: the way out.
        caps: bounds of what is read.
    """

    def __init__(self, request: LinkRequest, proxy: ProxyChoice, caps: Caps | None = None) -> None:
        self._request = request
        self._proxy = proxy
        self._caps = caps or Caps()
        self._base = Base(request.base_url or "", request.protocol)
        self._client: httpx.Client | None = None

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _headers(self, call: Call) -> dict[str, str]:
        """Headers of a call; the key goes to the configured origin and nowhere else.

        Raises:
            ValueError: the call's origin is another one.
        """
        headers = {
            "user-agent": f"k3check/{__version__}",
            "accept": "text/event-stream" if call.stream else "application/json",
            "accept-encoding": "gzip, identity",
            **call.headers,
        }
        here = Base(call.url).origin == self._base.origin
        if call.body is not None:
            headers["content-type"] = "application/json"
        if call.authorized:
            if not here:
                raise ValueError("the key goes to the configured origin only")
            key = call.key
            if key is None:
                key = self._request.api_key.reveal() if self._request.api_key else ""
            if key and call.auth in ("x-api-key", "both"):
                headers["x-api-key"] = key
            if key and call.auth != "x-api-key":
                headers["authorization"] = f"Bearer {key}"
        if here:
            headers |= {name.lower(): value for name, value in self._request.headers.items()}
        return headers

    def _built(self) -> httpx.Client:
        """The httpx client, made on first use: making it can fail like a request can."""
        import httpx

        if self._client is None:
            jar = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
            verify = tls_context(self._request, self._base.scheme, self._proxy)
            self._client = httpx.Client(
                verify=verify,
                trust_env=False,
                follow_redirects=False,
                proxy=self._proxy.url or None,
                cookies=jar,
                http2=False,
            )
        return self._client

    def send(self, call: Call, deadline: float) -> Exchange:
        """Send a call once and wait for its end, at most until the deadline.

        Args:
            call: what to send.
            deadline: by the monotonic clock.
        """
        progress = Progress(time.monotonic(), peer_is_proxy=bool(self._proxy.url))
        thread = threading.Thread(
            target=self._work, args=(call, progress, deadline), daemon=True, name="k3check-link"
        )
        thread.start()
        progress.wake.wait(max(0.0, deadline - time.monotonic()))
        if progress.received.done and not progress.finished:
            thread.join(min(_CLOSE_S, max(0.0, deadline - time.monotonic())))
        late = not progress.finished
        stage = progress.stage
        if late:
            progress.abort()
            thread.join(1.0)
            # What hangs now hangs in the resolver or in a handshake: leave it and start afresh.
            self._client = None
        else:
            thread.join()
        return self._exchange(call, progress, stage, late=late)

    def refine(self, exchange: Exchange) -> Exchange:
        """The same exchange, told apart further where its end alone does not tell."""
        if exchange.failure is None:
            return exchange
        from k3check.link.wire.second_look import refined

        failure = refined(exchange.failure, self._request, self._base, self._proxy)
        return exchange if failure is exchange.failure else replace(exchange, failure=failure)

    def _work(self, call: Call, progress: Progress, deadline: float) -> None:
        try:
            self._fetch(call, progress, deadline)
        except Exception as error:  # noqa: BLE001 - every failure of a call is a result
            progress.error = error
        finally:
            progress.finished = True
            progress.wake.set()

    def _fetch(self, call: Call, progress: Progress, deadline: float) -> None:
        client = self._built()
        import httpx

        left = max(0.05, deadline - time.monotonic())
        timeout = httpx.Timeout(
            connect=min(CONNECT_S, left), read=min(READ_S, left), write=min(WRITE_S, left), pool=5.0
        )
        content = None
        if call.body is not None:
            content = json.dumps(call.body, ensure_ascii=False, separators=(",", ":")).encode()
        request = client.build_request(
            call.method,
            call.url,
            headers=self._headers(call),
            content=content,
            timeout=timeout,
            extensions={"trace": progress.trace},
        )
        response = client.send(request, stream=True)
        try:
            self._receive(call, progress, response)
        finally:
            response.close()

    def _receive(self, call: Call, progress: Progress, response: httpx.Response) -> None:
        progress.status = response.status_code
        progress.received_at = time.time()
        progress.times["first_byte"] = time.monotonic() - progress.started
        progress.stage = Stage.BODY
        progress.headers = _bounded_headers(response)
        encoding = response.headers.get("content-encoding", "")
        if call.stream and response.is_success:
            stall = min(STALL_S, self._request.timeout_s / 2)
            read_events(
                response.iter_raw(),
                encoding,
                self._caps,
                progress.received,
                stall,
                progress.wake.set,
                progress.started,
            )
        else:
            cap = self._caps.body if response.is_success else self._caps.error
            read_plain(response.iter_raw(), encoding, cap, progress.received)
        progress.stage = Stage.DONE

    def _exchange(self, call: Call, progress: Progress, stage: Stage, *, late: bool) -> Exchange:
        # Once the sockets are shut the other thread may have gone on: the stage is from before.
        received, failure, ended = progress.received, None, progress.received.ended
        times = dict(progress.times)
        times["total"] = time.monotonic() - progress.started
        if received.done and (late or ended is Ended.BROKEN):
            # Whatever happened after [DONE] is no failure of the answer.
            ended = Ended.HELD_OPEN if late else Ended.COMPLETE
        elif late:
            failure = Failure(
                FailureKind.DEADLINE,
                stage,
                "Deadline",
                "",
                self._peer(progress, stage),
                self._at_proxy(progress, stage),
            )
        elif progress.error is not None:
            failure = self._failure(progress, progress.error)
            if failure.kind in _CUT and _refusal(progress):
                # Who refuses a request without reading it resets the connection: the status has
                # said what there is to say, the rest of its page says no more.
                failure, ended = None, Ended.BROKEN
        return Exchange(
            call=call,
            status=progress.status,
            headers=progress.headers,
            body=received.body,
            ended=ended,
            done=received.done,
            events=tuple(received.events),
            comments=received.comments,
            failure=failure,
            times=times,
            proxy=self._proxy.shown,
            received_at=progress.received_at,
        )

    def _at_proxy(self, progress: Progress, stage: Stage) -> bool:
        """The call was still talking to the proxy, not through it."""
        early = stage in (Stage.SETUP, Stage.CONNECT)
        # Until TLS begins, everything on the way to an https endpoint is the proxy's tunnel.
        return progress.peer_is_proxy and (early or self._base.scheme == "https")

    def _peer(self, progress: Progress, stage: Stage) -> str:
        if self._at_proxy(progress, stage):
            return self._proxy.peer
        return f"{self._base.host}:{self._base.port}"

    def _failure(self, progress: Progress, error: BaseException) -> Failure:
        stage = progress.stage
        if isinstance(error, zlib.error):
            return Failure(FailureKind.BAD_ENCODING, stage, "zlib.error", str(error))
        if isinstance(error, UnaskedEncodingError):
            return Failure(FailureKind.ENCODING_NOT_ASKED, stage, "", str(error))
        from k3check.link.wire.failures import explain  # most calls do without

        at_proxy = self._at_proxy(progress, stage)
        return explain(error, stage, self._peer(progress, stage), at_proxy=at_proxy)


def _refusal(progress: Progress) -> bool:
    """The call was refused by status, whatever became of the body."""
    return progress.status is not None and progress.status >= 400


def _bounded_headers(response: httpx.Response) -> dict[str, str]:
    """Header names in lower case and their values, as far as they are of a sane size."""
    kept: dict[str, str] = {}
    size = 0
    for name, value in response.headers.items():
        size += len(name) + len(value)
        if size > _HEADER_BYTES:
            break
        kept[name.lower()] = value
    return kept
