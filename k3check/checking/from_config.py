"""From a configuration and the command line's options to what is asked of the worker."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from k3check.checking import option_values as typed
from k3check.config.meaning import off_notes, switched_off
from k3check.config.operator_tables import check_targets
from k3check.config.problems import problem
from k3check.model import BUILT_IN_ONLY, Message, Text
from k3check.nouns.request import COMMAND, CandidateSpec, OpsRequest
from k3check.operators import OPERATORS, SUITES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from k3check.config.loaded import Loaded
    from k3check.config.models import OperatorConfig
    from k3check.model import Finding

# The operators that are another function in another model; the others have one form.
DIFFERING = ("kda_step", "kda_gate", "kda_recurrent", "kda_chunk")


@dataclass(frozen=True)
class OpsOptions:
    """The options of ``k3check ops`` as they were typed; None or empty where they were not.

    Attributes:
        suites: the arguments.
        operators: ``NAME=TARGET``, each.
        commands: ``NAME=COMMAND LINE``, each.
        conventions, semantics: ``NAME=VALUE`` for one operator, ``VALUE`` for all.
        heads, key_dim, value_dim: sizes of every operator that has them.
        tolerance: ``auto`` or a number.
        standard: a level of the dual-benchmark rule.
        directory: where relative targets start.
    """

    suites: Sequence[str] = ()
    operators: Sequence[str] = ()
    commands: Sequence[str] = ()
    conventions: Sequence[str] = ()
    semantics: Sequence[str] = ()
    dtype: str | None = None
    state_dtype: str | None = None
    device: str | None = None
    heads: int | None = None
    key_dim: int | None = None
    value_dim: int | None = None
    tolerance: str | None = None
    standard: str | None = None
    timeout_s: float | None = None
    memory_limit: str | None = None
    seed: int | None = None
    profile: str | None = None
    directory: str = "."


def request(loaded: Loaded, options: OpsOptions) -> OpsRequest:
    """What the worker is asked to check; options override the configuration.

    Without a suite, an operator that is configured (in the file, or by an option that names it)
    is checked alone; with suites, everything in them is. A suite that the configuration switches
    off is checked only if the command line names it.

    Raises:
        UsageError: an unknown name, or a value that is not accepted.
    """
    suites = tuple(dict.fromkeys(typed.suite(name) for name in options.suites))
    candidates = _named(_from_file(loaded), options)
    check_targets(loaded, [name for name, spec in candidates.items() if spec.target is not None])
    model = loaded.config.model.semantics
    default = _recipe(CandidateSpec("*", semantics=model), options)
    candidates = {n: _of_model(spec, model) for n, spec in candidates.items()}
    for value in typed.for_all("--semantics", options.semantics):
        default = replace(default, semantics=value)
        candidates = {n: replace(c, semantics=value) for n, c in candidates.items()}
    for value in typed.for_all("--convention", options.conventions):
        candidates = {
            n: replace(c, convention=value) if c.target is not None else c
            for n, c in candidates.items()
        }
    candidates = _conventions(_semantics(candidates, options, default), options)
    only_configured = not suites and bool(candidates)
    off = {} if suites else switched_off(loaded.config)
    if off:
        candidates = {
            name: spec
            for name, spec in candidates.items()
            if OPERATORS[name] not in off or spec.origin.startswith("--operator")
        }
        suites = () if only_configured else tuple(suite for suite in SUITES if suite not in off)
    base = OpsRequest()
    return OpsRequest(
        suites=suites,
        candidates={name: _recipe(spec, options) for name, spec in candidates.items()},
        only_configured=only_configured,
        default=default,
        profile=options.profile or base.profile,
        seed=base.seed if options.seed is None else options.seed,
        standard=options.standard,
        tolerance=typed.tolerance(options.tolerance, loaded.config.validation.numerical_tolerance),
        timeout_s=typed.timeout(
            options.timeout_s, loaded.config.operators.values(), base.timeout_s
        ),
        memory_limit=typed.memory(options.memory_limit),
        directory=options.directory,
        settings=loaded.config.settings(),
    )


def remarks(asked: OpsRequest, loaded: Loaded, options: OpsOptions) -> tuple[Message, ...]:
    """What the reader must know about what was not checked."""
    off = tuple(off_notes(loaded, options.suites))
    if not asked.only_configured or not asked.candidates:
        return off
    names = ", ".join(asked.candidates)
    suites = " ".join(dict.fromkeys(OPERATORS[name] for name in asked.candidates))
    return (Message("K3C-090", {"names": names, "suites": suites}), *off)


def noted(asked: OpsRequest, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; where no operator of the user's is among them, the first one says so.

    It is a note of a check, so that a saved report and every format have it.
    """
    yours = {name for name, spec in asked.candidates.items() if spec.target is not None}
    if not findings or any(finding.operator in yours for finding in findings):
        return list(findings)
    first, *rest = findings
    return [replace(first, notes=(*first.notes, Message(BUILT_IN_ONLY))), *rest]


