"""What can be said about an endpoint's settings before a packet is sent.

Source: section D1 of the link specification. Every rule is a function that yields problems; a
problem that makes sending pointless, or would send the key somewhere it must not go, blocks.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from k3check.link import proxies
from k3check.link.diagnosis.requests import OFFICIAL
from k3check.link.files import key_files
from k3check.link.redact import one_line, without_password
from k3check.link.urls import CODE_HOST, PLATFORM_HOSTS, WEB_PAGES, Base

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from k3check.link.request import LinkRequest


class Severity(StrEnum):
    """What a problem does."""

    BLOCK = "block"  # a failure, and nothing is sent
    FAIL = "fail"
    WARN = "warn"
    NOTE = "note"


@dataclass(frozen=True)
class Problem:
    """One thing wrong with the settings.

    Attributes:
        code: of its texts.
        severity: what it does.
        values: for the texts; never the key.
        key: the dotted configuration key that it is about.
        fixed: the value that this key should have, where it is certain; None where it is not.
    """

    code: str
    severity: Severity
    values: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    fixed: Any = None


B, F, W, N = Severity.BLOCK, Severity.FAIL, Severity.WARN, Severity.NOTE

WINDOW = 1_048_576
_SMALL_OUTPUT = 1024
_SHORT_TIMEOUT_S = 60
_MANY_RETRIES = 10
_SHORT_KEY = 16

# Ids under which K3 is sold, by host; the first one of a host is what we suggest.
_PLATFORM_MODELS = ("kimi-k3", "kimi-k3-256k", "kimi-k3.1-pro", "kimi-k3.1-highspeed")
_CODE_MODELS = ("kimi-for-coding", "k3", "k3-256k")
_KNOWN_MODELS = (*_PLATFORM_MODELS, *_CODE_MODELS, "moonshotai/kimi-k3")

_SERVER_ONLY = (
    "expert_parallel", "tensor_parallel", "pipeline_parallel", "data_parallel", "quantization",
    "cache_strategy", "context_length", "max_model_len", "gpu_memory_utilization", "num_devices",
    "affinity_scheduling", "balancing", "checkpoint_interval",
)  # fmt: skip

_PLACEHOLDER = re.compile(
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


def check(request: LinkRequest) -> tuple[Problem, ...]:
    """All problems of a request's settings, the worst first."""
    found = [problem for rule in RULES for problem in rule(request)]
    order = list(Severity)
    return tuple(sorted(found, key=lambda problem: order.index(problem.severity)))


def _base(request: LinkRequest) -> Base:
    return Base(request.base_url or "", request.protocol)


def _missing(request: LinkRequest) -> Iterator[Problem]:
    """Base URL, key and model must be there."""
    absent = [
        (name, variable, key)
        for name, variable, key, value in (
            ("base_url", "ANTHROPIC_BASE_URL", "api.base_url", request.base_url),
            ("api_key", "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN", "api.api_key",
             request.api_key.reveal() if request.api_key else None),
            ("model", "ANTHROPIC_MODEL", "model.name", request.model),
        )
        if not (value or "").strip()
    ]  # fmt: skip
    codes = {"base_url": "K3L-001", "api_key": "K3L-020", "model": "K3L-035"}
    for name, variable, key in absent:
        if request.protocol == "anthropic":
            # Claude Code falls back to its own login: requests would go to api.anthropic.com.
            yield Problem("K3L-057", B, {"missing": variable, "setting": name}, key)
        else:
            yield Problem(codes[name], B, {"origin": request.origin(key)}, key)


