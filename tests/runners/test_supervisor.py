"""Whatever an operator does, the run goes on and says what happened. With real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from k3check import hints
from k3check.errors import InternalError, NothingToCheck, UsageError
from k3check.model import Outcome

HERE = Path(__file__).parent
OPERATORS = HERE / "bad_operators.py"


def planned_by(function):
    return f"{HERE / 'fake_plan.py'}:{function}"


def by_name(result):
    return {finding.operator: finding for finding in result.findings}


def assert_crashed(finding, code):
    assert finding.outcome is Outcome.CRASHED
    assert finding.hint.code == code
    for lang in hints.LANGUAGES:
        shown = hints.title(code, lang, finding.hint.values)
        assert "<" not in shown, "a placeholder without a value"


def test_exceptions_are_findings_of_one_worker(run, recorder):
    listener = recorder()
    names = (
        "raises", "sys_exit", "interrupts", "interrupts_the_main_thread", "out_of_memory",
        "reads_input", "good",
    )  # fmt: skip
    result = run(*names, listener=listener)
    found = by_name(result)
    assert tuple(found) == names
    assert listener.events == [
        ("planned", len(names)),
        *((kind, f"{name}/call") for name in names for kind in ("started", "finished")),
    ]

    assert_crashed(found["raises"], "K3O-020")
    evidence = found["raises"].evidence
    assert evidence["error"] == "ValueError: expected 4 heads"
    assert evidence["printed"] == "before it raises"
    assert f'"{OPERATORS}", line ' in evidence["traceback"]
    assert "fake_plan" not in evidence["traceback"]

    assert_crashed(found["sys_exit"], "K3O-027")
    assert found["sys_exit"].evidence["error"] == "SystemExit: 3"
    assert "printed" not in found["sys_exit"].evidence
    assert_crashed(found["interrupts"], "K3O-027")
    assert_crashed(found["interrupts_the_main_thread"], "K3O-027")
    assert_crashed(found["out_of_memory"], "K3O-021")
    assert_crashed(found["reads_input"], "K3O-020")
    assert found["reads_input"].evidence["error"].startswith("EOFError")

    assert found["good"].outcome is Outcome.PASS
    assert 0 <= found["good"].duration_s < 1
    assert result.environment["torch"].startswith("2.")
    assert result.environment["python"] == ".".join(map(str, sys.version_info[:3]))
    assert result.environment["devices"] == []


def test_a_dead_worker_is_replaced(run):
    result = run("os_exit", "good", "segfaults", "killed", "os_exit_zero", "tells_directory")
    found = by_name(result)
    assert_crashed(found["os_exit"], "K3O-025")
    assert found["os_exit"].evidence == {"exit_status": 7, "printed": "leaving"}
    assert found["good"].outcome is Outcome.PASS
    assert_crashed(found["segfaults"], "K3O-023")
    evidence = found["segfaults"].evidence
    assert evidence["signal"] == "SIGSEGV"
    assert evidence["printed"] == "about to crash"
    assert "in segfaults\n    ctypes.string_at(0)" in evidence["stack"]
    assert "k3check/runners/" not in evidence["stack"].replace(str(HERE), "")
    assert_crashed(found["killed"], "K3O-024")
    assert_crashed(found["os_exit_zero"], "K3O-025")
    assert found["os_exit_zero"].evidence == {"exit_status": 0}
    assert found["tells_directory"].outcome is Outcome.PASS


def test_a_hanging_check_is_stopped_with_its_children(run):
    names = (
        "hangs", "hangs_with_children", "hangs_without_the_gil_being_released",
        "ignores_signals_and_hangs",
    )  # fmt: skip
    found = by_name(run(*names, "good", timeout_s=1.0))
    for name in names:
        assert found[name].outcome is Outcome.TIMED_OUT
        assert found[name].hint.code == "K3O-022"
        assert found[name].hint.values == {"seconds": "1"}
        assert 1.0 <= found[name].duration_s < 5.0
    assert "in hangs\n" in found["hangs"].evidence["stack"]
    assert found["hangs"].evidence["printed"] == "going to hang"
    assert "in hangs_without_the_gil" in found[names[2]].evidence["stack"]
    assert found["good"].outcome is Outcome.PASS


def test_a_process_that_stops_itself_hangs(run):
    found = by_name(run("stops_itself", "good", timeout_s=1.0))
    assert found["stops_itself"].outcome is Outcome.TIMED_OUT
    assert found["good"].outcome is Outcome.PASS


def test_a_judge_that_is_killed_is_replaced(run):
    found = by_name(run("kills_its_parent", "good"))
    assert_crashed(found["kills_its_parent"], "K3O-024")
    assert found["good"].outcome is Outcome.PASS


def test_the_time_of_the_reference_is_not_the_operators(run):
    found = by_name(run("good", "hangs", timeout_s=1.0, plan=planned_by("slow_references")))
    assert found["good"].outcome is Outcome.PASS
    assert found["hangs"].outcome is Outcome.TIMED_OUT


def test_leftovers_do_not_outlive_the_run(run):
    names = ("leaves_children", "leaves_a_daemon", "leaves_threads", "good")
    assert all(f.outcome is Outcome.PASS for f in run(*names).findings)
    # The fixture asserts that no process is left.


def test_a_fork_that_returns_reports_nothing(run, recorder):
    listener = recorder()
    result = run("fork_returns_twice", "good", listener=listener)
    assert [f.evidence["value"] for f in result.findings] == ["parent", 1]
    assert len(listener.events) == 5


def test_output_is_kept_for_failures_only_and_never_taken_for_a_result(run):
    names = (
        "prints_quietly", "prints_megabytes", "prints_after_all_that", "writes_garbage",
        "prints_from_c", "closes_stdout", "raises", "replaces_stdout", "prints_from_c",
    )  # fmt: skip
    found = by_name(run(*names))
    assert "printed" not in found["prints_quietly"].evidence
    printed = found["prints_megabytes"].evidence["printed"]
    assert len(printed) < 8000
    assert printed.startswith("... (more before)\n")
    assert printed.endswith("line 199999 " + "x" * 40)
    assert found["prints_after_all_that"].evidence["printed"] == "only this"
    assert found["writes_garbage"].outcome is Outcome.FAIL
    assert found["writes_garbage"].evidence["printed"].endswith("red")
    assert "\x1b" not in found["writes_garbage"].evidence["printed"]
    assert found["prints_from_c"].evidence["printed"] == "from C"
    assert found["closes_stdout"].outcome is Outcome.PASS
    assert found["raises"].evidence["printed"] == "before it raises"
    assert found["replaces_stdout"].outcome is Outcome.PASS


def test_endless_output_is_cut(run):
    names = ("prints_megabytes_and_goes_on", "prints_after_all_that")
    found = by_name(run(*names, plan=planned_by("small_captures")))
    printed = found["prints_megabytes_and_goes_on"].evidence["printed"]
    assert printed.startswith("... (more before)\n")
    assert printed.endswith("xxx\nthe last line before a pause")
    assert found["prints_after_all_that"].evidence["printed"] == "only this"


def test_closed_files_are_a_finding(run):
    names = ("closes_everything", "closes_everything_and_hangs", "writes_everywhere")
    found = by_name(run(*names, "good"))
    for name in names:
        assert_crashed(found[name], "K3O-028")
    assert found["good"].outcome is Outcome.PASS


def test_a_check_does_not_see_what_the_one_before_changed(run, tmp_path, monkeypatch):
    monkeypatch.setenv("K3CHECK_API_KEY", "sk-secret")
    names = (
        "changes_directory", "tells_directory", "changes_defaults", "tells_defaults",
        "tells_environment", "tells_inherited_files",
    )  # fmt: skip
    found = by_name(run(*names))
    values = {name: found[name].evidence["value"] for name in names}
    assert values["tells_directory"] == str(tmp_path)
    assert values["tells_defaults"] == ["torch.float32", "cpu", False]
    assert values["tells_environment"] == [None, ["k3check"], "MainProcess"]
    assert values["tells_inherited_files"] == 0  # the listing's own one, and no other


def test_a_variable_that_holds_a_key_is_not_the_operators(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    monkeypatch.setenv("MY_PLACE", "kept")
    (tmp_path / "mine.py").write_text(
        "import os\n\n\ndef f():\n    return [os.environ.get(n) for n in ('MY_KEY', 'MY_PLACE')]\n"
    )
    (finding,) = run("mine.py:f", hidden=("MY_KEY",)).findings
    assert finding.evidence["value"] == [None, "kept"]


@pytest.mark.parametrize(("chosen", "seen"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_wait_without_spinning_unless_the_user_says_so(
    run, tmp_path, monkeypatch, chosen, seen
):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if chosen is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", chosen)
    (tmp_path / "mine.py").write_text(
        "import os\n\n\ndef f():\n    return os.environ['OMP_WAIT_POLICY']\n"
    )
    (finding,) = run("mine.py:f").findings
    assert finding.evidence["value"] == seen


def test_a_relative_directory(run, tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.py").write_text("import os\n\nf = os.getcwd\n")
    (tmp_path / "sub" / "random.py").write_text("raise RuntimeError('not this one')\n")
    monkeypatch.chdir(tmp_path)
    (finding,) = run("mine.py:f", directory="sub").findings
    assert finding.evidence["value"] == str(tmp_path / "sub")


def test_errors_of_the_plan_cross_with_every_field(run):
    with pytest.raises(UsageError) as caught:
        run(plan=planned_by("usage"))
    assert vars(caught.value) == vars(
        UsageError("K3C-060", "what", "where", "found", "accepted", "fix", "detail")
    )
    with pytest.raises(NothingToCheck, match="nothing of that kind"):
        run(plan=planned_by("nothing"))
    assert run(plan=planned_by("empty")).findings == ()


def test_our_own_mistakes_are_internal_errors(run, recorder):
    with pytest.raises(InternalError, match="ZeroDivisionError: ours") as caught:
        run(plan=planned_by("broken"))
    assert "in broken" in caught.value.trace
    assert len(str(caught.value).splitlines()) == 1

    listener = recorder()
    with pytest.raises(InternalError, match="ZeroDivisionError") as caught:
        run(plan=planned_by("broken_check"), listener=listener)
    assert "while running bad/call" in caught.value.trace
    assert listener.events[-1] == ("started", "bad/call")

    with pytest.raises(InternalError, match="no module no_such_plan"):
        run(plan="no_such_plan:plan")
    with pytest.raises(InternalError, match="exit status 9"):
        run(plan=planned_by("dies_itself"))
    with pytest.raises(InternalError, match="planned other checks"):
        run(plan=planned_by("changes"))


def test_memory_for_the_reference_is_no_fault_of_the_operator(run):
    first, second = run(plan=planned_by("no_memory_for_the_reference")).findings
    assert (first.outcome, first.hint.code) == (Outcome.SKIPPED, "K3O-030")
    assert second.outcome is Outcome.PASS


def test_a_device_error_that_shows_later_is_the_operators(run):
    (finding,) = run(plan=planned_by("device_error_at_the_comparison")).findings
    assert_crashed(finding, "K3O-026")
    assert finding.evidence == {
        "error": "RuntimeError: CUDA error: an illegal memory access was encountered"
    }


def test_a_target_that_cannot_be_loaded(run, tmp_path):
    (tmp_path / "quits.py").write_text("import sys\n\nsys.exit(2)\n")
    with pytest.raises(UsageError) as caught:
        run("quits.py:f")
    assert (caught.value.code, caught.value.where) == ("K3C-068", "--operator  quits.py:f")


def test_an_import_that_kills_the_worker(run, tmp_path):
    (tmp_path / "dies.py").write_text("import os\n\nprint('bye')\nos._exit(3)\n")
    with pytest.raises(UsageError) as caught:
        run("good", "dies.py:f")
    error = caught.value
    assert (error.code, error.where) == ("K3C-069", "--operator  dies.py:f")
    assert error.found == "exit status 3"
    assert error.detail == "bye"
    (tmp_path / "crashes.py").write_text("import ctypes\n\nctypes.string_at(0)\n")
    with pytest.raises(UsageError) as caught:
        run("crashes.py:f")
    assert caught.value.found == "killed by SIGSEGV"
    assert 'crashes.py", line 3, in <module>\n    ctypes.string_at(0)' in caught.value.detail


def test_an_import_that_hangs(run, tmp_path):
    (tmp_path / "waits.py").write_text("import time\n\ntime.sleep(60)\n")
    with pytest.raises(UsageError) as caught:
        run("waits.py:f", timeout_s=0.1, starting_limit_s=6.0)
    error = caught.value
    assert (error.code, error.where) == ("K3C-070", "--operator  waits.py:f")
    assert "6 s" in error.found
    assert "time.sleep(60)" in error.detail


def test_judges_that_cannot_start_again_end_the_run(run, recorder, tmp_path):
    listener = recorder()
    result = run(
        "good", "raises", "tells_directory", listener=listener,
        plan=planned_by("ends_the_judge_and_dies_from_the_second_time_on"),
    )  # fmt: skip
    assert [f.outcome for f in result.findings] == [
        Outcome.PASS, Outcome.CRASHED, Outcome.SKIPPED, Outcome.SKIPPED,
    ]  # fmt: skip
    assert {f.hint.code for f in result.findings[2:]} == {"K3O-029"}
    assert len((tmp_path / "starts").read_text()) == 3
    assert listener.events[-1] == ("finished", "tells_directory/call")


def test_an_operator_that_cannot_be_loaded_again(run, tmp_path):
    (tmp_path / "once.py").write_text(
        "import os\nfrom pathlib import Path\n\n"
        "if Path('loaded').exists():\n    raise RuntimeError('a lock was left')\n"
        "Path('loaded').touch()\n\n\ndef f():\n    os._exit(1)\n"
    )
    result = run("once.py:f", "good", plan=planned_by("five_each"))
    found = result.findings
    assert (found[0].outcome, found[0].hint.code) == (Outcome.CRASHED, "K3O-025")
    assert (found[1].outcome, found[1].hint.code) == (Outcome.CRASHED, "K3O-950")
    assert "a lock was left" in found[1].evidence["error"]
    assert outcomes(result, "good") == ["pass"] * 5


def test_a_missing_directory(run, tmp_path):
    with pytest.raises(UsageError) as caught:
        run("good", directory=tmp_path / "gone")
    assert caught.value.code == "K3C-072"


def test_torch_missing(run, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.13: cannot open')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(UsageError) as caught:
        run("good")
    error = caught.value
    assert (error.code, error.where) == ("K3C-071", sys.executable)
    assert "libcudart.so.13" in error.found


def test_an_interrupt_kills_the_worker_and_is_passed_on(run, recorder):
    class Interrupting(recorder):
        def started(self, check_id, title):
            super().started(check_id, title)
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        run("hangs_with_children", timeout_s=60.0, listener=Interrupting())


def test_a_killed_supervisor_takes_the_worker_along(workers_alive):
    script = (
        "import sys, k3check.runners, k3check.nouns.request as r\n"
        "from k3check.report.listener import Silent\n"
        "class Telling(Silent):\n"
        "    def started(self, check_id, title): print('started', flush=True)\n"
        "spec = r.CandidateSpec('hangs', target=sys.argv[1])\n"
        "asked = r.OpsRequest(candidates={'hangs': spec})\n"
        "k3check.runners.check(asked, Telling(), plan=sys.argv[2])\n"
    )
    argv = [sys.executable, "-c", script, f"{OPERATORS}:hangs", planned_by("plan")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout.readline() == "started\n"
        assert len(workers_alive()) == 3  # the supervisor, the judge and its runner
        supervisor.kill()
    deadline = time.monotonic() + 10
    while workers_alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not workers_alive()


def test_the_supervisor_imports_no_torch():
    code = "import sys, k3check.runners; sys.exit(any(m in sys.modules for m in ('torch', 'rich')))"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("module", ["judge", "python.worker"])
def test_a_process_of_ours_imports_nothing_heavy(module):
    heavy = ("torch", "typer", "rich", "httpx", "pydantic", "click")
    code = f"import sys, k3check.runners.{module}; print([m for m in {heavy} if m in sys.modules])"
    listed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert listed.stdout.strip() == b"[]"


def test_findings_are_amended_after_the_last_check(run):
    found = by_name(run(plan=planned_by("amends_both")))
    assert set(found) == {"first", "second"}  # nothing is added
    for finding in found.values():
        assert finding.outcome is Outcome.FAIL  # and no outcome is changed
        assert [d.code for d in finding.diagnoses] == ["K3O-155"]
        assert finding.hint.code == "K3O-155"
        assert finding.evidence == {"value": "fail"}


def outcomes(result, operator):
    return [f.outcome.value for f in result.findings if f.operator == operator]


def test_an_operator_that_hangs_in_every_case_is_left_after_three(run, recorder):
    listener = recorder()
    result = run("hangs", "good", timeout_s=2.0, plan=planned_by("five_each"), listener=listener)
    assert outcomes(result, "hangs") == ["timed_out"] * 3 + ["skipped"] * 2
    assert outcomes(result, "good") == ["pass"] * 5
    assert result.findings[-1].outcome is Outcome.PASS
    ids = [*(f"{name}/{n}" for name in ("hangs", "good") for n in range(5)), "last/call"]
    assert listener.events == [
        ("planned", 11), *((kind, i) for i in ids for kind in ("started", "finished")),
    ]  # fmt: skip
    left = result.findings[3]
    assert left.hint.code == "K3O-031"
    assert left.hint.values == {"count": 3, "check": "hangs/0", "code": "K3O-022"}
    for lang in hints.LANGUAGES:
        assert "hangs/0" in hints.title("K3O-031", lang, left.hint.values)
        assert "<" not in hints.title("K3O-031", lang, left.hint.values)


def test_an_operator_that_crashes_the_process_in_every_case_is_left_after_three(run):
    result = run("segfaults", plan=planned_by("five_each"))
    assert outcomes(result, "segfaults") == ["crashed"] * 3 + ["skipped"] * 2


def test_what_ends_in_different_ways_or_not_in_a_row_is_tried_again(run):
    result = run("exits_differently", plan=planned_by("five_each"))
    assert outcomes(result, "exits_differently") == ["crashed"] * 5


def test_a_check_that_ends_well_starts_the_count_again(run):
    name = "hangs_but_for_the_third_time"
    result = run(name, timeout_s=2.0, plan=planned_by("five_each"))
    assert outcomes(result, name) == ["timed_out", "timed_out", "pass", "timed_out", "timed_out"]


def test_exceptions_are_cheap_and_every_case_is_looked_at(run):
    result = run("raises", plan=planned_by("five_each"))
    assert outcomes(result, "raises") == ["crashed"] * 5


def test_a_first_call_with_a_shape_is_no_time_of_its_check(run, recorder):
    """Each call takes 1.6 s of a limit of 2: the first is a compilation, the second the check."""
    listener = recorder()
    plan = planned_by("first_calls")
    found = by_name(run("slow", timeout_s=2.0, plan=plan, listener=listener))
    slow = found["slow"]
    assert slow.outcome is Outcome.PASS
    assert 1.5 < slow.metrics["first_call_seconds"] < 10
    assert slow.duration_s < slow.metrics["first_call_seconds"] + 1.5
    assert [note.code for note in slow.notes] == ["K3O-830"]
    assert listener.events.count(("started", "slow/call")) == 2  # before and after it


def test_a_first_call_that_never_ends_is_stopped(run, monkeypatch):
    """With the limit of a compilation, which is longer than a check's."""
    monkeypatch.setenv("K3CHECK_TEST_COMPILING_LIMIT", "4")
    found = by_name(run("hangs", timeout_s=1.0, plan=planned_by("first_calls")))["hangs"]
    assert found.outcome is Outcome.TIMED_OUT
    assert found.hint.values == {"seconds": "4"}


def test_the_users_kernel_caches_are_kept(run, tmp_path, monkeypatch):
    names = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_AUTOTUNING")
    (tmp_path / "told.py").write_text(
        f"import os\n\n\ndef f():\n    return [os.environ.get(n) for n in {names}]\n"
    )
    for name in names[:2]:
        monkeypatch.setenv(name, f"/kept/{name}")
    monkeypatch.delenv(names[2], raising=False)
    found = run("told.py:f").findings[0].evidence["value"]
    assert found == [*(f"/kept/{name}" for name in names[:2]), "1"]
    monkeypatch.setenv(names[2], "0")
    assert run("told.py:f").findings[0].evidence["value"][2] == "0"
