"""The parent's side of a run: start a judge, pass on what it finds, and replace one that dies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3check.runners.conversation import Conversation
from k3check.runners.endings import usage_error
from k3check.runners.process import Child
from k3check.runners.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.model import Finding
    from k3check.nouns.request import OpsRequest
    from k3check.report.listener import Listener

#: The function that plans a run's checks, imported by the worker alone.
PLAN = "k3check.checking:plan"

#: Seconds that importing torch, importing one target, or planning may take at least.
STARTING_LIMIT_S = 120.0

#: Workers in a row that may die before they start a check.
_BARREN_WORKERS = 2

#: What the judge runs.
MAIN = "k3check.runners.judge"


@dataclass(frozen=True)
class RunResult:
    """What a run found, and where it ran."""

    findings: tuple[Finding, ...]
    environment: Mapping[str, Any]


def check(
    request: OpsRequest,
    listener: Listener,
    *,
    plan: str = PLAN,
    starting_limit_s: float = STARTING_LIMIT_S,
) -> RunResult:
    """Run operator checks in a worker process that alone imports torch and the targets.

    A check whose worker dies or hangs is a finding; a new worker goes on after it. An operator that
    does so in the same way again and again is left: its other checks are skipped.

    Args:
        request: what to check.
        listener: is told about every check as it goes.
        plan: ``module:function`` or ``path/file.py:function`` that plans the checks.
        starting_limit_s: seconds for importing torch, for each target, and for planning;
            ``request.timeout_s`` where that is more.

    Raises:
        UsageError: a target cannot be loaded, its import dies or hangs, torch is missing.
        NothingToCheck: the plan says so.
        InternalError: k3check's own mistake.
        KeyboardInterrupt: as it came, after the worker was killed.
    """
    if not Path(request.directory).is_dir():
        raise usage_error("K3C-072", found=request.directory, directory=request.directory)
    # The worker starts in that directory, where a relative path would start again.
    request = replace(request, directory=str(Path(request.directory).absolute()))
    run = Run(request, listener, max(starting_limit_s, request.timeout_s))
    while not run.is_over:
        if run.barren == _BARREN_WORKERS:
            run.give_up()
            break
        order = {
            "request": request.to_json(),
            "skip": len(run.findings),
            "omit": list(run.left),
            "plan": plan,
            "starting_limit_s": max(starting_limit_s, request.timeout_s),
        }
        with Child(MAIN, order, directory=request.directory, hidden=request.hidden) as worker:
            run.barren += 1  # until a check starts
            Conversation(run, worker).follow()
        run.pass_over()
    return RunResult(run.findings, run.environment)
