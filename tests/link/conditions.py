"""Failures that no response can show: names, connections, proxies, TLS.

Each condition is real where the loopback can be made to behave so (closed ports, certificates,
proxies); what only a distant network does is what the operating system would say, said for it.
"""

from __future__ import annotations

import datetime as dt
import errno
import socket
import ssl
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from k3check.link.diagnosis.observation import Observation
from k3check.link.request import LinkRequest, Secret
from k3check.link.wire import client as client_module
from k3check.link.wire.client import Client
from k3check.link.wire.exchange import Call
from k3check.link.wire.proxies import choose
from k3check.link.wire.urls import Base
from tests.link.faulty import Connection, FaultyServer, Request, answer, closed_port, http

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest

KEY = "sk-canary-7Qm2vX9pLw4Zt8Kd3Rf6"


@dataclass
class Bench:
    """What a condition may use."""

    patch: pytest.MonkeyPatch
    folder: Path
    env: dict[str, str]


@dataclass(frozen=True)
class Condition:
    """A condition: a context that yields the LinkRequest's fields under which it holds."""

    name: str
    code: str
    make: Callable[[Bench], Any]
    needs: str = ""


def observe(fields: dict[str, Any], bench: Bench) -> Observation:
    """Send one chat under a condition."""
    fields = dict(fields)
    payload = fields.pop("payload", "x")
    request = LinkRequest(
        **{
            "api_key": Secret(KEY),
            "model": "kimi-k3",
            "timeout_s": 3.0,
            "env": bench.env,
        }
        | fields
    )
    base = Base(request.base_url or "")
    proxy = choose(base, request.proxy, request.env)
    body = {"model": "kimi-k3", "messages": [{"role": "user", "content": payload}]}
    with Client(request, proxy) as client:
        exchange = client.send(
            Call("POST", base.url("openai"), body), time.monotonic() + request.timeout_s
        )
        exchange = client.refine(exchange)
    return Observation(request, base, exchange, proxy=proxy)


def os_says(error: OSError) -> Callable[[Bench], Any]:
    """The operating system's answer to a connection attempt."""

    @contextmanager
    def make(bench: Bench) -> Iterator[dict[str, Any]]:
        def connect(*args: object, **kwargs: object) -> None:
            raise error

        bench.patch.setattr(socket, "create_connection", connect)
        yield {"base_url": "http://gateway.test/v1"}

    return make


@contextmanager
def refused(bench: Bench) -> Iterator[dict[str, Any]]:
    with closed_port() as port:
        yield {"base_url": f"http://127.0.0.1:{port}/v1"}


@contextmanager
def dead_env(bench: Bench) -> Iterator[dict[str, Any]]:
    with closed_port() as port:
        bench.env["HTTPS_PROXY"] = f"http://127.0.0.1:{port}"
        yield {"base_url": "https://gateway.test/v1"}


@contextmanager
def dead_config(bench: Bench) -> Iterator[dict[str, Any]]:
    with closed_port() as port:
        yield {"base_url": "https://gateway.test/v1", "proxy": f"http://127.0.0.1:{port}"}


def proxy_says(response: bytes) -> Callable[[Bench], Any]:
    """A proxy's answer to CONNECT."""

    @contextmanager
    def make(bench: Bench) -> Iterator[dict[str, Any]]:
        with FaultyServer([response]) as server:
            bench.env["HTTPS_PROXY"] = f"http://127.0.0.1:{server.port}"
            yield {"base_url": "https://gateway.test/v1"}

    return make


@contextmanager
def silent_proxy(bench: Bench) -> Iterator[dict[str, Any]]:
    with FaultyServer([lambda connection, request: connection.sleep(2)]) as server:
        bench.env["HTTPS_PROXY"] = f"http://127.0.0.1:{server.port}"
        yield {"base_url": "https://gateway.test/v1", "timeout_s": 0.4}


@contextmanager
def proxy_scheme(bench: Bench) -> Iterator[dict[str, Any]]:
    bench.env["HTTPS_PROXY"] = "foo://127.0.0.1:1"
    yield {"base_url": "https://gateway.test/v1"}


@contextmanager
def socks(bench: Bench) -> Iterator[dict[str, Any]]:
    # Whether or not socksio is installed here: without it httpx says exactly this.
    import httpx

    def missing(*args: object, **kwargs: object) -> None:
        raise ImportError("Using SOCKS proxy, but the 'socksio' package is not installed.")

    bench.patch.setattr(httpx, "Client", missing)
    bench.env["ALL_PROXY"] = "socks5://127.0.0.1:1"
    yield {"base_url": "https://gateway.test/v1"}


@contextmanager
def illegal_header(bench: Bench) -> Iterator[dict[str, Any]]:
    with FaultyServer([b""]) as server:
        yield {"base_url": server.base_url, "api_key": Secret(f"{KEY}\n")}


@contextmanager
def bad_host(bench: Bench) -> Iterator[dict[str, Any]]:
    yield {"base_url": f"http://{'a' * 70}.test/v1"}


