"""Prompts whose number of tokens is known: a fingerprint of tokenizer and chat template.

Source: Kimi-Vendor-Verifier's prompt-token oracles, section B1 of the link specification. Three
numbers are public. For one the prompt is public too (99 tokens), so its count can be compared. Of
the other two (36 tokens without a JSON schema, 119 with one) only the counts are: what they prove
for any prompt is that K3's template writes the schema into it, so that is what the second request
looks at. All are second-hand, so a mismatch is a lead and no failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.link.asking import Asked, post
from k3check.link.findings import evidence, finding, of_asked
from k3check.link.gate import NAMES
from k3check.link.probes import Cost, Probe
from k3check.model import Confidence, Diagnosis, Message, Outcome

if TYPE_CHECKING:
    from k3check.link.session import Result, Session
    from k3check.model import Finding

_TITLE = "tokens of a known prompt"
MESSAGES = [{"role": "assistant", "content": "你好"}]
# The verifier accepts a little more than its own count.
SLACK = 3
SCHEMA: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "greeting",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"language": {"type": "string"}, "polite": {"type": "boolean"}},
            "required": ["language", "polite"],
            "additionalProperties": False,
        },
    },
}
_ENOUGH_OUTPUT = 16


@dataclass(frozen=True)
class Fingerprint:
    """The count of :data:`MESSAGES` (effort high) by one tokenizer and chat template."""

    tokenizer: str
    count: int

    def fits(self, found: int) -> bool:
        """A measured count is this one's."""
        return self.count <= found <= self.count + SLACK


# Every count of this prompt that has been published; another model's is another line.
FINGERPRINTS = (Fingerprint("Kimi K3", 99),)
EXPECTED = FINGERPRINTS[0].count
# The published counts with and without a schema, whose prompt is not public.
SCHEMA_COUNTS = (36, 119)


def run(session: Session) -> Finding:
    """Count the known prompt, then the same prompt with a JSON schema."""
    plain = _count(session, {})
    found = _prompt(plain)
    if found is None or "reasoning_effort" in session.dropped:
        if plain.failing and plain.failing[0].row.slug.split(".")[0] in ("auth", "quota"):
            return of_asked(session, "oracle", _TITLE, Asked(plain, notes=plain.notes))
        return finding(
            "oracle",
            _TITLE,
            Outcome.SKIPPED,
            notes=(Message("K3L-657", {"status": plain.seen.status or "none"}),),
            evidence=evidence(session, plain.seen),
        )
    metrics = {"prompt_tokens": float(found)}
    diagnoses, notes = _judged(found)
    schema = _count(session, {"response_format": SCHEMA})
    counted = _prompt(schema)
    if counted is None:
        notes.append(Message("K3L-673", {"status": schema.seen.status or "none"}))
    else:
        metrics["prompt_tokens_with_schema"] = float(counted)
        values = {
            "added": counted - found,
            "without": SCHEMA_COUNTS[0],
            "with": SCHEMA_COUNTS[1],
        }
        if counted > found + SLACK:
            notes.append(Message("K3L-672", values))
        else:
            diagnoses.append(Diagnosis("K3L-671", Confidence.LOW, values=values))
    return finding(
        "oracle",
        _TITLE,
        Outcome.ACCEPTABLE if diagnoses else Outcome.PASS,
        diagnoses=diagnoses,
        notes=notes,
        metrics=metrics,
        limits={"prompt_tokens": float(EXPECTED + SLACK)},
        evidence=evidence(session, plain.seen if counted is not None else schema.seen),
    )


def _count(session: Session, more: dict[str, Any]) -> Result:
    """Send the known prompt; the answer is cut on purpose: only the prompt's count matters."""
    body = {
        "model": session.request.model,
        "messages": MESSAGES,
        "reasoning_effort": "high",
        "max_completion_tokens": _ENOUGH_OUTPUT,
    }
    return session.ask(post(session, "openai", session.prepared(body | more)), "openai")


def _prompt(result: Result) -> int | None:
    usage = result.seen.answer.usage if result.seen.answer else None
    return usage.prompt if usage is not None else None


def _judged(found: int) -> tuple[list[Diagnosis], list[Message]]:
    """Which tokenizer a count fits."""
    fitting = [f.tokenizer for f in FINGERPRINTS if f.fits(found)]
    values = {
        "found": found,
        "expected": EXPECTED,
        "most": EXPECTED + SLACK,
        "difference": found - EXPECTED,
    }
    if fitting:
        return [], [Message("K3L-670", values | {"tokenizer": ", ".join(fitting)})]
    code = "K3L-656" if found > EXPECTED else "K3L-654"
    return [Diagnosis(code, Confidence.LOW, values=values)], []


PROBE = Probe(
    "oracle",
    _TITLE,
    85,
    run,
    # A schema of this size takes fewer tokens than it has characters.
    cost=lambda _: Cost(2, 2 * (EXPECTED + _ENOUGH_OUTPUT) + len(str(SCHEMA))),
    needs=NAMES,
    # The published counts are of chat completions; another API writes another prompt.
    speaks=("openai",),
)
