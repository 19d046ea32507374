"""The first article's checks of KDA, with its numbers.

They run on the article's form of the operator (alpha given, no norm, no scale), which is not the
released model's: see ``kda/semantics.py``. Each is a function (request, candidates) -> checks.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from k3check.compare.allowance import WHOLE
from k3check.compare.distance import relative_l2
from k3check.memory import available_bytes, readable
from k3check.model import Finding, Message, Outcome, Text
from k3check.nouns.case import Case
from k3check.nouns.check import Check, Comparison
from k3check.nouns.recipe import EXACT
from k3check.nouns.tensors import generator
from k3check.operators.kda import candidate as builtin
from k3check.operators.kda.article_gate import gate_window
from k3check.operators.kda.boundary import agreeing
from k3check.operators.kda.calling import outputs_of
from k3check.operators.kda.cases import KdaSpec
from k3check.operators.kda.conventions import ACTIVATED
from k3check.operators.kda.exact import evaluate
from k3check.operators.kda.reference import prepare
from k3check.operators.kda.semantics import ARTICLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from k3check.nouns.operator import Candidate
    from k3check.nouns.request import OpsRequest

#: The article's numbers.
STEP_AGREEMENT = 1e-5
CHUNK_AGREEMENT = 1e-3
TOKENS, CHUNK, DIM = 512, 128, 64
#: A healthy state's norm stays within this factor of its median; a spike exceeds it in one step.
NORM_RANGE = 100.0
NORM_JUMP = 10.0


def checks(request: OpsRequest, candidates: Mapping[str, Candidate]) -> Sequence[Check]:
    """The article's rows for every operator that the request checks."""
    found: list[Check] = []
    kda, flash = (request.settings.get(name, {}) for name in ("kda", "flashkda"))
    logging = request.settings.get("logging", {})
    if "kda_step" in candidates:
        step = candidates["kda_step"]
        found.append(
            _check("kda_step", "article-dense", "dense formula against the three steps, d = 64",
                   lambda c: dense_against_steps(step, DIM, DIM, request.seed, c))
        )  # fmt: skip
        K, V = kda.get("d_k", DIM), kda.get("d_v", DIM)
        if (K, V) != (DIM, DIM):
            found.append(
                _check("kda_step", "article-configured-size",
                       Text("dense formula against the three steps, {K} x {V}", K=K, V=V),
                       lambda c: dense_against_steps(step, K, V, request.seed, c))
            )  # fmt: skip
        log_norm = bool(logging.get("log_kda_state_norm", False))
        found.append(
            _check("kda_step", "article-state-norm", "norm of the state over 256 tokens",
                   lambda c: state_norm(step, kda, request.seed, c, record=log_norm))
        )  # fmt: skip
    if "kda_gate" in candidates:
        gate = candidates["kda_gate"]
        found.append(
            _check("kda_gate", "article-window", "distribution of alpha of the bottleneck gate",
                   lambda c: gate_window(gate, kda, request.seed, c), built_in=gate.builtin)
        )  # fmt: skip
    if "kda_chunk" in candidates:
        chunked = candidates["kda_chunk"]
        size = flash.get("chunk_size", CHUNK)
        log_boundary = bool(logging.get("log_chunk_boundary", False))
        found += [
            _check("kda_chunk", "article-512", "512 tokens chunkwise against token by token",
                   chunkwise(chunked, size, request)),
            _check("kda_chunk", "article-boundary", "state handed from chunk to chunk",
                   lambda c: boundaries(chunked, size, request, c, record=log_boundary)),
            _check("kda_chunk", "article-switches",
                   "use_ut_transform and bind_dplr_to_k off and on give one result",
                   lambda c: switches(size, request.seed, c), built_in=True),
            _check("kda_chunk", "article-half-decay",
                   "cumulative decay within a chunk in the recipe's precision",
                   lambda c: half_precision_decay(chunked, size, request.seed, c),
                   built_in=True),
        ]  # fmt: skip
    return found


