"""Small predicates that the table's rows are made of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from k3check.link.diagnosis.providers import COMMON, meaning
from k3check.link.diagnosis.row import SURE, Heals, Level, Phase, Row, Tier
from k3check.model import Confidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found

    When = Callable[[Observation], Found]

__all__ = ["Confidence", "Heals", "Level", "Phase", "Row", "Tier"]

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW


def refused(seen: Observation) -> bool:
    """A complete response that is no success."""
    return seen.exchange.failure is None and seen.status is not None and seen.status >= 300


def status(*codes: int) -> When:
    """The status is one of these."""
    return lambda seen: refused(seen) and seen.status in codes


def says(*fragments: str, codes: tuple[int, ...] = (), family: tuple[str, ...] = ()) -> When:
    """A refusal whose text holds one of the fragments (in lower case)."""

    def when(seen: Observation) -> bool:
        return (
            refused(seen)
            and (not codes or seen.status in codes)
            and (not family or seen.family in family)
            and seen.says(*fragments)
        )

    return when


def words(slug: str) -> When:
    """A refusal whose words some provider, or several, use for this meaning."""

    def when(seen: Observation) -> Found:
        if not refused(seen) or seen.html:
            return None
        found = meaning(seen, slug)
        if found is None:
            return None
        provider, rule, values = found
        return values | {SURE: rule.sure and provider.kind != COMMON, "provider": provider.name}

    return when


def page(*codes: int) -> When:
    """The status comes with a web page."""
    return lambda seen: refused(seen) and seen.status in codes and seen.html


def error_type(*names: str) -> When:
    """The error's type or code is one of these."""
    return lambda seen: refused(seen) and (seen.error.type in names or seen.error.code in names)


def any_of(*conditions: When) -> When:
    """The first condition that holds."""

    def when(seen: Observation) -> Found:
        return next((found for c in conditions if (found := c(seen)) not in (None, False)), None)

    return when


def both(first: When, second: When) -> When:
    """Both hold; the second one's values."""
    return lambda seen: second(seen) if first(seen) not in (None, False) else None


def search(pattern: str, text: str) -> re.Match[str] | None:
    """A pattern anywhere in a text, in any case; only the text's first part is looked at."""
    return re.search(pattern, text[:4000], re.IGNORECASE)


def front(*codes: int) -> When:
    """A web server's own refusal: no JSON, but a page, a short text or nothing at all.

    A page that only one server writes says who refused; a Server header alone may stand for what
    is behind it too.
    """

    def when(seen: Observation) -> Found:
        bare = not seen.exchange.body.strip() or seen.html
        if not refused(seen) or seen.status not in codes or not (bare or seen.front_page):
            return None
        return {"server": seen.front or "the web server there", SURE: bool(seen.front_page)}

    return when


def cloudflare_page(seen: Observation) -> bool:
    """Cloudflare itself refused: with a page, or with ``error code: 10nn`` to who takes none."""
    if not refused(seen) or seen.status not in (403, 429, 503):
        return False
    plain = bool(re.fullmatch(r"error code: 1\d{3}", seen.text[:100].strip()))
    return plain or (seen.html and seen.family == "cloudflare")


def cloudflare_words(seen: Observation) -> str:
    """What Cloudflare's page says, in lower case and without its tags."""
    return " ".join(re.sub(r"<[^<>]*>", " ", seen.text[:32768]).lower().split())


def cloudflare_error(seen: Observation) -> int | None:
    """The number on Cloudflare's page; its title is the same for blocks and for limits."""
    found = re.search(r"\berror(?: code)? ?:? ?(1\d{3})\b", cloudflare_words(seen))
    return int(found.group(1)) if found else None


def http_row(
    code: str,
    slug: str,
    tier: Tier,
    when: When,
    rows: tuple[int, ...] = (),
    *,
    confidence: Confidence = HIGH,
    heals: Heals = Heals.NEVER,
) -> Row:
    """A row about a response that is no success."""
    return Row(code, slug, Phase.HTTP, tier, when, confidence, Level.FAIL, heals, rows)
