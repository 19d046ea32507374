"""Where a worker runs: what a report must say so that somebody else can repeat it."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING, Any

from k3check.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Reported when the run imported them.
_PACKAGES = ("triton", "fla", "flashinfer", "flash_attn", "vllm", "sglang")


def describe(torch: Any) -> dict[str, Any]:
    """The environment as plain data.

    Accelerators are listed only when the run used one: asking would initialise them.

    Args:
        torch: the imported module.
    """
    packages = {name: sys.modules[name] for name in _PACKAGES if name in sys.modules}
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "platform": platform.platform(),
        "cpu_count": _cpu_count(),
        "threads": torch.get_num_threads(),
        "packages": {
            name: str(getattr(module, "__version__", "unknown"))
            for name, module in packages.items()
        },
        "devices": [],
    }
    if torch.cuda.is_initialized():
        facts["devices"] = [
            torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())
        ]
        facts["cuda"] = torch.version.cuda
        facts["hip"] = torch.version.hip
    return facts


def joined(judges: dict[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """The judge's facts, with what a runner says of threads, packages and devices.

    Args:
        judges: from :func:`describe`.
        told: the same from a runner, where the user's code may have said anything.
    """
    facts = dict(judges)
    if type(told.get("threads")) is int:
        facts["threads"] = told["threads"]
    packages = told.get("packages")
    if isinstance(packages, dict):
        facts["packages"] = {
            name: one_line(str(packages[name]))[:100] for name in _PACKAGES if name in packages
        }
    devices = told.get("devices")
    if isinstance(devices, list) and devices:
        facts["devices"] = [one_line(str(device))[:100] for device in devices[:64]]
        for name in ("cuda", "hip"):
            facts[name] = None if told.get(name) is None else str(told[name])[:100]
    return facts


def _cpu_count() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
