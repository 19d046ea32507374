"""What is asked of the worker: plain data that crosses the process border as JSON.

Torch-free on purpose: the command line builds a request, the worker alone knows tensors.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


#: how a target begins that is no callable
FOLDER, COMMAND = "dir:", "command:"


@dataclass(frozen=True)
class CandidateSpec:
    """One operator under test, as configured.

    Attributes:
        operator: the operator's name, e.g. ``kda_chunk``.
        target: ``package.module:function``, ``path/file.py:function``, ``dir:FOLDER``,
            ``command:WORDS`` as a shell splits them, or None for the built-in implementation.
        convention: a convention's name, or ``auto`` to recognise one from the parameters.
        semantics: a semantics' name (``k3``, ``kimi-linear``, ``article``), None for the
            operator's default.
        dtype, state_dtype, accumulate_dtype: the recipe by torch's names, None for the default.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` ...
        options: keyword arguments passed through to the callable.
        multiple_of: the callable only takes multiples of so many tokens; None for any number.
        heads, key_dim, value_dim: the sizes that cases have, None for the usual ones.
        origin: where this was configured, for messages (``config.toml [operators.kda_chunk]``).
    """

    operator: str
    target: str | None = None
    convention: str = "auto"
    semantics: str | None = None
    dtype: str | None = None
    state_dtype: str | None = None
    accumulate_dtype: str | None = None
    device: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    multiple_of: int | None = None
    heads: int | None = None
    key_dim: int | None = None
    value_dim: int | None = None
    origin: str = "built-in"


@dataclass(frozen=True)
class OpsRequest:
    """One run of operator checks.

    Attributes:
        suites: the suites asked for; empty means every suite.
        candidates: configured operators by name; an operator without an entry is checked with
            its built-in implementation and the ``default`` recipe.
        only_configured: check nothing but the operators in ``candidates``.
        default: recipe and device for operators without an entry (its ``operator`` is ``*``).
        profile: ``quick``, ``full`` or ``stress``.
        seed: every input is derived from it.
        tolerance: caps the derived limits as relative L2; None for the derived limits alone.
        standard: judge by a level of the dual-benchmark rule (``cann-l0`` ...) instead.
        timeout_s: seconds one check may take.
        directory: the working directory: relative targets start here and it is importable.
        settings: the configuration's sections that describe the model (``model``, ``kda``,
            ``flashkda``, ``attn_residuals``, ``moe`` ...), as plain values.
        hidden: variables that hold a key; the user's code does not see them.
        memory_limit: bytes that the user's code may allocate, None for any number.
    """

    suites: tuple[str, ...] = ()
    candidates: Mapping[str, CandidateSpec] = field(default_factory=dict)
    only_configured: bool = False
    default: CandidateSpec = field(default_factory=lambda: CandidateSpec("*"))
    profile: str = "full"
    seed: int = 0
    tolerance: float | None = None
    standard: str | None = None
    timeout_s: float = 120.0
    directory: str = "."
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    memory_limit: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data for the wire."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OpsRequest:
        """Rebuild what :meth:`to_json` wrote."""
        fields = dict(data)
        fields["suites"] = tuple(fields["suites"])
        fields["hidden"] = tuple(fields["hidden"])
        fields["default"] = CandidateSpec(**fields["default"])
        fields["candidates"] = {
            name: CandidateSpec(**spec) for name, spec in fields["candidates"].items()
        }
        return cls(**fields)
