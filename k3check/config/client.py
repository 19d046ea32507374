"""How a configuration's own client turns its settings into a request.

Every client joins its base URL and its API's path in a way of its own, and a base that is right for
one is wrong for the next. A dialect states its client's way with a :class:`Client`; exactly that is
requested. What would work instead is for a diagnosis to find out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlencode

from k3check.masking.address import looks_like_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.names import Auth

Wire: TypeAlias = Literal["openai", "anthropic", "responses"]

# Codes of right ways to have a key that no setting holds: a command prints it, the client's own
# login has it, or it stands in a store of the client's.
LOGINS = frozenset({"K3C-116", "K3C-150", "K3C-151"})
_SECRET = re.compile(r"(?i)key|token|secret|auth|cookie|passw|signature")
_VERSIONED = re.compile(r"/v\d+\Z")
# The last part of each API's path.
TAILS = {"openai": "chat/completions", "anthropic": "messages", "responses": "responses"}


@dataclass(frozen=True)
class Client:
    """How one client makes the URL and the headers of its requests.

    Attributes:
        name: the client as sentences call it, e.g. ``opencode with @ai-sdk/anthropic``.
        wire: the API that it speaks.
        path: what it appends to the base as it is written, slashes at the base's end left out;
            empty where the setting is the request's whole URL.
        auth: the header that carries the key; ``auto`` for the API's own.
        drops: an ending of the base that the client leaves out first.
        once: whether the path is not appended to a base that ends in it.
        query: what is appended to the URL as a query, name and value.
        adds_version: whether /v1 is put in between where the base does not end in a version.
    """

    name: str
    wire: Wire = "openai"
    path: str = "/chat/completions"
    auth: Auth = "auto"
    drops: str = ""
    once: bool = False
    adds_version: bool = False
    query: tuple[tuple[str, str], ...] = ()

    def url(self, base: str) -> str:
        """Where the client's requests go.

        Args:
            base: the setting as it is written.
        """
        return self._asked(self._joined(base))

    def _asked(self, url: str) -> str:
        return f"{url}?{urlencode(self.query)}" if self.query else url

    def _joined(self, base: str) -> str:
        base = base.strip()
        if not self.path:
            return base
        base = base.rstrip("/")
        if self.drops:
            base = base.removesuffix(self.drops)
        if self.once and base.endswith(self.path):
            return base
        added = "/v1" if self.adds_version and not _VERSIONED.search(base) else ""
        return base + added + self.path

    def models_url(self, base: str) -> str:
        """Where the same service lists its models: beside the API's own path."""
        url, tail = self._joined(base), TAILS[self.wire]
        return self._asked(url.removesuffix(tail).rstrip("/") + "/models")

    @property
    def versioned(self) -> bool:
        """Whether the client brings the version along, so that a base must not end in one."""
        return self.path.startswith("/v1/")

    @property
    def whole(self) -> bool:
        """Whether the setting is the request's whole URL."""
        return not self.path


# The official libraries, which most clients use: openai-python and openai-node append to base_url
# as it stands (openai/openai-python src/openai/_base_client.py, _prepare_url), Anthropic's append
# /v1/messages (anthropics/anthropic-sdk-python src/anthropic/resources/messages/messages.py).
OPENAI_PATH = "/chat/completions"
RESPONSES_PATH = "/responses"
ANTHROPIC_PATH = "/v1/messages"


def secret_headers(headers: Mapping[str, str]) -> list[str]:
    """The values of headers that carry a secret, by their names or by how they look."""
    found = []
    for name, value in headers.items():
        bare = value.partition(" ")[2] if value.lower().startswith("bearer ") else value
        if _SECRET.search(name) or looks_like_key(bare):
            found += [value, bare]
    return found


def sdk(name: str, wire: Wire = "openai") -> Client:
    """A client that uses the official library of an API."""
    paths = {"openai": OPENAI_PATH, "anthropic": ANTHROPIC_PATH, "responses": RESPONSES_PATH}
    return Client(name, wire, paths[wire])
