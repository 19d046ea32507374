"""What a base URL's text says before a packet is sent.

Source: section D1 (6 to 18) of the link specification.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from k3check.link.problem import Problem, Severity
from k3check.link.wire.redact import without_password
from k3check.link.wire.urls import PLATFORM_HOSTS, WEB_PAGES, Base, hidden
from k3check.masking.address import looks_like_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from k3check.link.request import LinkRequest

_SHORT_KEY = 16
B, F, W, N = Severity.BLOCK, Severity.FAIL, Severity.WARN, Severity.NOTE


def check(request: LinkRequest) -> Iterator[Problem]:
    """The base URL's text."""
    raw = request.base_url or ""
    if not raw.strip():
        return
    base, key = request.address(), "api.base_url"
    route = request.protocol if request.protocol in ("anthropic", "responses") else "openai"
    values = {
        "base_url": base.shown,
        "corrected_base_url": base.corrected,
        "corrected_url": base.corrected_url(route),
        "url": without_password(base.url(route)),
        "host": base.host,
        "sdk_base_url": base.sdk_base,
        "origin": request.origin(key),
        "where": request.origin(key) or "base_url",
    }

    def problem(code: str, severity: Severity, *, fix: bool = True, **more: Any) -> Problem:
        return Problem(code, severity, values | more, key, base.corrected if fix else None)

    if unseen := hidden(base.text):
        # Said first: what cannot be seen must not be shown, and every other rule would show it.
        right = base.corrected if Base(base.corrected).host else "https://HOST/PATH"
        more = {"characters": _named(unseen), "corrected_base_url": right}
        yield problem("K3L-034", B, fix=_good(base), **more)
        return
    if _url_placeholder(base):
        yield problem("K3L-018", B, fix=False)
        return
    if base.text != raw:
        yield problem("K3L-016", F)
    if _is_key(base):
        # No address can be made of it, and as a host's name it would be asked for in the network.
        yield problem("K3L-019", B, fix=False)
        return
    if not base.scheme:
        yield problem("K3L-002", B)
        return
    if base.scheme not in ("http", "https"):
        yield problem("K3L-003", B, scheme=base.scheme)
        return
    if base.open_bracket:
        yield problem("K3L-033", B, fix=_good(base))
        return
    if not base.host:
        yield problem("K3L-019", B, fix=False)
        return
    if _bad_host(base):
        yield problem("K3L-015", B, fix=_good(base))
        return
    if base.bad_port is not None:
        yield problem("K3L-014", B, fix=False, port=base.bad_port)
        return
    if odd := [c for c in dict.fromkeys(base.text) if c.isspace() or c in '\\"<>^`|']:
        yield problem("K3L-034", B, fix=False, characters=_named(odd))
        return
    if base.host in WEB_PAGES:
        yield problem("K3L-017", F)
        return
    if base.parts.query:
        yield problem("K3L-004", B)
    if base.has_fragment:
        yield problem("K3L-005", B)
    takes_endpoint = base.client is not None and (base.client.whole or base.client.once)
    if base.pasted_endpoint and not takes_endpoint:
        yield problem("K3L-006", F, endpoint=base.pasted_endpoint)
    if base.doubled_version:
        yield problem("K3L-007", F)
    if (request.protocol == "anthropic" and base.has_version and not base.may_have_version) or (
        request.protocol == "anthropic"
        and base.host in PLATFORM_HOSTS
        and (not base.anthropic_path)
    ):
        yield problem("K3L-009", F)
    elif request.protocol != "anthropic" and base.anthropic_path:
        yield problem("K3L-010", F)
    if base.has_password:
        yield problem("K3L-013", W)
    if base.scheme == "http" and not base.private:
        fixed = "https" + base.corrected[4:]
        yield Problem("K3L-012", W, values | {"corrected_base_url": fixed}, key, fixed)
    if base.parts.path.endswith("/") and base.parts.path != "/":
        yield problem("K3L-011", N)
    if request.protocol == "openai" and not base.client and not Base(base.corrected).has_version:
        yield problem("K3L-008", N, fix=False)


def _good(base: Base) -> bool:
    """The corrected address is one."""
    right = Base(base.corrected, base.protocol)
    return bool(right.host) and not right.open_bracket and _good_host(right)


def _named(characters: Iterable[str]) -> str:
    """Characters by number and name: some of them must not be shown."""
    names = {
        " ": "space",
        "\t": "tab",
        "\n": "line break",
        "\r": "carriage return",
        "\x1b": "escape",
    }
    found = []
    for c in dict.fromkeys(characters):
        name = names.get(c) or unicodedata.name(c, "").lower()
        found.append(f"U+{ord(c):04X} ({name})" if name else f"U+{ord(c):04X}")
    return ", ".join(found[:4]) + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _is_key(base: Base) -> bool:
    """A key stands in the address's or the host's place; a short one may be a host's name."""
    host = base.parts.netloc.rpartition("@")[2] if base.scheme else base.text
    long = len(host) >= _SHORT_KEY and any(c.isdigit() for c in host)
    return long and looks_like_key(host)


def _url_placeholder(base: Base) -> bool:
    text = unquote(base.text).lower()
    host = base.host or text
    return bool(
        re.search(r"\$\{?\w+|\{\{|\{env:|<[^>]*>|^os\.environ", unquote(base.raw))
        or re.search(r"(^|[./@-])your[-_.]", host)
        or host in ("example.com", "host", "hostname", "xxx", "xxx.com", "domain.com")
        or host.endswith(".example.com")
    )


def _bad_host(base: Base) -> bool:
    return not _good_host(base)


def _good_host(base: Base) -> bool:
    host = base.host
    if ":" in host:
        return True  # an IPv6 address; urlsplit has checked its brackets
    if unicodedata.normalize("NFKC", host) != host or "。" in host:
        return False  # some libraries read full-width characters as plain ones, others do not
    try:
        ascii_host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        return False
    return bool(host) and all(
        re.fullmatch(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", label)
        for label in ascii_host.split(".")
    )
