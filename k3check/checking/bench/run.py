"""A speed comparison, engine by engine: the result is judged first, then calls are timed."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from k3check.checking.bench.engines import PREFILLS, engines
from k3check.checking.bench.floor import IMPOSSIBLE, floor_of
from k3check.checking.bench.timing import timed
from k3check.checking.candidates import build_candidate, choose_recipe
from k3check.checking.one_case import compare_case
from k3check.errors import UsageError
from k3check.model import Outcome
from k3check.nouns.candidate_error import CandidateError, guarded, one_line
from k3check.nouns.case import Case
from k3check.nouns.convention import ConventionBroken
from k3check.nouns.tensors import to_device
from k3check.operators import families
from k3check.operators.kda.cases import KdaSpec
from k3check.report.bench import Bench, Row
from k3check.runners.target import load_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from k3check.checking.bench.engines import Engine
    from k3check.nouns.operator import Candidate, Operator
    from k3check.nouns.request import CandidateSpec, OpsRequest
    from k3check.nouns.tensors import Tensors
    from k3check.report.bench import Floor

#: Tokens of all heads together on which a result is judged at most; at least a whole chunk and a
#: part of one. Limits are computed on the CPU, one thread.
JUDGED, FEWEST_JUDGED = 8192, 80

_BY_TOKEN = ("q", "k", "v", "gate", "beta")


@dataclass(frozen=True)
class Sizes:
    """T, H, K, V of the prefill."""

    tokens: int
    heads: int
    key_dim: int
    value_dim: int


def usual_sizes(device: torch.device) -> Sizes:
    """The released model's on an accelerator, the article's on a CPU."""
    return Sizes(512, 1, 64, 64) if device.type == "cpu" else Sizes(8192, 96, 128, 128)


def compare(
    request: OpsRequest,
    asked: tuple[int | None, int | None, int | None, int | None],
    tell: Callable[[str], None],
) -> Bench:
    """Run a comparison of the sizes that were asked for, the usual ones where they were not.

    Raises:
        UsageError: the device or the user's operator cannot be used.
    """
    # The user's own operators decide where everything runs, if they say so.
    named = [spec for name, spec in request.candidates.items() if name in PREFILLS]
    wanted = next((s for s in (*named, request.default) if s.device != "auto"), None)
    if wanted is None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    else:
        device = choose_recipe(wanted, request.default).device
    usual = usual_sizes(device)
    tokens, heads, key_dim, value_dim = asked
    sizes = Sizes(
        tokens or usual.tokens,
        heads or usual.heads,
        key_dim or usual.key_dim,
        value_dim or key_dim or usual.value_dim,
    )
    low = "bfloat16" if device.type == "cuda" else None
    default = replace(request.default, dtype=request.default.dtype or low)
    return bench(replace(request, default=default), sizes, device, tell)


def bench(
    request: OpsRequest, sizes: Sizes, device: torch.device, tell: Callable[[str], None]
) -> Bench:
    """Run a comparison.

    Args:
        request: recipe, semantics, the user's operators.
        sizes: of the prefill.
        device: where everything runs.
        tell: is told the name of each engine as it begins.

    Raises:
        UsageError: the user's operator cannot be used.
    """
    operators = {o.name: o for family in families() for o in family.operators}
    floor: Floor | None = None
    rows: list[Row] = []
    recipe = "float32"
    with torch.no_grad():
        for engine in engines(request, device):
            tell(engine.name)
            row, floor, recipe = _row(engine, operators, request, sizes, floor, recipe)
            rows.append(row)
    assert floor is not None, "the built-in always runs"
    return Bench(
        shape={"T": sizes.tokens, "H": sizes.heads, "K": sizes.key_dim, "V": sizes.value_dim},
        dtype=recipe,
        device=name_of(device),
        floor=floor,
        rows=tuple(rows),
        environment=environment(),
    )


def _row(
    engine: Engine,
    operators: dict[str, Operator],
    request: OpsRequest,
    sizes: Sizes,
    floor: Floor | None,
    recipe: str,
) -> tuple[Row, Floor | None, str]:
    """One engine's row, with the floor that the first one has measured."""
    if engine.spec is None:
        return Row(engine.name, why=engine.why), floor, recipe
    builtin = engine.spec.target is None
    try:
        candidate = built(engine, operators[engine.spec.operator], request)
        began = time.perf_counter()
        why = wrong(candidate, sizes, request)
        first_s = time.perf_counter() - began
        if why is not None:
            return Row(engine.name, correct=False, why=why), floor, recipe
        inputs = prefill_inputs(candidate, sizes, request.seed)
        call, outputs = direct_call(candidate, inputs)
        if floor is None:
            floor = floor_of(inputs, outputs, candidate.recipe.device, candidate.recipe.io)
            recipe = candidate.recipe.describe()
        ran = engine_of(call, candidate.recipe.device)
        took = timed(call, candidate.recipe.device)
    except (CandidateError, ConventionBroken, UsageError) as error:
        if not builtin and isinstance(error, UsageError) and engine.name.startswith("your"):
            raise
        said = error.error if isinstance(error, CandidateError) else one_line(error)
        return Row(engine.name, why=said), floor, recipe
    return (
        Row(
            engine.name,
            seconds=took.median,
            spread=took.spread,
            calls=took.calls,
            first_call_s=None if builtin else first_s,
            engine=ran,
            correct=True,
            impossible=took.median < IMPOSSIBLE * floor.seconds,
        ),
        floor,
        recipe,
    )


