"""The mistakes that ports of the short convolution are known for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.nouns.fault import Fault

if TYPE_CHECKING:
    from k3check.nouns.recipe import Recipe
    from k3check.operators.conv.semantics import ConvInterface, ConvSemantics

_CHANGES: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (500, "kernel-flipped", {"kernel": "flipped"}),
    (501, "oldest-tap-missing", {"taps": "without_oldest"}),
    (502, "current-only", {"taps": "current_only"}),
    (503, "no-activation", {"activation": "none"}),
    (504, "activation-twice", {"activation": "twice"}),
    (505, "sigmoid", {"activation": "sigmoid"}),
    (506, "relu", {"activation": "relu"}),
    (507, "activation-on-input", {"activation": "on_input"}),
    (508, "late", {"alignment": "late"}),
    (509, "early", {"alignment": "early"}),
    (510, "centred", {"alignment": "centred"}),
    (511, "first-channel", {"channel": "first"}),
    (512, "channels-rolled", {"channel": "rolled"}),
    (513, "residual-added", {"residual": "added"}),
    (514, "state-ignored", {"initial_state": "ignored"}),
    (515, "state-reversed", {"initial_state": "reversed"}),
    (516, "state-shifted", {"initial_state": "shifted"}),
    (517, "state-of-first", {"initial_state": "first_sequence"}),
    (518, "final-outputs", {"final_state": "outputs"}),
    (519, "final-without-last", {"final_state": "without_last"}),
    (520, "final-reversed", {"final_state": "reversed"}),
    (521, "final-short-padded", {"final_state": "short_padded"}),
    (522, "final-initial", {"final_state": "initial"}),
    (523, "final-transposed", {"final_state": "transposed"}),
    (524, "leak", {"packing": "leak"}),
)
#: which capability a mistake needs
_NEEDS = {"initial_state": "initial_state", "final_state": "final_state", "packing": "packed"}


def faults(
    semantics: ConvSemantics, interface: ConvInterface, _recipe: Recipe
) -> tuple[Fault, ...]:
    """Every mistake that differs from these semantics and that this interface can make."""
    return tuple(
        Fault(f"K3O-{code}", f"conv.{slug}", change)
        for code, slug, change in _CHANGES
        if replace(semantics, **change) != semantics
        and all(_NEEDS.get(name, "") in {"", *interface.supports} for name in change)
    )