def _check(
    operator: str,
    name: str,
    title: str,
    run: Callable[[Finding], Finding] | Comparison | str,
    *,
    built_in: bool = False,
) -> Check:
    """A check whose function fills in a blank finding; a comparison; or why there is none."""
    suite = "flashkda" if operator == "kda_chunk" else "kda"
    blank = Finding(f"{operator}/{name}", suite, operator, name, Outcome.PASS, title)
    comparison = run if isinstance(run, Comparison) else None

    def does() -> Finding:
        return blank  # a comparison's is planning's

    if isinstance(run, str):
        does = partial(_skip, blank, run)
    elif not isinstance(run, Comparison):
        does = partial(run, blank)
    return Check(
        blank.id, suite, operator, name, title, does, built_in=built_in, comparison=comparison
    )


def _skip(blank: Finding, reason: str) -> Finding:
    return replace(blank, outcome=Outcome.SKIPPED, notes=(Message("K3O-016", {"reason": reason}),))


def article_form(candidate: Candidate) -> Candidate:
    """The candidate with the article's semantics; its own where its form cannot have these."""
    if candidate.builtin:
        binding = ACTIVATED.bind(None, dict(candidate.options))
        return replace(candidate, semantics=ARTICLE, binding=binding)
    form = candidate.interface
    if form.gate == "raw" or form.norm == "op" or form.scale == "fixed":
        return candidate
    return replace(candidate, semantics=ARTICLE)


def article_inputs(candidate: Candidate, spec: KdaSpec, name: str, seed: int) -> dict[str, Any]:
    """Inputs of the article's form for a candidate."""
    operator = candidate.operator
    fitted = operator.fit(Case(name, "", spec=spec), candidate.interface)
    assert isinstance(fitted, Case), fitted
    raw = operator.raw(fitted, candidate.semantics, seed)
    return operator.present(raw, candidate.semantics, candidate.interface, candidate.recipe)


def dense_against_steps(candidate: Candidate, K: int, V: int, seed: int, blank: Finding) -> Finding:
    """(I - b k k^T) Diag(a) S + b k v^T as one dense formula, in float64, against the candidate.

    The columns of S are independent of each other: for a large state the dense formula is
    evaluated on 64 of them.
    """
    form = article_form(candidate)
    # the state going in and out, the candidate's copy of it, and two temporaries of its size
    needed = 6 * K * V * form.recipe.state.itemsize + 8 * K * K
    free = available_bytes()
    if free is not None and needed > 0.8 * free:
        return _skip(
            blank,
            f"a {K} x {V} state needs {readable(needed)} and {readable(free)} are available",
        )
    spec = KdaSpec(tokens=1, heads=1, value_heads=1, key_dim=K, value_dim=V, gate="medium",
                   fixed=(K, V) != (DIM, DIM))  # fmt: skip
    inputs = article_inputs(form, spec, "article-dense", seed)
    K, V = inputs["k"].shape[-1], inputs["v"].shape[-1]  # a callable may take one size alone
    started = time.perf_counter()
    outputs = outputs_of(form, inputs)
    elapsed = time.perf_counter() - started
    columns = torch.linspace(0, V - 1, min(V, 64)).long()
    one = prepare(form.semantics, form.interface, inputs, EXACT)
    k, v, beta = one.k[0, 0, 0], one.v[0, 0, 0, columns], one.beta[0, 0, 0]
    alpha = one.g[0, 0, 0].exp()
    state = inputs["initial_state"][0, 0][:, columns].double()
    erase = torch.eye(K, dtype=torch.float64) - beta * torch.outer(k, k)
    dense = erase @ (alpha.unsqueeze(-1) * state) + beta * torch.outer(k, v)
    error = relative_l2(outputs["final_state"][0, 0][:, columns], dense)
    limit = max(STEP_AGREEMENT, 4 * torch.finfo(form.recipe.state).eps)
    ok = error <= limit
    return replace(
        blank,
        outcome=Outcome.PASS if ok else Outcome.FAIL,
        metrics={"final_state.relative_l2": error, "step_seconds": elapsed},
        limits={"final_state.relative_l2": limit},
        hint=None if ok else Message("K3O-040", {"error": f"{error:.2g}"}),
    )


