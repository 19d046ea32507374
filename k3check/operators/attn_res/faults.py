"""The mistakes that ports of the mix are known for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.fault import Fault

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.attn_res.semantics import AttnResInterface, AttnResSemantics

#: code, slug after ``attnres.``, change of the semantics
_CHANGES: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (200, "values-are-keys", {"values": "keys"}),
    (201, "values-are-gained-keys", {"values": "gained_keys"}),
    (202, "keys-not-normalised", {"norm": "none"}),
    (203, "l2-norm", {"norm": "l2"}),
    (204, "layer-norm", {"norm": "layer"}),
    (205, "gain-dropped", {"gain": "dropped"}),
    (206, "gain-one-plus", {"gain": "one_plus"}),
    (207, "gain-twice", {"gain": "twice"}),
    (208, "eps-1e-6", {"eps": 1e-6}),
    (209, "eps-outside", {"eps_on": "outside"}),
    (210, "eps-on-sum", {"eps_on": "sum"}),
    (211, "scaled", {"scale": "rsqrt"}),
    (212, "scaled-up", {"scale": "sqrt"}),
    (213, "uniform", {"query": "zero"}),
    (214, "sign", {"sign": -1}),
    (215, "exp2", {"weights": "exp2"}),
    (216, "sigmoid", {"weights": "sigmoid"}),
    (217, "unnormalised", {"weights": "unnormalised"}),
    (218, "over-tokens", {"weights": "over_tokens"}),
    (219, "hard", {"weights": "hard"}),
    (220, "no-prefix", {"sources": "no_prefix"}),
    (221, "no-newest", {"sources": "no_newest"}),
    (222, "no-oldest", {"sources": "no_oldest"}),
    (223, "prefix-twice", {"sources": "prefix_twice"}),
    (224, "newest-twice", {"sources": "newest_twice"}),
    (225, "empty-slot", {"sources": "empty_slot"}),
    (226, "prefix-zeroed", {"sources": "prefix_zeroed"}),
    (227, "prefix-added", {"residual": "prefix_added"}),
    (228, "plain-prefix", {"residual": "prefix_only"}),
    (229, "plain-sum", {"residual": "sum"}),
    (230, "weights-reversed", {"weight_order": "reversed"}),
    (231, "weights-rolled", {"weight_order": "rolled"}),
    (232, "weights-previous-token", {"weight_token": "previous"}),
    (233, "weights-first-token", {"weight_token": "first"}),
    (234, "snapshot-token", {"snapshot_token": "previous"}),
    (235, "merge-unweighted", {"merge": "unweighted"}),
    (236, "merge-base2", {"merge": "base2"}),
    (237, "merge-unshifted", {"merge": "unshifted"}),
    (238, "keys-bfloat16", {"key_rounding": "bfloat16"}),
    (239, "partial-block", {"lanes": "full_blocks"}),
    (240, "output-norm-missing", {"output_norm": "none"}),
    (241, "output-gain-dropped", {"output_norm": "no_gain"}),
    (242, "output-gain-one-plus", {"output_norm": "one_plus"}),
)


def faults(
    semantics: AttnResSemantics, interface: AttnResInterface, recipe: Recipe
) -> tuple[Fault, ...]:
    """Every mistake that differs from these semantics and that this interface can make.

    Keys in bfloat16 are no mistake where everything is.
    """
    return tuple(
        Fault(f"K3O-{code}", f"attnres.{slug}", change)
        for code, slug, change in _CHANGES
        if _possible(change, interface)
        and replace(semantics, **change) != semantics
        and not ("key_rounding" in change and recipe.io == torch.bfloat16)
    )


def _possible(change: dict[str, Any], interface: AttnResInterface) -> bool:
    """A gain that is folded away cannot be forgotten; a norm that is not included neither."""
    if interface.folded and ("gain" in change or change.get("values") == "gained_keys"):
        return False
    return interface.output_norm or "output_norm" not in change
