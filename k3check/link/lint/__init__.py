"""What can be said about an endpoint's settings before a packet is sent.

Source: section D1 of the link specification. Every rule is a function that yields problems; a
problem that makes sending pointless, or would send the key somewhere it must not go, blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.config.client import LOGINS
from k3check.link.lint import key as lint_key
from k3check.link.lint import url as lint_url
from k3check.link.lint.files import key_files
from k3check.link.lint.key import PLACEHOLDER
from k3check.link.problem import Problem, Severity
from k3check.link.wire import proxies
from k3check.released import CONTEXT, SAMPLING, is_k3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from k3check.link.request import LinkRequest
    from k3check.link.wire.urls import Base


B, F, W, N = Severity.BLOCK, Severity.FAIL, Severity.WARN, Severity.NOTE

_SWAPPED = "K3L-032"
_SMALL_OUTPUT = 1024
_SHORT_TIMEOUT_S = 60
_MANY_RETRIES = 10

_SERVER_ONLY = (
    "expert_parallel", "tensor_parallel", "pipeline_parallel", "data_parallel", "quantization",
    "cache_strategy", "context_length", "max_model_len", "gpu_memory_utilization", "num_devices",
    "affinity_scheduling", "balancing", "checkpoint_interval",
)  # fmt: skip


def check(request: LinkRequest) -> tuple[Problem, ...]:
    """All problems of a request's settings, the worst first."""
    found = [problem for rule in RULES for problem in rule(request)]
    order = list(Severity)
    # Key and address swapped: that explains what is wrong with the address, so it is said first.
    return tuple(
        sorted(found, key=lambda problem: (order.index(problem.severity), problem.code != _SWAPPED))
    )


def _base(request: LinkRequest) -> Base:
    return request.address()


def _faults(request: LinkRequest) -> Iterator[Problem]:
    """What keeps the configuration's client from starting or asking at all."""
    for fault in request.faults:
        yield Problem(fault.code, B, fault.values)


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
        why = request.absent.get(key)
        if why is not None and key == "api.api_key" and why.code in LOGINS:
            # A right way to have a key; only a request from here is not possible with it.
            yield Problem(why.code, N if request.offline else B, why.values, key)
        elif why is not None:
            yield Problem(why.code, B, why.values, key)
        elif key == "api.api_key" and request.client and _base(request).private:
            # Local servers mostly want no key, and then the client sends none.
            yield Problem(codes[name], N, {"origin": request.origin(key)}, key)
        elif request.protocol == "anthropic":
            # Claude Code falls back to its own login: requests would go to api.anthropic.com.
            yield Problem("K3L-057", B, {"missing": variable, "setting": name}, key)
        else:
            yield Problem(codes[name], B, {"origin": request.origin(key)}, key)


def _parameters(request: LinkRequest) -> Iterator[Problem]:
    """Sampling, sizes, times."""
    if is_k3(request.model):
        yield from _of_k3(request)
    output = request.max_output_tokens
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


def _of_k3(request: LinkRequest) -> Iterator[Problem]:
    """What K3 alone fixes or allows."""
    for name, official in SAMPLING.items():
        value = getattr(request, name)
        if value is not None and value != official:
            key = f"model.{name}"
            yield Problem(
                "K3L-045", N,
                {"parameter": name, "found": value, "accepted": official,
                 "origin": request.origin(key)}, key, official,
            )  # fmt: skip
    window, output = request.context_window, request.max_output_tokens
    if window is not None and window > CONTEXT:
        yield Problem("K3L-047", W, {"found": window, "right": CONTEXT}, "model.context_window",
                      CONTEXT)  # fmt: skip
    elif window is not None and window < CONTEXT:
        yield Problem("K3L-048", N, {"found": window, "right": CONTEXT}, "model.context_window",
                      CONTEXT)  # fmt: skip
    if output is not None and output > (window or CONTEXT):
        yield Problem("K3L-046", W, {"found": output, "right": window or CONTEXT},
                      "model.max_output_tokens")  # fmt: skip


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
    if not key.strip() or PLACEHOLDER.search(key):
        return
    for seen in key_files(request.files, key):
        if seen.readable_by_others:
            yield Problem("K3L-054", W, {"file": seen.name, "mode": seen.mode})
        if seen.tracked:
            yield Problem("K3L-055", W, {"file": seen.name})


RULES: tuple[Callable[[LinkRequest], Iterator[Problem]], ...] = (
    _faults,
    _missing,
    lint_url.check,
    lint_key.check_key,
    lint_key.check_model,
    _parameters,
    _proxy,
    _files,
)
