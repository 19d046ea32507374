"""Where a worker runs: what a report must say so that somebody else can repeat it."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

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


def _cpu_count() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
