"""What the key's and the model's texts say before a packet is sent.

Source: section D1 (20 to 31) of the link specification. Neither the key nor its length is ever a
value of a message.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from typing import TYPE_CHECKING, Any

from k3check.link.problem import Problem, Severity
from k3check.link.wire.redact import one_line
from k3check.link.wire.urls import CODE_HOST, PLATFORM_HOSTS, Base, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from k3check.link.request import LinkRequest

B, F, W, N = Severity.BLOCK, Severity.FAIL, Severity.WARN, Severity.NOTE

_SHORT_KEY = 16
# Ids under which K3 is sold, by host; the first one of a host is what we suggest.
_PLATFORM_MODELS = ("kimi-k3", "kimi-k3-256k", "kimi-k3.1-pro", "kimi-k3.1-highspeed")
_CODE_MODELS = ("kimi-for-coding", "k3", "k3-256k")
_KNOWN_MODELS = (*_PLATFORM_MODELS, *_CODE_MODELS, "moonshotai/kimi-k3")

PLACEHOLDER = re.compile(
    r"your[-_ ]?(?:\w+[-_ ])?(?:api[-_ ]?)?(?:key|token|secret)|"
    r"^(?:sk-)?x{3,}|^(?:sk-)?\.{3,}$|^<.*>$|^\[.*\]$|\$\{?\w+\}?|^\{\{?.*\}\}?$|^\{env:|"
    r"^os\.environ|"
    r"(?:insert|replace|put|enter|paste|change)[-_ ]?(?:me|your|here|the|this|key)|"
    r"^(?:api[-_ ]?key|token|secret|changeme|todo|none|null|dummy|example|placeholder)$|"
    r"你的|您的|填写|替换",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_MASKED = re.compile(r"\*{3,}|…|\.{3}|•{2,}")
# Keys of other companies, by prefix, and where they belong.
_FOREIGN = (
    ("sk-ant-oat", "an OAuth token of Claude", "anthropic.com"),
    ("sk-ant-", "a key of Anthropic", "anthropic.com"),
    ("sk-or-", "a key of OpenRouter", "openrouter.ai"),
    ("sk-proj-", "a key of OpenAI", "openai.com"),
    ("sk-svcacct-", "a key of OpenAI", "openai.com"),
    ("AIza", "a key of Google", "googleapis.com"),
    ("gsk_", "a key of Groq", "groq.com"),
    ("hf_", "a token of Hugging Face", "huggingface.co"),
    ("ghp_", "a token of GitHub", "github.com"),
)


def check_key(request: LinkRequest) -> Iterator[Problem]:
    """The key's text; it is never a value of a message."""
    key = request.api_key.reveal() if request.api_key else ""
    bare = key.strip()
    if not bare:
        return
    where = {"origin": request.origin("api.api_key")}

    def problem(code: str, severity: Severity, **more: Any) -> Problem:
        return Problem(code, severity, where | more, "api.api_key")

    quotes = "\"'`“”‘’"
    if bare[0] in quotes or bare[-1] in quotes:
        yield problem("K3L-022", B)
        return
    if re.match(r"bearer[\s:]", bare, re.IGNORECASE):
        yield problem("K3L-023", B)
        return
    if PLACEHOLDER.search(bare):
        yield problem("K3L-024", B)
        return
    if _VARIABLE.fullmatch(bare):
        yield problem("K3L-031", B, variable=bare)
        return
    if bare.startswith(("http://", "https://")):
        yield problem("K3L-032", B)
        return
    if key != bare:
        yield problem("K3L-021", B, where=_where(key))
        return
    if _MASKED.search(bare):
        yield problem("K3L-027", B)
        return
    if odd := next((c for c in bare if not c.isascii() or not c.isprintable()), None):
        name = unicodedata.name(odd, f"U+{ord(odd):04X}").lower()
        yield problem("K3L-026", B, character=name, position=bare.index(odd) + 1)
        return
    if re.search(r"\s", bare):
        yield problem("K3L-021", B, where="inside it")
        return
    yield from _platform(request, bare, problem)
    if len(bare) < _SHORT_KEY and not Base(request.base_url or "", request.protocol).private:
        yield problem("K3L-028", W, usual=_SHORT_KEY)
    elif (
        not bare.startswith("sk-")
        and Base(request.base_url or "", request.protocol).host in PLATFORM_HOSTS
    ):
        yield problem("K3L-029", N)


