"""From a case's raw inputs to what a callable of some interface gets, rounded as it gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from k3check.operators.kda import gate as front

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.nouns.tensors import Tensors
    from k3check.operators.kda.semantics import KdaInterface, KdaSemantics


def present(
    raw: Tensors, semantics: KdaSemantics, interface: KdaInterface, recipe: Recipe
) -> Tensors:
    """Activate what the caller must activate, in float64, then round to the recipe.

    The reference is evaluated on exactly these tensors, so that rounding the inputs is nobody's
    error.

    Args:
        raw: ``q, k, v, gate, beta`` and optionally ``A_log, dt_bias, initial_state, cu_seqlens,
            scale``, in float64, gate and beta before activation.
        semantics: how to activate.
        interface: what the callable does itself.
        recipe: the dtypes.
    """
    io = recipe.io
    activated = io if interface.log_dtype == "io" or io == torch.float64 else torch.float32
    parameters = torch.float64 if io == torch.float64 else torch.float32
    inputs = dict(raw)
    q, k = raw["q"], raw["k"]
    if interface.norm == "caller":
        q, k = front.normalised_pair(semantics, q, k)
    if interface.scale == "folded":
        K, V = k.shape[-1], raw["v"].shape[-1]
        q = q * front.scale_value(semantics, K, V, raw.get("scale"))
    inputs["q"], inputs["k"] = q.to(io), k.to(io)
    inputs["v"] = raw["v"].to(io)
    if interface.gate == "raw":
        inputs["gate"] = raw["gate"].to(io)
        inputs["lower_bound"] = None if semantics.gate == "softplus" else semantics.lower_bound
        for name in ("A_log", "dt_bias"):
            if raw.get(name) is not None:
                inputs[name] = raw[name].to(parameters)
    else:
        inputs["gate"] = given_gate(raw, semantics, interface).to(activated)
        inputs.pop("A_log", None)
        inputs.pop("dt_bias", None)
    if interface.beta == "logit":
        inputs["beta"] = raw["beta"].to(io)
    else:
        inputs["beta"] = front.activated_beta(semantics, raw["beta"]).to(activated)
    if raw.get("initial_state") is not None:
        inputs["initial_state"] = raw["initial_state"].to(recipe.state)
    elif interface.state == "required":
        lengths = raw.get("cu_seqlens")
        N = raw["v"].shape[0] if lengths is None else len(lengths) - 1
        shape = (N, *raw["v"].shape[2:3], raw["k"].shape[-1], raw["v"].shape[-1])
        inputs["initial_state"] = torch.zeros(shape, dtype=recipe.state)
    if interface.state == "buffer":
        inputs["state_dtype"] = recipe.state
    if semantics.scale == "none" or interface.scale == "folded":
        inputs["scale"] = 1.0  # what is left to do
    if not interface.readout or not interface.query:
        inputs.pop("q")
        inputs.pop("scale", None)
    return inputs


def given_gate(raw: Tensors, semantics: KdaSemantics, interface: KdaInterface) -> torch.Tensor:
    """The activated gate in the form that the interface takes, float64."""
    g = front.log_decay(semantics, raw["gate"], raw.get("A_log"), raw.get("dt_bias"))
    if interface.gate == "alpha":
        return g.exp()
    if interface.gate == "log2":
        return g / front.LN2
    if interface.gate == "cumulative_log2":
        parts = [part.cumsum(dim=1) for part in (g / front.LN2).split(interface.chunk, dim=1)]
        return torch.cat(parts, dim=1)
    return g
