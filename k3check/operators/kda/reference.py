"""KDA by the plainest code that is right: a loop over tokens.

:func:`evaluate` is both the reference (exact arithmetic) and, for operators that work token by
token, the baseline (the recipe's arithmetic). The chunkwise form lives in ``chunkwise.py``; the
test suite holds the two against each other.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from k3check.mutate.site import at, note
from k3check.nouns.recipe import EXACT, Arithmetic
from k3check.operators.kda import gate as front
from k3check.operators.kda.chunkwise import run_chunks
from k3check.operators.kda.sequence import Sequence

if TYPE_CHECKING:
    from k3check.nouns.tensors import Tensors
    from k3check.operators.kda.semantics import KdaInterface, KdaSemantics


#: The longest sums that a chunk in use has (the article's); where the callable's own size is known,
#: its interface says so.
LARGEST_CHUNK = 128

#: axes of what stands by query head, by value head, and in the token loop
BY_QUERY, BY_KEY = "batch token qhead key", "batch token head key"
BY_VALUE, BY_HEAD = "batch token head value", "batch token head"


def evaluate(
    semantics: KdaSemantics,
    interface: KdaInterface,
    inputs: Tensors,
    arithmetic: Arithmetic = EXACT,
) -> Tensors:
    """KDA of inputs given in an interface's form.

    Args:
        semantics: which KDA.
        interface: what of it the inputs still need: activation of gate and beta, norm, scale.
        inputs: ``q, k`` [B, T, H, K], ``v`` [B, T, HV, V], ``gate`` [B, T, HV, K],
            ``beta`` [B, T, HV]; optional ``A_log`` [HV], ``dt_bias`` [HV, K], ``scale``,
            ``initial_state`` [N, HV, K, V], ``cu_seqlens`` [N + 1] (then B = 1).
        arithmetic: where to round; exact for the reference.

    Returns:
        ``final_state`` [N, HV, K, V] and, unless the interface has no readout, ``output``
        [B, T, HV, V], in the arithmetic's output and state dtypes.
    """
    whole = prepare(semantics, interface, inputs, arithmetic)
    run = run_chunks if semantics.chunk else run_tokens
    outputs: list[torch.Tensor] = []
    states: list[torch.Tensor] = []
    for n, part in enumerate(split(whole, inputs.get("cu_seqlens"))):
        note(sequence=n, later_sequence=n > 0, tokens=part.q.shape[2], whole=False)
        if semantics.packing == "leak" and states:
            part = replace(part, state=states[-1])
        o, s = run(semantics, part, arithmetic) if part.q.shape[2] else (part.v, part.state)
        outputs.append(o)
        states.append(s)
    output = torch.cat(outputs, dim=2).transpose(1, 2)
    output = at("output", output, "batch token head value")
    state = at("final state", torch.cat(states, dim=0), "batch head key value")
    if semantics.final_state == "transposed":
        state = state.transpose(-1, -2)
    elif semantics.final_state == "initial":
        state = whole.state
    result: Tensors = {"final_state": state.to(arithmetic.state).contiguous()}
    if interface.readout:
        result["output"] = output.to(arithmetic.output).contiguous()
    return result


def chunkwise_baseline(
    semantics: KdaSemantics, interface: KdaInterface, inputs: Tensors, arithmetic: Arithmetic
) -> Tensors:
    """The baseline of a chunkwise operator: the chunkwise form, whose sums are other ones."""
    if arithmetic.stepwise:
        return evaluate(semantics, interface, inputs, arithmetic)
    chunk = semantics.chunk or interface.chunk or LARGEST_CHUNK
    return evaluate(replace(semantics, chunk=chunk), interface, inputs, arithmetic)


def prepare(
    semantics: KdaSemantics, interface: KdaInterface, inputs: Tensors, arithmetic: Arithmetic
) -> Sequence:
    """Activate, normalise, spread heads and transpose to [B, HV, T, *]."""
    cast = {
        name: value.to(arithmetic.compute)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    }
    k, v = cast["k"], cast["v"]
    q = cast.get("q", k)
    HV, H, K, V = v.shape[2], k.shape[2], k.shape[3], v.shape[3]
    lengths = inputs.get("cu_seqlens")
    note(
        packed=lengths is not None,
        ends=None if lengths is None else [int(end) for end in lengths],
        grouped=HV != H,
        state_given=inputs.get("initial_state") is not None,
        sizes={"K": K, "V": V},
        tokens=k.shape[1],
        whole=True,
        later_sequence=False,
    )
    q, k = at("raw q", q, BY_QUERY), at("raw k", k, BY_QUERY)
    if interface.norm == "op":
        q, k = front.normalised_pair(semantics, q, k)
        q, k = arithmetic.operands(q), arithmetic.operands(k)
    scale = front.scale_value(semantics, K, V, inputs.get("scale"))
    g = front.choose_gate(semantics, natural_log_gate(semantics, interface, cast, arithmetic))
    beta = cast["beta"]
    if interface.beta == "logit":
        beta = front.activated_beta(semantics, beta)
    elif semantics.beta_gain != 1.0:
        beta = semantics.beta_gain * beta
    g, beta = at("log decay", g, BY_KEY), at("beta", front.choose_beta(semantics, beta), BY_HEAD)
    q, k, v = at("q", q, BY_QUERY), at("k", k, BY_QUERY), at("v", v, BY_VALUE)
    scale = at("scale", scale)
    if semantics.value_token == "previous":
        v = torch.cat([torch.zeros_like(v[:, :1]), v[:, :-1]], dim=1)
    if semantics.key_token == "previous":
        k = torch.cat([torch.zeros_like(k[:, :1]), k[:, :-1]], dim=1)
    q, k = (spread_heads(semantics, x, HV // H) for x in (q, k))
    if HV != H:
        q, k = at("spread q", q, BY_KEY), at("spread k", k, BY_KEY)
    if semantics.head_order == "reversed":
        q, k = q.flip(2), k.flip(2)
    elif semantics.head_order == "rolled":
        q, k = q.roll(1, 2), k.roll(1, 2)
    if semantics.active_heads == "first_only":
        q, k, v, g, beta = (
            x[:, :, :1].expand(*x.shape[:2], HV, *x.shape[3:]) for x in (q, k, v, g, beta)
        )
    N = k.shape[0] if lengths is None else len(lengths) - 1
    state = initial_state(semantics, cast.get("initial_state"), (N, HV, K, V), v)
    return Sequence(
        q=(q * scale).transpose(1, 2),
        k=k.transpose(1, 2),
        v=v.transpose(1, 2),
        g=g.transpose(1, 2),
        beta=beta.transpose(1, 2),
        state=at("initial state", arithmetic.stored(state), "batch head key value"),
    )


def natural_log_gate(
    semantics: KdaSemantics, interface: KdaInterface, cast: Tensors, arithmetic: Arithmetic
) -> torch.Tensor:
    """The gate input as natural log decay, [B, T, HV, K]."""
    given: torch.Tensor = cast["gate"]
    if interface.gate == "raw":
        return front.log_decay(
            semantics,
            given,
            cast.get("A_log"),
            cast.get("dt_bias"),
            coarse_log=arithmetic.coarse_log,
        )
    if interface.gate == "log2":
        return given * front.LN2
    if interface.gate == "alpha":
        return given.log()
    if interface.gate == "cumulative_log2":
        parts = [
            torch.cat([part[:, :1], part.diff(dim=1)], dim=1)
            for part in given.split(interface.chunk, dim=1)
        ]
        return torch.cat(parts, dim=1) * front.LN2
    return given


def spread_heads(semantics: KdaSemantics, x: torch.Tensor, times: int) -> torch.Tensor:
    """[B, T, H, K] -> [B, T, HV, K]: value head j reads query head j // times."""
    if times == 1:
        return x
    if semantics.group == "tile":
        return x.repeat(1, 1, times, 1)
    return x.repeat_interleave(times, dim=2)


