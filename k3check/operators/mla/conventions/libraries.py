"""How callables of the field take gated MLA, or its attention over latents."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from k3check.nouns.arguments import taken
from k3check.nouns.convention import Binding, Convention, Example
from k3check.nouns.returned import parts
from k3check.operators.mla.semantics import MlaInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from k3check.nouns.tensors import Tensors


def _bind_k3check(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    past = names is None or "past" in names

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        result = target(**{**taken(names, inputs, "eps"), **options})
        output, rows = parts(result, "output", "cache")
        return {"output": output, "cache": rows}

    supports = {"layer", "cache"} | ({"past"} if past else set())
    return Binding(MlaInterface(supports=frozenset(supports)), call)


def _bind_absorbed(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """(q_nope, q_pe, kv_c, k_pe, w_uk, w_uv, scale): attention over latents, causal.

    kv_c [B, S, latent] and k_pe [B, S, pe] hold the past too; the last T rows are the queries'
    own. w_uk [H, nope, latent], w_uv [H, value, latent].
    """

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        rows = inputs["rows"]
        if "past" in inputs:
            rows = torch.cat([inputs["past"], rows], dim=1)
        nope, latent = inputs["nope"], inputs["latent"]
        up = inputs["w_kvb"].view(inputs["heads"], -1, latent)
        arguments = {
            "q_nope": inputs["q"][..., :nope].contiguous(),
            "q_pe": inputs["q"][..., nope:].contiguous(),
            "kv_c": rows[..., :latent].contiguous(),
            "k_pe": rows[..., latent:].contiguous(),
            "w_uk": up[:, :nope].contiguous(),
            "w_uv": up[:, nope:].contiguous(),
            "scale": (nope + inputs["pe"]) ** -0.5,
        }
        return {"output": target(**{**arguments, **options})}

    return Binding(MlaInterface(part="core", supports=frozenset({"past"})), call)


def _linear(weight: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: torch.nn.functional.linear(x, weight)


def _bind_hf(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """KimiMLAAttention.forward as a function: self has the projections as callables.

    Names as in the released module: q_a_proj, q_a_layernorm, q_b_proj, kv_a_proj_with_mqa,
    kv_a_layernorm, kv_b_proj, g_proj, o_proj; num_heads, qk_nope_head_dim, qk_rope_head_dim,
    v_head_dim, kv_lora_rank, q_head_dim, scaling. It is called with hidden_states alone.
    """

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        from k3check.operators.attn_res.conventions.libraries import KeyNorm

        width = inputs["nope"] + inputs["pe"]
        module = SimpleNamespace(
            q_a_proj=_linear(inputs["w_qa"]),
            q_a_layernorm=KeyNorm(inputs["q_gain"], inputs["eps"]),
            q_b_proj=_linear(inputs["w_qb"]),
            kv_a_proj_with_mqa=_linear(inputs["w_kva"]),
            kv_a_layernorm=KeyNorm(inputs["kv_gain"], inputs["eps"]),
            kv_b_proj=_linear(inputs["w_kvb"]),
            g_proj=_linear(inputs["w_g"]),
            o_proj=_linear(inputs["w_o"]),
            num_heads=inputs["heads"],
            num_key_value_heads=inputs["heads"],
            num_key_value_groups=1,
            qk_nope_head_dim=inputs["nope"],
            qk_rope_head_dim=inputs["pe"],
            v_head_dim=inputs["value"],
            kv_lora_rank=inputs["latent"],
            q_head_dim=width,
            qk_head_dim=width,
            scaling=width**-0.5,
            softmax_scale=width**-0.5,
            layer_idx=0,
            training=False,
            attention_dropout=0.0,
        )
        with torch.no_grad():
            result = target(module, inputs["x"], **options)
        return {"output": result[0] if isinstance(result, tuple) else result}

    return Binding(MlaInterface(supports=frozenset({"layer"})), call)


CONVENTIONS = (
    Convention(
        "k3check",
        "the layer: x and every weight by name -> (output, cache rows)",
        (
            "x",
            "w_qa",
            "q_gain",
            "w_qb",
            "w_kva",
            "kv_gain",
            "w_kvb",
            "w_g",
            "w_o",
            "heads",
            "nope",
            "pe",
            "value",
            "latent",
        ),
        _bind_k3check,
        typical=("eps", "past"),
        abilities={"past": ("past",)},
        example=Example(
            "gated_mla",
            "kernels/mla.py:gated_mla",
            "gated_mla(x, w_qa, q_gain, w_qb, w_kva, kv_gain, w_kvb, w_g, w_o, *, heads, "
            "nope, pe, value, latent, eps=1e-6, past=None)",
            "(output [B, T, D], cache [B, T, latent + pe]): the rows of this call's tokens, "
            "not of past ones",
        ),
    ),
    Convention(
        "absorbed",
        "attention over latents: q_nope, q_pe, kv_c, k_pe, w_uk, w_uv, scale",
        ("q_nope", "q_pe", "kv_c", "k_pe", "w_uk", "w_uv", "scale"),
        _bind_absorbed,
        example=Example(
            "gated_mla",
            "kernels/mla.py:absorbed",
            "absorbed(q_nope, q_pe, kv_c, k_pe, w_uk, w_uv, scale)",
            "output [B, T, H, value], before gate and output projection",
        ),
    ),
    Convention(
        "hf",
        "KimiMLAAttention.forward, called with a stand-in for self and hidden_states",
        ("self", "hidden_states"),
        _bind_hf,
        positional=True,
        example=Example(
            "gated_mla",
            "modeling_kimi_linear:KimiMLAAttention.forward",
            "forward(self, hidden_states, attention_mask=None, past_key_values=None, **kwargs)",
            "output [B, T, D], alone or first of a tuple",
        ),
    ),
)
