"""Which engines are compared: the built-in by its toggles, the user's, and what is installed."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from k3check.report.bench import toggled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import torch

    from k3check.nouns.request import CandidateSpec, OpsRequest

#: A library's prefill: (name, package, target, convention, options).
LIBRARIES: tuple[tuple[str, str, str, str, Mapping[str, Any]], ...] = (
    ("fla chunk_kda", "fla", "fla.ops.kda:chunk_kda", "fla",
     {"use_gate_in_kernel": True, "safe_gate": True, "lower_bound": -5.0,
      "use_qk_l2norm_in_kernel": True, "use_beta_sigmoid_in_kernel": True}),
    ("fla fused_recurrent_kda", "fla", "fla.ops.kda:fused_recurrent_kda", "fla", {}),
    ("flash_kda", "flash_kda", "flash_kda:fwd", "flash_kda", {}),
    ("flashinfer", "flashinfer", "flashinfer:recurrent_kda", "flashinfer", {}),
)  # fmt: skip

PREFILLS = ("kda_chunk", "kda_recurrent")


@dataclass(frozen=True)
class Engine:
    """One of the things to time.

    Attributes:
        name: in the report.
        spec: the candidate, None where it cannot run.
        why: why not.
        settings: of the built-in: its toggles.
    """

    name: str
    spec: CandidateSpec | None
    why: str = ""
    settings: tuple[tuple[str, bool], ...] = ()


def engines(request: OpsRequest, device: torch.device) -> Iterator[Engine]:
    """Every engine of a request, the slowest setting of the built-in first."""
    base = replace(request.default, operator="kda_chunk", device=str(device))
    for ut in (False, True):
        for bound in (False, True):
            settings = (("use_ut_transform", ut), ("bind_dplr_to_k", bound))
            yield Engine(toggled(ut=ut, bound=bound), base, settings=settings)
    for name in PREFILLS:
        spec = request.candidates.get(name)
        if spec is not None and spec.target is not None:
            yield Engine(f"your {name}", replace(spec, device=str(device)))
    for name, package, target, convention, options in LIBRARIES:
        why = missing(package, device)
        if why is not None:
            yield Engine(name, None, why)
            continue
        operator = "kda_recurrent" if "recurrent" in target else "kda_chunk"
        yield Engine(
            name,
            replace(base, operator=operator, target=target, convention=convention,
                    options=options, origin=f"bench: {name}"),
        )  # fmt: skip


def missing(package: str, device: torch.device) -> str | None:
    """Why a library cannot run, None if it can."""
    if importlib.util.find_spec(package) is None:
        return f"{package} is not installed"
    if device.type == "cpu":
        return f"{package} needs an accelerator"
    return None
