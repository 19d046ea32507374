"""Which mistakes each of KDA's cases is there for: slugs of ``faults.py``, by case.

A case usually shows many more. What is listed here it must show by at least five times the limit,
in float32 and in bfloat16; the tests prove every pair. (One rounded decay is a mistake in float32
only: where inputs are bfloat16, released kernels round as much.)
"""

from __future__ import annotations

_GATE_FORM = ("gate.softplus", "gate.clamped-softplus", "gate.alpha-floor", "gate.complement")
_GATE_PARAMETERS = (
    "gate.sign",
    "gate.rate-not-exponentiated",
    "gate.rate-exponentiated-twice",
    "gate.rate-ignored",
    "gate.rate-by-channel",
    "gate.rate-of-first-head",
    "gate.rate-outside",
    "gate.bound-of-one",
    "gate.bias-after-rate",
    "gate.bias-dropped",
    "gate.bias-per-head",
    "gate.bias-transposed",
    "gate.bias-twice",
)
_GATE_GIVEN = (
    "gate.exp2-for-exp",
    "gate.log2-twice",
    "gate.mean-over-channels",
    "gate.first-channel",
    "gate.channels-reversed",
    "gate.of-first-head",
)
_DECAY = (
    "decay.after-write",
    "decay.after-correction",
    "decay.missing",
    "decay.twice",
    "delta.undecayed",
    "write.decay-not-kept",
)
_DELTA = (
    "delta.missing",
    "delta.sign",
    "delta.by-query",
    "write.value-only",
    "write.by-query",
    "beta.on-value-only",
    "beta.on-prediction-only",
    "beta.squared",
)
_BETA = ("beta.sigmoid-twice", "beta.no-sigmoid", "beta.doubled", "beta.halved")
_BETA_HEADS = ("beta.mean-over-heads", "beta.heads-reversed")
_HEADS = ("heads.reversed", "heads.rolled", "heads.first-only")
_NORM = ("norm.missing", "norm.q-only", "norm.k-only", "norm.rms", "norm.l1")
_EPS = ("norm.eps-on-mean", "norm.eps-outside", "norm.clamped", "norm.eps-value")
_SCALE = ("scale.missing", "scale.inverse", "scale.twice")
_READOUT = ("readout.before-write", "readout.before-decay", "readout.by-key")
_STATE = ("state.ignored", "state.read-transposed", "state.initial-returned")
_OUTPUT_PLACES = (
    "output.heads-reversed",
    "output.heads-rolled",
    "output.first-head-everywhere",
    "output.negated",
    "output.channels-reversed",
    "output.last-channel-missing",
    "output.channel-halves-swapped",
    "output.last-head-missing",
)
_OUTPUT_TOKENS = (
    "output.one-token-late",
    "output.one-token-early",
    "output.last-token-missing",
    "output.tail-missing",
)
_STATE_PLACES = (
    "state.heads-reversed",
    "state.negated",
    "state.keys-reversed",
    "state.returned-transposed",
    "state.decayed-again",
)

SEES: dict[str, tuple[str, ...]] = {
    "fast-gates": (
        *_GATE_FORM,
        *_GATE_PARAMETERS,
        *_GATE_GIVEN,
        "gate.previous-token",
        "gate.next-token",
        *_DECAY,
        *_READOUT,
        *_BETA_HEADS,
        "beta.previous-token",
        "value.previous-token",
        "key.previous-token",
        *_HEADS,
        *_OUTPUT_PLACES,
        *_OUTPUT_TOKENS,
        *_STATE_PLACES,
        "state.previous-returned",
        "chunk.intra-strict",
        "chunk.intra-undecayed",
        "chunk.intra-not-causal",
        "chunk.inter-undecayed",
        "chunk.inter-exclusive",
        "chunk.state-not-decayed",
        "chunk.system-with-diagonal",
        "chunk.decay-overflows",
    ),
    "slow-correlated": (
        *_DELTA,
        *_BETA,
        *_NORM,
        *_SCALE,
        "decay.in-bfloat16",
        "chunk.state-reset",
        "chunk.state-read-transposed",
        "chunk.no-solve",
        "chunk.beta-on-columns",
        "chunk.system-transposed",
        "chunk.system-without-beta",
        "chunk.inter-dropped",
    ),
    "mixed-grouped": ("heads.tiled", "gate.mean-over-channels", "gate.first-channel"),
    "tiny-norms": (*_EPS, "chunk.state-stale"),
    "packed": (
        "packing.leak",
        "state.first-decay-skipped",
        "state.of-first-sequence",
        "state.sequences-reversed",
        "state.ignored",
        "chunk.tail-padded-decay",
        "chunk.tail-dropped",
    ),
    "saturated": ("chunk.decay-overflows", "chunk.state-loses-last", "delta.undecayed"),
    "bursts": ("chunk.sum-in-bfloat16", "chunk.sum-in-half", "chunk.inter-undecayed"),
    "identical-keys": ("chunk.inverse-in-half", "chunk.inverse-truncated", "delta.missing"),
    "fast-zero-state": (*_BETA, "gate.bias-per-head", "readout.before-write"),
    "huge-state": (*_STATE, "decay.missing", "chunk.state-not-decayed"),
    "value-dim": ("scale.of-value-dim", "state.returned-transposed"),
    "one-token": (*_STATE, "state.first-decay-skipped", "gate.previous-token"),
    "scaled": ("scale.of-value-dim", "scale.missing", "state.of-first-sequence"),
    "head-128": (*_SCALE, "norm.k-only", "chunk.system-without-beta", "chunk.state-reset"),
    "very-fast": ("gate.bias-twice", "gate.rate-outside", "gate.channels-reversed"),
    "long-1k": ("delta.missing",),
    "context": ("delta.missing",),
    "long-2k": ("decay.in-bfloat16", "delta.missing"),
    # one token
    "step-fast": (
        *_GATE_FORM,
        *_GATE_PARAMETERS,
        *_GATE_GIVEN,
        *_DECAY,
        *_READOUT,
        *_BETA_HEADS,
        *_HEADS,
        *_OUTPUT_PLACES,
        *_STATE_PLACES,
        "state.of-first-sequence",
        "state.sequences-reversed",
    ),
    "step-slow": (*_DELTA, *_BETA, *_NORM, *_SCALE, "decay.in-bfloat16"),
    "step-grouped": ("heads.tiled", "gate.mean-over-channels", "gate.first-channel"),
    "step-tiny": _EPS,
    "step-huge": (*_STATE, "decay.missing"),
    "step-value-dim": ("scale.of-value-dim", "state.returned-transposed"),
}

#: the same for the cases of ``kda_gate``
GATE_SEES: dict[str, tuple[str, ...]] = {
    "spread": (
        *_GATE_FORM,
        *_GATE_PARAMETERS,
        *_GATE_GIVEN,
        "gate.previous-token",
        "gate.next-token",
        *_OUTPUT_PLACES,
        *_OUTPUT_TOKENS,
    ),
    "low": ("gate.alpha-floor", "gate.complement", "gate.sign", "gate.rate-of-first-head"),
    "high": ("gate.clamped-softplus", "gate.rate-exponentiated-twice", "gate.bound-of-one"),
    "huge": ("gate.softplus", "gate.exp2-for-exp"),
    "spare-rates": ("gate.rate-by-channel", "gate.bias-transposed"),
    "fast-rates": ("gate.rate-outside", "gate.rate-ignored", "gate.bias-after-rate"),
}
