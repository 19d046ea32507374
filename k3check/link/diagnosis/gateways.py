"""Rows for responses of what stands before the model: gateways, services, redirects.

Sources: sections C and D3 of the link specification.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from k3check.link.diagnosis.helpers import (
    LOW,
    MEDIUM,
    Heals,
    Tier,
    any_of,
    front,
    http_row,
    page,
    refused,
    search,
    status,
    words,
)
from k3check.link.wire.urls import Base

if TYPE_CHECKING:
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found, Row

_CLOUDFLARE_ORIGIN = (520, 521, 522, 523, 525, 526, 530)


def _redirect(seen: Observation) -> str:
    """The absolute target of a redirect, or empty."""
    if not refused(seen) or seen.status not in (301, 302, 303, 307, 308):
        return ""
    location = seen.header("location").strip()
    try:
        return urljoin(seen.exchange.call.url, location) if location else ""
    except ValueError:
        return ""


def _redirect_where(seen: Observation) -> tuple[str, Base, Base] | None:
    target = _redirect(seen)
    return (target, Base(seen.exchange.call.url), Base(target)) if target else None


def _redirect_login(seen: Observation) -> Found:
    target = _redirect(seen)
    if not target or not search(r"/(log-?in|sign-?in|auth|sso|oauth2?)\b", target):
        return None
    return {"target": target}


def _redirect_https(seen: Observation) -> Found:
    where = _redirect_where(seen)
    if where is None:
        return None
    target, old, new = where
    if old.host != new.host or (old.scheme, new.scheme) != ("http", "https"):
        return None
    return {"target": target, "corrected_base_url": _base_of(target, seen)}


def _base_of(target: str, seen: Observation) -> str:
    """The base from which the same client would go to a redirect's target at once."""
    path = urlsplit(seen.exchange.call.url).path
    tail = path.removeprefix(seen.base.parts.path.rstrip("/"))
    return target.partition("?")[0].removesuffix(tail) if tail else target


def _redirect_other(seen: Observation) -> Found:
    where = _redirect_where(seen)
    if where is None or where[1].host == where[2].host:
        return None
    return {"target": where[0], "new_host": where[2].host}


def _redirect_downgrade(seen: Observation) -> Found:
    where = _redirect_where(seen)
    if where is None or (where[1].scheme, where[2].scheme) != ("https", "http"):
        return None
    return {"target": where[0]}


def _redirect_path(seen: Observation) -> Found:
    target = _redirect(seen)
    return {"target": target} if target else None


def _cf_origin_tls(seen: Observation) -> bool:
    return refused(seen) and seen.status in (525, 526)


_R = Heals.RETRY

# What operating systems and libraries say where nobody answers at an address.
_UNREACHED = re.compile(
    r"econnrefused|connection refused|connect: no route to host|ehostunreach|enotfound|"
    r"no such host|name or service not known|upstream connect error|no healthy upstream|"
    r"err_connect_fail|failed to establish a new connection|all connection attempts failed",
    re.IGNORECASE,
)
_PEER = re.compile(r"(?<![\w.])((?:\d{1,3}\.){3}\d{1,3}:\d{2,5}|localhost:\d{2,5})(?!\d)")


def _unreached(seen: Observation) -> Found:
    """The answer itself says that what lies behind cannot be connected to."""
    if not refused(seen) or seen.status is None or seen.status < 500:
        return None
    text = seen.text[:16384] + " " + seen.header("x-squid-error")
    said = _UNREACHED.search(text)
    if said is None:
        return None
    peer = _PEER.search(text, said.start()) or _PEER.search(text)
    return {
        "said": " ".join(filter(None, (said.group(0), peer.group(1) if peer else ""))),
        "server": seen.front or "the gateway",
    }


def _local_proxy(seen: Observation) -> bool:
    """A failure that speaks of a proxy on the user's own machine."""
    return (
        refused(seen)
        and seen.status in (500, 502, 503, 504)
        and bool(search(r"local proxy|本地代理|proxy (program|software|client)|"
                        r"代理(软件|程序|失败)", seen.words))
    )  # fmt: skip


def _upstream_key(seen: Observation) -> bool:
    """A router passes on that its own upstream refused a key."""
    return refused(seen) and seen.error.relayed and bool(search(
        r"invalid[ _]authentication|authentication[_ ](error|fail)|unauthorized|"
        r"(incorrect|invalid|wrong)[ _]api[ _]?key|invalid x-api-key|\b401\b", seen.error.inner)
    )  # fmt: skip


def _dead_front(seen: Observation) -> Found:
    """A bare 502 of a web server that is known."""
    found = front(502)(seen)
    return found if found and seen.front else None


