"""Building a candidate: semantics, recipe, device, convention, each with its own clear error."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from k3check.checking.outside import as_exported, convention_of, is_outside, runner_of
from k3check.checking.recognition import (
    check_ability,
    choice,
    choose_convention,
    handed,
    why_recognised,
)
from k3check.errors import UsageError
from k3check.nouns.operator import Candidate
from k3check.nouns.recipe import Recipe
from k3check.nouns.shapes import Shapes, compiles
from k3check.nouns.signature import parameters_of
from k3check.runners.python.remote import Remote

if TYPE_CHECKING:
    from collections.abc import Callable

    from k3check.nouns.convention import Convention
    from k3check.nouns.operator import Operator
    from k3check.nouns.request import CandidateSpec, OpsRequest

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
#: semantics that are models: each operator that differs between them has all of them
MODELS = ("k3", "kimi-linear", "article")
SIZES = ("heads", "key_dim", "value_dim")
SHORT = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def build_candidate(
    operator: Operator,
    request: OpsRequest,
    load_target: Callable[[CandidateSpec, str], Callable[..., Any]],
) -> Candidate:
    """The candidate of an operator: the configured one, or the built-in.

    Raises:
        UsageError: something about it cannot be used.
    """
    spec = as_exported(request.candidates.get(operator.name, request.default), request.directory)
    semantics_name = choose_semantics(operator, spec)
    recognised = None
    target: Any
    if spec.target is None:
        activated = semantics_name == "article" and "k3check-activated" in operator.conventions
        convention = operator.conventions["k3check-activated" if activated else "k3check"]
        # A section of our own, for a built-in whose inputs do not show the semantics.
        target = operator.builtin({**request.settings, "semantics": {"name": semantics_name}})
        binding = convention.bind(None, dict(spec.options))
    elif is_outside(spec):
        convention, binding = convention_of(operator, spec)
        recipe = choose_recipe(spec, request.default, convention)
        semantics = operator.semantics[semantics_name]
        target = runner_of(operator, spec, request, semantics, binding.interface, recipe)
    else:
        target = load_target(spec, request.directory)
        convention, binding = choose_convention(operator, spec, target)
        if isinstance(target, Remote):
            names, _ = parameters_of(target)
            handed_on = handed(convention, target, names)
            target = target.bound(operator.name, convention.name, handed_on, dict(spec.options))
        if spec.convention == "auto":
            recognised = why_recognised(operator, convention, target)
    if spec.semantics is None and spec.target is not None and convention.semantics is not None:
        semantics_name = convention.semantics
    recipe = choose_recipe(spec, request.default, convention, target)
    check_ability(convention, binding, spec, semantics_name, recipe)
    semantics = operator.semantics[semantics_name]
    if spec.multiple_of is not None:
        binding = replace(binding, interface=limited(operator, spec, binding.interface))
    binding = replace(binding, notes=(*binding.notes, *binding.advice(semantics)))
    return Candidate(
        operator=of_sizes(operator, spec, recipe),
        target=target,
        binding=binding,
        convention=convention.name,
        semantics_name=semantics_name,
        semantics=semantics,
        recipe=recipe,
        origin=spec.origin,
        builtin=spec.target is None,
        options=spec.options,
        recognised=recognised,
    )


def of_sizes(operator: Operator, spec: CandidateSpec, recipe: Recipe) -> Operator:
    """The operator whose cases have the sizes that the run asks for, or that its device suits.

    Raises:
        UsageError: the operator has no such sizes.
    """
    few = spec.target is not None and compiles(recipe.device)
    shapes = Shapes(few, spec.heads, spec.key_dim, spec.value_dim)
    sized, fit = operator.sized, operator.fit
    asked = [name for name in SIZES if getattr(spec, name) and name not in operator.sizes]
    if asked and spec.operator != "*":
        raise UsageError(
            code="K3C-139",
            what=f"{operator.name} has no heads, key_dim or value_dim that could be chosen",
            where=spec.origin,
            found=", ".join(f"{name} = {getattr(spec, name)}" for name in asked),
            fix="Remove them.",
        )
    if sized is None or not shapes.asked:
        return operator
    return replace(operator, fit=lambda case, form: fit(sized(case, form, shapes), form))


def limited(operator: Operator, spec: CandidateSpec, interface: Any) -> Any:
    """The interface with the declared lengths, beside those that the convention has anyway.

    Raises:
        UsageError: the operator has no tokens in a row.
    """
    if not hasattr(interface, "multiple_of") or operator.name == "kda_step":
        raise UsageError(
            code="K3C-136",
            what=f"{operator.name} takes no number of tokens that multiple_of could restrict",
            where=spec.origin,
            found=f"multiple_of = {spec.multiple_of}",
            fix="Remove multiple_of.",
        )
    assert spec.multiple_of is not None, "asked only where it is declared"
    return replace(interface, multiple_of=math.lcm(interface.multiple_of, spec.multiple_of))


def choose_semantics(operator: Operator, spec: CandidateSpec) -> str:
    """The name of the semantics: the configured one, or the operator's first.

    One that was named for every operator (``--semantics kimi-linear``) is used by those that have
    it; a name that no model has is an error all the same.
    """
    usual = next(iter(operator.semantics))
    if spec.semantics is None:
        return usual
    if spec.operator == "*" and spec.semantics in MODELS:
        return spec.semantics if spec.semantics in operator.semantics else usual
    return choice("semantics", "K3C-100", spec.semantics, operator.semantics, spec)


def choose_recipe(
    spec: CandidateSpec,
    default: CandidateSpec,
    convention: Convention | None = None,
    target: Callable[..., Any] | None = None,
) -> Recipe:
    """What the candidate declares, else the run, else what the convention usually has.

    Where none of them says anything, it is float32.
    """
    usual, usual_state = (
        (None, None) if convention is None else (convention.dtype, convention.state_dtype)
    )
    io = _dtype(spec, spec.dtype or default.dtype or usual or "float32")
    wide = torch.float64 if io == torch.float64 else torch.float32
    low = io in (torch.bfloat16, torch.float16)
    state = spec.state_dtype or default.state_dtype or (usual_state if low else None)
    accumulate = spec.accumulate_dtype or default.accumulate_dtype
    return Recipe(
        io=io,
        state=wide if state is None else _dtype(spec, state),
        accumulate=wide if accumulate is None else _dtype(spec, accumulate),
        device=_device(spec, spec.device if spec.device != "auto" else default.device, target),
    )


def _dtype(spec: CandidateSpec, name: str) -> torch.dtype:
    plain = name.removeprefix("torch.")
    return DTYPES[choice("dtype", "K3C-104", SHORT.get(plain, plain), DTYPES, spec)]


def _device(spec: CandidateSpec, name: str, target: Callable[..., Any] | None) -> torch.device:
    """The device; ``auto`` is an accelerator for the user's operators if there is one.

    Raises:
        UsageError: torch does not know it or cannot use it here.
    """
    if name == "auto":
        own = spec.target is not None and torch.cuda.is_available()
        return torch.device("cuda" if own else "cpu")
    try:
        device = torch.device(name)
        if not isinstance(target, Remote):
            torch.empty(1, device=device)
        elif device.type != "cpu":
            # Asked there: here it would cost a context on the device that nobody needs.
            target.use(device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        available = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise UsageError(
            code="K3C-105",
            what=f"the device {name!r} cannot be used here",
            where=spec.origin,
            found=name,
            accepted=", ".join(["auto", *available]),
            fix="Choose a device that this machine has.",
            detail=str(error).splitlines()[0] if str(error) else None,
        ) from None
    return device