def state_norm(
    candidate: Candidate, kda: Mapping[str, Any], seed: int, blank: Finding, *, record: bool
) -> Finding:
    """Frobenius norm of the state after every token, the state carried by the caller.

    A few tokens cannot explode a healthy state: decay and correction both shrink it, and each
    write adds at most |v|.
    """
    form = article_form(candidate)
    T = 256
    spec = KdaSpec(tokens=T, heads=1, value_heads=1, gate="medium", state="random")
    case = form.operator.fit(Case("article-state-norm", "", spec=spec), form.interface)
    assert isinstance(case, Case), case
    raw = form.operator.raw(case, form.semantics, seed)
    if form.semantics == ARTICLE:
        low, high = kda.get("alpha_floor", 0.01), 1.0
        raw["gate"] = raw["gate"].clamp(min=math.log(low / (high - low)) if 0 < low < 1 else -20.0)
    whole = form.operator.present(raw, form.semantics, form.interface, form.recipe)
    state = whole["initial_state"]
    norms = []
    for t in range(T):
        one = {
            name: x[:, t : t + 1] if name in ("q", "k", "v", "gate", "beta") else x
            for name, x in whole.items()
        }
        outputs = outputs_of(form, {**one, "initial_state": state})
        state = outputs["final_state"]
        norms.append(state.double().norm().item())
    problem = norm_problem(norms)
    return replace(
        blank,
        outcome=Outcome.FAIL if problem else Outcome.PASS,
        metrics={"smallest_norm": min(norms), "largest_norm": max(norms)},
        series={"state_norm": norms} if record or problem else {},
        hint=problem,
    )