def _where(key: str) -> str:
    front, back = key[:1].isspace(), key[-1:].isspace()
    return "at both ends" if front and back else "in front" if front else "at the end"


def _platform(request: LinkRequest, key: str, problem: Callable[..., Problem]) -> Iterator[Problem]:
    """A key that belongs to another service is not sent to this one."""
    host = Base(request.base_url or "", request.protocol).host
    if key.startswith("sk-kimi-") and host in PLATFORM_HOSTS:
        yield problem(
            "K3L-025", B, belongs="a key of the Kimi Code plan", host=host,
            right_host=CODE_HOST,
        )  # fmt: skip
        return
    if host == CODE_HOST and key.startswith("sk-") and not key.startswith("sk-kimi-"):
        yield problem("K3L-030", W, host=host)
    for prefix, belongs, domain in _FOREIGN:
        if key.startswith(prefix):
            if host == domain or host.endswith("." + domain):
                return
            known = host in (*PLATFORM_HOSTS, CODE_HOST)
            yield problem(
                "K3L-025", B if known else W, belongs=belongs, host=host, right_host=domain
            )
            return


def check_model(request: LinkRequest) -> Iterator[Problem]:
    """The model's id."""
    model = request.model or ""
    if not model.strip():
        return
    key, host = "model.name", Base(request.base_url or "", request.protocol).host
    values = {"model": one_line(model, 80), "origin": request.origin(key)}

    def problem(code: str, severity: Severity, right: str = "", **more: Any) -> Problem:
        return Problem(code, severity, values | {"right": right} | more, key, right or None)

    bare = visible(unicodedata.normalize("NFKC", model)).strip().strip("\"'`“”‘’")
    bare = re.sub(r"[‐-―−]", "-", bare)
    if PLACEHOLDER.search(bare) or re.search(r"your[-_ ]?model|model[-_ ]?name", bare.lower()):
        yield problem("K3L-043", B)
        return
    if re.search(r"\[\d+[mk]\]$", bare):
        yield problem("K3L-039", F, re.sub(r"\[\d+[mk]\]$", "", bare))
        return
    if bare != model:
        plain = model.strip() == bare
        yield problem("K3L-036" if plain else "K3L-040", F, bare)
        return
    if bare in _KNOWN_MODELS:
        yield from _plan(host, bare, problem)
        return
    if "/" in bare and host in (*PLATFORM_HOSTS, CODE_HOST):
        yield problem("K3L-041", W, bare.rpartition("/")[2])
        return
    lowered = bare.lower()
    if lowered in _KNOWN_MODELS:
        yield problem("K3L-037", W, lowered)
        return
    squeezed = re.sub(r"[\s_.]+", "-", lowered)
    near = difflib.get_close_matches(squeezed, _KNOWN_MODELS, n=1, cutoff=0.75)
    if near and not re.search(r"k2|k1", lowered):
        yield problem("K3L-038", W, near[0])


def _plan(host: str, model: str, problem: Callable[..., Problem]) -> Iterator[Problem]:
    """The two official services have different ids for K3."""
    if host == CODE_HOST and model not in _CODE_MODELS:
        yield problem("K3L-042", W, _CODE_MODELS[0], host=host)
    elif host in PLATFORM_HOSTS and model not in _PLATFORM_MODELS:
        yield problem("K3L-042", W, _PLATFORM_MODELS[0], host=host)