def _url(request: LinkRequest) -> Iterator[Problem]:
    """The base URL's text."""
    raw = request.base_url or ""
    if not raw.strip():
        return
    base, key = _base(request), "api.base_url"
    route = request.protocol if request.protocol in ("anthropic", "responses") else "openai"
    values = {
        "base_url": base.shown,
        "corrected_base_url": base.corrected,
        "corrected_url": base.corrected_url(route),
        "url": without_password(base.url(route)),
        "host": base.host,
        "sdk_base_url": base.sdk_base,
        "origin": request.origin(key),
    }

    def problem(code: str, severity: Severity, *, fix: bool = True, **more: Any) -> Problem:
        return Problem(code, severity, values | more, key, base.corrected if fix else None)

    if _url_placeholder(base):
        yield problem("K3L-018", B, fix=False)
        return
    if base.text != raw:
        yield problem("K3L-016", F)
    if not base.scheme:
        yield problem("K3L-002", B)
        return
    if base.scheme not in ("http", "https"):
        yield problem("K3L-003", B, scheme=base.scheme)
        return
    if not base.host or _bad_host(base):
        yield problem("K3L-015", B, fix=_good_host(Base(base.corrected)))
        return
    if base.bad_port is not None:
        yield problem("K3L-014", B, fix=False, port=base.bad_port)
        return
    if base.host in WEB_PAGES:
        yield problem("K3L-017", F)
        return
    if base.parts.query:
        yield problem("K3L-004", F)
    if base.has_fragment:
        yield problem("K3L-005", F)
    if base.pasted_endpoint:
        yield problem("K3L-006", F, endpoint=base.pasted_endpoint)
    if base.doubled_version:
        yield problem("K3L-007", F)
    if (request.protocol == "anthropic" and base.has_version) or (
        request.protocol == "anthropic"
        and base.host in PLATFORM_HOSTS
        and (not base.anthropic_path)
    ):
        yield problem("K3L-009", F)
    elif request.protocol != "anthropic" and base.anthropic_path:
        yield problem("K3L-010", F)
    if base.has_password:
        yield problem("K3L-013", W)
    if base.scheme == "http" and not base.private:
        fixed = "https" + base.corrected[4:]
        yield Problem("K3L-012", W, values | {"corrected_base_url": fixed}, key, fixed)
    if base.parts.path.endswith("/") and base.parts.path != "/":
        yield problem("K3L-011", N)
    if request.protocol == "openai" and not Base(base.corrected).has_version:
        yield problem("K3L-008", N, fix=False)


def _url_placeholder(base: Base) -> bool:
    text = unquote(base.text).lower()
    host = base.host or text
    return bool(
        re.search(r"\$\{?\w+|\{\{|\{env:|<[^>]*>|^os\.environ", unquote(base.raw))
        or re.search(r"(^|[./@-])your[-_.]", host)
        or host in ("example.com", "host", "hostname", "xxx", "xxx.com", "domain.com")
        or host.endswith((".example", ".example.com"))
    )


def _bad_host(base: Base) -> bool:
    return not _good_host(base)


