"""Every convention: a right callable of its form passes, a wrong one does not."""

from __future__ import annotations

import sys
import warnings

import pytest
import torch
import torch.nn.functional as F

from tests.operators.harness import assert_passes, findings_for, outcomes


def _apply_attn_res(prefix_sum, block_residual, proj, norm):
    """What the released model's function of this name does, written from its description."""
    v = torch.cat([block_residual, prefix_sum.unsqueeze(1)], dim=1).float()
    k = v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon)
    c = norm.weight.float() * proj.weight.float().squeeze(0)
    p = (k * c).sum(-1).softmax(dim=1)
    return (p.unsqueeze(-1) * v).sum(1).to(prefix_sum.dtype)


def naive_like_fla(
    query, residuals, rms_weight, output_rms_weight=None, rms_eps=1e-6, scale=1.0,
    return_weights=False,
):  # fmt: skip
    v = torch.stack(list(residuals)).float()
    k = F.rms_norm(v, (v.shape[-1],), rms_weight.float(), rms_eps)
    p = (k @ query.float() * scale).softmax(0)
    o = torch.einsum("lt,ltd->td", p, v)
    if output_rms_weight is not None:
        o = F.rms_norm(o, (o.shape[-1],), output_rms_weight.float(), rms_eps)
    o = o.to(residuals[0].dtype)
    return (o, p) if return_weights else o


def amd(prefix, blocks, norm_w, qk_w, num_blocks, eps):
    return naive_like_fla(qk_w, [*blocks[:, :num_blocks].unbind(1), prefix], norm_w, rms_eps=eps)


def amd_all_slots(prefix, blocks, norm_w, qk_w, num_blocks, eps):
    return naive_like_fla(qk_w, [*blocks.unbind(1), prefix], norm_w, rms_eps=eps)


def nvidia(
    prefix, delta, blocks, norm_w, qk_w, out_norm_w, num_blocks, block_write_idx, eps, out_eps
):
    prefix.add_(delta)
    sources = [*blocks[:, :num_blocks].unbind(1), prefix]
    return naive_like_fla(qk_w, sources, norm_w, out_norm_w, rms_eps=eps)


def nvidia_mix_rounded_first(
    prefix, delta, blocks, norm_w, qk_w, out_norm_w, num_blocks, block_write_idx, eps, out_eps
):
    prefix.add_(delta)
    sources = [*blocks[:, :num_blocks].unbind(1), prefix]
    mixed = naive_like_fla(qk_w, sources, norm_w, rms_eps=eps).float()
    unit = mixed * torch.rsqrt(mixed.pow(2).mean(-1, keepdim=True) + out_eps)
    return unit.to(prefix.dtype) * out_norm_w


def nvidia_without_delta(
    prefix, delta, blocks, norm_w, qk_w, out_norm_w, num_blocks, block_write_idx, eps, out_eps
):
    sources = [*blocks[:, :num_blocks].unbind(1), prefix]
    return naive_like_fla(qk_w, sources, norm_w, out_norm_w, rms_eps=eps)


def k3_attn_res(out, src, fold, nsrc, n, eps):
    v = src.double()
    scores = (v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + eps)) @ fold.double()
    out.copy_(scores.softmax(0) @ v)


def k3_attn_res_forgets_the_last(out, src, fold, nsrc, n, eps):
    k3_attn_res(out, src[:-1] if nsrc > 1 else src, fold, nsrc, n, eps)


RIGHT = {
    "hf": _apply_attn_res,
    "fla": naive_like_fla,
    "fla-normed": naive_like_fla,
    "vllm-amd": amd,
    "vllm": nvidia,
    "fold": k3_attn_res,
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("convention", RIGHT)
def test_a_right_callable_passes(convention, dtype):
    assert_passes("attn_res", RIGHT[convention], convention=convention, dtype=dtype)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounding_the_mix_before_the_norm_is_no_mistake(dtype):
    assert_passes("attn_res", nvidia_mix_rounded_first, convention="vllm", dtype=dtype)


@pytest.mark.parametrize(
    ("convention", "target"),
    [
        ("vllm-amd", amd_all_slots),
        ("vllm", nvidia_without_delta),
        ("fold", k3_attn_res_forgets_the_last),
        ("fla", lambda query, residuals, rms_weight, rms_eps: residuals[-1].clone()),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_wrong_callable_fails(convention, target, dtype):
    assert "fail" in outcomes("attn_res", target, convention=convention, dtype=dtype)


@pytest.mark.parametrize(
    ("target", "convention"),
    [(_apply_attn_res, "hf"), (naive_like_fla, "fla"), (amd, "vllm-amd"), (nvidia, "vllm"),
     (k3_attn_res, "fold")],
)  # fmt: skip
def test_the_convention_is_recognised(target, convention):
    found = findings_for("attn_res", target, only={"unit"}, dtype="bfloat16")
    assert str(found["unit"].outcome) == "pass", convention


@pytest.fixture(scope="module")
def fla_naive():
    """fla's own function; its import warns about missing accelerators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip(
            "fla.ops.attnres.naive", reason="fla-core is not installed", exc_type=ImportError
        )
    return module.naive_attnres


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("convention", ["fla", "fla-normed", "auto"])
def test_fla_itself_passes(fla_naive, convention, dtype):
    assert_passes("attn_res", fla_naive, convention=convention, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "options", [{"scale": 0.5}, {"rms_eps": 1e-6}], ids=["scale", "fla's default eps"]
)
def test_fla_with_a_wrong_option_fails(fla_naive, options, dtype):
    found = outcomes("attn_res", fla_naive, convention="fla", dtype=dtype, options=options)
    assert "fail" in found


def test_the_paper_is_another_eps(fla_naive):
    assert_passes(
        "attn_res", fla_naive, convention="fla", semantics="paper", options={"rms_eps": 1e-6}
    )


def test_fla_was_not_replaced_by_ours(fla_naive):
    assert sys.modules[fla_naive.__module__].__file__.endswith("fla/ops/attnres/naive.py")
