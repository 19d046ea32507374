"""The ``cache`` suite: stateful operators alone, handing over to one another, and in a stack."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from k3check.model import Finding, Message, Outcome
from k3check.nouns.check import Check, Family
from k3check.operators.cache.blame import blamed
from k3check.operators.cache.layers import CANDIDATE, KDA, KINDS, make_layers, missing_ability
from k3check.operators.cache.resume import (
    Limits,
    gaps,
    in_some_recipe,
    judged,
    last_token,
    points,
    resume,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.nouns.operator import Candidate
    from k3check.nouns.request import OpsRequest

    #: (who computes the prefix, who continues) of every layer
    Row = tuple[tuple[Candidate, Candidate], ...]

ALONE = ("kda_recurrent", "kda_chunk", "short_conv", "gated_mla")
HAND_OVERS = (("kda_chunk", "kda_step"), ("kda_chunk", "kda_recurrent"))
#: the KDA of a stack; the convolution stands before it, MLA behind it
STACKS = ("kda_chunk", "kda_recurrent")
#: what a hook leaves out: each part of it is in another row
NOT_QUICK = ("kda_chunk-to-kda_recurrent", "stack-kda_recurrent")


def checks(request: OpsRequest, candidates: Mapping[str, Candidate]) -> Sequence[Check]:
    """Every row whose operators are there; only rows with a configured one if those are asked."""
    if not {*candidates} >= {*KINDS}:
        return ()
    rows: list[tuple[str, str, str, tuple[tuple[str, str], ...]]] = [
        (name, name, "resuming from a snapshot changes nothing", ((name, name),)) for name in ALONE
    ]
    rows += [
        (f"{saver}-to-{reader}", reader, "one continues from the other's state",
         ((saver, reader),))
        for saver, reader in HAND_OVERS
    ]  # fmt: skip
    rows += [
        (f"stack-{kda}", kda, "resumed behind short_conv, in front of gated_mla",
         (("short_conv", "short_conv"), (kda, kda), ("gated_mla", "gated_mla")))
        for kda in STACKS
    ]  # fmt: skip
    found = []
    for name, operator, title, pairs in rows:
        if request.only_configured and not any(
            one in request.candidates for pair in pairs for one in pair
        ):
            continue
        if request.profile == "quick" and name in NOT_QUICK:
            continue
        row = tuple(one_recipe(candidates[saver], candidates[reader]) for saver, reader in pairs)
        blank = Finding(f"cache/{name}", "cache", operator, name, Outcome.PASS, title)
        run = partial(resume_check, row, request.seed, blank)
        found.append(Check(blank.id, "cache", operator, name, title, run))
    return found


def one_recipe(saver: Candidate, reader: Candidate) -> tuple[Candidate, Candidate]:
    """The two that hand a piece over: a built-in works in the recipe of its partner."""
    if reader.builtin:
        return saver, replace(reader, recipe=saver.recipe)
    if saver.builtin:
        return replace(saver, recipe=reader.recipe), reader
    return saver, reader


def resume_check(row: Row, seed: int, blank: Finding) -> Finding:
    """Resume at every prefix length, and say which piece is wrong and how."""
    reason = why_not(row)
    if reason is not None:
        note = Message("K3O-016", {"reason": reason})
        return replace(blank, outcome=Outcome.SKIPPED, notes=(note,))
    multiple = max(getattr(c.interface, "multiple_of", 1) for pair in row for c in pair)
    cuts = points(multiple)
    tokens = last_token(cuts)
    layers = make_layers(row, tokens, seed)
    done = resume(layers, [CANDIDATE] * len(layers), cuts)
    limits = Limits.of(layers, tokens)
    found = judged(blank, [g for cut in done for g in gaps(cut, limits.by_name(cut.point))])
    if found.outcome is Outcome.PASS:
        return found
    found = in_some_recipe(found, layers, done, tokens)
    return found if found.outcome is not Outcome.FAIL else blamed(found, layers, cuts)


def why_not(row: Row) -> str | None:
    """Why a row cannot be checked; None if it can."""
    for saver, reader in row:
        for candidate in (saver, reader):
            missing = missing_ability(candidate)
            if missing is not None:
                return missing
        if saver.semantics != reader.semantics:
            names = [f"{c.operator.name} has {c.semantics_name}" for c in (saver, reader)]
            return f"the two have different semantics: {', '.join(names)}"
        if (saver.recipe.io, saver.recipe.state) != (reader.recipe.io, reader.recipe.state):
            recipes = [f"{c.operator.name} {c.recipe.describe()}" for c in (saver, reader)]
            return f"the two have different recipes: {'; '.join(recipes)}"
        for name in ("key_dim", "heads"):
            sizes = {getattr(c.interface, name, None) for c in (saver, reader)} - {None}
            if len(sizes) > 1:
                return f"the two take different {name.replace('_', ' ')}s: {sizes}"
    if len(row) > 1 and any(
        KINDS[saver.operator.name] is KDA and not saver.interface.readout for saver, _ in row
    ):
        return "the KDA convention returns no output, only the state"
    return None


FAMILY = Family("cache", (), checks, uses=tuple(KINDS), suites=("cache",))
