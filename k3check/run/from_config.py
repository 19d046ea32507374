"""From a configuration and the command line's options to what is asked of the worker."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from k3check.config.names import ALIASES, DType
from k3check.config.problems import nearest, problem
from k3check.operators.names import OPERATORS, SUITES
from k3check.report.model import BUILT_IN_ONLY, Message
from k3check.run.request import CandidateSpec, OpsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from k3check.config.load import Loaded
    from k3check.config.models import OperatorConfig
    from k3check.errors import UsageError
    from k3check.report.model import Finding

DTYPES: tuple[str, ...] = get_args(DType)
# The operators that are another function in another model; the others have one form.
DIFFERING = ("kda_step", "kda_gate", "kda_recurrent", "kda_chunk")
_DEVICE = re.compile(r"[a-z]+(:[0-9]{1,4})?")


@dataclass(frozen=True)
class OpsOptions:
    """The options of ``k3check ops`` as they were typed; None or empty where they were not.

    Attributes:
        suites: the arguments.
        operators: ``NAME=TARGET``, each.
        conventions, semantics: ``NAME=VALUE`` for one operator, ``VALUE`` for all.
        tolerance: ``auto`` or a number.
        standard: a level of the dual-benchmark rule.
        directory: where relative targets start.
    """

    suites: Sequence[str] = ()
    operators: Sequence[str] = ()
    conventions: Sequence[str] = ()
    semantics: Sequence[str] = ()
    dtype: str | None = None
    state_dtype: str | None = None
    device: str | None = None
    tolerance: str | None = None
    standard: str | None = None
    timeout_s: float | None = None
    seed: int | None = None
    profile: str | None = None
    directory: str = "."


def request(loaded: Loaded, options: OpsOptions) -> OpsRequest:
    """What the worker is asked to check; options override the configuration.

    Without a suite, an operator that is configured (in the file, or by an option that names it)
    is checked alone; with suites, everything in them is.

    Raises:
        UsageError: an unknown name, or a value that is not accepted.
    """
    suites = tuple(dict.fromkeys(_suite(name) for name in options.suites))
    candidates = _named(_from_file(loaded), options)
    model = loaded.config.model.semantics
    default = _recipe(CandidateSpec("*", semantics=model), options)
    candidates = {n: _of_model(spec, model) for n, spec in candidates.items()}
    for value in _for_all("--semantics", options.semantics):
        default = replace(default, semantics=value)
        candidates = {n: replace(c, semantics=value) for n, c in candidates.items()}
    for value in _for_all("--convention", options.conventions):
        candidates = {
            n: replace(c, convention=value) if c.target is not None else c
            for n, c in candidates.items()
        }
    candidates = _conventions(_semantics(candidates, options, default), options)
    base = OpsRequest()
    return OpsRequest(
        suites=suites,
        candidates={name: _recipe(spec, options) for name, spec in candidates.items()},
        only_configured=not suites and bool(candidates),
        default=default,
        profile=options.profile or base.profile,
        seed=base.seed if options.seed is None else options.seed,
        standard=options.standard,
        tolerance=_tolerance(options.tolerance, loaded.config.validation.numerical_tolerance),
        timeout_s=_timeout(options.timeout_s, loaded.config.operators.values(), base.timeout_s),
        directory=options.directory,
        settings=loaded.config.settings(),
    )


def remarks(asked: OpsRequest) -> tuple[Message, ...]:
    """What the reader must know about what was not checked."""
    if not asked.only_configured:
        return ()
    names = ", ".join(asked.candidates)
    suites = " ".join(dict.fromkeys(OPERATORS[name] for name in asked.candidates))
    return (Message("K3C-090", {"names": names, "suites": suites}),)


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
            target=configured.target,
            convention=configured.convention,
            semantics=configured.semantics,
            dtype=configured.dtype,
            state_dtype=configured.state_dtype,
            accumulate_dtype=configured.accumulate_dtype,
            device=configured.device,
            options=configured.options,
            multiple_of=configured.multiple_of,
            origin=str(loaded.origins[f"operators.{name}"]),
        )
        for name, configured in loaded.config.operators.items()
    }


def _of_model(spec: CandidateSpec, model: str | None) -> CandidateSpec:
    """A candidate of the model that the configuration describes, unless it says which itself."""
    if spec.semantics is not None or spec.operator not in DIFFERING:
        return spec
    return replace(spec, semantics=model)


def _named(candidates: dict[str, CandidateSpec], options: OpsOptions) -> dict[str, CandidateSpec]:
    """Add or replace the targets that ``--operator`` names."""
    named: set[str] = set()
    for argument in options.operators:
        name, sign, target = argument.partition("=")
        if not sign or not name.strip() or not target.strip():
            raise problem(
                "K3C-082",
                where="--operator",
                found=argument[:200],
                accepted="NAME=package.module:function, NAME=path/file.py:function",
                option="--operator",
            )
        name = _operator(name.strip(), "--operator")
        if name in named:
            raise problem(
                "K3C-082",
                where="--operator",
                found=f"{name} twice",
                accepted="each operator once",
                option="--operator",
            )
        named.add(name)
        spec = candidates.get(name) or CandidateSpec(name)
        origin = f"--operator {argument}"
        candidates[name] = replace(spec, target=target.strip(), origin=origin)
    return candidates


def _for_all(option: str, values: Iterable[str]) -> tuple[str, ...]:
    """The values that are given without an operator's name, at most one."""
    bare = tuple(value for value in values if "=" not in value)
    if len(bare) > 1:
        raise problem(
            "K3C-082",
            where=option,
            found=" and ".join(bare),
            accepted="one value for all operators, or NAME=VALUE for each",
            option=option,
        )
    return bare


