"""The article's two rows: each with a wrong block that it must catch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from k3check.model import Finding, Outcome
from k3check.operators.attn_res import article
from tests.operators.harness import findings_for

BLANK = Finding("attn_res/article", "attnres", "attn_res", "article", Outcome.PASS, "")


def blocks(count=3, **settings):
    return article.article_blocks(settings, count, seed=0)


def disconnected(block):
    return lambda x, _bank: block(x, ())


def scaled(block, times):
    def run(x, bank):
        without = block(x, ())
        return without + times * (block(x, bank) - without)

    return run


@pytest.mark.parametrize("gating", [True, False])
@pytest.mark.parametrize("width", [64, 512])
def test_the_article_form_passes(gating, width):
    made = blocks(residual_dim=width, enable_gating=gating)
    found = article.retrieval_check(made, 0, BLANK)
    assert found.outcome is Outcome.PASS
    assert found.metrics["difference"] > 0.01


def test_the_gate_matters():
    x = torch.randn(4, article.WIDTH, dtype=torch.float64)
    block = blocks()[0]
    gated, open_ = (b(x, [2 * x]) for b in (block, replace(block, gate=None)))
    assert not torch.allclose(gated, open_)


def test_a_block_is_causal_within_the_bank_too():
    x, entry = torch.randn(2, 4, article.WIDTH, dtype=torch.float64)
    moved = entry.clone()
    moved[3] = 9
    block = blocks()[0]
    one, other = block(x, [entry]), block(x, [moved])
    assert torch.equal(one[:3], other[:3])
    assert not torch.equal(one[3], other[3])


def test_a_bank_that_is_not_connected_is_found():
    made = [disconnected(block) for block in blocks()]
    assert article.retrieval_check(made, 0, BLANK).hint.code == "K3O-280"


def test_a_wrong_scale_is_found():
    made = [scaled(block, 1000.0) for block in blocks()]
    assert article.retrieval_check(made, 0, BLANK).hint.code == "K3O-281"


def test_not_a_number_is_found():
    assert article.judge_difference(torch.full((2,), torch.nan), torch.ones(2), BLANK).hint


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (lambda n: slice(0, n + 1), "K3O-282"),
        (lambda n: slice(0, None), "K3O-282"),
        (lambda n: slice(n, n + 2), "K3O-282"),
        (lambda n: slice(0, 0), "K3O-280"),
    ],
    ids=["itself", "all", "the next", "none"],
)
def test_a_wrong_index_range_is_found(rule, code):
    assert article.bank_check(blocks(4), 0, BLANK, rule).hint.code == code


def test_the_right_index_range_passes():
    assert article.bank_check(blocks(9), 0, BLANK).outcome is Outcome.PASS


def test_the_article_numbers_reach_the_checks():
    settings = {"attn_residuals": {"num_blocks": 9, "block_size": 10, "residual_dim": 512,
                                   "enable_gating": True}}  # fmt: skip
    found = findings_for("attn_res", settings=settings)
    assert {"retrieval", "stack-walk", "stack-counts", "article-retrieval",
            "article-no-look-ahead", "stack-no-look-ahead"} <= set(found)  # fmt: skip
    assert found["stack-counts"].metrics["snapshots"] == 10
    # the built-in's form has neither another scale nor a gain on the output
    assert {n for n, f in found.items() if str(f.outcome) == "skipped"} == {"scaled", "output-gain"}
    assert {str(f.outcome) for f in found.values()} == {"pass", "skipped"}


def test_a_users_mix_that_ignores_the_bank_is_found():
    def prefix_only(sources, query, gain, eps):
        return sources[-1].clone()

    found = findings_for("attn_res", prefix_only)
    assert found["retrieval"].hint.code == "K3O-280"
    assert "article-retrieval" not in found
