"""When a request is sent again, and how long is waited.

Only what can heal within the run is repeated; which failures those are is said by the table of
diagnoses. Policy: section F1 of the link specification.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from k3check.link.diagnosis.row import Heals
from k3check.link.wire.exchange import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.link.diagnosis.row import Hit
    from k3check.link.wire.exchange import Exchange

MOST_RETRIES = 3
_MOST_BACKOFF_S = 8.0
_BACKOFF_BASE = 2.0
_IN_TEXT = re.compile(
    r"(?:try again|retry)\s+(?:after|in)\s+(\d+(?:\.\d+)?)\s*(ms|milliseconds?|m|min|minutes?|s)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")


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
        deadline: of all tries together, by the monotonic clock.
        backoff_s: first pause where the server names none; doubled each time, at most 8 s.
    """

    retries: int
    deadline: float
    backoff_s: float


class _AgainError(Exception):
    """A try that can heal; carries its exchange."""

    def __init__(self, exchange: Exchange, wait_s: float | None) -> None:
        super().__init__("try again")
        self.exchange = exchange
        self.wait_s = wait_s


def send(
    once: Callable[[], Exchange],
    judge: Callable[[Exchange], tuple[Hit, ...]],
    policy: Policy,
) -> tuple[Exchange, tuple[Hit, ...]]:
    """Send a call until it succeeds, cannot heal, or the policy ends.

    Args:
        once: sends it once.
        judge: what explains an exchange.
        policy: bounds.

    Returns:
        The last exchange, with every try listed in it, and what explains it.
    """
    begun = time.monotonic()
    tries: list[Attempt] = []
    last: list[tuple[Exchange, tuple[Hit, ...]]] = []

    def attempt() -> None:
        started, at = time.monotonic(), time.time()
        waited = started - begun - (tries[-1].started_s + tries[-1].duration_s) if tries else 0.0
        exchange = once()
        hits = judge(exchange)
        ended = time.monotonic()
        failing = next((hit for hit in hits if hit.row.level == "fail"), None)
        slug = failing.row.slug if failing else "ok"
        tries.append(
            Attempt(
                len(tries) + 1,
                started - begun,
                ended - started,
                exchange.status,
                slug,
                waited,
                exchange.request_id,
                at,
            )
        )
        heals = failing.row.heals if failing else Heals.NEVER
        once_only = heals is Heals.ONCE and len(tries) > 1
        asked = retry_after(exchange.headers, str(failing.values.get("message", "")) if failing
                            else "", time.time())  # fmt: skip
        give_up = ""
        wait = asked
        if heals is Heals.NEVER or once_only or exchange.headers.get("x-should-retry") == "false":
            give_up = "cannot heal"
        elif len(tries) > policy.retries:
            give_up = "tries used up" if policy.retries else "no retries configured"
        else:
            if heals is Heals.ONCE and asked is not None:
                wait = asked + 1.0  # the cooldown must be over, not ending
            least = wait if wait is not None else _least_backoff(policy, len(tries))
            if ended + least >= policy.deadline:
                give_up = "the wait is longer than the time left"
        exchange = replace(exchange, attempts=tuple(tries), give_up=give_up, wait_asked_s=asked)
        last[:] = [(exchange, hits)]
        if not give_up:
            raise _AgainError(exchange, wait)

    try:
        attempt()
    except _AgainError as error:
        _retry(attempt, error, policy)
    return last[0]


def _retry(attempt: Callable[[], None], first: _AgainError, policy: Policy) -> None:
    """Try again as long as a try asks for it; the first one has been made already."""
    import logging

    import stamina  # only here: most runs need no retry, and it takes as long to load as httpx

    # Retries are told in the report; stamina's own log lines would end on the user's terminal.
    logger = logging.getLogger("stamina")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())

    def wait_for(error: Exception) -> bool | float:
        if not isinstance(error, _AgainError):
            return False
        return True if error.wait_s is None else error.wait_s

    attempts = stamina.retry_context(
        on=wait_for,
        attempts=policy.retries + 1,
        timeout=None,
        wait_initial=policy.backoff_s,
        wait_max=_MOST_BACKOFF_S,
        wait_jitter=policy.backoff_s / 2,
        wait_exp_base=_BACKOFF_BASE,
    )
    try:
        for number in attempts:
            with number:
                if number.num == 1:
                    raise first
                attempt()
    except _AgainError:
        pass  # stamina is switched off: the one try stands as it is


def _least_backoff(policy: Policy, tries: int) -> float:
    return float(min(_MOST_BACKOFF_S, policy.backoff_s * _BACKOFF_BASE ** (tries - 1)))