def initial_state(
    semantics: KdaSemantics,
    given: torch.Tensor | None,
    shape: tuple[int, int, int, int],
    like: torch.Tensor,
) -> torch.Tensor:
    """The state before the first token, [N, HV, K, V]."""
    if given is None or semantics.initial_state == "ignored":
        return like.new_zeros(shape)
    if semantics.initial_state == "transposed" and shape[2] == shape[3]:
        return given.transpose(-1, -2)
    if semantics.initial_state == "first_sequence":
        return given[:1].expand(shape)
    return given


def split(whole: Sequence, cu_seqlens: torch.Tensor | None) -> list[Sequence]:
    """One Sequence per packed sequence, each with its own state."""
    if cu_seqlens is None:
        return [whole]
    ends = [int(end) for end in cu_seqlens]
    return [
        Sequence(
            q=whole.q[:, :, start:end],
            k=whole.k[:, :, start:end],
            v=whole.v[:, :, start:end],
            g=whole.g[:, :, start:end],
            beta=whole.beta[:, :, start:end],
            state=whole.state[n : n + 1],
        )
        for n, (start, end) in enumerate(pairwise(ends))
    ]


_STATE = "batch head key value"


def _in_loop(name: str, value: torch.Tensor, axes: str, token: int) -> torch.Tensor:
    return at(name, value, axes, start=token, looped=True)


