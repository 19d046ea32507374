"""Rows for responses that are no success: keys, permissions, paths, models.

Sources: sections A6, C and D3 of the link specification.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from k3check.link.diagnosis import providers
from k3check.link.diagnosis.helpers import (
    HIGH,
    MEDIUM,
    Tier,
    any_of,
    cloudflare_error,
    cloudflare_page,
    cloudflare_words,
    front,
    http_row,
    page,
    refused,
    search,
    status,
    words,
)
from k3check.link.wire.urls import CODE_HOST, PLATFORM_HOSTS, Base

if TYPE_CHECKING:
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found, Row


def _lost_path(seen: Observation) -> bool:
    """The request did not reach an API route: a path error, or a web page with a success."""
    if seen.exchange.failure is not None or seen.status is None:
        return False
    model_error = seen.says("model") and not seen.html and not seen.says("invalid url")
    return (seen.status in (404, 405) and not model_error) or (seen.status < 300 and seen.html)


def _query(seen: Observation) -> bool:
    return bool(seen.base.parts.query) and _lost_path(seen)


def _fragment(seen: Observation) -> bool:
    return seen.base.has_fragment and _lost_path(seen)


def _pasted(seen: Observation) -> Found:
    endpoint = seen.base.pasted_endpoint
    return {"endpoint": endpoint} if endpoint and _lost_path(seen) else None


def _doubled(seen: Observation) -> bool:
    return seen.base.doubled_version and _lost_path(seen)


def _anthropic_base(seen: Observation) -> bool:
    return seen.wire == "openai" and seen.base.anthropic_path and _lost_path(seen)


def _openai_base(seen: Observation) -> bool:
    return seen.wire == "anthropic" and seen.base.has_version and _lost_path(seen)


def _web_page(seen: Observation) -> bool:
    return seen.base.corrected != seen.base.text and _host_changes(seen) and _lost_path(seen)


def _host_changes(seen: Observation) -> bool:
    return Base(seen.base.corrected).host != seen.base.host


def _wrong_region(seen: Observation) -> bool:
    return (
        refused(seen)
        and seen.status == 401
        and seen.base.host in PLATFORM_HOSTS
        and not seen.says("incorrect api key", "incorrect_api_key")
    )


def _code_plan_key(seen: Observation) -> bool:
    return refused(seen) and seen.status == 401 and seen.base.host == CODE_HOST


def _header_kind(seen: Observation) -> Found:
    if not refused(seen) or seen.status not in (400, 401, 403):
        return None
    sent = "x-api-key" if seen.exchange.call.auth == "x-api-key" else "Authorization: Bearer"
    if sent != "x-api-key" and seen.says("x-api-key", "api-key header"):
        return {"sent": sent, "wanted": "x-api-key"}
    if sent == "x-api-key" and seen.says("authorization header", "bearer"):
        return {"sent": sent, "wanted": "Authorization: Bearer"}
    return None


def _litellm_no_key(seen: Observation) -> bool:
    return (
        seen.status == 500
        and refused(seen)
        and seen.exchange.media_type == "text/plain"
        and seen.text.strip() == "Internal Server Error"
    )


# A key that is signed anew for a few minutes at a time: a JSON Web Token.
_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_TIMED = (
    "timestamp", "signature has expired", "signature expired", "request time too skewed",
    "requesttimetooskewed", "used before issued", "not yet valid", "clock", "时间戳",
)  # fmt: skip


def _clock(seen: Observation) -> Found:
    """A signed key is refused, and this machine's clock is wrong."""
    if not refused(seen) or seen.status not in (400, 401, 403):
        return None
    key = seen.request.api_key
    signed = key is not None and seen.status == 401 and bool(_TOKEN.fullmatch(key.reveal().strip()))
    if not signed and not seen.says(*_TIMED):
        return None
    from k3check.link.wire import clock

    if abs(seen.skew_s) < clock.SIGNATURE_S or seen.server_time is None:
        return None
    ours = clock.shown(seen.exchange.received_at or 0.0)
    return {"ours": ours, "theirs": clock.shown(seen.server_time)}


def _auth_page(seen: Observation) -> bool:
    basic = seen.header("www-authenticate").lower().startswith(("basic", "negotiate", "ntlm"))
    return refused(seen) and seen.status == 401 and (seen.html or basic)


def _loopback_proxy(seen: Observation) -> bool:
    """A proxy answered for this machine: no API sends a page or nothing with these."""
    json_body = seen.parsed.ok
    return (
        bool(seen.proxy.url)
        and seen.base.loopback
        and refused(seen)
        and seen.status in (403, 404, 500, 502, 503, 504)
        and not json_body
    )


