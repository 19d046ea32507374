"""Gated MLA: by hand, expanded against absorbed, cases, conventions."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from k3check.nouns.recipe import Recipe
from k3check.operators.mla.candidate import gated_mla
from k3check.operators.mla.reference import evaluate
from k3check.operators.mla.semantics import K3, MlaInterface
from tests.operators.harness import (
    DTYPES,
    VISIBLE,
    assert_passes,
    claims,
    findings_for,
    operator_of,
    outcomes,
    seen_by,
)


def test_the_reference_is_the_formula():
    # one head, every width one, two tokens: all products are plain numbers
    def t(*values):
        return torch.tensor(values, dtype=torch.float64)

    inputs = {
        "x": t([[1.0], [-2.0]]).view(1, 2, 1),
        "w_qa": t([3.0]), "q_gain": t(2.0), "w_qb": t([1.0], [0.5]),
        "w_kva": t([2.0], [0.25]), "kv_gain": t(0.5), "w_kvb": t([1.5], [4.0]),
        "w_g": t([0.5]), "w_o": t([3.0]),
        "heads": 1, "nope": 1, "pe": 1, "value": 1, "latent": 1,
    }  # fmt: skip

    def norm(v, gain):
        return v / math.sqrt(v * v + 1e-6) * gain

    c = [norm(2.0, 0.5), norm(-4.0, 0.5)]
    k = [(1.5 * c[0], 0.25), (1.5 * c[1], -0.5)]
    v = [4 * c[0], 4 * c[1]]
    q = norm(-6.0, 2.0)
    scores = [(q * a + 0.5 * q * b) / math.sqrt(2) for a, b in k]
    share = 1 / (1 + math.exp(scores[1] - scores[0]))
    o = [v[0], share * v[0] + (1 - share) * v[1]]
    gate = [1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(1.0))]
    got = evaluate(K3, MlaInterface(), inputs)
    assert got["output"].flatten().tolist() == pytest.approx(
        [3 * a * b for a, b in zip(o, gate, strict=True)], rel=1e-13
    )
    assert got["cache"].flatten().tolist() == pytest.approx([c[0], 0.25, c[1], -0.5], rel=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_builtin_passes(dtype, seed):
    assert_passes("gated_mla", dtype=dtype, seed=seed)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_expanded_form_passes(dtype):
    def expanded(x, w_qa, q_gain, w_qb, w_kva, kv_gain, w_kvb, w_g, w_o, *, heads, nope, pe,
                 value, latent, eps, past=None):  # fmt: skip
        return gated_mla(x, w_qa, q_gain, w_qb, w_kva, kv_gain, w_kvb, w_g, w_o, heads=heads,
                         nope=nope, pe=pe, value=value, latent=latent, eps=eps, past=past,
                         absorbed=False)  # fmt: skip

    assert_passes("gated_mla", expanded, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("case", "slug"), claims("gated_mla"))
def test_what_a_case_claims_to_see_is_visible(case, slug, dtype):
    assert seen_by("gated_mla", case, slug, dtype) >= VISIBLE


def test_every_fault_is_seen_by_a_case():
    slugs = {f.slug for f in operator_of("gated_mla").faults(K3, MlaInterface(), Recipe())}
    assert slugs == {slug for _, slug in claims("gated_mla")}


def forward(self, hidden_states):
    """KimiMLAAttention.forward without cache, written from its description."""
    B, T, _ = hidden_states.shape
    H, n, r, v = (self.num_heads, self.qk_nope_head_dim, self.qk_rope_head_dim, self.v_head_dim)
    q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(hidden_states)))
    q = q.view(B, T, H, n + r).transpose(1, 2)
    c, k_pe = self.kv_a_proj_with_mqa(hidden_states).split([self.kv_lora_rank, r], -1)
    kv = self.kv_b_proj(self.kv_a_layernorm(c)).view(B, T, H, n + v).transpose(1, 2)
    k = torch.cat([kv[..., :n], k_pe.unsqueeze(1).expand(B, H, T, r)], -1)
    mask = torch.full((T, T), -torch.inf).triu(1)
    p = ((q @ k.mT).float() * self.scaling + mask).softmax(-1).to(q.dtype)
    o = (p @ kv[..., n:]).transpose(1, 2).reshape(B, T, H * v)
    return self.o_proj(o * torch.sigmoid(self.g_proj(hidden_states))), None


def core(q_nope, q_pe, kv_c, k_pe, w_uk, w_uv, scale):
    q = torch.cat([torch.einsum("bthn,hnl->bthl", q_nope, w_uk), q_pe], -1).float()
    rows = torch.cat([kv_c, k_pe], -1).float()
    T, S = q.shape[1], rows.shape[1]
    mask = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    scores = torch.einsum("bthl,bsl->bhts", q, rows) * scale
    p = scores.masked_fill(~mask, -torch.inf).softmax(-1).to(kv_c.dtype)
    low = torch.einsum("bhts,bsl->bthl", p, kv_c)
    return torch.einsum("bthl,hvl->bthv", low, w_uv)


def core_expanded(q_nope, q_pe, kv_c, k_pe, w_uk, w_uv, scale):
    k = torch.einsum("bsl,hnl->bhsn", kv_c, w_uk)
    v = torch.einsum("bsl,hvl->bhsv", kv_c, w_uv)
    pe = k_pe.unsqueeze(1).expand(-1, k.shape[1], -1, -1)
    q = torch.cat([q_nope, q_pe], -1).transpose(1, 2)
    T, S = q.shape[2], k.shape[2]
    mask = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    o = F.scaled_dot_product_attention(q, torch.cat([k, pe], -1), v, attn_mask=mask, scale=scale)
    return o.transpose(1, 2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    ("convention", "target"),
    [("hf", forward), ("absorbed", core), ("absorbed", core_expanded), ("auto", forward),
     ("auto", core)],
)  # fmt: skip
def test_a_right_callable_passes(convention, target, dtype):
    assert_passes("gated_mla", target, convention=convention, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("factor", [(24 / 16) ** 0.5, 1.07], ids=["128^-0.5", "seven per cent"])
def test_a_wrong_scale_fails(factor, dtype):
    def wrong(q_nope, q_pe, kv_c, k_pe, w_uk, w_uv, scale):
        return core(q_nope, q_pe, kv_c, k_pe, w_uk, w_uv, scale * factor)

    assert "fail" in outcomes("gated_mla", wrong, convention="absorbed", dtype=dtype)


def test_vllms_eps_is_its_own_semantics():
    def with_config_eps(self, hidden_states):
        for norm in (self.q_a_layernorm, self.kv_a_layernorm):
            norm.variance_epsilon = norm.eps = 1e-5
        return forward(self, hidden_states)

    kinds = {}
    for semantics in ("k3", "vllm"):
        found = findings_for(
            "gated_mla", with_config_eps, convention="hf", semantics=semantics, dtype="bfloat16",
            only={"small-latents"},
        )  # fmt: skip
        kinds[semantics] = str(found["small-latents"].outcome)
    assert kinds == {"k3": "fail", "vllm": "pass"}
