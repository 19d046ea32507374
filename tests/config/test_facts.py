"""Notes where a configuration contradicts the released model."""

from __future__ import annotations

from pathlib import Path

import pytest

from k3check import hints
from k3check.config.init import starter
from k3check.config.load import load
from tests.config.support import ARTICLES, Loader

# The specification's list of what the articles get wrong, by file.
EXPECTED = {
    "config.toml": {
        "K3C-035": ["attn_residuals.block_size"],
        "K3C-036": ["attn_residuals.num_blocks"],
        "K3C-037": ["kda.alpha_floor", "kda.alpha_ceil"],
        "K3C-038": ["kda.d_k", "kda.d_v"],
        "K3C-039": ["flashkda.chunk_size"],
        "K3C-040": ["kda.gate_bottleneck"],
        "K3C-041": ["model.temperature"],
        "K3C-042": ["attn_residuals.residual_dim"],
        "K3C-043": ["attn_residuals.enable_gating"],
        "K3C-193": [None],
    },
    "settings.json": {"K3C-041": ["model.temperature"], "K3C-193": [None]},
    "client.json": {
        "K3C-041": ["model.temperature"],
        "K3C-047": ["client.extra_body"],
        "K3C-193": [None],
    },
    "codex-auth.json": {"K3C-049": [None]},
    "claude-code-settings.json": {"K3C-048": ["agent"], "K3C-115": [None], "K3C-193": [None]},
    "serving.toml": {"K3C-044": ["model.context_window"], "K3C-193": [None]},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_articles_contradictions(name: str) -> None:
    found: dict[str, list[object]] = {}
    for note in load(Path(name), cwd=ARTICLES, env={}).notes:
        found.setdefault(note.code, []).append(note.values.get("key"))
        for lang in hints.LANGUAGES:
            texts = hints.title(note.code, lang, note.values) + hints.fix(
                note.code, lang, note.values
            )
            # A placeholder without a value would show in angle brackets.
            assert "<" not in texts
        assert str(note.values["where"]).startswith(f"{name}:")
    assert found == EXPECTED[name]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("[attn_residuals]\nblock_size = 12\nnum_blocks = 8\nenable_gating = false", []),
        ("[kda]\nd_k = 128\nd_v = 128\ngate_bottleneck = 128\nshort_conv_kernel = 4", []),
        ("[flashkda]\nchunk_size = 64", []),
        ("[flashkda]\nchunk_size = 65", ["K3C-039"]),
        ("[model]\ntemperature = 1\ntop_p = 0.95", []),
        ("[model]\ntop_p = 0.9", ["K3C-041"]),
        ("[model]\ncontext_window = 1048576\nmax_output_tokens = 1048576", []),
        ("[model]\ncontext_window = 1048577", ["K3C-045"]),
        ("[model]\ncontext_window = 131072\nmax_output_tokens = 131073", ["K3C-044", "K3C-046"]),
        ("[moe]\nsparsity_ratio = 56", []),
        ("[moe]\nsparsity_ratio = 55", ["K3C-051"]),
        ("[moe]\nnum_routed_experts = 256\ntop_k = 8\nsparsity_ratio = 32",
         ["K3C-050", "K3C-050"]),
        ("[moe]\nquantile_balancing = false", ["K3C-050"]),
        ("[moe]\nbalancing = 'aux'\nnorm = 'RMSNorm'", ["K3C-050"]),
        ("[attention]\nkda_layers = 70", ["K3C-050"]),
    ],
)  # fmt: skip
def test_each_rule(text: str, codes: list[str], loaded: Loader) -> None:
    assert [note.code for note in loaded(text).notes] == codes


def test_the_starter_contradicts_nothing(loaded: Loader) -> None:
    assert loaded(starter()).notes == ()