def _model_words(seen: Observation) -> bool:
    """The message is about the model's name."""
    return bool(
        search(
            r"model\S*\s+(.{0,80}\s)?(is )?"
            r"(not (be )?(found|exist|support|available|valid|recogni)|"
            # Whole words: "invalid_request_error" behind a word about models is no such message.
            r"does(n't| not) exist|(unknown|invalid|unavailable)\b)|"
            r"(no such|unknown|invalid|unsupported|unrecognized) model|model_not_found|"
            r"not found the model|not a valid model|模型.{0,40}(不存在|未找到|不支持|无效)|"
            r"(no|not any) (model|endpoints?) found",
            seen.words,
        )
    )


def _model_missing(seen: Observation) -> bool:
    named = seen.error.type in ("NotFoundError", "not_found_error") and seen.says("model")
    return refused(seen) and seen.status == 404 and (_model_words(seen) or named)


def _model_invalid(seen: Observation) -> bool:
    return refused(seen) and seen.status in (400, 403, 422, 500) and _model_words(seen)


# Cloudflare's numbers for what its customer has forbidden: networks, addresses, countries, clients.
_BLOCKS = (1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1020, 1106)
_BLOCKED = ("you have been blocked", "access denied", "restrict access", "unable to access")


def _firewall(seen: Observation) -> Found:
    """A rule of Cloudflare's firewall: there is no challenge that a browser could pass."""
    if not cloudflare_page(seen):
        return None
    number = cloudflare_error(seen)
    if number is None:
        blocked = any(word in cloudflare_words(seen) for word in _BLOCKED)
        return {"error": seen.error.message[:120]} if blocked else None
    return {"error": f"error {number}"} if number in _BLOCKS else None


def _other_service(seen: Observation) -> Found:
    """The error names the console of a service whose host is not the configured one."""
    if not refused(seen) or seen.status not in (401, 403):
        return None
    here = seen.base.host
    for row in providers.table():
        for console in row.console:
            told = search(rf"(?<![\w.-]){re.escape(console)}(?![\w-])", seen.words)
            own = any(fnmatchcase(here, host) for host in row.hosts)
            if told and row.hosts and not own and not _same_site(here, console):
                return {"service": row.name, "console": console}
    return None


def _same_site(host: str, console: str) -> bool:
    """Both hosts belong to one name (``api.example.com`` and ``www.example.com``)."""
    return host.split(".")[-2:] == console.split(".")[-2:]


def _feature(seen: Observation) -> Found:
    """What is refused differs from what has worked in this run by one thing alone."""
    more = seen.facts.get("more") if seen.facts.get("worked") else None
    refusals = (400, 401, 403, 404, 405, 410, 422, 501)
    return {"more": more} if more and refused(seen) and seen.status in refusals else None


def _no_route(seen: Observation) -> bool:
    return (
        refused(seen)
        and seen.status == 404
        and (seen.error.shape in ("detail", "string") or seen.says("file not found"))
    )


def _words(code: str, slug: str, *rows: int) -> Row:
    """A row that goes by the words alone."""
    return http_row(code, slug, Tier.FAMILY, words(slug), rows)


