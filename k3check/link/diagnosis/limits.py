"""Rows for limits: the many causes of one status 429, and quota under other statuses.

Sources: sections A6, A7, C and D4 of the link specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.diagnosis.helpers import (
    MEDIUM,
    Heals,
    Tier,
    cloudflare_error,
    cloudflare_page,
    cloudflare_words,
    http_row,
    page,
    refused,
    words,
)

if TYPE_CHECKING:
    from k3check.link.diagnosis.helpers import Row, When
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found


def _empty(seen: Observation) -> bool:
    return refused(seen) and seen.status == 429 and not seen.exchange.body.strip()


def _cloudflare(seen: Observation) -> bool:
    if not cloudflare_page(seen) or seen.status not in (403, 429):
        return False
    number = cloudflare_error(seen)
    if number is not None:
        return number == 1015
    text = cloudflare_words(seen)
    return "rate limited" in text or (seen.status == 429 and "just a moment" not in text)


_UNITS = {
    "limit.requests-per-minute": "requests per minute",
    "limit.tokens-per-minute": "tokens per minute",
    "limit.tokens-per-day": "tokens per day",
    "limit.concurrency": "requests at once",
}


def _told(slug: str) -> When:
    """A limit that the words name, with its number and unit."""

    def when(seen: Observation) -> Found:
        found = words(slug)(seen)
        if not isinstance(found, dict):
            return None
        return found | {"limit": int(found["limit"]), "unit": _UNITS[slug]}

    return when


def _own_rate(seen: Observation) -> Found:
    """The account allows about as many requests as this run sends."""
    found = _told("limit.requests-per-minute")(seen)
    if not isinstance(found, dict) or found["limit"] > 3 or seen.sent_requests < 1:
        return None
    return found | {"sent": seen.sent_requests}


def _row(slug: str, code: str, rows: tuple[int, ...], heals: Heals = Heals.NEVER) -> Row:
    """A row that goes by the words alone."""
    return http_row(code, slug, Tier.FAMILY, words(slug), rows, heals=heals)


_R = Heals.RETRY

ROWS = (
    _row("limit.litellm-cooldown", "K3L-309", (119,), Heals.ONCE),
    http_row("K3L-310", "limit.cloudflare", Tier.FAMILY,
             _cloudflare, (120,)),
    _row("limit.new-api-model", "K3L-308", (118,)),
    _row("quota.plan-period", "K3L-306", (116,)),
    _row("quota.free-tier", "K3L-729", ()),
    _row("quota.budget", "K3L-316", (114,)),
    _row("quota.exhausted", "K3L-304", (114,)),
    _row("access.account-closed", "K3L-707", ()),
    _row("limit.request-above-rate", "K3L-711", (112,)),
    _row("service.engine-overloaded", "K3L-305", (115,), _R),
    http_row("K3L-311", "limit.own-rate", Tier.FAMILY, _own_rate, (110,), heals=_R),
    http_row("K3L-303", "limit.tokens-per-day", Tier.FAMILY, _told("limit.tokens-per-day"), (113,)),
    http_row("K3L-302", "limit.tokens-per-minute", Tier.FAMILY, _told("limit.tokens-per-minute"),
             (112,), heals=_R),
    http_row("K3L-301", "limit.concurrency", Tier.FAMILY, _told("limit.concurrency"), (111,),
             heals=_R),
    http_row("K3L-300", "limit.requests-per-minute", Tier.FAMILY,
             _told("limit.requests-per-minute"), (110,), heals=_R),
    http_row("K3L-312", "limit.other", Tier.BODY, words("limit.other"), (110,), heals=_R),
    http_row("K3L-307", "limit.empty-body", Tier.BODY, _empty, (117,), heals=_R,
             confidence=MEDIUM),
    http_row("K3L-314", "limit.page", Tier.BODY, page(429), (120,), heals=_R, confidence=MEDIUM),
    http_row("K3L-312", "limit.other", Tier.STATUS,
             lambda seen: refused(seen) and seen.status == 429, (110,), confidence=MEDIUM,
             heals=_R),
)  # fmt: skip