def _good_host(base: Base) -> bool:
    host = base.host
    if ":" in host:
        return True  # an IPv6 address; urlsplit has checked its brackets
    if unicodedata.normalize("NFKC", host) != host or "。" in host:
        return False  # some libraries read full-width characters as plain ones, others do not
    try:
        ascii_host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        return False
    return bool(host) and all(
        re.fullmatch(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", label)
        for label in ascii_host.split(".")
    )


def _key(request: LinkRequest) -> Iterator[Problem]:
    """The key's text; it is never a value of a message."""
    key = request.api_key.reveal() if request.api_key else ""
    bare = key.strip()
    if not bare:
        return
    where = {"origin": request.origin("api.api_key"), "length": len(key)}

    def problem(code: str, severity: Severity, **more: Any) -> Problem:
        return Problem(code, severity, where | more, "api.api_key")

    quotes = "\"'`“”‘’"
    if bare[0] in quotes or bare[-1] in quotes:
        yield problem("K3L-022", B)
        return
    if re.match(r"bearer[\s:]", bare, re.IGNORECASE):
        yield problem("K3L-023", B)
        return
    if _PLACEHOLDER.search(bare):
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
    if len(bare) < _SHORT_KEY and not _base(request).private:
        yield problem("K3L-028", W)
    elif not bare.startswith("sk-") and _base(request).host in PLATFORM_HOSTS:
        yield problem("K3L-029", N)


def _where(key: str) -> str:
    front, back = key[:1].isspace(), key[-1:].isspace()
    return "at both ends" if front and back else "in front" if front else "at the end"


def _platform(request: LinkRequest, key: str, problem: Callable[..., Problem]) -> Iterator[Problem]:
    """A key that belongs to another service is not sent to this one."""
    host = _base(request).host
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


def _model(request: LinkRequest) -> Iterator[Problem]:
    """The model's id."""
    model = request.model or ""
    if not model.strip():
        return
    key, host = "model.name", _base(request).host
    values = {"model": one_line(model, 80), "origin": request.origin(key)}

    def problem(code: str, severity: Severity, right: str = "", **more: Any) -> Problem:
        return Problem(code, severity, values | {"right": right} | more, key, right or None)

    bare = unicodedata.normalize("NFKC", model).strip().strip("\"'`“”‘’")
    bare = re.sub(r"[‐-―−]", "-", bare)
    if _PLACEHOLDER.search(bare) or re.search(r"your[-_ ]?model|model[-_ ]?name", bare.lower()):
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


def _parameters(request: LinkRequest) -> Iterator[Problem]:
    """Sampling, sizes, times."""
    for name, official in OFFICIAL.items():
        value = getattr(request, name)
        if value is not None and value != official:
            key = f"model.{name}"
            yield Problem(
                "K3L-045", N,
                {"parameter": name, "found": value, "accepted": official,
                 "origin": request.origin(key)}, key, official,
            )  # fmt: skip
    window, output = request.context_window, request.max_output_tokens
    if window is not None and window > WINDOW:
        yield Problem("K3L-047", W, {"found": window, "right": WINDOW}, "model.context_window",
                      WINDOW)  # fmt: skip
    elif window is not None and window < WINDOW:
        yield Problem("K3L-048", N, {"found": window, "right": WINDOW}, "model.context_window",
                      WINDOW)  # fmt: skip
    if output is not None and output > (window or WINDOW):
        yield Problem("K3L-046", W, {"found": output, "right": window or WINDOW},
                      "model.max_output_tokens")  # fmt: skip
    if output is not None and output < _SMALL_OUTPUT:
        yield Problem("K3L-049", W, {"found": output, "right": 8192}, "model.max_output_tokens",
                      8192)  # fmt: skip
    if request.timeout_s < _SHORT_TIMEOUT_S and not _base(request).loopback:
        yield Problem("K3L-050", W, {"found": f"{request.timeout_s:g}", "right": 120},
                      "api.timeout_seconds", 120)  # fmt: skip
    if request.max_retries > _MANY_RETRIES:
        yield Problem("K3L-051", W, {"found": request.max_retries, "right": 3}, "api.max_retries",
                      3)  # fmt: skip
    for name in request.extra_body:
        if name in _SERVER_ONLY:
            yield Problem("K3L-052", N, {"option": name}, f"client.extra_body.{name}")


def _proxy(request: LinkRequest) -> Iterator[Problem]:
    """The way out."""
    base = _base(request)
    if not base.host:
        return
    choice = proxies.choose(base, request.proxy, request.env)
    if not choice.url:
        return
    values = {"proxy": choice.shown, "proxy_source": choice.source, "host": base.host}
    if choice.scheme not in proxies.SCHEMES:
        yield Problem("K3L-060", B, values | {"scheme": choice.scheme})
        return
    if choice.scheme.startswith("socks") and not _has_socks():
        yield Problem("K3L-061", B, values)
        return
    if base.loopback:
        yield Problem("K3L-062", W, values)
    if choice.ignored:
        yield Problem("K3L-063", N, values | {"ignored": ", ".join(choice.ignored)})


def _has_socks() -> bool:
    import importlib.util

    return importlib.util.find_spec("socksio") is not None


def _files(request: LinkRequest) -> Iterator[Problem]:
    """Who else can read the key."""
    key = request.api_key.reveal() if request.api_key else ""
    if not key.strip() or _PLACEHOLDER.search(key):
        return
    for seen in key_files(request.files, key):
        if seen.readable_by_others:
            yield Problem("K3L-054", W, {"file": seen.name, "mode": seen.mode})
        if seen.tracked:
            yield Problem("K3L-055", W, {"file": seen.name})


RULES: tuple[Callable[[LinkRequest], Iterator[Problem]], ...] = (
    _missing,
    _url,
    _key,
    _model,
    _parameters,
    _proxy,
    _files,
)
