"""Targets that are no Python: a folder of tensor files, or a command."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3check.checking.recognition import choice
from k3check.errors import UsageError
from k3check.nouns.recipe import Recipe, rounding
from k3check.nouns.request import COMMAND, FOLDER
from k3check.runners import files
from k3check.runners.command import Command
from k3check.runners.folder import Folder, folder_of
from k3check.runners.manifest import folders

if TYPE_CHECKING:
    from k3check.nouns.convention import Binding, Convention
    from k3check.nouns.operator import Operator
    from k3check.nouns.request import CandidateSpec, OpsRequest
    from k3check.nouns.tensors import Tensors


def is_outside(spec: CandidateSpec) -> bool:
    """Whether a target is no callable."""
    return spec.target is not None and spec.target.startswith((FOLDER, COMMAND))


def as_exported(spec: CandidateSpec, directory: str) -> CandidateSpec:
    """A folder's candidate as its manifest describes it, where nothing else was asked for.

    Raises:
        UsageError: the folder cannot be used.
    """
    target = spec.target or ""
    if not target.startswith(FOLDER):
        return spec
    first = folders(root_of(target, directory)).get(spec.operator, [{}])[0]
    recipe = first.get("recipe", {})
    return replace(
        spec,
        semantics=spec.semantics or first.get("semantics"),
        convention=first.get("convention", "auto")
        if spec.convention == "auto"
        else spec.convention,
        dtype=spec.dtype or recipe.get("dtype"),
        state_dtype=spec.state_dtype or recipe.get("state_dtype"),
        accumulate_dtype=spec.accumulate_dtype or recipe.get("accumulate_dtype"),
        device="cpu",
    )


def root_of(target: str, directory: str) -> Path:
    """The folder that a target names."""
    place = os.path.expanduser(target.removeprefix(FOLDER))  # noqa: PTH111 - Path.expanduser() raises
    return Path(directory, place)


def convention_of(operator: Operator, spec: CandidateSpec) -> tuple[Convention, Binding]:
    """The convention whose interface files have: the named one, or our own.

    Raises:
        UsageError: there is no such convention.
    """
    found = "k3check" if spec.convention == "auto" else spec.convention
    convention = operator.conventions[
        choice("convention", "K3C-101", found, operator.conventions, spec)
    ]
    return convention, convention.bind(None, dict(spec.options))


def runner_of(
    operator: Operator,
    spec: CandidateSpec,
    request: OpsRequest,
    semantics: Any,
    interface: Any,
    recipe: Recipe,
) -> Command | Folder:
    """What runs a target that is a folder or a command.

    Raises:
        UsageError: the folder has no such cases, or the command is none.
    """
    target = spec.target or ""
    if target.startswith(FOLDER):
        return folder_of(root_of(target, request.directory), operator.name)
    line = target.removeprefix(COMMAND)
    try:
        argv = tuple(shlex.split(line))
    except ValueError:
        argv = ()
    if not argv:
        raise UsageError(
            code="K3C-246",
            what=f"the command of {operator.name} cannot be read",
            where=spec.origin,
            found=line[:200],
            accepted="words as a shell splits them",
            fix="Close its quotes.",
        )

    def forms(inputs: Tensors) -> dict[str, files.Form]:
        low = rounding(recipe, block_operands=operator.block_operands)
        compute = operator.baseline or operator.evaluate
        outputs = compute(semantics, interface, inputs, low)
        return files.forms_of(outputs, [o.name for o in operator.outputs])

    environment = {k: v for k, v in os.environ.items() if k not in request.hidden}
    return Command(argv, forms, request.directory, request.timeout_s, environment)
