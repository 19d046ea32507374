"""KDA's mistakes: every wrong value of every choice in the semantics, with its code.

Public reports of each are named in the texts (``hints/texts/kda.toml``). A fault is listed only
where it is one: a softplus gate is a mistake against K3 and right for Kimi Linear, and a callable
that is given an activated gate cannot get the activation wrong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.fault import Fault
from k3check.operators.kda.gate import LN2
from k3check.operators.kda.returned_faults import output_faults

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.kda.semantics import KdaInterface, KdaSemantics

#: chunk sizes in use: FlashKDA and llama.cpp 16, fla 32 and 64, the article 128
CHUNKS = (64, 16, 32, 128)

#: (code, slug, changes), by what they concern
Rows = tuple[tuple[str, str, dict[str, Any]], ...]

GATE_FORM: Rows = (
    ("K3O-101", "gate.softplus", {"gate": "softplus"}),
    ("K3O-102", "gate.lower-bound", {"gate": "lower_bound"}),
    ("K3O-103", "gate.clamped-softplus", {"gate": "clamped_softplus"}),
    ("K3O-104", "gate.alpha-floor", {"gate": "floor"}),
    ("K3O-105", "gate.complement", {"gate": "upper_bound"}),
)
GATE_SIGN: Rows = (("K3O-106", "gate.sign", {"gate_sign": -1}),)
GATE_PARAMETERS: Rows = (
    ("K3O-107", "gate.rate-not-exponentiated", {"rate": "plain"}),
    ("K3O-108", "gate.rate-exponentiated-twice", {"rate": "double_exp"}),
    ("K3O-109", "gate.rate-ignored", {"rate": "one"}),
    ("K3O-110", "gate.rate-by-channel", {"rate": "by_channel"}),
    ("K3O-111", "gate.rate-of-first-head", {"rate": "first_head"}),
    ("K3O-113", "gate.bias-after-rate", {"bias": "after_rate"}),
    ("K3O-114", "gate.bias-dropped", {"bias": "dropped"}),
    ("K3O-115", "gate.bias-per-head", {"bias": "per_head"}),
    ("K3O-116", "gate.bias-transposed", {"bias": "transposed"}),
    ("K3O-117", "gate.bias-twice", {"bias": "twice"}),
)
GATE_BOUND: Rows = (
    ("K3O-112", "gate.rate-outside", {"rate_place": "outside"}),
    ("K3O-118", "gate.bound-of-one", {"lower_bound": -1.0}),
)
GATE_GIVEN: Rows = (
    ("K3O-120", "gate.exp2-for-exp", {"decay_gain": LN2}),
    ("K3O-121", "gate.log2-twice", {"decay_gain": 1 / LN2}),
    ("K3O-122", "gate.mean-over-channels", {"gate_over": "mean"}),
    ("K3O-123", "gate.first-channel", {"gate_over": "first_channel"}),
    ("K3O-124", "gate.channels-reversed", {"gate_over": "reversed"}),
    ("K3O-125", "gate.of-first-head", {"gate_over": "value_head_0"}),
    ("K3O-126", "gate.previous-token", {"gate_token": "previous"}),
    ("K3O-127", "gate.next-token", {"gate_token": "next"}),
)
BETA_LOGIT: Rows = (
    ("K3O-130", "beta.sigmoid-twice", {"beta": "double_sigmoid"}),
    ("K3O-131", "beta.no-sigmoid", {"beta": "raw"}),
)
BETA: Rows = (
    ("K3O-133", "beta.doubled", {"beta_gain": 2.0}),
    ("K3O-134", "beta.halved", {"beta_gain": 0.5}),
    ("K3O-136", "beta.on-value-only", {"beta_on": "value"}),
    ("K3O-137", "beta.on-prediction-only", {"beta_on": "prediction"}),
    ("K3O-138", "beta.squared", {"beta_on": "twice"}),
    ("K3O-139", "beta.previous-token", {"beta_token": "previous"}),
    ("K3O-140", "beta.mean-over-heads", {"beta_head": "mean"}),
    ("K3O-141", "beta.heads-reversed", {"beta_head": "reversed"}),
)
NORM: Rows = (
    ("K3O-145", "norm.missing", {"norm": "none"}),
    ("K3O-146", "norm.q-only", {"norm": "q_only"}),
    ("K3O-148", "norm.rms", {"norm": "rms"}),
    ("K3O-151", "norm.l1", {"norm": "l1"}),
)
#: where q and k are not to be normalised, k comes with a norm of one and eps is nowhere
NORM_OF_KEY: Rows = (
    ("K3O-147", "norm.k-only", {"norm": "k_only"}),
    ("K3O-149", "norm.eps-on-mean", {"eps_on": "mean"}),
    ("K3O-150", "norm.eps-outside", {"eps_on": "outside"}),
    ("K3O-152", "norm.clamped", {"eps_on": "squared_sum_max"}),
    ("K3O-153", "norm.eps-value", {"norm_eps": 1e-5}),
)
SCALE: Rows = (("K3O-155", "scale.missing", {"scale": "none"}),)
SCALE_OF_VALUES: Rows = (("K3O-156", "scale.of-value-dim", {"scale": "value"}),)
SCALE_TWISTED: Rows = (
    ("K3O-157", "scale.inverse", {"scale": "inverse"}),
    ("K3O-158", "scale.twice", {"scale": "twice"}),
)
RECURRENCE: Rows = (
    ("K3O-160", "decay.after-write", {"decay": "after"}),
    ("K3O-983", "decay.after-correction", {"decay": "between"}),
    ("K3O-161", "decay.missing", {"decay": "none"}),
    ("K3O-162", "decay.twice", {"decay": "twice"}),
    ("K3O-165", "delta.undecayed", {"prediction": "undecayed"}),
    ("K3O-166", "delta.missing", {"prediction": "none"}),
    ("K3O-168", "delta.sign", {"prediction": "negative"}),
    ("K3O-171", "write.value-only", {"write": "value_only"}),
    ("K3O-172", "write.decay-not-kept", {"write": "no_decay_kept"}),
    ("K3O-180", "value.previous-token", {"value_token": "previous"}),
    ("K3O-181", "key.previous-token", {"key_token": "previous"}),
)
READOUT: Rows = (
    ("K3O-167", "delta.by-query", {"prediction": "by_query"}),
    ("K3O-170", "write.by-query", {"write": "by_query"}),
    ("K3O-175", "readout.before-write", {"readout": "before_write"}),
    ("K3O-176", "readout.before-decay", {"readout": "before_all"}),
    ("K3O-177", "readout.by-key", {"readout": "by_key"}),
)
#: without a query nothing can be read or written by the wrong one of two
READOUT_WITH_KEY = tuple(row for row in READOUT if row[0] in ("K3O-175", "K3O-176"))
HEADS: Rows = (
    ("K3O-186", "heads.reversed", {"head_order": "reversed"}),
    ("K3O-187", "heads.rolled", {"head_order": "rolled"}),
    ("K3O-188", "heads.first-only", {"active_heads": "first_only"}),
)
STATE: Rows = (
    ("K3O-190", "state.ignored", {"initial_state": "ignored"}),
    ("K3O-191", "state.read-transposed", {"initial_state": "transposed"}),
    ("K3O-192", "state.first-decay-skipped", {"initial_state": "decay_skipped"}),
    ("K3O-193", "state.of-first-sequence", {"initial_state": "first_sequence"}),
    ("K3O-195", "state.previous-returned", {"final_state": "previous"}),
    ("K3O-196", "state.returned-transposed", {"final_state": "transposed"}),
    ("K3O-197", "state.decayed-again", {"final_state": "decayed_again"}),
    ("K3O-198", "state.initial-returned", {"final_state": "initial"}),
)
CHUNK: Rows = (
    ("K3O-600", "chunk.state-reset", {"handed_state": "reset"}),
    ("K3O-601", "chunk.state-loses-last", {"handed_state": "loses_last"}),
    ("K3O-602", "chunk.state-not-decayed", {"handed_state": "not_decayed"}),
    ("K3O-603", "chunk.state-read-transposed", {"handed_state": "transposed_read"}),
    ("K3O-604", "chunk.state-stale", {"handed_state": "stale"}),
    ("K3O-610", "chunk.no-solve", {"system": "no_solve"}),
    ("K3O-611", "chunk.system-with-diagonal", {"system": "with_diagonal"}),
    ("K3O-612", "chunk.beta-on-columns", {"system": "beta_on_columns"}),
    ("K3O-613", "chunk.system-transposed", {"system": "transposed"}),
    ("K3O-614", "chunk.inverse-truncated", {"system": "truncated"}),
    ("K3O-615", "chunk.system-without-beta", {"system": "no_beta"}),
    ("K3O-616", "chunk.inverse-in-half", {"inverse": "half_doubling"}),
    ("K3O-620", "chunk.intra-strict", {"intra": "strict"}),
    ("K3O-621", "chunk.intra-undecayed", {"intra": "no_decay"}),
    ("K3O-622", "chunk.intra-not-causal", {"intra": "full"}),
    ("K3O-625", "chunk.inter-undecayed", {"inter": "undecayed"}),
    ("K3O-626", "chunk.inter-exclusive", {"inter": "exclusive"}),
    ("K3O-627", "chunk.inter-dropped", {"inter": "dropped"}),
    ("K3O-630", "chunk.tail-padded-decay", {"tail": "padded_decay"}),
    ("K3O-631", "chunk.tail-dropped", {"tail": "dropped"}),
    ("K3O-640", "chunk.sum-in-bfloat16", {"sum_rounding": "bfloat16"}),
    ("K3O-641", "chunk.sum-in-half", {"sum_rounding": "float16"}),
    ("K3O-642", "chunk.decay-overflows", {"pair_form": "factored"}),
)
PACKING: Rows = (("K3O-199", "packing.leak", {"packing": "leak"}),)
GROUPED: Rows = (("K3O-185", "heads.tiled", {"group": "tile"}),)
PRECISION: Rows = (("K3O-645", "decay.in-bfloat16", {"decay_rounding": "bfloat16"}),)


#: What only a neighbouring token or a second sequence shows: a single step has neither, and there
#: each of these is the same as a mistake that is listed, or as no mistake.
OF_OTHER_TOKENS = frozenset(
    {
        "gate.previous-token",
        "gate.next-token",
        "beta.previous-token",
        "value.previous-token",
        "key.previous-token",
        "state.first-decay-skipped",
        "state.previous-returned",
        "packing.leak",
        "output.one-token-late",
        "output.one-token-early",
        "output.last-token-missing",
        "output.tail-missing",
    }
)


def faults(
    semantics: KdaSemantics,
    interface: KdaInterface,
    recipe: Recipe,
    *,
    chunked: bool = False,
    step: bool = False,
) -> tuple[Fault, ...]:
    """Every mistake against a semantics that a callable of an interface can make.

    Args:
        semantics: what is right.
        interface: what the callable does itself.
        recipe: its precisions.
        chunked: it works chunk by chunk, and can make the mistakes of that too.
        step: it is only ever called with one token.
    """
    found = [
        Fault(code, slug, changes)
        for code, slug, changes in rows(semantics, interface)
        if any(getattr(semantics, name) != value for name, value in changes.items())
    ]
    if chunked:
        sizes = [interface.chunk] if interface.chunk else CHUNKS
        found += [
            Fault(code, slug, {**changes, "chunk": size}, values={"chunk": size})
            for code, slug, changes in CHUNK
            for size in sizes
            if not (slug == "chunk.decay-overflows" and within_range(semantics, size))
            # A callable that only takes whole chunks has no tail to get wrong.
            and not (slug.startswith("chunk.tail-") and interface.multiple_of % size == 0)
        ]
    found += output_faults(("output",) if interface.readout else (), ("final_state",))
    hidden = OF_OTHER_TOKENS if step else frozenset()
    if step and recipe.io in (torch.bfloat16, torch.float16):
        # One decay rounded to bfloat16 costs what storing the state so costs, and that is legal.
        hidden |= {"decay.in-bfloat16"}
    return tuple(fault for fault in found if fault.slug not in hidden)


def rows(semantics: KdaSemantics, interface: KdaInterface) -> Rows:
    """The tables that apply, whether or not their rows differ from the semantics."""
    found = [*GATE_GIVEN, *BETA, *RECURRENCE, *HEADS, *PRECISION]
    if interface.gate == "raw":
        found += [*GATE_FORM, *GATE_SIGN]
        if semantics.gate != "floor":  # the article's gate has neither rate nor bias
            found += GATE_PARAMETERS
        if semantics.gate == "lower_bound":
            found += GATE_BOUND
    if interface.beta == "logit":
        found += BETA_LOGIT
    if interface.norm == "op":
        found += NORM
        if semantics.norm != "none":
            found += NORM_OF_KEY
    if interface.readout:
        found += READOUT if interface.query else READOUT_WITH_KEY
    if interface.readout and interface.scale != "folded":
        found += SCALE
        if "value_dim" in interface.supports:
            found += SCALE_OF_VALUES
        if semantics.scale != "none":  # one is its own inverse and square
            found += SCALE_TWISTED
    if "initial_state" in interface.supports:
        found += STATE
    if "packed" in interface.supports:
        found += PACKING
    if "grouped" in interface.supports:
        found += GROUPED
    return tuple(found)


def within_range(semantics: KdaSemantics, chunk: int) -> bool:
    """Whether exp(-G) stays finite in float32 over a whole chunk: ln of its maximum is 88.7."""
    lowest = {"lower_bound": semantics.lower_bound, "floor": math.log(semantics.floor)}
    return -lowest.get(semantics.gate, -math.inf) * chunk < 88.7
