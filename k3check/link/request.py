"""What is asked of the link check: plain frozen data, from options and configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from k3check.config.client import secret_headers
from k3check.link.wire.redact import Redactor
from k3check.link.wire.urls import Base
from k3check.masking import MASK
from k3check.masking.address import hosts, secrets_in_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.client import Client
    from k3check.config.loaded import Loaded
    from k3check.model import Message

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
TLS_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class Secret:
    """A key that cannot be printed by accident: only :meth:`reveal` gives it out."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


@dataclass(frozen=True)
class LinkRequest:
    """One run of the endpoint check.

    Attributes:
        base_url, api_key, model: what is checked; None if nowhere configured.
        protocol: ``openai`` (chat completions), ``anthropic`` (messages) or ``responses``.
        auth: header that carries the key: ``bearer``, ``x-api-key``, ``both`` or ``auto`` (by
            protocol).
        timeout_s: total seconds of one probe's call, retries included.
        max_retries: as configured; the check itself never retries more than three times.
        proxy: a proxy from the configuration; it wins over the environment.
        probes: names to run; empty for the profile's default.
        profile: ``quick``, ``default`` or ``full``; ``stress`` is taken as ``full``.
        offline: send nothing: lint alone.
        dialect: name of the configuration's dialect.
        temperature ... extra_body: as configured; None where the configuration is silent.
        needle_tokens: length of the long context in tokens.
        agent_turns: most turns of the agent loop.
        ca_file: certificates to trust besides the default ones.
        origins: where each value came from, by dotted key (``api.base_url``).
        env: variables that change the way out (proxies, certificates), by name.
        files: configuration files that were read and may hold the key.
        headers: sent along with every request.
        client: how the configuration's client makes requests; None for our own way.
        faults: what keeps that client from starting or asking.
        absent: by dotted key, why nothing sets it.
        backoff_s: first pause before a retry where the server names none.
    """

    base_url: str | None = None
    api_key: Secret | None = None
    model: str | None = None
    protocol: str = "openai"
    auth: str = "auto"
    timeout_s: float = 120.0
    max_retries: int = 2
    proxy: str | None = None
    probes: tuple[str, ...] = ()
    profile: str = "default"
    offline: bool = False
    dialect: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    n: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    max_output_tokens: int | None = None
    context_window: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    needle_tokens: int = 100_000
    agent_turns: int = 12
    ca_file: str | None = None
    origins: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    client: Client | None = None
    faults: tuple[Message, ...] = ()
    absent: Mapping[str, Message] = field(default_factory=dict)
    backoff_s: float = 0.5

    def address(self, text: str | None = None) -> Base:
        """The base URL, or another one in its place, as the configuration's client takes it.

        Where ``--protocol`` names another API than the client's, our own way is taken.
        """
        client = self.client if self.client and self.client.wire == self.protocol else None
        return Base(self.base_url or "" if text is None else text, self.protocol, client)

    def origin(self, key: str) -> str:
        """Where a value came from, for messages; empty if unknown."""
        return self.origins.get(key, "")


def relevant_env(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that change how the endpoint is reached.

    Lower-case spellings are kept under their own name: they win over the upper-case ones.
    """
    wanted = {name.lower() for name in PROXY_VARIABLES + TLS_VARIABLES}
    return {name: value for name, value in environ.items() if name.lower() in wanted and value}


class Options(Protocol):
    """What the command line adds to a configuration."""

    @property
    def probes(self) -> tuple[str, ...]:
        """Probes to run; empty for the profile's."""

    @property
    def offline(self) -> bool:
        """Send nothing."""

    @property
    def profile(self) -> str | None:
        """``quick``, ``full``, ``stress`` or None."""


# The API that a dialect's client speaks; every other dialect's speaks chat completions.
_WIRES = {"claude-code": "anthropic", "codex-auth": "responses", "codex": "responses"}


def protocol_of(loaded: Loaded) -> str:
    """The API that a configuration's client speaks."""
    configured: str = loaded.config.link.protocol
    return configured if configured != "auto" else _WIRES.get(loaded.dialect or "", "openai")


def request_from(
    loaded: Loaded,
    asked: Options,
    *,
    env: Mapping[str, str],
    base_url: str | None = None,
    api_key: str | None = None,
    model: str | None = None,
) -> LinkRequest:
    """The request of a configuration and the command line's options.

    Args:
        loaded: the configuration.
        asked: the options.
        env: the environment; only what changes the way out is read.
        base_url, api_key, model: take the configuration's place (the demo's own server).
    """
    config = loaded.config
    # A model that the file's client would have named is not replaced by our default.
    named = config.model.name if "model.name" not in loaded.absent else None
    key = api_key
    if key is None and config.api.api_key is not None:
        key = config.api.api_key.get_secret_value()
    return LinkRequest(
        base_url=base_url if base_url is not None else config.api.base_url,
        api_key=Secret(key) if key is not None else None,
        model=model if model is not None else named,
        protocol=protocol_of(loaded),
        auth=config.link.auth,
        timeout_s=config.api.timeout_seconds,
        max_retries=config.api.max_retries,
        proxy=config.link.proxy,
        probes=tuple(asked.probes),
        profile=asked.profile or "default",
        offline=asked.offline,
        dialect=loaded.dialect,
        temperature=config.model.temperature,
        top_p=config.model.top_p,
        n=config.model.n,
        presence_penalty=config.model.presence_penalty,
        frequency_penalty=config.model.frequency_penalty,
        max_output_tokens=config.model.max_output_tokens,
        context_window=config.model.context_window,
        extra_body=config.client.extra_body,
        needle_tokens=config.link.needle_tokens,
        agent_turns=config.link.agent_turns,
        ca_file=config.link.ca_file,
        origins={key: str(origin) for key, origin in loaded.origins.items()},
        env=relevant_env(env),
        files=(str(loaded.path),) if loaded.path is not None else (),
        headers=config.api.headers,
        client=loaded.client if base_url is None else None,
        faults=loaded.faults,
        absent=loaded.absent,
    )


def url_of(loaded: Loaded) -> str:
    """Where a configuration's client sends its requests; empty without an address."""
    wire = protocol_of(loaded)
    client = loaded.client if loaded.client and loaded.client.wire == wire else None
    base = Base(loaded.config.api.base_url or "", wire, client)
    return base.url(wire) if base.host else ""


def secrets_of(request: LinkRequest) -> tuple[str, ...]:
    """What must never be shown: the key, and what stands inside addresses and the model's id."""
    found = [request.api_key.reveal()] if request.api_key else []
    found += secret_headers(request.headers)
    for text in (request.base_url, request.model, request.proxy, *request.env.values()):
        found += secrets_in_address(text)
    return tuple(found)


def redactor_of(request: LinkRequest) -> Redactor:
    """What takes the request's secrets out of texts; the endpoint's host is none."""
    return Redactor(secrets_of(request), public=hosts(request.base_url))
