"""What to paste into a ticket: versions, address, family, request ids, attempts, a curl command.

Everything in it comes from a report, fresh or read back from its JSON: what the endpoint said was
made safe and searched for the key when it was recorded, and is made safe to show again here, for a
saved report may have passed through other hands.
"""

from __future__ import annotations

import platform
import ssl
from typing import TYPE_CHECKING, Any

from k3check import __version__
from k3check.model import Outcome
from k3check.plain import clean, one_line
from k3check.report.texts import slug_of, title_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from k3check.model import Finding

_ABOUT = ("status", "family", "content_type", "request_id", "proxy", "failure", "exception",
          "excerpt")  # fmt: skip
_VERSIONS = ("k3check", "python", "httpx", "openssl")
_ATTEMPT = ("number", "at", "status", "outcome", "seconds", "waited", "request_id")


def environment() -> dict[str, str]:
    """Versions that matter for a connection."""
    from importlib.metadata import version

    return {
        "k3check": __version__,
        "python": platform.python_version(),
        "httpx": version("httpx"),
        "openssl": ssl.OPENSSL_VERSION,
    }


def summary(findings: Sequence[Finding], lang: str, about: Mapping[str, Any]) -> str:
    """A report for the endpoint's support, in Markdown; empty without a finding of the link check.

    Args:
        findings: of a report.
        lang: language of the sentences; names and codes are the same in every language.
        about: the report's environment.
    """
    own = [f for f in findings if f.suite == "link"]
    return "\n".join(_lines(own, lang, about)) + "\n" if own else ""


def _lines(findings: Sequence[Finding], lang: str, about: Mapping[str, Any]) -> Iterator[str]:
    known = [f"{name} {_plain(about[name])}" for name in _VERSIONS if name in about]
    yield "## k3check link"
    yield ""
    yield ", ".join(known)
    lint = next((f for f in findings if f.id == "link/lint"), None)
    if lint is not None:
        yield ""
        for name in ("base_url", "effective_url", "model"):
            if name in lint.evidence:
                yield f"- {name}: {_code(lint.evidence[name])}"
    yield ""
    yield "| check | outcome | diagnosis |"
    yield "|---|---|---|"
    for finding in findings:
        named = ", ".join(f"{d.code} {_plain(slug_of(d))}" for d in finding.diagnoses)
        yield f"| {_plain(finding.id)} | {finding.outcome.value} | {named} |"
    yield from _attempts(findings)
    for finding in findings:
        if finding.outcome in (Outcome.FAIL, Outcome.ACCEPTABLE) and finding.id != "link/lint":
            yield from _detail(finding, lang)


def _attempts(findings: Sequence[Finding]) -> Iterator[str]:
    """Everything that was sent, in one table: what an operator looks up in a log."""
    rows = [
        (finding.id, attempt)
        for finding in findings
        for attempt in finding.evidence.get("attempts") or ()
        if isinstance(attempt, dict)
    ]
    if not rows:
        return
    yield ""
    yield "| check | attempt | at | status | result | seconds | waited | request id |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, attempt in rows:
        cells = [_plain("-" if attempt.get(key) is None else attempt[key]) for key in _ATTEMPT[:-1]]
        ident = attempt.get("request_id")
        yield f"| {_plain(name)} | {' | '.join(cells)} | {_code(ident) if ident else ''} |"


def _detail(finding: Finding, lang: str) -> Iterator[str]:
    yield ""
    yield f"### {_plain(finding.id)}"
    yield ""
    for diagnosis in finding.diagnoses:
        title = title_of(diagnosis, lang)
        yield f"- {diagnosis.code} ({diagnosis.confidence.value}): {_code(title)}"
    for name in _ABOUT:
        if name in finding.evidence:
            yield f"- {name}: {_code(finding.evidence[name])}"
    if "curl" in finding.evidence:
        yield ""
        yield "```sh"
        yield clean(str(finding.evidence["curl"])).replace("```", "'''")
        yield "```"


def _plain(value: Any) -> str:
    """A name or a number inside a table or a heading."""
    return one_line(str(value)).replace("|", "¦").replace("<", "‹").replace("`", "'")


def _code(value: Any) -> str:
    """Inline code that holds whatever the text is, also inside a table."""
    text = one_line(str(value)).replace("`", "'").replace("|", "¦")
    return f"`{text}`" if text else ""
