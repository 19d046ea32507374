"""When a request is sent again, and how long is waited.

Only what can heal within the run is repeated; which failures those are is said by who judges a try.
Policy: section F1 of the link specification.
"""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from k3check.link.wire.exchange import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.link.wire.exchange import Exchange

MOST_RETRIES = 3
_MOST_BACKOFF_S = 8.0
_BACKOFF_BASE = 2.0
_IN_TEXT = re.compile(
    r"(?:try again|retry)\s+(?:after|in)\s+(\d+(?:\.\d+)?)\s*(ms|milliseconds?|m|min|minutes?|s)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")


class Heals(StrEnum):
    """Whether asking again can help."""

    NEVER = "never"
    ONCE = "once"
    RETRY = "retry"


@dataclass(frozen=True)
class Judged:
    """What a try came to.

    Attributes:
        slug: of its failure, ``ok`` without one.
        heals: whether asking again can help.
        message: the error's text, which may say how long to wait.
    """

    slug: str = "ok"
    heals: Heals = Heals.NEVER
    message: str = ""


def retry_after(headers: Mapping[str, str], text: str, now: float) -> float | None:
    """Seconds that the server asks to wait; None if it asks for nothing that can be read.

    Args:
        headers: of the response, names in lower case.
        text: the error's text, which may say "try again after N seconds".
        now: seconds since the epoch, for dates.
    """
    millis = headers.get("retry-after-ms", "")
    if _NUMBER.fullmatch(millis):
        return max(0.0, float(millis) / 1000)
    for name in ("retry-after", "llm_provider-retry-after"):
        value = headers.get(name, "")
        if not value:
            continue
        if _NUMBER.fullmatch(value):
            return max(0.0, float(value))
        from email.utils import parsedate_to_datetime

        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - now)
        except (TypeError, ValueError, OverflowError):
            continue
    if match := _IN_TEXT.search(text[:4000]):
        unit = (match.group(2) or "s").lower()
        scale = 0.001 if unit.startswith(("ms", "mill")) else 60 if unit.startswith("m") else 1
        return float(match.group(1)) * scale
    return None


@dataclass(frozen=True)
class Policy:
    """How often and how long.

    Attributes:
        retries: further tries after the first.
        longest_wait_s: a wait of so many seconds or more is not waited for.
        backoff_s: first pause where the server names none; doubled each time, at most 8 s.
    """

    retries: int
    longest_wait_s: float
    backoff_s: float


def send(
    once: Callable[[], Exchange], judge: Callable[[Exchange], Judged], policy: Policy
) -> Exchange:
    """Send a call until it succeeds, cannot heal, or the policy ends.

    Args:
        once: sends it once.
        judge: what a try came to.
        policy: bounds.

    Returns:
        The last exchange, with every try listed in it.
    """
    begun = time.monotonic()
    tries: list[Attempt] = []
    waited = 0.0
    while True:
        started, at = time.monotonic(), time.time()
        exchange = once()
        judged = judge(exchange)
        ended = time.monotonic()
        tries.append(
            Attempt(
                len(tries) + 1,
                started - begun,
                ended - started,
                exchange.status,
                judged.slug,
                waited,
                exchange.request_id,
                at,
            )
        )
        asked = retry_after(exchange.headers, judged.message, time.time())
        wait = _wait(policy, len(tries), asked, judged.heals)
        give_up = _give_up(policy, len(tries), judged, exchange, wait)
        exchange = replace(exchange, attempts=tuple(tries), give_up=give_up, wait_asked_s=asked)
        if give_up:
            return exchange
        time.sleep(wait)
        waited = time.monotonic() - ended


def _wait(policy: Policy, tries: int, asked: float | None, heals: Heals) -> float:
    """Seconds before the next try: what the server asks for, or twice the last pause.

    A little is added by chance where nothing was asked, so that many clients do not come at once.
    """
    if asked is not None:
        # A cooldown must be over, not ending.
        return asked + 1.0 if heals is Heals.ONCE else asked
    pause = min(_MOST_BACKOFF_S, policy.backoff_s * _BACKOFF_BASE ** (tries - 1))
    return float(pause + random.uniform(0, policy.backoff_s / 2))  # noqa: S311 - no secret


def _give_up(policy: Policy, tries: int, judged: Judged, exchange: Exchange, wait: float) -> str:
    """Why no further try is made; empty if one is."""
    once_only = judged.heals is Heals.ONCE and tries > 1
    refuses = exchange.headers.get("x-should-retry") == "false"
    if judged.heals is Heals.NEVER or once_only or refuses:
        return "cannot heal"
    if tries > policy.retries:
        return "tries used up" if policy.retries else "no retries configured"
    if wait >= policy.longest_wait_s:
        return "the wait is longer than the time limit"
    return ""
