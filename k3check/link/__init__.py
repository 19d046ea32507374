"""The endpoint check: is this URL, with this key and this model, a working Kimi K3?

:func:`check` runs probes one after the other and returns a finding for each. Nothing heavy is
imported before a probe needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from k3check.link.request import LinkRequest
    from k3check.model import Finding
    from k3check.report.listener import Listener

__all__ = ["check", "cost", "probe_names"]


def check(request: LinkRequest, listener: Listener) -> list[Finding]:
    """Check one endpoint.

    Args:
        request: what is asked.
        listener: told what is going on.

    Returns:
        One finding for each probe, in the order in which they ran; skipped ones too.

    Raises:
        UsageError: a probe's name is unknown.
    """
    from k3check.link.runner import run

    return run(request, listener)


def cost(request: LinkRequest) -> tuple[int, int]:
    """What a run may cost at most: chargeable requests and tokens, retries not counted.

    Raises:
        UsageError: a probe's name is unknown.
    """
    from k3check.link.runner import cost as sum_up

    total = sum_up(request)
    return total.requests, total.tokens


def probe_names() -> tuple[str, ...]:
    """The names of all probes, in the order in which they run."""
    from k3check.link.probes import names

    return names()
