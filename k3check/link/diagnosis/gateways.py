"""Rows for responses of what stands before the model: gateways, services, redirects.

Sources: sections C and D3 of the link specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin

from k3check.link.diagnosis.helpers import (
    LOW,
    MEDIUM,
    Heals,
    Tier,
    error_type,
    http_row,
    page,
    refused,
    says,
    search,
    status,
)
from k3check.link.wire.urls import Base

if TYPE_CHECKING:
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found

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
    return {"target": target, "corrected_base_url": "https" + seen.base.corrected[4:]}


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

ROWS = (
    # The base URL itself explains it.
    # The family's own wording.
    http_row("K3L-315", "service.upstream-saturated", Tier.FAMILY,
             says("上游负载已饱和", "upstream load is saturated", "负载已饱和"), (90,), heals=_R),
    http_row("K3L-280", "gateway.upstream-not-json", Tier.FAMILY,
             says("empty or invalid response from llm endpoint"), (103,)),
    http_row("K3L-281", "gateway.upstream-dead", Tier.FAMILY,
             lambda seen: refused(seen) and seen.family == "litellm" and seen.status in (500, 503)
             and seen.says("connection error"), (103,), heals=_R),
    http_row("K3L-287", "gateway.upstream-key", Tier.FAMILY,
             lambda seen: seen.family == "litellm"
             and says("litellm.authenticationerror", codes=(401,))(seen), (119,)),
    http_row("K3L-282", "gateway.hop-failed", Tier.FAMILY, error_type("proxy_error"), (68,),
             heals=_R),
    http_row("K3L-283", "gateway.upstream-status", Tier.FAMILY,
             error_type("bad_response_status_code", "upstream_error", "do_request_failed"), (103,),
             heals=_R),
    http_row("K3L-286", "gateway.channel-error", Tier.FAMILY,
             lambda seen: refused(seen) and seen.error.code.startswith("channel:"), (90,)),
    http_row("K3L-277", "service.loading", Tier.FAMILY,
             says("loading model", "model is loading", codes=(503,)), (89,), heals=_R),
    http_row("K3L-285", "parallel.rank-mismatch", Tier.FAMILY,
             lambda seen: refused(seen) and bool(search(
                 r"(expert|ep|rank|world).{0,20}(parallel|size|rank).{0,60}"
                 r"(mismatch|must (be|equal)|divisible|not equal|do(es)? not match)|rank mismatch",
                 seen.words)), (170,)),
    http_row("K3L-271", "gateway.origin-slow", Tier.FAMILY, status(524), (102,)),
    http_row("K3L-275", "gateway.origin-tls", Tier.FAMILY, _cf_origin_tls, (105,)),
    http_row("K3L-273", "gateway.origin-down", Tier.FAMILY, status(*_CLOUDFLARE_ORIGIN), (104,),
             heals=_R),
    http_row("K3L-114", "proxy.answers", Tier.FAMILY,
             lambda seen: refused(seen) and seen.family == "corporate-proxy"
             and seen.status != 407, (56, 79), confidence=MEDIUM),
    http_row("K3L-112", "proxy.auth", Tier.FAMILY, status(407), (53,)),
    # The body.
    http_row("K3L-278", "service.unavailable-page", Tier.BODY, page(503), (90,), heals=_R,
             confidence=MEDIUM),
    http_row("K3L-272", "gateway.bad-upstream", Tier.BODY, page(502), (103,), heals=_R),
    http_row("K3L-293", "redirect.login", Tier.BODY, _redirect_login, (107,), confidence=MEDIUM),
    http_row("K3L-290", "redirect.https", Tier.BODY, _redirect_https, (16, 107)),
    http_row("K3L-294", "redirect.downgrade", Tier.BODY, _redirect_downgrade, (15, 107)),
    http_row("K3L-291", "redirect.other-host", Tier.BODY, _redirect_other, (107, 171)),
    http_row("K3L-292", "redirect.path", Tier.BODY, _redirect_path, (15, 107)),
    http_row("K3L-295", "redirect.nowhere", Tier.BODY,
             status(300, 301, 302, 303, 304, 307, 308), (107,)),
    # The status alone.
    http_row("K3L-270", "gateway.timeout", Tier.STATUS, status(408, 504), (101,), heals=_R),
    http_row("K3L-274", "gateway.upstream-failed", Tier.STATUS, status(502), (103,), heals=_R),
    http_row("K3L-276", "service.overloaded", Tier.STATUS, status(529), (106,), heals=_R),
    http_row("K3L-279", "service.unavailable", Tier.STATUS, status(503), (90,), heals=_R),
    http_row("K3L-284", "service.not-implemented", Tier.STATUS, status(501), ()),
    http_row("K3L-288", "service.error", Tier.STATUS, status(500), (), heals=_R,
             confidence=MEDIUM),
    http_row("K3L-299", "status.unexpected", Tier.REST, refused, (), confidence=LOW),
)  # fmt: skip