def built(engine: Engine, operator: Operator, request: OpsRequest) -> Candidate:
    """The engine's candidate; its cases keep the sizes that they are given."""
    spec = engine.spec
    assert spec is not None, "engines that cannot run have a reason instead"
    asked = replace(request, candidates={operator.name: spec})
    if engine.settings:
        asked = replace(asked, settings={**request.settings, "flashkda": dict(engine.settings)})

    def load(spec: CandidateSpec, directory: str) -> Callable[..., Any]:
        return guarded(load_target(spec, directory))

    return replace(build_candidate(operator, asked, load), operator=operator)


def judged(sizes: Sizes) -> int:
    """Tokens on which a result is judged, and of which the timed inputs are made."""
    return min(sizes.tokens, max(FEWEST_JUDGED, JUDGED // sizes.heads))


def spec_of(sizes: Sizes, tokens: int) -> KdaSpec:
    """A prefill of some tokens: gates that remember, a state from before."""
    return KdaSpec(
        tokens=tokens,
        heads=sizes.heads,
        value_heads=sizes.heads,
        key_dim=sizes.key_dim,
        value_dim=sizes.value_dim,
        gate="medium",
        zeros=True,
    )


def fitted(candidate: Candidate, sizes: Sizes, tokens: int) -> Case:
    """The prefill as the callable takes it.

    Raises:
        UsageError: it takes no such sizes.
    """
    case = Case("bench", "prefill", spec=spec_of(sizes, tokens))
    found = candidate.operator.fit(case, candidate.interface)
    if isinstance(found, Case) and (found.spec.heads, found.spec.key_dim) == (
        sizes.heads,
        sizes.key_dim,
    ):
        return found
    accepts = found if isinstance(found, str) else f"H = {found.spec.heads}, {found.spec.key_dim}"
    raise UsageError(
        code="K3C-142",
        what=f"{candidate.convention} takes no heads and head sizes like these",
        where=candidate.origin,
        found=f"H = {sizes.heads}, K = {sizes.key_dim}, V = {sizes.value_dim}",
        accepted=accepts,
        fix="Choose other sizes with --heads, --key-dim and --value-dim.",
    )


def wrong(candidate: Candidate, sizes: Sizes, request: OpsRequest) -> str | None:
    """Why a result is not the operator's, None if it is; by the limits of every other check."""
    case = fitted(candidate, sizes, judged(sizes))
    found = compare_case(candidate, case, request)
    if found.outcome in (Outcome.PASS, Outcome.ACCEPTABLE):
        return None
    worst = {
        name: value
        for name, value in found.metrics.items()
        if name in found.limits and not value <= found.limits[name]
    }
    return ", ".join(f"{name} {value:.3g}" for name, value in worst.items()) or (
        found.hint.code if found.hint else found.outcome.value
    )


def prefill_inputs(candidate: Candidate, sizes: Sizes, seed: int) -> Tensors:
    """The timed inputs, on the device: the judged tokens over and over."""
    short = fitted(candidate, sizes, judged(sizes))
    raw = candidate.operator.raw(short, candidate.semantics, seed)
    given = candidate.operator.present(
        raw, candidate.semantics, candidate.interface, candidate.recipe
    )
    tokens = fitted(candidate, sizes, sizes.tokens).spec.tokens
    inputs = to_device(given, candidate.recipe.device)
    times = -(-tokens // given["k"].shape[1])
    for name in _BY_TOKEN:
        if name in inputs and times > 1:
            x = inputs[name]
            inputs[name] = x.repeat(1, times, *[1] * (x.dim() - 2))[:, :tokens].contiguous()
    return inputs


def direct_call(candidate: Candidate, inputs: Tensors) -> tuple[Callable[[], object], Tensors]:
    """The callable alone, with the arguments that its convention hands it, and its outputs.

    A convention that calls it more than once is timed as a whole.
    """
    handed: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def recording(*args: Any, **kwargs: Any) -> Any:
        handed.append((args, kwargs))
        return candidate.target(*args, **kwargs)

    outputs = candidate.binding.call(recording, inputs)
    if len(handed) != 1:
        return lambda: candidate.binding.call(candidate.target, inputs), outputs
    (args, kwargs), *_ = handed
    return lambda: candidate.target(*args, **kwargs), outputs


def engine_of(call: Callable[[], object], device: torch.device) -> str:
    """What really ran: the kernel that took longest, on an accelerator."""
    if device.type != "cuda":
        call()
        return ""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize(device)
    events = list(_kernels(seen))
    return max(events, key=lambda event: event[1])[0][:80] if events else ""


def _kernels(seen: Any) -> Iterator[tuple[str, float]]:
    for event in seen.key_averages():
        time_us = getattr(event, "self_device_time_total", 0.0)
        if time_us:
            yield str(event.key), float(time_us)


def name_of(device: torch.device) -> str:
    """The card's name, or how many threads the CPU has."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type}, {torch.get_num_threads()} threads"


def environment() -> dict[str, Any]:
    """What the numbers depend on besides the card."""
    import sys

    packages = ("torch", "triton", "fla", "flash_kda", "flashinfer")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{
            name: str(getattr(sys.modules[name], "__version__", "unknown"))
            for name in packages
            if name in sys.modules
        },
    }
