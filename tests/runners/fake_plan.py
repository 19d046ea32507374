"""Plans for tests: one check for each candidate, which calls its target without arguments.

The worker loads this file by its path; the targets are named by the test's request.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import torch

from k3check.checking.planning import make_plan
from k3check.errors import NothingToCheck, UsageError
from k3check.model import Confidence, Diagnosis, Finding, Message, Outcome
from k3check.runners import process


def plan(request, load_target):
    return [_check(name, load_target(spec)) for name, spec in request.candidates.items()]


def _check(name, target):
    def finding(outcome, evidence):
        return Finding(f"{name}/call", "kda", name, "call", outcome, "calls it", evidence=evidence)

    def run():
        value = target()
        if isinstance(value, str) and value.startswith("fail"):
            return finding(Outcome.FAIL, {"value": value})
        return finding(Outcome.PASS, {"value": value})

    return SimpleNamespace(
        id=f"{name}/call",
        suite="kda",
        operator=name,
        case="call",
        title="calls it",
        run=run,
        amend=None,
        built_in=False,
    )


def five_each(request, load_target):
    """Five checks of each candidate, and one of all at the end that no operator has."""
    checks = []
    for name, spec in request.candidates.items():
        target = load_target(spec)
        for n in range(5):
            check = _check(name, target)
            checks.append(_numbered(check, n))
    checks.append(_check("last", lambda: 1))
    checks[-1].operator = None
    return checks


def _numbered(check, n):
    run, check.id = check.run, f"{check.operator}/{n}"
    check.run = lambda: replace(run(), id=check.id)
    return check


def amends_both(request, load_target):
    """Two checks that fail; after the second one, both get a diagnosis and one invents a third."""
    checks = [_check("first", lambda: "fail"), _check("second", lambda: "fail")]
    known = (Diagnosis("K3O-155", Confidence.HIGH, 0.5, 9.0),)

    def amend():
        made = [check.run() for check in checks] + [_check("third", lambda: 1).run()]
        return [
            replace(f, diagnoses=known, hint=Message("K3O-155"), outcome=Outcome.PASS) for f in made
        ]

    checks[1].amend = amend
    return checks


def usage(request, load_target):
    raise UsageError("K3C-060", "what", "where", "found", "accepted", "fix", "detail")


def nothing(request, load_target):
    raise NothingToCheck("nothing of that kind")


def empty(request, load_target):
    return []


def broken(request, load_target):
    raise ZeroDivisionError("ours")


def broken_check(request, load_target):
    return [_check("good", lambda: 1), _check("bad", lambda: 1 / 0), _check("late", lambda: 1)]


def no_memory_for_the_reference(request, load_target):
    def reference():
        raise MemoryError

    return [_check("reference", reference), _check("good", lambda: 1)]


def device_error_at_the_comparison(request, load_target):
    def comparison():
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")

    return [_check("late", comparison)]


def hangs_itself(request, load_target):
    plan(request, load_target)
    time.sleep(60)


def dies_itself(request, load_target):
    os._exit(9)


def dies_from_the_second_time_on(request, load_target):
    count = Path(request.directory, "starts")
    with count.open("a") as file:
        file.write("x")
    if len(count.read_text()) > 1:
        os._exit(5)
    return plan(request, load_target)


def ends_the_judge_and_dies_from_the_second_time_on(request, load_target):
    first, *rest = dies_from_the_second_time_on(request, load_target)
    return [first, _check("ours", lambda: os._exit(1)), *rest]


def slow_references(request, load_target):
    """Checks whose reference takes longer than a check may, while the operator works."""
    checks = []
    for name, spec in request.candidates.items():
        target = load_target(spec)

        def wait(target=target):
            pending = target.start({}, torch.device("cpu"))
            time.sleep(request.timeout_s + 0.5)
            return pending().outputs["value"]

        checks.append(_check(name, wait))
    return checks


def small_captures(request, load_target):
    process.CAPTURE_LIMIT_BYTES = 10**6
    return plan(request, load_target)


def changes(request, load_target):
    second = Path(request.directory, "started").exists()
    Path(request.directory, "started").touch()
    return [_check("first", lambda: os._exit(1)), _check("b" if second else "a", lambda: 1)]


def first_calls(request, load_target):
    """Each target is called as one that meets a shape for the first time, then once more."""
    checks = []
    for name, spec in request.candidates.items():
        check = _check(name, _compiled(load_target(spec)))
        checks.append(check)
    return checks


def _compiled(target):
    from k3check.nouns.first_calls import FIRST_CALLS

    def call():
        FIRST_CALLS.begins()
        began = time.perf_counter()
        target()
        FIRST_CALLS.seconds.append(time.perf_counter() - began)
        FIRST_CALLS.ended()
        return target()

    return call


if "K3CHECK_TEST_COMPILING_LIMIT" in os.environ:
    from k3check.runners import judge

    judge.COMPILING_LIMIT_S = float(os.environ["K3CHECK_TEST_COMPILING_LIMIT"])


def norms(request, load_target):
    """The quick checks of a gated norm, for every target: each under the target's own name."""
    checks = []
    for name, spec in request.candidates.items():
        target = load_target(spec)
        own = replace(
            request,
            candidates={"gated_rms_norm": replace(spec, operator="gated_rms_norm")},
            only_configured=True,
            profile="quick",
        )
        checks += [
            _renamed(check, name) for check in make_plan(own, lambda *_, target=target: target)
        ]
    return checks


def _renamed(check, name):
    ident = f"{name}/{check.case}"

    def run():
        return replace(check.run(), id=ident, operator=name)

    return replace(check, id=ident, operator=name, run=run, amend=None)