def _from_file(loaded: Loaded) -> dict[str, CandidateSpec]:
    """The operators that the configuration names, as it describes them."""
    return {
        name: CandidateSpec(
            operator=name,
            target=_target(configured),
            convention=configured.convention,
            semantics=configured.semantics,
            dtype=configured.dtype,
            state_dtype=configured.state_dtype,
            accumulate_dtype=configured.accumulate_dtype,
            device=configured.device,
            options=configured.options,
            multiple_of=configured.multiple_of,
            heads=configured.heads,
            key_dim=configured.key_dim,
            value_dim=configured.value_dim,
            origin=str(loaded.origins[f"operators.{name}"]),
        )
        for name, configured in loaded.config.operators.items()
    }


def _target(configured: OperatorConfig) -> str | None:
    """What a table names: a callable, a folder, or a command."""
    if configured.target is None and configured.command is not None:
        return COMMAND + shlex.join(configured.command)
    return configured.target


def _of_model(spec: CandidateSpec, model: str | None) -> CandidateSpec:
    """A candidate of the model that the configuration describes, unless it says which itself."""
    if spec.semantics is not None or spec.operator not in DIFFERING:
        return spec
    return replace(spec, semantics=model)


def _named(candidates: dict[str, CandidateSpec], options: OpsOptions) -> dict[str, CandidateSpec]:
    """Add or replace the targets that ``--operator`` names."""
    named: set[str] = set()
    commands = [a.replace("=", f"={COMMAND}", 1) for a in options.commands]
    for argument in (*options.operators, *commands):
        name, sign, target = argument.partition("=")
        if not sign or not name.strip() or not target.strip():
            raise problem(
                "K3C-082",
                where="--operator",
                found=argument[:200],
                accepted="NAME=package.module:function, NAME=path/file.py:function",
                option="--operator",
            )
        name = typed.operator(name.strip(), "--operator")
        if name in named:
            raise problem(
                "K3C-082",
                where="--operator",
                found=Text("{name} twice", name=name),
                accepted="each operator once",
                option="--operator",
            )
        named.add(name)
        spec = candidates.get(name) or CandidateSpec(name)
        origin = f"--operator {argument}"
        candidates[name] = replace(spec, target=target.strip(), origin=origin)
    return candidates


def _semantics(
    candidates: dict[str, CandidateSpec], options: OpsOptions, default: CandidateSpec
) -> dict[str, CandidateSpec]:
    for name, value in typed.assignments("--semantics", options.semantics).items():
        spec = candidates.get(name) or replace(
            default, operator=name, origin=f"--semantics {name}={value}"
        )
        candidates[name] = replace(spec, semantics=value)
    return candidates


def _conventions(
    candidates: dict[str, CandidateSpec], options: OpsOptions
) -> dict[str, CandidateSpec]:
    for name, value in typed.assignments("--convention", options.conventions).items():
        spec = candidates.get(name)
        if spec is None or spec.target is None:
            raise problem("K3C-091", where=f"--convention {name}={value}", name=name)
        candidates[name] = replace(spec, convention=value)
    return candidates


def _recipe(spec: CandidateSpec, options: OpsOptions) -> CandidateSpec:
    """A candidate with the options' dtypes and device."""
    dtype = None if options.dtype is None else typed.dtype("--dtype", options.dtype)
    state = (
        None if options.state_dtype is None else typed.dtype("--state-dtype", options.state_dtype)
    )
    device = None if options.device is None else typed.device(options.device)
    return replace(
        spec,
        dtype=dtype or spec.dtype,
        state_dtype=state or spec.state_dtype,
        device=device or spec.device,
        heads=options.heads or spec.heads,
        key_dim=options.key_dim or spec.key_dim,
        value_dim=options.value_dim or spec.value_dim,
    )
