"""How callables of the field take a mix's sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from k3check.nouns.arguments import taken
from k3check.nouns.convention import Binding, Convention, Example
from k3check.operators.attn_res.semantics import AttnResInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from k3check.nouns.tensors import Tensors

MANY = frozenset({"mix"})
#: Slots of a preallocated bank, as in vLLM.
CAPACITY = 8
#: What stands in slots that hold nothing yet.
GARBAGE = 3e4


class KeyNorm(nn.Module):
    """An RMSNorm as the released model has it, for callables that take modules."""

    def __init__(self, weight: torch.Tensor, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.eps = self.variance_epsilon = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise in float32, round, multiply by the gain."""
        wide = x if x.dtype == torch.float64 else x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


def _first(result: Any) -> Any:
    """The output of a callable that may return more."""
    return result[0] if isinstance(result, (tuple, list)) else result


def _bind_k3check(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        return {"output": target(**{**taken(names, inputs, "eps"), **options})}

    return Binding(AttnResInterface(), call)


def _bind_fla(names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """naive_attnres and fused_attnres: a list of sources; the default eps is not K3's.

    What is optional is given in cases of its own.
    """
    optional = {"scale": "scale", "output_rms_weight": "output_gain"}
    given = {n: ours for n, ours in optional.items() if names and n in names and n not in options}

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = _fla_arguments(inputs)
        arguments |= {n: inputs[ours] for n, ours in given.items() if ours in inputs}
        result = _first(target(**{**arguments, **options}))
        _write_back(inputs["sources"], arguments["residuals"])
        return {"output": result}

    supports = AttnResInterface().supports | frozenset(given.values())
    return Binding(AttnResInterface(supports=supports), call)


def _write_back(sources: torch.Tensor, copies: Sequence[torch.Tensor]) -> None:
    """Bring what the callable did to copies of sources to the sources, where it is looked at."""
    for source, copy in zip(sources, copies, strict=False):
        source.copy_(copy.view_as(source))


def _bind_fla_normed(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """The same with output_rms_weight: the norm after the mix included."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        arguments = _fla_arguments(inputs) | {"output_rms_weight": inputs["output_gain"]}
        result = _first(target(**{**arguments, **options}))
        _write_back(inputs["sources"], arguments["residuals"])
        return {"output": result}

    return Binding(AttnResInterface(output_norm=True), call)


def _fla_arguments(inputs: Tensors) -> dict[str, Any]:
    return {
        "query": inputs["query"],
        # Memory of its own for each: the fused kernel wants sources that begin at 16 bytes.
        "residuals": [source.clone() for source in inputs["sources"]],
        "rms_weight": inputs["gain"],
        "rms_eps": inputs["eps"],
    }


def _bind_hf(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """_apply_attn_res(prefix_sum [T, D], block_residual [T, N, D], proj, norm)."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        sources = inputs["sources"]
        D = sources.shape[-1]
        proj = nn.Linear(D, 1, bias=False, device=sources.device, dtype=sources.dtype)
        proj.weight = nn.Parameter(inputs["query"].reshape(1, D), requires_grad=False)
        norm = KeyNorm(inputs["gain"], inputs["eps"])
        blocks = sources[:-1].transpose(0, 1).contiguous()
        with torch.no_grad():
            result = _first(target(sources[-1], blocks, proj, norm, **options))
            _write_back(sources, blocks.unbind(1))
        return {"output": result}

    return Binding(AttnResInterface(supports=MANY), call)


def _bank(sources: torch.Tensor) -> torch.Tensor:
    """[T, CAPACITY, D]: the snapshots in the first slots, garbage in the others."""
    blocks = sources[:-1].transpose(0, 1)
    T, N, D = blocks.shape
    bank = blocks.new_full((T, max(CAPACITY, N), D), GARBAGE)
    bank[:, :N] = blocks
    return bank


def _bind_vllm_amd(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """attn_res(prefix, blocks [T, R, D], norm_w, qk_w, num_blocks, eps)."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        sources = inputs["sources"]
        arguments = {
            "prefix": sources[-1].contiguous(),
            "blocks": _bank(sources),
            "norm_w": inputs["gain"],
            "qk_w": inputs["query"],
            "num_blocks": len(sources) - 1,
            "eps": inputs["eps"],
        }
        result = _first(target(**{**arguments, **options}))
        _write_back(sources[:-1], arguments["blocks"].unbind(1))
        return {"output": result}

    return Binding(AttnResInterface(supports=MANY), call)


def _bind_vllm(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """attn_res(prefix, delta, blocks, norm_w, qk_w, out_norm_w, num_blocks, ...).

    The last sub-layer's output is added to the prefix inside, in place; the norm that follows is
    included. Nothing is written to the bank: block_write_idx is -1.
    """

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        sources = inputs["sources"]
        arguments = {
            "prefix": sources[-1].clone(),
            "delta": inputs["delta"],
            "blocks": _bank(sources),
            "norm_w": inputs["gain"],
            "qk_w": inputs["query"],
            "out_norm_w": inputs["output_gain"],
            "num_blocks": len(sources) - 1,
            "block_write_idx": -1,
            "eps": inputs["eps"],
            "out_eps": inputs["output_eps"],
        }
        result = _first(target(**{**arguments, **options}))
        _write_back(sources[:-1], arguments["blocks"].unbind(1))
        return {"output": result}

    return Binding(AttnResInterface(delta=True, output_norm=True, supports=MANY), call)


def _bind_fold(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """attn_res(out, src [nsrc, n], fold [n], nsrc, n, eps), one token a call, out written."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        sources = inputs["sources"]
        N, T, D = sources.shape
        out = torch.full((T, D), float("nan"), dtype=sources.dtype, device=sources.device)
        for t in range(T):
            src = sources[:, t].contiguous()
            target(out[t], src, inputs["fold"], N, D, inputs["eps"], **options)
            _write_back(sources[:, t], src)
        return {"output": out}

    return Binding(AttnResInterface(folded=True), call)


def _bind_stack(_names: frozenset[str] | None, options: Mapping[str, Any]) -> Binding:
    """A whole stack: see ``candidate.stack``. Only the checks of the walk apply."""

    def call(target: Callable[..., Any], inputs: Tensors) -> Tensors:
        return {"output": _first(target(**{**inputs, **options}))}

    return Binding(AttnResInterface(stack=True, supports=frozenset({"stack"})), call)


def _example(
    signature: str, returns: str = "output [T, D], alone or first of a tuple", target: str = ""
) -> Example:
    name = signature.partition("(")[0]
    return Example("attn_res", target or f"kernels/attn_res.py:{name}", signature, returns)


K3CHECK = Convention(
    "k3check",
    "sources stacked as [N, T, D], the prefix last; query and gain [D]",
    ("sources", "query", "gain"),
    _bind_k3check,
    typical=("eps",),
    example=_example("attn_res(sources, query, gain, eps=1e-5)"),
)
FLA = Convention(
    "fla",
    "flash-linear-attention: naive_attnres and fused_attnres, a list of sources",
    ("query", "residuals", "rms_weight"),
    _bind_fla,
    typical=("rms_eps", "output_rms_weight", "scale", "return_weights"),
    library="fla",
    example=_example(
        "naive_attnres(query, residuals, rms_weight, output_rms_weight=None, rms_eps=1e-6, "
        "scale=1.0, return_weights=False)",
        target="fla.ops.attnres:naive_attnres",
    ),
)
FLA_NORMED = Convention(
    "fla-normed",
    "as fla, with output_rms_weight: the norm after the mix included",
    ("query", "residuals", "rms_weight", "output_rms_weight"),
    _bind_fla_normed,
    typical=("rms_eps",),
    example=_example(
        "fused_attnres(query, residuals, rms_weight, output_rms_weight=None, rms_eps=1e-6, "
        "scale=1.0, return_weights=False)",
        "output [T, D], normed, alone or first of a tuple",
        target="fla.ops.attnres:fused_attnres",
    ),
)
HF = Convention(
    "hf",
    "the released _apply_attn_res(prefix_sum, block_residual, proj, norm) with two modules",
    ("prefix_sum", "block_residual", "proj", "norm"),
    _bind_hf,
    positional=True,
    example=_example(
        "_apply_attn_res(prefix_sum, block_residual, proj, norm)",
        target="modeling_kimi_linear:_apply_attn_res",
    ),
)
VLLM_AMD = Convention(
    "vllm-amd",
    "vLLM on ROCm: prefix and a bank [T, slots, D] of which num_blocks are filled",
    ("prefix", "blocks", "norm_w", "qk_w", "num_blocks"),
    _bind_vllm_amd,
    typical=("eps",),
    example=_example("attn_res_amd(prefix, blocks, norm_w, qk_w, num_blocks, eps=1e-5)"),
)
VLLM = Convention(
    "vllm",
    "vLLM on CUDA: adds delta to the prefix in place and includes the norm that follows",
    ("prefix", "delta", "blocks", "norm_w", "qk_w", "out_norm_w", "num_blocks"),
    _bind_vllm,
    typical=("block_write_idx", "eps", "out_eps"),
    example=_example(
        "attn_res_cuda(prefix, delta, blocks, norm_w, qk_w, out_norm_w, num_blocks, "
        "block_write_idx, eps, out_eps)",
        "output [T, D], normed, alone or first of a tuple; prefix becomes prefix + delta",
    ),
)
FOLD = Convention(
    "fold",
    "kimi-k3-in-c: (out, src, fold, nsrc, n, eps), one token, gain folded into the query",
    ("out", "src", "fold", "nsrc", "n", "eps"),
    _bind_fold,
    positional=True,
    example=_example(
        "k3_attn_res(out, src, fold, nsrc, n, eps)",
        "nothing: out [D] is written; called once a token",
    ),
)
STACK = Convention(
    "stack",
    "a whole stack: sub-layers are given as callables, two a layer; returns the last mix",
    ("hidden", "sublayers", "queries", "gains", "block_size"),
    _bind_stack,
    typical=("eps",),
    example=_example(
        "walk(hidden, sublayers, queries, gains, block_size, eps=1e-5)",
        "output [T, D]: the last mix, before the final norm",
    ),
)

CONVENTIONS = (K3CHECK, FLA, FLA_NORMED, HF, VLLM_AMD, VLLM, FOLD, STACK)
