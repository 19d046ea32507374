"""The mistakes that ports of gated MLA are known for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.nouns.fault import Fault

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.mla.semantics import MlaInterface, MlaSemantics

_CHANGES: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (400, "scale-nope", {"scale": "nope"}),
    (401, "scale-value", {"scale": "value"}),
    (402, "scale-missing", {"scale": "none"}),
    (403, "scale-twice", {"scale": "twice"}),
    (404, "not-causal", {"causal": "none"}),
    (405, "strict", {"causal": "strict"}),
    (406, "one-ahead", {"causal": "one_ahead"}),
    (407, "past-hidden", {"causal": "past_hidden"}),
    (408, "rope", {"rope": "applied"}),
    (409, "q-norm-missing", {"q_norm": "none"}),
    (410, "kv-norm-missing", {"kv_norm": "none"}),
    (411, "kv-norm-over-pe", {"kv_norm": "with_pe"}),
    (412, "kv-norm-twice", {"kv_norm": "twice"}),
    (413, "gain-dropped", {"norm_gain": "dropped"}),
    (414, "gain-one-plus", {"norm_gain": "one_plus"}),
    (415, "eps-1e-5", {"norm_eps": 1e-5}),
    (416, "pe-dropped", {"pe": "dropped"}),
    (418, "pe-normed", {"pe": "normed_scale"}),
    (419, "q-split", {"q_split": "pe_first"}),
    (420, "kv-split", {"kv_split": "value_first"}),
    (421, "all-keys-first", {"kv_split": "all_keys_first"}),
    (422, "latent-split", {"latent_split": "pe_first"}),
    (423, "values-reversed", {"head": "value_reversed"}),
    (424, "first-key", {"head": "first_key"}),
    (425, "gate-heads-reversed", {"head": "gate_reversed"}),
    (426, "gate-missing", {"gate": "none"}),
    (427, "gate-silu", {"gate": "silu"}),
    (428, "gate-raw", {"gate": "raw"}),
    (429, "gate-on-values", {"gate": "on_values"}),
    (430, "gate-after-norm", {"gate": "after_norm"}),
    (431, "past-ignored", {"past": "ignored"}),
    (432, "cache-not-normed", {"past": "raw_latent"}),
    (433, "past-normed-twice", {"past": "normed_twice"}),
    (434, "merge-mean", {"merge": "mean"}),
    (435, "merge-unweighted", {"merge": "unweighted"}),
)
#: what the attention alone can get wrong
#: (choice, value) of what is about earlier tokens that come as a cache
_OF_THE_PAST = {("causal", "past_hidden"), ("past", "ignored"), ("past", "normed_twice"),
                ("merge", "mean"), ("merge", "unweighted")}  # fmt: skip
_CORE = ("scale", "causal", "rope", "pe", "kv_split", "merge")


def faults(semantics: MlaSemantics, interface: MlaInterface, _recipe: Recipe) -> tuple[Fault, ...]:
    """Every mistake that differs from these semantics and that this interface can make."""
    core = interface.part == "core"
    return tuple(
        Fault(f"K3O-{code}", f"mla.{slug}", change)
        for code, slug, change in _CHANGES
        if replace(semantics, **change) != semantics
        and (not core or set(change) <= set(_CORE) or change.get("past") == "ignored")
        and ("cache" in interface.supports or change.get("past") != "raw_latent")
        and ("past" in interface.supports or not set(change.items()) & _OF_THE_PAST)
    )
