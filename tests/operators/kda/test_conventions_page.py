"""docs/conventions.md says what the conventions are: every example is one that works."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from k3check.checking.from_config import OpsOptions, request
from k3check.config.load import load
from k3check.operators.kda.conventions import SEQUENCE_CONVENTIONS, STEP_CONVENTIONS
from tests.operators.harness import operator_of, plan_for

ROOT = Path(__file__).parents[3]
EVERY = {**SEQUENCE_CONVENTIONS, **STEP_CONVENTIONS}
USABLE = sorted(name for name, c in EVERY.items() if c.refuses is None)


def script():
    """docs/make_conventions.py as a module."""
    spec = importlib.util.spec_from_file_location(
        "make_conventions", ROOT / "docs" / "make_conventions.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def callable_of(example):
    """A function with the example's signature, which nobody calls."""
    scope = {}
    exec(f"def {example.signature}: ...", scope)
    (function,) = (value for name, value in scope.items() if name != "__builtins__")
    function.__module__ = example.target.partition(":")[0]
    return function


def test_the_page_is_what_the_script_writes():
    page = (ROOT / "docs" / "conventions.md").read_text("utf-8")
    assert page == script().page(), "run: python docs/make_conventions.py"


def test_every_convention_is_on_the_page():
    page = (ROOT / "docs" / "conventions.md").read_text("utf-8")
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == list(EVERY)


@pytest.mark.parametrize("name", USABLE)
def test_the_example_s_configuration_asks_for_this_convention(name, tmp_path):
    convention = EVERY[name]
    path = tmp_path / "k3check.toml"
    path.write_text(script().config(convention, convention.example), "utf-8")
    loaded = load(path, env={}, cwd=tmp_path)
    asked = request(loaded, OpsOptions())
    (spec,) = asked.candidates.values()
    assert spec.operator == convention.example.operator
    assert (spec.target, spec.convention) == (convention.example.target, name)
    assert dict(spec.options) == dict(convention.example.options)
    assert (spec.dtype, spec.state_dtype) == (convention.dtype, convention.state_dtype)


@pytest.mark.parametrize("name", USABLE)
def test_the_example_s_signature_fits(name):
    example = EVERY[name].example
    assert name in operator_of(example.operator).conventions
    semantics = "article" if name == "article" else None
    spec = {"options": example.options, "semantics": semantics}
    assert plan_for(example.operator, callable_of(example), convention=name, **spec)


@pytest.mark.parametrize("name", [n for n in USABLE if EVERY[n].recognisable])
def test_the_example_s_signature_is_recognised(name):
    example = EVERY[name].example
    operator = operator_of(example.operator)
    from k3check.checking.recognition import recognise
    from k3check.nouns.request import CandidateSpec
    from k3check.nouns.signature import parameters_of

    function = callable_of(example)
    names, _ = parameters_of(function)
    spec = CandidateSpec(example.operator)
    assert recognise(operator, spec, names, function).name == name


def test_the_first_example_is_the_file_beside_it():
    path, _, function = EVERY["k3check"].example.target.partition(":")
    source = (ROOT / path).read_text("utf-8")
    assert f"def {function}(" in source
    signature = " ".join(source.split(f"def {function}(")[1].split(")")[0].split())
    assert EVERY["k3check"].example.signature == f"{function}({signature})"