ROWS = (
    # The base URL itself explains it.
    http_row("K3L-004", "url.query-swallows-path", Tier.BASE, _query, (8, 83, 121)),
    http_row("K3L-005", "url.fragment", Tier.BASE, _fragment, (9,)),
    http_row("K3L-006", "url.endpoint-pasted", Tier.BASE, _pasted, (10,)),
    http_row("K3L-007", "url.doubled-version", Tier.BASE, _doubled, (12,)),
    http_row("K3L-010", "url.anthropic-base", Tier.BASE, _anthropic_base, (14,)),
    http_row("K3L-009", "url.openai-base", Tier.BASE, _openai_base, (13,)),
    http_row("K3L-017", "url.web-page", Tier.BASE, _web_page, (121,)),
    http_row("K3L-213", "auth.clock-skew", Tier.BASE, _clock, (49,), confidence=MEDIUM),
    http_row("K3L-062", "proxy.loopback", Tier.BASE, _loopback_proxy, (56,), confidence=MEDIUM),
    # The words of a provider, a gateway or a server.
    _words("K3L-204", "auth.token-missing", 71),
    _words("K3L-205", "auth.token-expired", 71),
    _words("K3L-206", "auth.token-exhausted", 71),
    _words("K3L-207", "auth.token-disabled", 71),
    _words("K3L-203", "auth.token-invalid", 71),
    _words("K3L-708", "auth.other-product", 69),
    http_row("K3L-733", "auth.other-service", Tier.FAMILY, _other_service, (69,)),
    _words("K3L-220", "access.channel-suffix", 80),
    _words("K3L-209", "auth.litellm-no-db", 73),
    http_row("K3L-210", "auth.litellm-no-key", Tier.FAMILY, _litellm_no_key, (74,),
             confidence=MEDIUM),
    _words("K3L-218", "access.client-not-allowed", 78),
    _words("K3L-221", "access.permission-denied", 76),
    _words("K3L-734", "access.account-unbound"),
    _words("K3L-735", "access.organization-restricted"),
    _words("K3L-736", "access.data-policy"),
    _words("K3L-226", "quota.membership", 81),
    _words("K3L-215", "quota.user-exhausted", 75),
    _words("K3L-216", "access.model-not-allowed", 76),
    _words("K3L-241", "model.no-channel", 88),
    _words("K3L-236", "path.api-missing", 83),
    _words("K3L-231", "path.invalid-url", 83),
    _words("K3L-242", "model.litellm-unknown", 85),
    _words("K3L-243", "model.not-pulled", 85),
    _words("K3L-240", "model.not-found-or-permission", 85),
    _words("K3L-718", "model.deployment", 85),
    _words("K3L-716", "model.retired", 85),
    _words("K3L-705", "model.not-offered", 85),
    _words("K3L-737", "model.not-opened", 85),
    _words("K3L-738", "model.terms"),
    _words("K3L-727", "model.pinned", 85),
    http_row("K3L-227", "access.waf-block", Tier.FAMILY, _firewall, (79,)),
    http_row("K3L-219", "access.waf-page", Tier.FAMILY, cloudflare_page, (79,)),
    # The body.
    http_row("K3L-719", "feature.refused", Tier.BODY, _feature, (), confidence=MEDIUM),
    http_row("K3L-208", "auth.header-kind", Tier.BODY, _header_kind, (72,), confidence=MEDIUM),
    http_row("K3L-202", "auth.mistyped", Tier.BODY, words("auth.mistyped"), (69,)),
    http_row("K3L-201", "auth.wrong-region", Tier.BODY, _wrong_region, (70,), confidence=MEDIUM),
    http_row("K3L-211", "auth.wrong-product", Tier.BODY, _code_plan_key, (25, 69),
             confidence=MEDIUM),
    http_row("K3L-212", "auth.page-asks-password", Tier.BODY, _auth_page, (79,),
             confidence=MEDIUM),
    http_row("K3L-217", "access.address", Tier.BODY, words("access.address"), (77,)),
    http_row("K3L-223", "access.region", Tier.BODY,
             any_of(words("access.region"), status(451)), (108,), confidence=MEDIUM),
    # A message about a model's name may have another cause: the looks afterwards tell.
    http_row("K3L-244", "model.not-found", Tier.BODY,
             any_of(words("model.not-found"), _model_missing), (85,), confidence=MEDIUM),
    http_row("K3L-245", "model.invalid", Tier.BODY,
             any_of(words("model.invalid"), _model_invalid), (85,), confidence=MEDIUM),
    http_row("K3L-230", "path.not-found-page", Tier.BODY, page(404), (82,), confidence=MEDIUM),
    http_row("K3L-233", "path.not-found-text", Tier.BODY,
             lambda seen: refused(seen) and seen.status == 404
             and seen.text.strip().lower().startswith("404 page not found"), (86,),
             confidence=MEDIUM),
    http_row("K3L-232", "path.not-found-json", Tier.BODY, _no_route, (84,), confidence=MEDIUM),
    http_row("K3L-700", "front.denied", Tier.BODY, front(403), (79,), confidence=HIGH),
    # The status alone.
    http_row("K3L-200", "auth.refused", Tier.STATUS, status(401), (69,), confidence=MEDIUM),
    http_row("K3L-225", "quota.payment-required", Tier.STATUS, status(402), (81,),
             confidence=MEDIUM),
    http_row("K3L-222", "access.forbidden", Tier.STATUS, status(403), (76,), confidence=MEDIUM),
    http_row("K3L-234", "path.not-found", Tier.STATUS, status(404), (82,), confidence=MEDIUM),
    http_row("K3L-235", "path.method-not-allowed", Tier.STATUS, status(405), (87,),
             confidence=MEDIUM),
)  # fmt: skip