def norm_problem(norms: Sequence[float]) -> Message | None:
    """What is wrong with a series of state norms: not finite, exploding, vanishing, a spike."""
    for t, norm in enumerate(norms):
        if not math.isfinite(norm):
            return Message("K3O-042", {"token": t, "norm": str(norm)})
    median = sorted(norms)[len(norms) // 2]
    for t in range(1, len(norms) - 1):
        around = max(norms[t - 1], norms[t + 1])
        if around > 0 and norms[t] > NORM_JUMP * around:
            return Message("K3O-044", {"token": t, "norm": f"{norms[t]:.3g}"})
    last = {"token": len(norms) - 1, "norm": f"{norms[-1]:.3g}"}
    if norms[-1] > NORM_RANGE * norms[0]:
        return Message("K3O-042", last)
    if norms[-1] * NORM_RANGE < norms[0]:
        return Message("K3O-043", last)
    if max(norms) > NORM_RANGE * median:
        top = norms.index(max(norms))
        return Message("K3O-042", {"token": top, "norm": f"{norms[top]:.3g}"})
    return None


def chunkwise(candidate: Candidate, chunk: int, request: OpsRequest) -> Comparison:
    """The chunkwise form against the token recurrence, every position, 1e-3 at most."""
    form = with_chunk(article_form(candidate), chunk)
    spec = KdaSpec(tokens=TOKENS, heads=1, value_heads=1, gate="medium", state="zero")
    tolerance = min(CHUNK_AGREEMENT, request.tolerance or math.inf)
    low = (torch.bfloat16, torch.float16)
    if form.recipe.io in low or form.recipe.state in low:
        # One rounding to bfloat16 costs more than 1e-3: the derived limit holds there.
        tolerance = request.tolerance if request.tolerance is not None else math.inf
    fitted = form.operator.fit(Case("article-512", "", spec=spec), form.interface)
    assert isinstance(fitted, Case), fitted
    return Comparison(form, fitted, tolerance)


def with_chunk(form: Candidate, chunk: int) -> Candidate:
    """A built-in candidate that works in chunks of the configured size; a user's as it is."""
    if not form.builtin:
        return form
    binding = ACTIVATED.bind(None, {**form.options, "chunk_size": chunk})
    return replace(form, binding=binding)


def boundaries(
    candidate: Candidate, chunk: int, request: OpsRequest, blank: Finding, *, record: bool
) -> Finding:
    """The state at every chunk boundary, seen as the final state of that many tokens."""
    form = with_chunk(article_form(candidate), chunk)
    tokens = max(TOKENS, 2 * chunk)
    # Gates near one: a chunk must remember the one before it, or no boundary matters.
    spec = KdaSpec(tokens=tokens, heads=1, value_heads=1, gate="slow", state="random")
    whole = article_inputs(form, spec, "article-boundary", request.seed)
    norms, got, right, prefixes = [], {}, {}, {}
    # A callable that takes no state starts from none.
    B, _, HV, V = whole["v"].shape
    none = whole["v"].new_zeros(B, HV, whole["k"].shape[-1], V)
    reference_state = whole.get("initial_state", none).double()
    for end in range(chunk, whole["k"].shape[1] + 1, chunk):
        prefix = _tokens(whole, 0, end)
        outputs = outputs_of(form, prefix)
        last = {**_tokens(whole, end - chunk, end), "initial_state": reference_state}
        reference_state = evaluate(form.semantics, form.interface, last, EXACT)["final_state"]
        norms.append(outputs["final_state"].double().norm().item())
        place = str(end)
        prefixes[place], got[place] = prefix, outputs["final_state"]
        right[place] = reference_state
    way, own = agreeing(form, prefixes, got, right, CHUNK_AGREEMENT)
    compared = own if way is None else way[0]
    errors = [own.apart[place][WHOLE] for place in got]
    worst = max(range(len(errors)), key=lambda i: compared.excess_of(list(got)[i]))
    limit = compared.limits[list(got)[worst]][WHOLE]
    ok = way is not None
    notes = [Message("K3O-011", {"recipe": way[1]})] if way is not None and way[1] else []
    values = {"boundary": worst + 1, "token": (worst + 1) * chunk, "error": f"{errors[worst]:.2g}"}
    return replace(
        blank,
        outcome=Outcome.FAIL if not ok else Outcome.ACCEPTABLE if notes else Outcome.PASS,
        notes=(*blank.notes, *notes),
        metrics={"worst_boundary_error": errors[worst], "largest_norm": max(norms)},
        limits={"worst_boundary_error": limit},
        series={"boundary_norm": norms, "boundary_error": errors} if record or not ok else {},
        hint=None if ok else Message("K3O-047", values),
    )


def _tokens(inputs: dict[str, Any], start: int, end: int) -> dict[str, Any]:
    """The inputs of a stretch of tokens."""
    return {
        name: x[:, start:end] if name in ("q", "k", "v", "gate", "beta") else x
        for name, x in inputs.items()
    }


def switches(chunk: int, seed: int, blank: Finding) -> Finding:
    """All four settings of the two switches give one result; their prefill times are told."""
    spec = KdaSpec(tokens=TOKENS, heads=1, value_heads=1, gate="medium", state="random")
    draw = generator(seed, "kda", "article-switches")
    shape = (1, 1, spec.tokens, DIM)
    q, k, v = (torch.randn(*shape, generator=draw) for _ in range(3))
    k = torch.nn.functional.normalize(k, dim=-1)
    g = (torch.sigmoid(3 + 2 * torch.randn(*shape, generator=draw)) * 0.99 + 0.01).log()
    beta = torch.rand(1, 1, spec.tokens, generator=draw)
    results, seconds = {}, {}
    for ut in (False, True):
        for bound in (False, True):
            started = time.perf_counter()
            results[ut, bound] = _prefill([q, k, v, g, beta], chunk, ut=ut, bound=bound)
            seconds[ut, bound] = time.perf_counter() - started
    wide = [x.double() for x in (q, k, v, g, beta)]
    exact = _prefill(wide, chunk, ut=False, bound=True)
    errors = {setting: relative_l2(result, exact) for setting, result in results.items()}
    worst = max(errors.values())
    ok = worst <= CHUNK_AGREEMENT
    ratio = seconds[False, False] / seconds[True, True]
    return replace(
        blank,
        outcome=Outcome.PASS if ok else Outcome.FAIL,
        metrics={
            "worst_disagreement": worst,
            "prefill_seconds_off": seconds[False, False],
            "prefill_seconds_on": seconds[True, True],
            "prefill_ratio": ratio,
        },
        limits={"worst_disagreement": CHUNK_AGREEMENT},
        notes=(Message("K3O-046", {"ratio": f"{ratio:.2f}"}),),
        hint=None if ok else Message("K3O-048", {"error": f"{worst:.2g}"}),
    )


def _prefill(parts: Sequence[torch.Tensor], chunk: int, *, ut: bool, bound: bool) -> torch.Tensor:
    """Output of a chunkwise prefill with given switches; [1, 1, T, V]."""
    one = builtin.bound_chunk if bound else builtin.dplr_chunk
    state = parts[2].new_zeros(1, 1, parts[1].shape[-1], parts[2].shape[-1])
    out = []
    for start in range(0, parts[1].shape[2], chunk):
        q, k, v, g, beta = (x[:, :, start : start + chunk] for x in parts)
        o, state = one(q, k, v, g, beta, state, ut)
        out.append(o)
    return torch.cat(out, dim=2)


def half_precision_decay(candidate: Candidate, chunk: int, seed: int, blank: Finding) -> Finding:
    """The cumulative product of alpha over a chunk, in half precision against float64.

    The article: from 128 tokens on errors pass 1e-3, above 256 use float32. What fails is a
    recipe that accumulates the decay in half precision over a chunk in which that underflows;
    with float32 sums the check passes and still tells where half precision would end.
    """
    draw = generator(seed, "kda", "article-half-decay")
    alpha = torch.sigmoid(3 + 2 * torch.randn(chunk, DIM, generator=draw)) * 0.99 + 0.01
    exact = alpha.double().cumprod(dim=0)
    half = cumulative_decay(alpha, torch.float16)
    first = first_position(half == 0)
    inexact = first_position(((half.double() - exact).abs() / exact) > CHUNK_AGREEMENT)
    own = cumulative_decay(alpha, candidate.recipe.accumulate)
    lost = first_position(own == 0)
    metrics = {
        "half_underflows_at": float(first) if first is not None else math.inf,
        "half_passes_1e-3_at": float(inexact) if inexact is not None else math.inf,
    }
    problem = None
    if lost is not None:
        dtype = str(candidate.recipe.accumulate).removeprefix("torch.")
        problem = Message("K3O-049", {"dtype": dtype, "token": lost, "chunk": chunk})
    note = Message("K3O-050", {"token": first, "chunk": chunk}) if first is not None else None
    return replace(
        blank,
        outcome=Outcome.FAIL if problem else Outcome.PASS,
        metrics=metrics,
        notes=(note,) if note else (),
        hint=problem,
    )


def cumulative_decay(alpha: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Running product over tokens with every product rounded to a dtype. [T, K]."""
    product = torch.ones_like(alpha[0]).to(dtype)
    rows = []
    for row in alpha.to(dtype):
        product = product * row
        rows.append(product)
    return torch.stack(rows)


def first_position(mask: torch.Tensor) -> int | None:
    """First token at which any channel is set, None if none is."""
    rows = mask.any(dim=-1).nonzero().flatten()
    return int(rows[0]) if len(rows) else None
