"""Run the user's code in a worker process of its own, and survive whatever it does.

The parent's side never imports torch; :mod:`k3check.runners.worker` is what the other process runs.
"""

from k3check.runners.supervisor import RunResult, check

__all__ = ["RunResult", "check"]
