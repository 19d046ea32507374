"""Rows for requests that an endpoint refuses because of what is in them.

Sources: sections A2, A6 and D3 (91-100) of the link specification.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from k3check.link.diagnosis.helpers import (
    LOW,
    MEDIUM,
    Tier,
    any_of,
    http_row,
    refused,
    search,
    status,
    words,
)
from k3check.released import SAMPLING

if TYPE_CHECKING:
    from k3check.link.diagnosis.helpers import When
    from k3check.link.diagnosis.observation import Observation
    from k3check.link.diagnosis.row import Found

_BAD = (400, 413, 422, 500)

_COMMON = ("model", "messages", "input", "system", "stream", "tools")


def _bad(seen: Observation) -> bool:
    return refused(seen) and seen.status in _BAD


def named_field(seen: Observation) -> str:
    """The field of the request that a refusal names, or empty."""
    if not _bad(seen):
        return ""
    body = seen.exchange.call.body or {}
    candidates = [seen.error.field, seen.error.param]
    for name in candidates:
        if name in body:
            return name
    words = seen.words
    # 'n' is too short to be searched for among words.
    if "n" in body and search(r"(invalid|parameter|field)\W+n\b", words):
        return "n"
    # Words that any message may hold come last.
    for name in sorted(body, key=lambda n: (n in _COMMON, -len(n))):
        if len(name) > 1 and re.search(rf"(?<![\w]){re.escape(name.lower())}(?![\w])", words):
            return str(name)
    return ""


def _sampling(seen: Observation) -> Found:
    name = named_field(seen)
    if name not in SAMPLING or _unknown_words(seen):
        return None
    sent = (seen.exchange.call.body or {}).get(name)
    return {"parameter": name, "found": sent, "accepted": SAMPLING[name]}


def _unknown_words(seen: Observation) -> bool:
    return seen.says(
        "unknown",
        "unrecognized",
        "unexpected",
        "extra inputs",
        "extra_forbidden",
        "not permitted",
        "unsupported parameter",
        "unsupportedparam",
        "not support",
        "n't support",
        "additional properties",
        "不支持的参数",
    )


def _completion_tokens(seen: Observation) -> Found:
    name = named_field(seen)
    if name not in ("max_completion_tokens", "max_tokens", "max_output_tokens"):
        return None
    if _context(seen):
        return None
    return {"parameter": name, "found": (seen.exchange.call.body or {}).get(name)}


_RANGES = (
    r"valid range of `?(\w+)`? is \[?\s*(\d+)\s*,\s*(\d+)\s*\]?",
    r"`?(\w+)`? (?:must|should) be (?:in|within|between)\D{0,20}(\d+)\D{1,8}(\d+)",
    r"range of `?(\w+)`? (?:should|must) be \[?\s*(\d+)\s*,\s*(\d+)\s*\]?",
    r"`?(\w+)`? is too large: \d+\D.{0,120}?at most ()(\d+)",
    r"`?(\w+)`? (?:must|should) be (?:less than or equal to|at most|<=) ()`?(\d+)",
)
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def _range(*, inside: bool) -> When:
    """A limit of the output whose range the refusal names; inside it nothing is to be corrected."""

    def when(seen: Observation) -> Found:
        if not _bad(seen):
            return None
        found = next((m for p in _RANGES if (m := search(p, seen.words))), None)
        if found is None or found.group(1) not in _LIMITS:
            return None
        body = seen.exchange.call.body or {}
        sent = next((body[n] for n in _LIMITS if isinstance(body.get(n), int)), None)
        low, high = int(found.group(2) or 1), int(found.group(3))
        if sent is None or inside != (low <= sent <= high):
            return None
        return {"parameter": found.group(1), "found": sent, "low": low, "high": high}

    return when


def _unknown_field(seen: Observation) -> Found:
    name = named_field(seen)
    # 'model', 'messages' and 'tools' are what a message is about, not what it refuses.
    if name in ("", "model", "messages", "input", "system") or name in SAMPLING:
        if name not in SAMPLING or not _unknown_words(seen):
            return None
    elif not _unknown_words(seen) and seen.error.field != name and seen.error.param != name:
        return None
    return {"parameter": name, "found": (seen.exchange.call.body or {}).get(name)}


def _context(seen: Observation) -> Found:
    if not _bad(seen):
        return None
    words = seen.words
    known = (
        "model token limit",
        "maximum context length",
        "context length",
        "context_length_exceeded",
        "contextwindowexceeded",
        "input token length too long",
        "exceed_context_size",
        "prompt is too long",
        "context window",
        "exceeds the available context",
    )
    if not any(word in words for word in known):
        return None
    numbers = [int(n) for n in re.findall(r"\b\d{3,8}\b", words.replace(",", ""))]
    found = {"limit": "unknown", "requested": "unknown"}
    moonshot = search(r"limit\s*[:：]\s*(\d+)\s*\(requested:\s*(\d+)", words)
    if moonshot:
        return {"limit": int(moonshot.group(1)), "requested": int(moonshot.group(2))}
    if len(numbers) >= 2:
        return {"limit": min(numbers[:2]), "requested": max(numbers[:2])}
    if numbers:
        return found | {"limit": numbers[0]}
    return found


def _too_large(seen: Observation) -> Found:
    if not _bad(seen):
        return None
    found = search(r"total message size (\d+) exceeds limit (\d+)", seen.words)
    return {"size": int(found.group(1)), "limit": int(found.group(2))} if found else None


def _no_tool_parser(seen: Observation) -> bool:
    """vLLM and SGLang take tools only if they were started with a parser for them."""
    if not _bad(seen):
        return False
    parser = search(
        r"(requires?|set|missing|without|no)\b.{0,60}tool[-_ ](call[-_ ])?parser|"
        r"tool[-_ ](call[-_ ])?parser.{0,40}\b(not|none|missing|required|to be set)\b",
        seen.words,
    )
    unset = seen.says("parser is not set") and not seen.says("reasoning")
    return bool(parser) or unset


def _no_certificate(seen: Observation) -> bool:
    return _bad(seen) and seen.says(
        "no required ssl certificate", "client certificate", "ssl certificate error"
    )


def _plain_to_tls(seen: Observation) -> bool:
    return (
        refused(seen)
        and seen.status in (400, 497)
        and ("plain HTTP request was sent to HTTPS port" in seen.text
             or "HTTP request to an HTTPS server" in seen.text)
    )  # fmt: skip


ROWS = (
    http_row("K3L-128", "tls.client-certificate", Tier.FAMILY, _no_certificate, (51,)),
    http_row("K3L-121", "tls.http-to-tls-port", Tier.FAMILY, _plain_to_tls, (44,)),
    http_row("K3L-255", "context.exceeded", Tier.FAMILY, _context, (95,)),
    http_row("K3L-254", "history.reasoning-missing", Tier.FAMILY,
             words("history.reasoning-missing"), (94,)),
    http_row("K3L-256", "content.filtered", Tier.FAMILY,
             words("content.filtered"), (96,)),
    http_row("K3L-257", "client.beta-header", Tier.FAMILY,
             words("client.beta-header"), (97,)),
    http_row("K3L-267", "tools.no-parser", Tier.FAMILY,
             any_of(_no_tool_parser, words("tools.no-parser")), (99, 163)),
    http_row("K3L-706", "tools.not-offered", Tier.FAMILY, words("tools.not-offered"), (163,)),
    http_row("K3L-710", "param.out-of-range", Tier.FAMILY, _range(inside=False), (93,)),
    http_row("K3L-728", "param.in-range", Tier.FAMILY, _range(inside=True), (93,),
             confidence=MEDIUM),
    http_row("K3L-259", "tools.choice-refused", Tier.FAMILY,
             words("tools.choice-refused"), (99,)),
    http_row("K3L-266", "tools.duplicate-name", Tier.FAMILY,
             lambda seen: _bad(seen) and bool(search(r"function name.{0,80}duplicate", seen.words)),
             (98,)),
    http_row("K3L-258", "tools.schema-refused", Tier.FAMILY,
             lambda seen: _bad(seen) and bool(search(
                 r"(tools?\W.{0,60}(parameters|schema)|(parameters|schema).{0,60}\btype\b|"
                 r"moonshot flavored|mfjs|invalid.{0,30}schema)", seen.words))
             and seen.error.shape != "list", (98,)),
    http_row("K3L-262", "history.tool-id-unknown", Tier.FAMILY,
             lambda seen: _bad(seen) and bool(search(r"tool_(call|use)_id.{0,60}not found",
                                                     seen.words)), (165,)),
    http_row("K3L-263", "message.text-empty", Tier.FAMILY,
             words("message.text-empty"), ()),
    http_row("K3L-260", "message.too-large", Tier.FAMILY, _too_large, (100,)),
    http_row("K3L-261", "message.body-too-large", Tier.STATUS, status(413), (100,),
             confidence=MEDIUM),
    http_row("K3L-250", "param.sampling-refused", Tier.BODY, _sampling, (91,)),
    http_row("K3L-253", "param.output-limit-refused", Tier.BODY, _completion_tokens, (93,)),
    http_row("K3L-252", "param.unknown-field", Tier.BODY, _unknown_field, (92,)),
    http_row("K3L-265", "request.invalid", Tier.STATUS, status(422), (), confidence=MEDIUM),
    http_row("K3L-264", "request.bad", Tier.STATUS, status(400), (), confidence=LOW),
)  # fmt: skip
