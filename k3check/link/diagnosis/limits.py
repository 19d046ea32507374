"""Rows for limits: the many causes of one status 429, and quota under other statuses.

Sources: sections A6, A7, C and D4 of the link specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.diagnosis.helpers import (
    MEDIUM,
    Heals,
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
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found

_KINDS = {"rpm": "requests per minute", "tpm": "tokens per minute", "tpd": "tokens per day",
          "concurrency": "requests at once"}  # fmt: skip


def _organization(kind: str) -> Callable[[Observation], Found]:
    """Moonshot's ``max organization RPM: N``."""

    def when(seen: Observation) -> Found:
        if not refused(seen) or seen.status != 429:
            return None
        found = search(rf"max organization {kind}\w*\s*[:：]\s*(\d+)", seen.words)
        if found is None:
            return None
        return {"limit": int(found.group(1)), "unit": _KINDS[kind]}

    return when


def _own_rate(seen: Observation) -> Found:
    """The account allows about as many requests as this run sends."""
    found = _organization("rpm")(seen)
    if not isinstance(found, dict) or found["limit"] > 3 or seen.sent_requests < 1:
        return None
    return found | {"sent": seen.sent_requests}


def _empty(seen: Observation) -> bool:
    return refused(seen) and seen.status == 429 and not seen.exchange.body.strip()


def _new_api(seen: Observation) -> Found:
    if not refused(seen) or seen.status != 429:
        return None
    found = search(r"(\d+)\s*分钟内最多请求\s*(\d+)\s*次", seen.words)
    return {"minutes": int(found.group(1)), "limit": int(found.group(2))} if found else None


def _cooldown(seen: Observation) -> bool:
    return refused(seen) and seen.says(
        "all_deployments_in_cooldown", "no deployments available", "in cooldown"
    )


def _cloudflare(seen: Observation) -> bool:
    if not cloudflare_page(seen) or seen.status not in (403, 429):
        return False
    number = cloudflare_error(seen)
    if number is not None:
        return number == 1015
    words = cloudflare_words(seen)
    return "rate limited" in words or (seen.status == 429 and "just a moment" not in words)


_QUOTA_WORDS = (
    "exceeded your current quota",
    "check your account balance",
    "check your plan and billing",
    "insufficient balance",
    "insufficient_quota",
    "in arrears",
    "recharge",
    "credit balance is too low",
    "suspended",
    "余额不足",
    "欠费",
)

ROWS = (
    http_row("K3L-309", "limit.litellm-cooldown", Tier.FAMILY, _cooldown, (119,),
             heals=Heals.ONCE),
    http_row("K3L-310", "limit.cloudflare", Tier.FAMILY,
             _cloudflare, (120,)),
    http_row("K3L-308", "limit.new-api-model", Tier.FAMILY, _new_api, (118,)),
    http_row("K3L-306", "quota.plan-period", Tier.FAMILY,
             says("usage limit for this", "monthly usage limit", codes=(429, 403)), (116,)),
    http_row("K3L-316", "quota.budget", Tier.FAMILY,
             any_of(error_type("budget_exceeded"),
                    says("budget has been exceeded", "exceededbudget")), (114,)),
    http_row("K3L-304", "quota.exhausted", Tier.FAMILY,
             any_of(error_type("exceeded_current_quota_error", "insufficient_quota"),
                    says(*_QUOTA_WORDS, codes=(429,)),
                    # Anthropic says so with the status of a bad request.
                    says("credit balance is too low", codes=(400, 402, 403))), (114,)),
    http_row("K3L-305", "service.engine-overloaded", Tier.FAMILY,
             any_of(error_type("engine_overloaded_error"),
                    says("engine is currently overloaded", codes=(429,))), (115,),
             heals=Heals.RETRY),
    http_row("K3L-311", "limit.own-rate", Tier.FAMILY, _own_rate, (110,), heals=Heals.RETRY),
    http_row("K3L-303", "limit.tokens-per-day", Tier.FAMILY, _organization("tpd"), (113,)),
    http_row("K3L-302", "limit.tokens-per-minute", Tier.FAMILY, _organization("tpm"), (112,),
             heals=Heals.RETRY),
    http_row("K3L-301", "limit.concurrency", Tier.FAMILY, _organization("concurrency"), (111,),
             heals=Heals.RETRY),
    http_row("K3L-300", "limit.requests-per-minute", Tier.FAMILY, _organization("rpm"), (110,),
             heals=Heals.RETRY),
    http_row("K3L-307", "limit.empty-body", Tier.BODY, _empty, (117,), heals=Heals.RETRY),
    http_row("K3L-314", "limit.page", Tier.BODY, page(429), (120,), heals=Heals.RETRY),
    http_row("K3L-312", "limit.other", Tier.STATUS,
             lambda seen: refused(seen) and seen.status == 429, (110,), confidence=MEDIUM,
             heals=Heals.RETRY),
)  # fmt: skip
