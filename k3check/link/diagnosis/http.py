"""Rows for responses that are no success: keys, permissions, paths, models.

Sources: sections A6, C and D3 of the link specification.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from k3check.link.diagnosis.helpers import (
    MEDIUM,
    Tier,
    any_of,
    cloudflare_error,
    cloudflare_page,
    cloudflare_words,
    error_type,
    http_row,
    page,
    refused,
    says,
    search,
    status,
)
from k3check.link.wire.urls import CODE_HOST, PLATFORM_HOSTS, Base

if TYPE_CHECKING:
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found


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


def _suffix(seen: Observation) -> bool:
    return refused(seen) and seen.says("不支持指定渠道", "specify channel", "specific channel")


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


_API_NAMES = {"responses": "Responses", "messages": "Messages"}


def _api_missing(seen: Observation) -> Found:
    """one-api's word for a route it does not serve, though the path is right."""
    if not refused(seen) or seen.status != 404:
        return None
    found = search(r"invalid url \(post /v1/(responses|messages)\b", seen.words)
    return {"api": _API_NAMES[found.group(1)], "path": f"/v1/{found.group(1)}"} if found else None


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
    # The family's own wording.
    http_row("K3L-204", "auth.token-missing", Tier.FAMILY,
             says("未提供令牌", "no token provided", "no api key provided",
                  "you didn't provide an api key", "missing api key", "no auth credentials",
                  codes=(401, 403)), (71,)),
    http_row("K3L-205", "auth.token-expired", Tier.FAMILY,
             says("令牌已过期", "token has expired", "token expired", "key has expired",
                  "api key expired", codes=(401, 403)), (71,)),
    http_row("K3L-206", "auth.token-exhausted", Tier.FAMILY,
             says("令牌额度已用尽", "额度已用尽", "token quota exhausted",
                  "quota of this token", codes=(401, 403, 429)), (71,)),
    http_row("K3L-207", "auth.token-disabled", Tier.FAMILY,
             says("令牌状态不可用", "token status is unavailable", "key has been disabled",
                  "key is disabled", "已被禁用", "has been revoked", codes=(401, 403)), (71,)),
    http_row("K3L-203", "auth.token-invalid", Tier.FAMILY,
             says("无效的令牌", "invalid token", codes=(401, 403)), (71,)),
    http_row("K3L-220", "access.channel-suffix", Tier.FAMILY, _suffix, (80,)),
    http_row("K3L-209", "auth.litellm-no-db", Tier.FAMILY,
             says("no connected db", "no_db_connection"), (73,)),
    http_row("K3L-210", "auth.litellm-no-key", Tier.FAMILY, _litellm_no_key, (74,),
             confidence=MEDIUM),
    http_row("K3L-218", "access.client-not-allowed", Tier.FAMILY,
             error_type("access_terminated_error"), (78,)),
    http_row("K3L-221", "access.permission-denied", Tier.FAMILY,
             error_type("permission_denied_error"), (76,)),
    http_row("K3L-226", "quota.membership", Tier.FAMILY,
             says("membership", "会员", codes=(402,)), (81,)),
    http_row("K3L-215", "quota.user-exhausted", Tier.FAMILY,
             any_of(error_type("insufficient_user_quota", "pre_consume_token_quota_failed"),
                    says("用户额度不足", "余额不足", "insufficient user quota", "预扣费额度失败",
                         codes=(401, 402, 403))), (75,)),
    http_row("K3L-216", "access.model-not-allowed", Tier.FAMILY,
             says("无权使用模型", "not allowed to access model", "no access to model",
                  "does not have access to model", "key not allowed to access", "无权访问",
                  codes=(401, 403)), (76,)),
    http_row("K3L-241", "model.no-channel", Tier.FAMILY,
             says("无可用渠道", "no available channel", "no channel available",
                  "no available distributor", codes=(500, 503, 404)), (88,)),
    http_row("K3L-236", "path.api-missing", Tier.FAMILY, _api_missing, (83,)),
    http_row("K3L-231", "path.invalid-url", Tier.FAMILY,
             says("invalid url (", codes=(404,)), (83,)),
    http_row("K3L-242", "model.litellm-unknown", Tier.FAMILY,
             says("invalid model name passed"), (85,)),
    http_row("K3L-243", "model.not-pulled", Tier.FAMILY,
             lambda seen: refused(seen) and seen.status == 404 and seen.family == "ollama", (85,)),
    http_row("K3L-240", "model.not-found-or-permission", Tier.FAMILY,
             says("not found the model"), (85,)),
    http_row("K3L-227", "access.waf-block", Tier.FAMILY, _firewall, (79,)),
    http_row("K3L-219", "access.waf-page", Tier.FAMILY, cloudflare_page, (79,)),
    # The body.
    http_row("K3L-208", "auth.header-kind", Tier.BODY, _header_kind, (72,)),
    http_row("K3L-202", "auth.mistyped", Tier.BODY,
             any_of(error_type("incorrect_api_key_error"),
                    says("incorrect api key", codes=(401,))), (69,)),
    http_row("K3L-201", "auth.wrong-region", Tier.BODY, _wrong_region, (70,), confidence=MEDIUM),
    http_row("K3L-211", "auth.wrong-product", Tier.BODY, _code_plan_key, (25, 69),
             confidence=MEDIUM),
    http_row("K3L-212", "auth.page-asks-password", Tier.BODY, _auth_page, (79,)),
    http_row("K3L-217", "access.address", Tier.BODY,
             says("ip not allowed", "ip address", "不在允许访问", "ip 不在", "subnet",
                  "allowlist", "whitelist", "白名单", codes=(401, 403)), (77,)),
    http_row("K3L-223", "access.region", Tier.BODY,
             any_of(status(451), says("country, region", "unsupported_country", "your region",
                                      "地区不支持", codes=(403,))), (108,)),
    http_row("K3L-244", "model.not-found", Tier.BODY, _model_missing, (85,)),
    http_row("K3L-245", "model.invalid", Tier.BODY, _model_invalid, (85,)),
    http_row("K3L-230", "path.not-found-page", Tier.BODY, page(404), (82,)),
    http_row("K3L-233", "path.not-found-text", Tier.BODY,
             lambda seen: refused(seen) and seen.status == 404
             and seen.text.strip().lower().startswith("404 page not found"), (86,)),
    http_row("K3L-232", "path.not-found-json", Tier.BODY,
             lambda seen: refused(seen) and seen.status == 404
             and (seen.error.shape in ("detail", "string") or seen.says("file not found")), (84,)),
    # The status alone.
    http_row("K3L-200", "auth.refused", Tier.STATUS, status(401), (69,), confidence=MEDIUM),
    http_row("K3L-225", "quota.payment-required", Tier.STATUS, status(402), (81,)),
    http_row("K3L-222", "access.forbidden", Tier.STATUS, status(403), (76,), confidence=MEDIUM),
    http_row("K3L-234", "path.not-found", Tier.STATUS, status(404), (82,), confidence=MEDIUM),
    http_row("K3L-235", "path.method-not-allowed", Tier.STATUS, status(405), (87,)),
)  # fmt: skip
