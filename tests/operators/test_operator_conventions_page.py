"""docs/conventions-operators.md: up to date, complete, and every example on it runs."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import torch

from k3check.checking.from_config import OpsOptions, request
from k3check.checking.planning import make_plan
from k3check.checking.recognition import recognise
from k3check.config.load import load
from k3check.nouns.request import CandidateSpec
from k3check.nouns.signature import parameters_of
from k3check.operators import families
from tests.operators import test_article_functions as functions
from tests.operators.attn_res import test_conventions as attn_res
from tests.operators.conv import test_conv as conv
from tests.operators.harness import operator_of
from tests.operators.kda import test_gate as gate
from tests.operators.mla import test_mla as mla
from tests.operators.moe import test_latent as latent
from tests.operators.moe import test_router as router
from tests.operators.moe import test_situ as situ
from tests.operators.mxfp4 import test_mxfp4 as mxfp4
from tests.operators.norm import test_norm as norm

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conventions-operators.md"


def script():
    """docs/make_operator_conventions.py as a module."""
    spec = importlib.util.spec_from_file_location(
        "make_operator_conventions", ROOT / "docs" / "make_operator_conventions.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def situ_packed(x, beta=4.0, linear_beta=25.0):
    return situ.right(*x.chunk(2, -1), beta, linear_beta)


def grouped_topk(
    hidden_states, gating_output, correction_bias, topk, renormalize, routed_scaling_factor=1.0
):
    return router.choose(gating_output, correction_bias, topk, renormalize, routed_scaling_factor)


def whole_stack(hidden, sublayers, queries, gains, block_size, eps):
    from k3check.operators.attn_res import candidate

    return candidate.stack(hidden, sublayers, queries, gains, block_size, eps)


def cut_gate(gate_, A_log, dt_bias, lower_bound):
    return gate.fla_form(gate_, A_log[: gate_.shape[-2]], dt_bias, lower_bound)


#: A correct function a convention, by keyword where it is not by position; the built-in's for ours.
RIGHT = {
    **{("short_conv", name): f for name, f in conv.RIGHT.items()},
    **{("attn_res", name): f for name, f in attn_res.RIGHT.items()},
    **{("moe_router", name): f for name, f in router.RIGHT.items()},
    **{("situ_glu", name): f for name, f in situ.RIGHT.items()},
    **{("latent_moe", name): f for name, f in latent.RIGHT.items()},
    **{("mxfp4_dequant", name): f for name, f in mxfp4.RIGHT.items()},
    ("gated_rms_norm", "fla"): norm.rms_norm_gated,
    ("gated_rms_norm", "module"): norm.FusedRMSNormGated,
    ("gated_mla", "hf"): mla.forward,
    ("gated_mla", "absorbed"): mla.core,
    ("kda_gate", "k3check"): cut_gate,
    ("kda_gate", "fla"): gate.fla_form,
    ("kda_gate", "article-logits"): gate.article,
    ("kda_gate", "article"): functions.compute_fine_grained_gate,
    ("attn_res", "article"): functions.attention_with_residuals,
    ("attn_res", "stack"): whole_stack,
    ("situ_glu", "k3check"): situ_packed,
    ("situ_glu", "pair"): situ.right,
    ("moe_router", "sglang"): grouped_topk,
}
SECTIONS = re.findall(
    r"^### (\w+): (\S+)\n.*?^```python\n(.*?)^```\n\n```sh\n(.*?)\n```$",
    PAGE.read_text("utf-8"),
    re.DOTALL | re.MULTILINE,
)


def filled(operator, convention, code):
    """The example's function with something correct in place of the dots."""
    right = RIGHT.get((operator, convention)) or operator_of(operator).builtin({})
    taken, _ = parameters_of(right)
    scope = {"torch": torch, "right": right}
    if convention == "module":
        made = "self.inner = right(**{n: v for n, v in locals().items() if n in taken})"
        made += "\n        self.weight = getattr(self.inner, 'weight', None)"
        code = code.replace("        ...", f"        {made}", 1)
        called = re.search(r"def forward\(self, (.*)\)", code)[1]
        code = code.replace("        ...", f"        return self.inner({called})", 1)
    else:
        every = re.sub(r"=[^,)]*(\([^)]*\))?", "", code[code.index("(") + 1 : code.rindex(")")])
        names = [name.strip() for name in every.split(",") if not name.strip().startswith("*")]
        order, _ = parameters_of(right)
        if operator_of(operator).conventions[convention].positional or convention == "k3check":
            wanted = list(right.__code__.co_varnames[: right.__code__.co_argcount])
            positions = ", ".join(names[: len(wanted)])
            keywords = ", ".join(f"{n}={n}" for n in names[len(wanted) :] if n in order)
        else:
            positions, keywords = "", ", ".join(f"{n}={n}" for n in names if n in order)
        given = ", ".join(filter(None, (positions, keywords)))
        code = code.replace("    ...", f"    return right({given})", 1)
    scope["taken"] = taken
    exec(code, scope)
    name = re.search(r"^(?:def|class) (\w+)", code, re.MULTILINE)[1]
    return scope[name]