def _assignments(option: str, values: Iterable[str]) -> dict[str, str]:
    """The values that are given as ``NAME=VALUE``, by operator."""
    found: dict[str, str] = {}
    for value in values:
        name, sign, given = value.partition("=")
        if not sign:
            continue
        name = _operator(name.strip(), option)
        if not given.strip() or name in found:
            raise problem(
                "K3C-082",
                where=option,
                found=value[:200],
                accepted=f"{option} VALUE, or {option} NAME=VALUE once for each operator",
                option=option,
            )
        found[name] = given.strip()
    return found


def _semantics(
    candidates: dict[str, CandidateSpec], options: OpsOptions, default: CandidateSpec
) -> dict[str, CandidateSpec]:
    for name, value in _assignments("--semantics", options.semantics).items():
        spec = candidates.get(name) or replace(
            default, operator=name, origin=f"--semantics {name}={value}"
        )
        candidates[name] = replace(spec, semantics=value)
    return candidates


def _conventions(
    candidates: dict[str, CandidateSpec], options: OpsOptions
) -> dict[str, CandidateSpec]:
    for name, value in _assignments("--convention", options.conventions).items():
        spec = candidates.get(name)
        if spec is None or spec.target is None:
            raise problem("K3C-091", where=f"--convention {name}={value}", name=name)
        candidates[name] = replace(spec, convention=value)
    return candidates


def _recipe(spec: CandidateSpec, options: OpsOptions) -> CandidateSpec:
    """A candidate with the options' dtypes and device."""
    dtype = None if options.dtype is None else _dtype("--dtype", options.dtype)
    state = None if options.state_dtype is None else _dtype("--state-dtype", options.state_dtype)
    device = None if options.device is None else _device(options.device)
    return replace(
        spec,
        dtype=dtype or spec.dtype,
        state_dtype=state or spec.state_dtype,
        device=device or spec.device,
    )


def _unknown(
    code: str, where: str, found: str, accepted: Iterable[str], meant: str | None, **values: str
) -> UsageError:
    """A name that is not on a list; the fix is what was probably meant."""
    error = problem(code, where=where, found=found[:200], accepted=", ".join(accepted), **values)
    return error if meant is None else replace(error, fix=f'Did you mean "{meant}"?')


def _dtype(option: str, value: str) -> str:
    bare = value.removeprefix("torch.")
    if bare in DTYPES:
        return bare
    meant = ALIASES.get(bare.casefold()) or nearest(bare, DTYPES)
    raise _unknown("K3C-083", option, value, DTYPES, meant, option=option)


def _device(value: str) -> str:
    meant = ALIASES.get(value.casefold())
    if meant is None and _DEVICE.fullmatch(value):
        return value
    accepted = ("auto", "cpu", "cuda", "cuda:1 ...")
    raise _unknown("K3C-083", "--device", value, accepted, meant, option="--device")


def _suite(name: str) -> str:
    if name in SUITES:
        return name
    # an operator's name is a common slip: its suite is what was meant
    meant = OPERATORS.get(name) or nearest(name, SUITES)
    raise _unknown("K3C-080", "ops", name, SUITES, meant, name=name[:200])


def _operator(name: str, option: str) -> str:
    if name in OPERATORS:
        return name
    raise _unknown("K3C-081", option, name, OPERATORS, nearest(name, OPERATORS), name=name[:200])


def _tolerance(option: str | None, configured: float | None) -> float | None:
    """The cap on derived limits: the option's, else the file's; ``auto`` takes none."""
    if option is None:
        return configured
    if option == "auto":
        return None
    try:
        value = float(option)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1:
        raise problem(
            "K3C-083",
            where="--tolerance",
            found=option[:200],
            accepted="auto, or a number above 0, at most 1 (relative L2)",
            option="--tolerance",
        )
    return value


def _timeout(option: float | None, operators: Iterable[OperatorConfig], default: float) -> float:
    """Seconds one check may take: the option's, else the longest that an operator asks for."""
    if option is None:
        return max((o.timeout for o in operators if o.timeout is not None), default=default)
    if not 0 < option <= 86400:
        raise problem(
            "K3C-083",
            where="--timeout",
            found=str(option),
            accepted="seconds, above 0, at most 86400",
            option="--timeout",
        )
    return option
