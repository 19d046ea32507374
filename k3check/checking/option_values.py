"""The values of the options of ``k3check ops``: what is accepted, and what was probably meant."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from k3check.config.names import ALIASES, DType
from k3check.config.problems import meant as did_you_mean
from k3check.config.problems import nearest, problem
from k3check.model import Text
from k3check.operators import OPERATORS, SUITES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from k3check.config.models import OperatorConfig
    from k3check.errors import UsageError

DTYPES: tuple[str, ...] = get_args(DType)
_MEMORY = re.compile(r"(?P<number>\d{1,15}(\.\d{1,9})?) ?(?P<unit>[KMGT])i?B?", re.IGNORECASE)
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_DEVICE = re.compile(r"[a-z]+(:[0-9]{1,4})?")


def for_all(option: str, values: Iterable[str]) -> tuple[str, ...]:
    """The values that are given without an operator's name, at most one.

    Raises:
        UsageError: there are several.
    """
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


def assignments(option: str, values: Iterable[str]) -> dict[str, str]:
    """The values that are given as ``NAME=VALUE``, by operator.

    Raises:
        UsageError: a name is unknown or given twice, or a value is missing.
    """
    found: dict[str, str] = {}
    for value in values:
        name, sign, given = value.partition("=")
        if not sign:
            continue
        name = operator(name.strip(), option)
        if not given.strip() or name in found:
            raise problem(
                "K3C-082",
                where=option,
                found=value[:200],
                accepted=Text(
                    "{option} VALUE, or {option} NAME=VALUE once for each operator", option=option
                ),
                option=option,
            )
        found[name] = given.strip()
    return found


def suite(name: str) -> str:
    """A suite by its name.

    Raises:
        UsageError: there is no such suite.
    """
    if name in SUITES:
        return name
    # an operator's name is a common slip: its suite is what was meant
    meant = OPERATORS.get(name) or nearest(name, SUITES)
    raise _unknown("K3C-080", "ops", name, SUITES, meant, name=name[:200])


def operator(name: str, option: str) -> str:
    """An operator by its name, as an option gives it.

    Raises:
        UsageError: there is no such operator.
    """
    if name in OPERATORS:
        return name
    raise _unknown("K3C-081", option, name, OPERATORS, nearest(name, OPERATORS), name=name[:200])


def dtype(option: str, value: str) -> str:
    """A dtype by torch's name, with or without ``torch.``.

    Raises:
        UsageError: there is no such dtype.
    """
    bare = value.removeprefix("torch.")
    if bare in DTYPES:
        return bare
    meant = ALIASES.get(bare.casefold()) or nearest(bare, DTYPES)
    raise _unknown("K3C-083", option, value, DTYPES, meant, option=option)


def device(value: str) -> str:
    """A device by torch's name; whether this machine has it, the worker will see.

    Raises:
        UsageError: it is none, or has another name in torch.
    """
    meant = ALIASES.get(value.casefold())
    if meant is None and _DEVICE.fullmatch(value):
        return value
    accepted = ("auto", "cpu", "cuda", "cuda:1 ...")
    raise _unknown("K3C-083", "--device", value, accepted, meant, option="--device")


def tolerance(option: str | None, configured: float | None) -> float | None:
    """The cap on derived limits: the option's, else the file's; ``auto`` takes none.

    Raises:
        UsageError: it is no number, or none that is a relative distance.
    """
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


def timeout(option: float | None, operators: Iterable[OperatorConfig], default: float) -> float:
    """Seconds one check may take: the option's, else the longest that an operator asks for.

    Raises:
        UsageError: the option's is no time that a check may take.
    """
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


def memory(option: str | None) -> int | None:
    """Bytes that the operator may allocate: a number with a unit, ``2GiB``; None without it.

    Raises:
        UsageError: it is no amount of memory.
    """
    if option is None:
        return None
    match = _MEMORY.fullmatch(option.strip())
    size = int(float(match["number"]) * _UNITS[match["unit"].upper()]) if match else 0
    if not 2**20 <= size <= 2**50:
        raise problem(
            "K3C-083",
            where="--memory-limit",
            found=option[:200],
            accepted="an amount such as 512MiB or 2GiB, at least 1MiB",
            option="--memory-limit",
        )
    return size


def _unknown(
    code: str, where: str, found: str, accepted: Iterable[str], meant: str | None, **values: str
) -> UsageError:
    """A name that is not on a list; the fix is what was probably meant."""
    error = problem(code, where=where, found=found[:200], accepted=", ".join(accepted), **values)
    return error if meant is None else replace(error, fix=did_you_mean(meant))