def test_the_page_is_what_the_script_writes():
    assert PAGE.read_text("utf-8") == script().page(), (
        "run: python docs/make_operator_conventions.py"
    )


def test_every_operator_and_convention_is_on_one_of_the_pages():
    here = {(operator, convention) for operator, convention, *_ in SECTIONS}
    sequences = {"kda_step", "kda_recurrent", "kda_chunk"}  # on docs/conventions.md
    every = {
        (op.name, c)
        for f in families()
        for op in f.operators
        for c in op.conventions
        if op.name not in sequences
    }
    assert here == every
    assert "conventions-operators.md" in (ROOT / "docs" / "conventions.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("operator", "convention", "code", "command"),
    SECTIONS,
    ids=[f"{o}-{c}" for o, c, *_ in SECTIONS],
)
def test_the_example_runs(operator, convention, code, command, tmp_path):
    words = shlex.split(command)
    assert words[:2] == ["k3check", "ops"]
    fields = {
        "--operator": "operators", "--convention": "conventions", "--semantics": "semantics",
    }  # fmt: skip
    options = {fields[word]: (words[n + 1],) for n, word in enumerate(words) if word in fields}
    assert len(words) == 2 + 2 * len(options)
    empty = tmp_path / "k3check.toml"
    empty.write_text("[kda]\n", "utf-8")
    asked = request(load(empty, env={}, cwd=tmp_path), OpsOptions(profile="quick", **options))
    assert list(asked.candidates) == [operator]
    assert asked.candidates[operator].convention == convention
    target = filled(operator, convention, code)
    plan = [c for c in make_plan(asked, lambda _spec, _directory: target) if c.suite != "cache"]
    found = {check.id: check.run() for check in plan if check.operator == operator}
    outcomes = {str(f.outcome) for f in found.values()}
    assert outcomes <= {"pass", "acceptable", "skipped"}, {
        n: (str(f.outcome), f.hint) for n, f in found.items()
    }
    assert outcomes != {"skipped"}


@pytest.mark.parametrize(
    ("operator", "convention", "code"),
    [s[:3] for s in SECTIONS if s[1] != "fla-normed"],
    ids=[f"{o}-{c}" for o, c, *_ in SECTIONS if c != "fla-normed"],
)
def test_the_example_is_recognised(operator, convention, code):
    target = filled(operator, convention, code)
    names, _ = parameters_of(target)
    owner = operator_of(operator)
    assert recognise(owner, CandidateSpec(operator), names, target).name == convention


def test_the_tables_say_what_is_passed():
    """One table by hand: fla's convolution."""
    page = PAGE.read_text("utf-8")
    (table,) = re.findall(r"^### short_conv: fla\n.*?\n(\|.*?)\n\n", page, re.DOTALL | re.MULTILINE)
    assert table.splitlines()[2:] == [
        "| `x` | [B, T, C] dtype | always |",
        "| `weight` | [C, W] dtype | always |",
        "| `initial_state` | [B, C, W] dtype | where your function has it |",
        "| `output_final_state` | True | always |",
        "| `activation` | 'silu' | always |",
        "| `cu_seqlens` | [N + 1] int64 | where your function has it, in some cases |",
    ]
