"""What to paste into a ticket: versions, address, family, request ids, attempts, a curl command.

Everything in it comes from findings, which hold no secret any more.
"""

from __future__ import annotations

import platform
import ssl
from typing import TYPE_CHECKING, Any

from k3check import __version__, hints
from k3check.report.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from k3check.report.model import Finding

_ABOUT = ("status", "family", "content_type", "request_id", "failure", "exception", "excerpt")


def environment() -> dict[str, str]:
    """Versions that matter for a connection."""
    from importlib.metadata import version

    return {
        "python": platform.python_version(),
        "httpx": version("httpx"),
        "openssl": ssl.OPENSSL_VERSION,
    }


def summary(findings: Sequence[Finding], lang: str = "en") -> str:
    """A report for the endpoint's support, in Markdown.

    Args:
        findings: of the link check.
        lang: language of the sentences; names and codes are the same in every language.
    """
    return "\n".join(_lines([f for f in findings if f.suite == "link"], lang)) + "\n"


def _lines(findings: Sequence[Finding], lang: str) -> Iterator[str]:
    versions = ", ".join(f"{name} {value}" for name, value in environment().items())
    yield f"## k3check {__version__}: link"
    yield ""
    yield f"{versions}"
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
        named = ", ".join(f"{d.code} {hints.get(d.code).slug}" for d in finding.diagnoses)
        yield f"| {finding.id} | {finding.outcome.value} | {named} |"
    for finding in findings:
        if finding.outcome in (Outcome.FAIL, Outcome.ACCEPTABLE) and finding.id != "link/lint":
            yield from _detail(finding, lang)


def _detail(finding: Finding, lang: str) -> Iterator[str]:
    yield ""
    yield f"### {finding.id}"
    yield ""
    for diagnosis in finding.diagnoses:
        title = hints.title(diagnosis.code, lang, diagnosis.values)
        yield f"- {diagnosis.code} ({diagnosis.confidence.value}): {_code(title)}"
    for name in _ABOUT:
        if name in finding.evidence:
            yield f"- {name}: {_code(finding.evidence[name])}"
    attempts = finding.evidence.get("attempts") or ()
    if attempts:
        yield ""
        yield "| attempt | status | result | seconds | waited | request id |"
        yield "|---|---|---|---|---|---|"
        for a in attempts:
            ident = _code(a["request_id"]) if "request_id" in a else ""
            yield (
                f"| {a['number']} | {a['status'] or '-'} | {a['outcome']} | {a['seconds']} "
                f"| {a['waited']} | {ident} |"
            )
    if "curl" in finding.evidence:
        yield ""
        yield "```sh"
        yield str(finding.evidence["curl"]).replace("```", "'''")
        yield "```"


def _code(value: Any) -> str:
    """Inline code that holds whatever the text is, also inside a table."""
    text = " ".join(str(value).replace("`", "'").replace("|", "¦").split())
    return f"`{text}`" if text else ""
