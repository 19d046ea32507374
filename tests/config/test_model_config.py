"""A released model's own config.json: Kimi K3's nested one and Kimi-Linear's flat one.

K3's numbers are those of the operators' specification, section A; Kimi-Linear-48B's are 27 layers,
20 of them KDA, 32 heads of width 128 and a routing factor of 2.446 (same specification), the rest
of its file is made up to fit.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from k3check import hints
from k3check.checking.from_config import DIFFERING, OpsOptions, request
from k3check.config import model_map
from k3check.config.convert import convert

if TYPE_CHECKING:
    from tests.config.support import Loader

# From 1: every fourth layer, and the last one.
K3_MLA = [*range(4, 93, 4), 93]
K3: dict[str, Any] = {
    "architectures": ["KimiK3ForConditionalGeneration"],
    "model_type": "kimi_k3",
    "text_config": {
        "model_type": "kimi_linear",
        "num_hidden_layers": 93,
        "hidden_size": 7168,
        "intermediate_size": 33792,
        "num_attention_heads": 96,
        "num_key_value_heads": 96,
        "head_dim": 74,
        "vocab_size": 163840,
        "max_position_embeddings": 1048576,
        "rms_norm_eps": 1e-05,
        "hidden_act": "situ",
        "activation_situ_beta": 4.0,
        "activation_situ_linear_beta": 25.0,
        "num_experts": 896,
        "num_experts_per_token": 16,
        "num_shared_experts": 2,
        "moe_intermediate_size": 3072,
        "routed_expert_hidden_size": 3584,
        "latent_moe_use_norm": True,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "moe_router_activation_func": "sigmoid",
        "moe_renormalize": True,
        "routed_scaling_factor": 1.0,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "mla_use_nope": True,
        "mla_use_output_gate": True,
        "attn_res_block_size": 12,
        "linear_attn_config": {
            "num_heads": 96,
            "head_dim": 128,
            "short_conv_kernel_size": 4,
            "use_full_rank_gate": True,
            "gate_lower_bound": -5.0,
            "full_attn_layers": K3_MLA,
            "kda_layers": [n for n in range(1, 94) if n not in K3_MLA],
        },
    },
}
LINEAR_MLA = [4, 8, 12, 16, 20, 24, 27]
LINEAR: dict[str, Any] = {
    "architectures": ["KimiLinearForCausalLM"],
    "model_type": "kimi_linear",
    "num_hidden_layers": 27,
    "hidden_size": 2304,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "first_k_dense_replace": 1,
    "intermediate_size": 9216,
    "moe_intermediate_size": 1024,
    "routed_scaling_factor": 2.446,
    "q_lora_rank": None,
    "kv_lora_rank": 512,
    "linear_attn_config": {
        "num_heads": 32,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
        "full_attn_layers": LINEAR_MLA,
        "kda_layers": [n for n in range(1, 28) if n not in LINEAR_MLA],
    },
}


def k3(linear: dict[str, Any] | None = None, **text: Any) -> dict[str, Any]:
    """K3's configuration with some fields changed; None removes one."""
    config = copy.deepcopy(K3)
    part = config["text_config"]
    for table, changes in ((part, text), (part["linear_attn_config"], linear or {})):
        for name, value in changes.items():
            if value is None:
                del table[name]
            else:
                table[name] = value
    return config


def codes(config: dict[str, Any]) -> list[str]:
    return [message.code for message in model_map.problems(config)]


# --- the layer map ------------------------------------------------------------------------------


def test_k3_has_69_kda_and_24_full_attention_layers() -> None:
    kinds = model_map.layer_kinds(K3)
    assert (len(kinds), kinds.count("kda"), kinds.count("mla")) == (93, 69, 24)
    # From 0: 3, 7, ... 87, 91, and 92 beside it.
    assert [i for i, kind in enumerate(kinds) if kind == "mla"] == [*range(3, 92, 4), 92]
    assert kinds[91:] == ("mla", "mla")


def test_the_period_rule_is_wrong_at_the_last_layer_only() -> None:
    rule, kinds = model_map.by_period(93), model_map.layer_kinds(K3)
    assert rule.count("mla") == 23
    assert [i for i in range(93) if rule[i] != kinds[i]] == [92]
    (message,) = model_map.problems(K3)
    assert message.code == "K3C-131"
    assert (message.values["wrong"], message.values["by_rule"]) == ("92", 23)


def test_kimi_linear() -> None:
    kinds = model_map.layer_kinds(LINEAR)
    assert (kinds.count("kda"), kinds.count("mla")) == (20, 7)
    assert model_map.semantics(LINEAR) == "kimi-linear"
    assert model_map.problems(LINEAR)[0].values["wrong"] == "26"


@pytest.mark.parametrize("broken", [{}, {"text_config": 1}, {"linear_attn_config": []}, LINEAR])
def test_no_layers_without_numbers(broken: dict[str, Any]) -> None:
    config = {k: v for k, v in broken.items() if k != "num_hidden_layers"}
    assert model_map.layer_kinds(config) == ()
    assert [c for c in codes(config) if c != "K3C-130"] == []