def run_tokens(
    semantics: KdaSemantics, part: Sequence, arithmetic: Arithmetic
) -> tuple[torch.Tensor, torch.Tensor]:
    """The token recurrence.

    Returns:
        (output [B, HV, T, V], state after the last token [B, HV, K, V]).
    """
    alpha = at("decay", part.g.exp(), "batch head token key").unsqueeze(-1)
    if semantics.decay_rounding == "bfloat16":
        alpha = alpha.bfloat16().to(alpha.dtype)
    if semantics.decay == "none":
        alpha = torch.ones_like(alpha)
    elif semantics.decay == "twice":
        alpha = alpha.square()
    state = previous = part.state
    outputs = []
    for t in range(part.q.shape[2]):
        q, k, v = part.q[:, :, t], part.k[:, :, t], part.v[:, :, t]
        beta = part.beta[:, :, t, None]
        previous = state = _in_loop("state before the token", state, _STATE, t)
        skip = t == 0 and semantics.initial_state == "decay_skipped"
        decayed = (
            state if semantics.decay in ("after", "between") or skip else state * alpha[:, :, t]
        )
        decayed = _in_loop("decayed state", decayed, _STATE, t)
        source = state if semantics.prediction == "undecayed" else decayed
        source = _in_loop("state that predicts", source, _STATE, t)
        by = q if semantics.prediction == "by_query" else k
        by = _in_loop("key that predicts", by, "batch head key", t)
        prediction = (by.unsqueeze(-2) @ source).squeeze(-2)
        prediction = _in_loop("prediction", prediction, "batch head value", t)
        if semantics.prediction == "none":
            prediction = torch.zeros_like(prediction)
        elif semantics.prediction == "negative":
            prediction = -prediction
        value = _in_loop("value that is written", v, "batch head value", t)
        gap = _in_loop("error", value - prediction, "batch head value", t)
        error = {
            "both": beta * gap,
            "value": beta * v - prediction,
            "prediction": v - beta * prediction,
            "twice": beta * beta * (v - prediction),
        }[semantics.beta_on]
        if semantics.write == "value_only":
            error = v
        error = _in_loop("correction", error, "batch head value", t)
        key = q if semantics.write == "by_query" else k
        key = _in_loop("key that is written", key, "batch head key", t)
        base = state if semantics.write == "no_decay_kept" else decayed
        base = _in_loop("state that is kept", base, _STATE, t)
        if semantics.decay == "between":
            # S - beta k (k^T S), then the decay, then the write
            fixed = base + key.unsqueeze(-1) * (error - beta * v).unsqueeze(-2)
            base, error = fixed * alpha[:, :, t], beta * v
        state = base + key.unsqueeze(-1) * error.unsqueeze(-2)
        if semantics.decay == "after":
            state = state * alpha[:, :, t]
        state = _in_loop("state after the token", arithmetic.stored(state), _STATE, t)
        seen = {"after": state, "by_key": state, "before_write": decayed, "before_all": previous}
        reader = k if semantics.readout == "by_key" else q
        reader = _in_loop("query that reads", reader, "batch head key", t)
        read = _in_loop("state that is read", seen[semantics.readout], _STATE, t)
        outputs.append((reader.unsqueeze(-2) @ read).squeeze(-2))
    if semantics.final_state == "previous":
        state = previous
    elif semantics.final_state == "decayed_again":
        state = state * alpha[:, :, -1]
    return torch.stack(outputs, dim=2), state
