"""From exchanges to findings: outcome, hint, evidence, metrics."""

from __future__ import annotations

import json
import shlex
import time
from typing import TYPE_CHECKING, Any

from k3check.link.diagnosis import Level
from k3check.model import Diagnosis, Finding, Message, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.link.asking import Asked
    from k3check.link.diagnosis import Hit
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.session import Session
    from k3check.link.wire.exchange import Attempt

_CURL_BODY = 700


def diagnosis(hit: Hit) -> Diagnosis:
    """A hit as the report has it."""
    return Diagnosis(hit.row.code, hit.confidence, values=hit.values)


def finding(
    name: str,
    title: str,
    outcome: Outcome,
    *,
    diagnoses: Sequence[Diagnosis] = (),
    notes: Sequence[Message] = (),
    metrics: Mapping[str, float] | None = None,
    limits: Mapping[str, float] | None = None,
    evidence: Mapping[str, Any] | None = None,
    hint: Message | None = None,
) -> Finding:
    """A finding of a probe; the hint is the first diagnosis's unless given."""
    if hint is None and diagnoses:
        hint = Message(diagnoses[0].code, diagnoses[0].values)
    unique = list({(n.code, repr(n.values)): n for n in notes}.values())
    return Finding(
        id=f"link/{name}",
        suite="link",
        operator=None,
        case=None,
        outcome=outcome,
        title=title,
        metrics=metrics or {},
        limits=limits or {},
        diagnoses=tuple(diagnoses),
        hint=hint,
        evidence=evidence or {},
        notes=tuple(unique),
    )


def skipped(name: str, title: str, reason: Message) -> Finding:
    """A probe that did not run; the reason comes first among its notes."""
    return finding(name, title, Outcome.SKIPPED, notes=(reason,))


def of_asked(
    session: Session,
    name: str,
    title: str,
    asked: Asked,
    *,
    more: Sequence[Diagnosis] = (),
    failures: Sequence[Diagnosis] = (),
    instead: Sequence[Diagnosis] | None = None,
    notes: Sequence[Message] = (),
    metrics: Mapping[str, float] | None = None,
) -> Finding:
    """The finding of one exchange.

    A failing hit or a refused configured field fails it, a warning makes it acceptable.

    Args:
        session: the run.
        name, title: of the probe.
        asked: its exchange.
        more: further diagnoses that the probe itself made; they count as warnings.
        failures: the same, counted as failures.
        instead: what takes the place of the exchange's own failures: second looks told more.
        notes, metrics: of the probe.
    """
    result = asked.result
    failing = [*result.failing, *asked.refused]
    warnings = [hit for hit in result.hits if hit.row.level is Level.WARN]
    small = [Message(hit.row.code, hit.values) for hit in result.hits
             if hit.row.level is Level.NOTE]  # fmt: skip
    own = list(map(diagnosis, failing)) if instead is None else list(instead)
    if own or failures:
        outcome = Outcome.FAIL
    elif warnings or more:
        outcome = Outcome.ACCEPTABLE
    else:
        outcome = Outcome.PASS
    listed = [*own, *failures, *map(diagnosis, warnings), *more]
    return finding(
        name,
        title,
        outcome,
        diagnoses=listed,
        notes=(*notes, *small, *asked.notes),
        metrics=_metrics(result.seen) | dict(metrics or {}),
        evidence=evidence(session, result.seen, asked.attempts),
    )


def _metrics(seen: Observation) -> dict[str, float]:
    made = {"seconds": seen.exchange.times.get("total", 0.0)}
    usage = seen.answer.usage if seen.answer else None
    if usage is not None:
        for name, value in (
            ("prompt_tokens", usage.prompt),
            ("completion_tokens", usage.completion),
            ("cached_tokens", usage.cached),
        ):
            if value is not None:
                made[name] = float(value)
    return made


def evidence(
    session: Session, seen: Observation, attempts: Sequence[Attempt] = ()
) -> dict[str, Any]:
    """What was seen, safe to show: at most 200 characters of the body.

    Args:
        session: the run.
        seen: the exchange.
        attempts: every try if there were several versions of the request.
    """
    exchange, redactor = seen.exchange, session.redactor
    made: dict[str, Any] = {}
    if exchange.status is not None:
        made["status"] = exchange.status
        made["family"] = seen.family
        made["content_type"] = redactor.excerpt(exchange.media_type, 60) or "none"
        if exchange.request_id:
            made["request_id"] = redactor.excerpt(exchange.request_id, 80)
    if exchange.failure is not None:
        made["failure"] = exchange.failure.kind.value
        text = redactor.excerpt(exchange.failure.text)
        if text:
            made["exception"] = f"{exchange.failure.exception}: {text}"
    if exchange.status is not None:
        made["excerpt"] = redactor.excerpt(seen.text)
    usage = seen.answer.usage if seen.answer else None
    if usage is not None:
        made["usage_place"] = usage.place
    made["effective_url"] = redactor.excerpt(exchange.call.url)
    if exchange.proxy:
        made["proxy"] = redactor.excerpt(exchange.proxy)
    made["attempts"] = [
        {
            "number": number,
            "at": _utc(a.at),
            "status": a.status,
            "outcome": a.outcome,
            "seconds": round(a.duration_s, 3),
            "waited": round(a.waited_s, 3),
        }
        | ({"request_id": redactor.excerpt(a.request_id, 80)} if a.request_id else {})
        for number, a in enumerate(attempts or exchange.attempts, 1)
    ]
    made["curl"] = curl(session, seen)
    return made


def _utc(seconds: float) -> str:
    """A point in time as logs have it, to the millisecond."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"


def curl(session: Session, seen: Observation) -> str:
    """The same request for a shell, with the key as a variable."""
    call = seen.exchange.call
    parts = ["curl", "-sS", "-X", call.method, shlex.quote(session.redactor.excerpt(call.url))]
    if call.stream:
        parts.insert(1, "-N")
    if call.auth in ("x-api-key", "both"):
        parts += ["-H", '"x-api-key: $K3CHECK_API_KEY"']
    if call.auth != "x-api-key":
        parts += ["-H", '"Authorization: Bearer $K3CHECK_API_KEY"']
    for name, value in call.headers.items():
        parts += ["-H", shlex.quote(f"{name}: {value}")]
    for name, value in session.request.headers.items():
        parts += ["-H", shlex.quote(session.redactor.hide(f"{name}: {value}"))]
    if call.body is not None:
        text = session.redactor.hide(json.dumps(call.body, ensure_ascii=True))
        if len(text) > _CURL_BODY:
            long = ("messages", "tools", "input")
            short = {k: "..." if k in long else v for k, v in call.body.items()}
            text = session.redactor.hide(json.dumps(short))
        parts += ["-H", "'content-type: application/json'", "-d", shlex.quote(text)]
    return " ".join(parts)