@pytest.mark.parametrize(
    ("change", "reason", "layers"),
    [
        ({"kda_layers": [n - 1 for n in range(1, 94) if n not in K3_MLA]}, "counted from 0", "0"),
        ({"full_attn_layers": [*K3_MLA, 1]}, "listed twice", "1"),
        ({"full_attn_layers": K3_MLA[:-1]}, "in neither list", "93"),
        ({"full_attn_layers": [*K3_MLA, 94]}, "not among the 93 layers", "94"),
        ({"full_attn_layers": ["4"]}, "not layer numbers", "4"),
        ({"full_attn_layers": [True]}, "not layer numbers", "True"),
    ],
)
def test_wrong_lists(change: dict[str, Any], reason: str, layers: str) -> None:
    message = model_map.problems(k3(linear=change))[0]
    assert message.code == "K3C-130"
    assert str(message.values["reason"]).startswith(reason)
    assert message.values["layers"] == layers
    assert message.values["where"] == "text_config.linear_attn_config"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (K3, ["K3C-131"]),
        (k3(num_experts_per_token=None, num_experts_per_tok=16), ["K3C-131", "K3C-132"]),
        (k3(num_experts_per_tok=8), ["K3C-131", "K3C-132"]),
        (k3(num_experts_per_tok=16), ["K3C-131"]),
        (k3(first_k_dense_replace=94), ["K3C-131", "K3C-133"]),
        (k3(intermediate_size=3072), ["K3C-131", "K3C-133"]),
        (k3(linear={"gate_lower_bound": None}, gate_lower_bound=-5.0), ["K3C-131", "K3C-134"]),
        (k3(linear={"gate_lower_bound": None}) | {"gate_lower_bound": -5.0},
         ["K3C-131", "K3C-134"]),
    ],
)  # fmt: skip
def test_problems(config: dict[str, Any], expected: list[str]) -> None:
    assert codes(config) == expected


# --- the dialect --------------------------------------------------------------------------------


def test_k3_file_gives_the_released_numbers(loaded: Loader) -> None:
    result = loaded(json.dumps(K3, indent=1), "config.json")
    config = result.config
    assert result.dialect == "model-config"
    assert config.model.semantics == "k3"
    assert (config.kda.num_heads, config.kda.d_k, config.kda.d_v) == (96, 128, 128)
    assert config.kda.gate_lower_bound == -5.0
    assert config.attn_residuals.block_size == 12
    assert (config.moe.num_routed_experts, config.moe.top_k) == (896, 16)
    assert (config.moe.situ_gate_clip, config.moe.situ_tanh_clip) == (4.0, 25.0)
    assert (config.mla.q_rank, config.mla.kv_rank, config.mla.rope_dim) == (1536, 512, 64)
    assert (config.attention.kda_layers, config.attention.gated_mla_layers) == (69, 24)
    assert config.attention.full_attn_layers == K3_MLA
    # Nothing contradicts the released model; the pattern's pitfall is worth a note.
    assert [note.code for note in result.notes] == ["K3C-131"]
    line = result.origins["kda.d_k"].line
    assert line is not None
    assert '"head_dim": 128' in json.dumps(K3, indent=1).split("\n")[line - 1]


def test_what_differs_from_k3_is_told(loaded: Loader) -> None:
    config = k3(linear={"gate_lower_bound": -4.0}, intermediate_size=18432, attn_res_block_size=10)
    result = loaded(json.dumps(config), "config.json")
    told = {note.values.get("key"): note.values.get("right") for note in result.notes}
    assert told["moe.dense_dim"] == "33792"
    assert told["kda.gate_lower_bound"] == "-5.0"
    assert told["attn_residuals.block_size"] == "12"


def test_kimi_linear_file_is_not_compared_with_k3(loaded: Loader) -> None:
    result = loaded(json.dumps(LINEAR), "config.json")
    assert result.config.model.semantics == "kimi-linear"
    assert result.config.moe.scaling_factor == 2.446
    assert result.config.mla.q_rank is None
    assert not result.config.attn_residuals.enabled
    assert [note.code for note in result.notes] == ["K3C-131", "K3C-135"]
    for note in result.notes:
        for lang in hints.LANGUAGES:
            assert "<" not in hints.title(note.code, lang, note.values)


@pytest.mark.parametrize("config", [K3, LINEAR], ids=["k3", "linear"])
def test_convert_round_trip(config: dict[str, Any], loaded: Loader) -> None:
    before = loaded(json.dumps(config), "config.json")
    assert loaded(convert(before), "k3check.toml").config == before.config


# --- what the operators are asked for -----------------------------------------------------------


@pytest.mark.parametrize(("config", "name"), [(K3, "k3"), (LINEAR, "kimi-linear")])
def test_semantics_of_the_request(config: dict[str, Any], name: str, loaded: Loader) -> None:
    result = loaded(json.dumps(config), "config.json")
    options = OpsOptions(operators=["kda_chunk=a:b", "attn_res=a:c"])
    asked = request(result, options)
    assert asked.default.semantics == name
    assert asked.candidates["kda_chunk"].semantics == name
    # It has one form only.
    assert asked.candidates["attn_res"].semantics is None
    assert asked.settings["kda"]["num_heads"] in (96, 32)
    assert "full_attn_layers" in asked.settings["attention"]
    stronger = request(result, OpsOptions(operators=["kda_chunk=a:b"], semantics=["article"]))
    assert stronger.candidates["kda_chunk"].semantics == "article"
    assert stronger.default.semantics == "article"


def test_an_operator_keeps_its_own_semantics(loaded: Loader) -> None:
    text = '[model]\nsemantics = "kimi-linear"\n[operators.kda_chunk]\nsemantics = "k3"\n'
    text += "target = 'a:b'\n[operators.kda_step]\ntarget = 'a:b'\n"
    asked = request(loaded(text), OpsOptions())
    assert asked.candidates["kda_chunk"].semantics == "k3"
    assert asked.candidates["kda_step"].semantics == "kimi-linear"


def test_the_operators_that_differ_between_models_are_known() -> None:
    from k3check.operators import families

    differing = {
        operator.name
        for family in families()
        for operator in family.operators
        if operator.semantics.get("kimi-linear", operator.semantics["k3"])
        != operator.semantics["k3"]
    }
    assert set(DIFFERING) == differing
