"""A prompt whose number of tokens is known: a fingerprint of tokenizer and chat template.

Source: Kimi-Vendor-Verifier's prompt-token oracles, section B1 of the link specification. The
number is second-hand, so a mismatch is a lead and no failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.link.asking import Asked, post
from k3check.link.findings import evidence, finding, of_asked
from k3check.link.probes import Cost, Probe
from k3check.report.model import Confidence, Diagnosis, Message, Outcome

if TYPE_CHECKING:
    from k3check.link.session import Session
    from k3check.report.model import Finding

_TITLE = "tokens of a known prompt"
MESSAGES = [{"role": "assistant", "content": "你好"}]
EXPECTED = 99
SLACK = 3


def run(session: Session) -> Finding:
    """Count the known prompt."""
    body = session.prepared(
        {
            "model": session.request.model,
            "messages": MESSAGES,
            "reasoning_effort": "high",
            "max_completion_tokens": 16,
        }
    )
    # The answer is cut on purpose: only the count of the prompt matters.
    result = session.ask(post(session, "openai", body), "openai")
    usage = result.seen.answer.usage if result.seen.answer else None
    if usage is None or usage.prompt is None or "reasoning_effort" in session.dropped:
        if result.failing and result.failing[0].row.slug.split(".")[0] in ("auth", "quota"):
            return of_asked(session, "oracle", _TITLE, Asked(result, notes=result.notes))
        return finding(
            "oracle",
            _TITLE,
            Outcome.SKIPPED,
            notes=(Message("K3L-657", {"status": result.seen.status or "none"}),),
            evidence=evidence(session, result.seen),
        )
    found = usage.prompt
    diagnoses = []
    if not EXPECTED <= found <= EXPECTED + SLACK:
        values = {"found": found, "expected": EXPECTED, "difference": found - EXPECTED}
        code = "K3L-656" if found > EXPECTED else "K3L-654"
        diagnoses.append(Diagnosis(code, Confidence.LOW, values=values))
    return finding(
        "oracle",
        _TITLE,
        Outcome.ACCEPTABLE if diagnoses else Outcome.PASS,
        diagnoses=diagnoses,
        metrics={"prompt_tokens": float(found)},
        limits={"prompt_tokens": float(EXPECTED + SLACK)},
        evidence=evidence(session, result.seen),
    )


PROBE = Probe(
    "oracle",
    _TITLE,
    85,
    run,
    cost=lambda _: Cost(1, EXPECTED + 16),
    needs=("chat",),
    wires=("openai",),
)
