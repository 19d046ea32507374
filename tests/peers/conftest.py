"""One fixture for each peer, started once for the session and ended with it.

LiteLLM takes up to a minute to come up, so it is started before the first test of this folder and
its tests run last.
"""

from __future__ import annotations

import importlib.util
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest

from k3check.link.demo import DemoServer
from tests.link.faulty import closed_port
from tests.peers import certificates as certificate_files
from tests.peers import configs
from tests.peers.servers import Process, free_port, in_venv, missing, program, running
from tests.peers.upstream import faulty

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.link.faulty import FaultyServer

LITELLM_S = 150.0  # a cold start on a busy machine


@dataclass(frozen=True)
class Endpoint:
    """Where something is served, and the key for it."""

    port: int
    key: str = ""

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.root}/v1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give LiteLLM time: of this folder, its tests run last."""
    ours = [i for i, item in enumerate(items) if "tests/peers/" in item.path.as_posix()]
    ordered = sorted((items[i] for i in ours), key=uses_litellm)
    for i, item in zip(ours, ordered, strict=True):
        items[i] = item


def uses_litellm(item: pytest.Item) -> bool:
    return "litellm" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def demo() -> Iterator[DemoServer]:
    with DemoServer() as server:
        yield server


@pytest.fixture(scope="session")
def failing() -> Iterator[FaultyServer]:
    with faulty() as server:
        yield server


@pytest.fixture(scope="session")
def dead_port() -> Iterator[int]:
    with closed_port() as port:
        yield port


@pytest.fixture(scope="session")
def litellm_port() -> int:
    return free_port()


@pytest.fixture(scope="session", autouse=True)
def litellm_process(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Process, Endpoint] | None]:
    """LiteLLM on its way up; None if no test asks for it or it is not installed."""
    if not any(uses_litellm(item) for item in request.session.items):
        yield None
        return
    try:
        command = in_venv("litellm")
    except pytest.skip.Exception:
        yield None  # the tests that need it say so themselves
        return
    demo = request.getfixturevalue("demo")
    port = request.getfixturevalue("litellm_port")
    made = Endpoint(port, f"sk-canary-{secrets.token_hex(16)}")
    folder = tmp_path_factory.mktemp("litellm")
    text = configs.litellm(made.key, demo.base_url, demo.api_key,
                           request.getfixturevalue("failing").port,
                           request.getfixturevalue("dead_port"))  # fmt: skip
    (folder / "config.yaml").write_text(text, "utf-8")
    process = Process(
        [command, "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port),
         "--telemetry", "False"],
        folder / "log.txt",
        # Nothing is fetched from outside: the list of prices that it ships is enough.
        {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "DISABLE_ADMIN_UI": "True"},
    )  # fmt: skip
    try:
        yield process, made
    finally:
        process.stop()


@pytest.fixture(scope="session")
def litellm(litellm_process: tuple[Process, Endpoint] | None) -> Endpoint:
    """LiteLLM's proxy: ``kimi-k3`` works, the other models are named after their failures."""
    if litellm_process is None:
        missing("litellm")
        raise AssertionError
    process, made = litellm_process
    process.wait_for(made.port, LITELLM_S)
    # Its first answer takes seconds, for what it loads then: no test shall measure that.
    httpx.post(
        f"{made.base_url}/chat/completions",
        headers={"authorization": f"Bearer {made.key}"},
        json={"model": "kimi-k3", "stream": True, "messages": [{"role": "user", "content": "x"}]},
        timeout=60,
    ).raise_for_status()
    return made


@pytest.fixture(scope="session")
def llmock_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """llmock: does what a scenario says and judges how the client took it."""
    command = in_venv("llmock")
    made = Endpoint(free_port())
    log = tmp_path_factory.mktemp("llmock") / "log.txt"
    arguments = [command, "serve", "--host", "127.0.0.1", "--port", str(made.port),
                 "--response-style", "static"]  # fmt: skip
    with running(arguments, log, made.port, seconds=30):
        yield made


@pytest.fixture
def llmock(llmock_server: Endpoint) -> Endpoint:
    """llmock without memory of earlier tests."""
    httpx.post(f"{llmock_server.root}/_llmock/reset").raise_for_status()
    return llmock_server


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The authority's file, beside the certificates that it gave out."""
    if importlib.util.find_spec("trustme") is None:
        missing("trustme")
    return certificate_files.write(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def nginx(
    demo: DemoServer, failing: FaultyServer, dead_port: int, litellm_port: int, certificates: Path
) -> Iterator[configs.Nginx]:
    """nginx in front of everything."""
    command = program("nginx")
    folder = certificates.parent
    (folder / "empty").mkdir()
    tls = {kind: free_port() for kind in certificate_files.KINDS}
    made = configs.Nginx(free_port(), tls)
    text = configs.nginx(
        folder,
        made,
        good=demo.base_url.removesuffix("/v1"),
        faulty=f"http://127.0.0.1:{failing.port}",
        dead=f"http://127.0.0.1:{dead_port}",
        gateway=f"http://127.0.0.1:{litellm_port}",
        ca=str(certificates),
    )
    (folder / "nginx.conf").write_text(text, "utf-8")
    arguments = [command, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with running(arguments, folder / "log.txt", made.port):
        yield made


@pytest.fixture(scope="session")
def tinyproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """Ports of three proxies: open, with a password, and one that lets only port 443 through."""
    command = program("tinyproxy")
    wanted = {"open": (), "password": ("BasicAuth staff hunter22secret",),
              "strict": ("ConnectPort 443",)}  # fmt: skip
    folder = tmp_path_factory.mktemp("tinyproxy")
    ports = {kind: free_port() for kind in wanted}
    processes = []
    try:
        for kind, extra in wanted.items():
            file = folder / f"{kind}.conf"
            file.write_text(configs.tinyproxy(ports[kind], *extra), "utf-8")
            processes.append(Process([command, "-d", "-c", str(file)], folder / f"{kind}.log"))
            processes[-1].wait_for(ports[kind], 10)
        yield ports
    finally:
        for process in processes:
            process.stop()