@contextmanager
def not_read(bench: Bench) -> Iterator[dict[str, Any]]:
    """A server that takes the connection and nothing else."""
    bench.patch.setattr(client_module, "WRITE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken: list[socket.socket] = []
        thread = threading.Thread(target=lambda: taken.append(listener.accept()[0]), daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        yield {"base_url": f"http://127.0.0.1:{port}/v1", "payload": "x" * 30_000_000}
        thread.join(2)
        for sock in taken:
            sock.close()


@contextmanager
def bad_ca_file(bench: Bench) -> Iterator[dict[str, Any]]:
    bench.env["SSL_CERT_FILE"] = str(bench.folder / "missing.pem")
    yield {"base_url": "https://127.0.0.1:1/v1"}


@contextmanager
def plain_port(bench: Bench) -> Iterator[dict[str, Any]]:
    def talk(connection: Connection, request: Request) -> None:
        """Never reached: the greeting of TLS is no request."""

    with FaultyServer([talk], greeting=http(400, "Bad Request", "text/plain")) as server:
        yield {"base_url": server.base_url.replace("http://", "https://")}


@contextmanager
def hangs_up(bench: Bench) -> Iterator[dict[str, Any]]:
    """A server that closes in the middle of the handshake."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take() -> None:
            sock = listener.accept()[0]
            sock.recv(65536)
            sock.close()

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield {"base_url": f"https://127.0.0.1:{listener.getsockname()[1]}/v1"}
        thread.join(2)


def context(cert: Any) -> ssl.SSLContext:
    """A server's context with a certificate of trustme's."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    cert.configure_cert(made)
    return made


def tls(
    *,
    name: str = "127.0.0.1",
    trusted: bool = True,
    until: int = 30,
    since: int = -30,
    change: Callable[[ssl.SSLContext], None] | None = None,
    date: int | None = None,
) -> Callable[[Bench], Any]:
    """A TLS server with a certificate of a private authority."""

    @contextmanager
    def make(bench: Bench) -> Iterator[dict[str, Any]]:
        import trustme

        ca = trustme.CA()
        now = dt.datetime.now(dt.UTC)
        cert = ca.issue_cert(
            name,
            not_before=now + dt.timedelta(days=since),
            not_after=now + dt.timedelta(days=until),
        )
        made = context(cert)
        if change is not None:
            change(made)
        if trusted:
            file = bench.folder / "ca.pem"
            ca.cert_pem.write_to_path(str(file))
            bench.env["SSL_CERT_FILE"] = str(file)
        headers: tuple[tuple[str, str], ...] = ()
        if date is not None:
            headers = (("Date", format_datetime(now + dt.timedelta(days=date), usegmt=True)),)
        with FaultyServer([http(200, answer(), headers=headers)], tls=made) as server:
            yield {"base_url": server.base_url}

    return make


@contextmanager
def self_signed(bench: Bench) -> Iterator[dict[str, Any]]:
    """One certificate that has signed itself."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gateway")])
    now = dt.datetime.now(dt.UTC)
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    file = bench.folder / "self.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + cert.public_bytes(serialization.Encoding.PEM)
    )
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(file)
    with FaultyServer([http(200, answer())], tls=made) as server:
        yield {"base_url": server.base_url}


def old_cipher(made: ssl.SSLContext) -> None:
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers("AES128-SHA256")


def client_certificate(made: ssl.SSLContext) -> None:
    made.verify_mode = ssl.CERT_REQUIRED


C = Condition
CONDITIONS = (
    C("NXDOMAIN", "K3L-100",
      os_says(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))),
    C("resolver down", "K3L-101",
      os_says(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"))),
    C("label of 70 characters", "K3L-015", bad_host),
    C("port closed on this machine", "K3L-103", refused),
    C("port closed elsewhere", "K3L-102", os_says(ConnectionRefusedError(111, "refused"))),
    C("packets vanish", "K3L-104", os_says(TimeoutError("timed out"))),
    C("no route", "K3L-105", os_says(OSError(errno.ENETUNREACH, "Network is unreachable"))),
    C("proxy of a variable not running", "K3L-110", dead_env),
    C("proxy of a variable silent", "K3L-110", silent_proxy),
    C("proxy of the configuration not running", "K3L-111", dead_config),
    C("proxy wants a password", "K3L-112",
      proxy_says(http("407 Proxy Authentication Required", "", None,
                      headers=(("Proxy-Authenticate", "Basic"),)))),
    C("proxy refuses the tunnel", "K3L-113", proxy_says(http("403 Forbidden", "", None))),
    C("proxy with an unknown scheme", "K3L-060", proxy_scheme),
    C("SOCKS without its package", "K3L-061", socks),
    C("line break in the key", "K3L-152", illegal_header),
    C("server does not read", "K3L-151", not_read),
    C("https to a plain port", "K3L-120", plain_port),
    C("handshake cut", "K3L-129", hangs_up),
    C("certificate file missing", "K3L-131", bad_ca_file),
    C("self-signed certificate", "K3L-122", self_signed, "cryptography"),
    C("private authority", "K3L-123", tls(trusted=False), "trustme"),
    C("certificate of another name", "K3L-124", tls(name="gateway.test"), "trustme"),
    C("expired certificate", "K3L-125", tls(until=-1), "trustme"),
    C("certificate of the future", "K3L-126", tls(since=1, until=40), "trustme"),
    C("expired by this machine's clock alone", "K3L-133", tls(until=-1, date=-2), "trustme"),
    C("expired by both clocks", "K3L-125", tls(until=-2, date=-1), "trustme"),
    C("not valid yet by this machine's clock alone", "K3L-133",
      tls(since=1, until=40, date=2), "trustme"),
    C("no common cipher", "K3L-127", tls(change=old_cipher), "trustme"),
    C("client certificate demanded", "K3L-128", tls(change=client_certificate), "trustme"),
)  # fmt: skip
# Shown by nothing that can be arranged here; its row takes what no other row explains.
UNARRANGED = ("K3L-153",)