def _words(code: str, slug: str, *rows: int, heals: Heals = Heals.NEVER) -> Row:
    """A row that goes by the words alone."""
    return http_row(code, slug, Tier.FAMILY, words(slug), rows, heals=heals)


_R = Heals.RETRY

ROWS = (
    # The words of a gateway or a server.
    http_row("K3L-709", "gateway.local-proxy", Tier.FAMILY, _local_proxy, (68,), heals=_R,
             confidence=MEDIUM),
    _words("K3L-315", "service.upstream-saturated", 90, heals=_R),
    _words("K3L-280", "gateway.upstream-not-json", 103),
    _words("K3L-739", "gateway.no-candidate", 88),
    http_row("K3L-281", "gateway.upstream-dead", Tier.FAMILY,
             lambda seen: refused(seen) and seen.family == "litellm" and seen.status in (500, 503)
             and seen.says("connection error"), (103,), heals=_R),
    _words("K3L-287", "gateway.upstream-key", 119),
    http_row("K3L-740", "gateway.inner-key", Tier.FAMILY, _upstream_key, (119,)),
    _words("K3L-282", "gateway.hop-failed", 68, heals=_R),
    http_row("K3L-702", "gateway.upstream-unreached", Tier.FAMILY, _unreached, (103,), heals=_R),
    _words("K3L-283", "gateway.upstream-status", 103, heals=_R),
    _words("K3L-286", "gateway.channel-error", 90),
    _words("K3L-277", "service.loading", 89, heals=_R),
    _words("K3L-741", "service.model-busy", heals=_R),
    http_row("K3L-285", "parallel.rank-mismatch", Tier.FAMILY,
             lambda seen: refused(seen) and bool(search(
                 r"(expert|ep|rank|world).{0,20}(parallel|size|rank).{0,60}"
                 r"(mismatch|must (be|equal)|divisible|not equal|do(es)? not match)|rank mismatch",
                 seen.words)), (170,)),
    http_row("K3L-271", "gateway.origin-slow", Tier.FAMILY, status(524), (102,)),
    http_row("K3L-275", "gateway.origin-tls", Tier.FAMILY, _cf_origin_tls, (105,)),
    http_row("K3L-273", "gateway.origin-down", Tier.FAMILY, status(*_CLOUDFLARE_ORIGIN), (104,),
             heals=_R),
    # Blamed only if the request went through it.
    http_row("K3L-114", "proxy.answers", Tier.FAMILY,
             lambda seen: refused(seen) and seen.family == "corporate-proxy"
             and seen.status != 407 and bool(seen.proxy.url), (56, 79), confidence=MEDIUM),
    http_row("K3L-112", "proxy.auth", Tier.FAMILY, status(407), (53,)),
    # The body.
    http_row("K3L-278", "service.unavailable-page", Tier.BODY, page(503), (90,), heals=_R,
             confidence=MEDIUM),
    http_row("K3L-272", "gateway.bad-upstream", Tier.BODY, page(502), (103,), heals=_R),
    http_row("K3L-701", "front.dead-upstream", Tier.BODY, _dead_front, (103,), heals=_R),
    http_row("K3L-293", "redirect.login", Tier.BODY, _redirect_login, (107,), confidence=MEDIUM),
    http_row("K3L-290", "redirect.https", Tier.BODY, _redirect_https, (16, 107)),
    http_row("K3L-294", "redirect.downgrade", Tier.BODY, _redirect_downgrade, (15, 107)),
    http_row("K3L-291", "redirect.other-host", Tier.BODY, _redirect_other, (107, 171)),
    http_row("K3L-292", "redirect.path", Tier.BODY, _redirect_path, (15, 107)),
    http_row("K3L-295", "redirect.nowhere", Tier.BODY,
             status(300, 301, 302, 303, 304, 307, 308), (107,)),
    # The status alone never decides.
    http_row("K3L-270", "gateway.timeout", Tier.STATUS, status(408, 504), (101,), heals=_R,
             confidence=MEDIUM),
    http_row("K3L-274", "gateway.upstream-failed", Tier.STATUS, status(502), (103,), heals=_R,
             confidence=MEDIUM),
    http_row("K3L-276", "service.overloaded", Tier.STATUS, status(529), (106,), heals=_R,
             confidence=MEDIUM),
    http_row("K3L-279", "service.unavailable", Tier.STATUS, status(503), (90,), heals=_R,
             confidence=MEDIUM),
    http_row("K3L-284", "service.not-implemented", Tier.STATUS,
             any_of(words("service.not-implemented"), status(501)), (), confidence=MEDIUM),
    http_row("K3L-288", "service.error", Tier.STATUS, status(500), (), heals=_R,
             confidence=MEDIUM),
    http_row("K3L-299", "status.unexpected", Tier.REST, refused, (), confidence=LOW),
)  # fmt: skip
