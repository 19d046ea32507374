from __future__ import annotations

import importlib.util
import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from rich.cells import cell_len

from k3check import hints
from k3check.model import Confidence, Diagnosis, Finding, Message, Outcome, Report
from k3check.report.formats import FORMATS, Options, Verbosity, render
from k3check.report.saved import parse
from k3check.report.terminal import Look

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("golden", HERE / "golden.py")
assert _spec is not None
assert _spec.loader is not None
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)


def finding(**changes: object) -> Finding:
    base = Finding(
        id="kda_step/x", suite="kda", operator="kda_step", case="x", outcome=Outcome.FAIL, title="t"
    )
    return replace(base, **changes)


def one(**changes: object) -> Report:
    return Report([finding(**changes)], started_at="2026-01-02T03:04:05+00:00", duration_s=1.0)


@pytest.mark.parametrize("file", sorted(golden.GOLDENS))
def test_renderer_writes_its_golden_file(file: str, report: Report) -> None:
    name, options = golden.GOLDENS[file]
    written = golden.stable(render(name, report, options))
    assert written == (HERE / "golden" / file).read_text("utf-8")


def test_every_format_has_a_golden_file() -> None:
    assert {name for name, _ in golden.GOLDENS.values()} == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_passes_on_what_could_drive_a_terminal(name: str) -> None:
    hostile = "\x1b]0;pwned\x07\x9b31m\u202eevil\x00\ud800"
    text = render(
        name,
        one(
            title=hostile,
            id=hostile,
            suite=hostile,
            evidence={hostile: hostile},
            location={hostile: hostile},
            metrics={hostile: 2.0},
            limits={hostile: 1.0},
            series={hostile: [1.0]},
            notes=(Message(hostile),),
            hint=Message(hostile),
        ),
        Options(),
    )
    for bad in "\x1b\x07\x9b\u202e\x00\ud800":
        assert bad not in text
    assert "pwned" in text


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_empty_report_renders(name: str, lang: str) -> None:
    empty = Report([], started_at="", duration_s=0.0)
    assert render(name, empty, Options(lang=lang))


@pytest.mark.parametrize("verbosity", list(Verbosity))
@pytest.mark.parametrize("width", [40, 80])
def test_text_stays_within_its_width(verbosity: Verbosity, width: int, report: Report) -> None:
    long = replace(
        report,
        findings=[*report.findings, *one(evidence={"body": "x" * 500, "y" * 90: "z"}).findings],
    )
    options = Options(verbosity=verbosity, look=Look(width=width), lang="zh")
    for line in render("text", long, options).splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


def test_text_shows_user_data_as_it_is_and_never_as_markup(report: Report) -> None:
    text = render("text", report, Options(look=Look(colour=True)))
    assert "[bold red]warm" in text


def test_text_without_colour_has_no_escape_and_with_colour_has(report: Report) -> None:
    assert "\x1b" not in render("text", report, Options())
    assert "\x1b[" in render("text", report, Options(look=Look(colour=True)))


def test_ascii_text_is_ascii_whatever_the_evidence_holds() -> None:
    text = render("text", one(evidence={"body": "失败 ≤ ✓"}), Options(look=Look(ascii=True)))
    assert text.isascii()
    assert "\\u5931\\u8d25 <= +" in text


def test_quiet_text_of_a_pass_is_the_last_line_alone() -> None:
    text = render("text", one(outcome=Outcome.PASS), Options(verbosity=Verbosity.QUIET))
    assert text == "pass: 1 pass in 1.0 s\n"


def test_only_verbose_text_shows_the_metrics_of_a_pass() -> None:
    passed = one(outcome=Outcome.PASS, metrics={"output.rel_l2": 0.25})
    assert "0.25" not in render("text", passed, Options())
    assert "0.25" in render("text", passed, Options(verbosity=Verbosity.VERBOSE))


def test_a_repeated_mistake_is_told_once_and_in_full_only_when_asked() -> None:
    lead = (Diagnosis("K3O-901", Confidence.HIGH, values={"size": 64}),)
    twice = [
        finding(
            id=f"kda_step/{n}", diagnoses=lead, metrics={"output.m": n}, limits={"output.m": 1.0}
        )
        for n in (2.0, 3.0)
    ]
    other = finding(id="kda_gate/x", operator="kda_gate", diagnoses=lead)
    report = Report([*twice, other], started_at="", duration_s=0.0)
    text = render("text", report, Options())
    assert text.count("Hand over the state") == 2
    assert "1 more fails in the same way: kda_step/3.0" in text
    full = render("text", report, Options(verbosity=Verbosity.VERBOSE))
    assert full.count("Hand over the state") == 3


LONG = "/a/long/folder" * 8 + "/kernels/kda.py"
TRACE = f"""Traceback (most recent call last):
  File "{LONG}", line 12, in chunk_kda
    assert q.shape[1] % 64 == 0, f"expected a multiple of 64 tokens, found {{q.shape[1]}} tokens"
AssertionError: expected a multiple of 64 tokens, found 65 tokens"""


def crash(case: str, error: str = "AssertionError: 65 tokens", line: int = 12) -> Finding:
    return finding(
        id=f"kda_step/{case}",
        outcome=Outcome.CRASHED,
        hint=Message("K3O-903"),
        evidence={"error": error, "traceback": TRACE.replace("line 12", f"line {line}")},
    )


def test_a_traceback_can_be_copied() -> None:
    for verbosity in (Verbosity.NORMAL, Verbosity.VERBOSE):
        options = Options(verbosity=verbosity, look=Look(width=40))
        lines = render("text", Report([crash("a")], "", 0.0), options).splitlines()
        start = lines.index("      Traceback (most recent call last):")
        assert [line[6:] for line in lines[start : start + 4]] == TRACE.splitlines()


def test_a_long_traceback_keeps_its_end() -> None:
    frames = "\n".join(f"frame {n}" for n in range(100))
    text = render("text", one(evidence={"traceback": frames}), Options())
    assert "frame 0\n" in text
    assert "... 70 more lines: -v shows them\n" in text
    assert text.count("frame ") == 30
    assert "frame 99\n" in text


def test_the_same_crash_is_shown_once_and_counted() -> None:
    found = [
        crash("a"),
        crash("b", "AssertionError: 1 tokens"),
        finding(id="kda_step/passes", outcome=Outcome.PASS),
        crash("c"),
        crash("elsewhere", line=99),
        crash("other", "TypeError: no"),
        replace(crash("d"), operator="kda_gate"),
    ]
    text = render("text", Report(found, "", 0.0), Options())
    assert text.count("Traceback (most") == 4
    assert text.count("2 more: the same, at the same place") == 1
    assert "as for" not in text
    for check in found:  # each is still named
        assert check.id in text or not check.outcome.is_failure
    verbose = render("text", Report(found, "", 0.0), Options(verbosity=Verbosity.VERBOSE))
    assert verbose.count("Traceback (most") == 6


def test_time_outs_are_counted_without_a_claim_where() -> None:
    hung = finding(outcome=Outcome.TIMED_OUT, hint=Message("K3O-903"))
    stacks = [f'  File "{LONG}", line {n}, in f' for n in range(3)]
    found = [replace(hung, id=f"kda_step/{n}", evidence={"stack": s}) for n, s in enumerate(stacks)]
    text = render("text", Report(found, "", 0.0), Options())
    assert text.count("2 more timed out") == 1
    assert "same place" not in text
    assert text.count("File") == 1


def test_a_pass_is_one_line_a_suite_and_failures_come_whole_after_the_notes() -> None:
    found = [finding(id=f"kda_step/{n}", outcome=Outcome.PASS) for n in range(30)]
    found.append(finding(id="kda_step/bad", hint=Message("K3O-903")))
    note = Message("K3C-901", {"found": 1, "released": 2})
    text = render("text", Report(found, "", 0.0, config_notes=[note]), Options())
    assert "kda_step/7" not in text
    assert len(text.splitlines()) < 15
    assert text.index("30 pass, 1 fail") < text.index("K3C-901") < text.index("kda_step/bad")
    verbose = Options(verbosity=Verbosity.VERBOSE)
    assert "kda_step/7" in render("text", Report(found, "", 0.0), verbose)


def test_failures_with_a_named_cause_come_first() -> None:
    lead = (Diagnosis("K3O-901", Confidence.HIGH, values={"size": 64}),)
    found = [
        finding(id="kda_step/a", hint=Message("K3O-903")),
        finding(id="kda_step/b", diagnoses=lead),
    ]
    text = render("text", Report(found, "", 0.0), Options())
    assert text.index("kda_step/b") < text.index("kda_step/a")


def test_the_outputs_of_a_failure_are_told_in_words() -> None:
    seen = {
        "final_state_matches": False, "final_state_looks_like": "precision",
        "final_state_cosine": 0.9992, "output_matches": True,
    }  # fmt: skip
    text = render("text", Report([finding(evidence=seen)], "", 0.0), Options())
    assert "final state wrong, small error, cosine 0.9992; output right" in " ".join(text.split())


def test_the_reason_of_skipped_checks_is_said_once_where_a_suite_is_skipped() -> None:
    left = [
        finding(id=f"kda_step/{n}", outcome=Outcome.SKIPPED, hint=Message("K3O-905"))
        for n in range(4)
    ]
    report = Report(left, "", 0.0)
    assert render("text", report, Options()).count("where bfloat16 was declared") == 1
    verbose = render("text", report, Options(verbosity=Verbosity.VERBOSE))
    assert verbose.count("where bfloat16 was declared") == 4


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_that_no_operator_of_the_users_was_checked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = replace(hints.get("K3O-904"), title={"en": "only ours", "zh": "z"})
    monkeypatch.setattr(hints, "_entries", lambda: {"K3C-096": entry})
    monkeypatch.setattr(hints, "_one", {"K3C-096": entry}.get)
    for outcome in (Outcome.PASS, Outcome.FAIL, Outcome.SKIPPED):
        report = one(outcome=outcome, notes=(Message("K3O-1"), Message("K3C-096")))
        said = render(name, report, Options(verbosity=Verbosity.QUIET))
        assert "only ours" in said
        if name not in ("json", "junit"):
            assert "(built-in operators only)" in said
        again = render(name, parse(render("json", report, Options()), "f"), Options())
        assert "only ours" in again
        plain = render(name, one(outcome=outcome), Options())
        assert "only ours" not in plain
        assert "built-in" not in plain


def test_text_shows_the_worst_metric_of_each_tensor() -> None:
    values = {
        "output.a": 2.0,
        "output.b": 3.0,
        "output.c": 0.5,
        "state.a": math.nan,
        "state.b": 9.0,
    }
    report = one(metrics=values, limits=dict.fromkeys(values, 1.0))
    text = render("text", report, Options())
    assert [name for name in values if name in text] == ["output.b", "state.a"]
    verbose = render("text", report, Options(verbosity=Verbosity.VERBOSE))
    assert all(name in verbose for name in values)


@pytest.mark.parametrize("name", ["text", "markdown", "html", "github"])
def test_the_reason_of_a_skipped_check_is_not_repeated_as_a_note(name: str) -> None:
    notes = (Message("K3L-901", {"query": "?x"}), Message("K3O-905"))
    text = render(
        name,
        one(outcome=Outcome.SKIPPED, notes=notes),
        Options(verbosity=Verbosity.VERBOSE),
    )
    assert text.count("carries a query") == (0 if name == "github" else 1)
    assert text.count("where bfloat16 was declared") == 1


WARNED = (
    Diagnosis("K3L-901", Confidence.HIGH, values={"query": "?x"}),
    Diagnosis("K3O-905", Confidence.HIGH),
)


@pytest.mark.parametrize("name", ["text", "markdown", "html", "github", "junit"])
def test_an_acceptable_result_says_what_it_warns_of(name: str) -> None:
    text = render(name, one(outcome=Outcome.ACCEPTABLE, diagnoses=WARNED), Options())
    text = " ".join(text.replace("\\", "").split())
    for said in (
        "base_url carries a query (?x). Remove everything from the question mark on. [K3L-901]",
        "where bfloat16 was declared. Convert the output, or declare float32. [K3O-905]",
    ):
        assert text.count(said) == 1


@pytest.mark.parametrize("name", ["text", "markdown", "html", "github", "junit"])
def test_an_acceptable_result_shows_its_hint_or_else_its_notes(name: str) -> None:
    hinted = render(name, one(outcome=Outcome.ACCEPTABLE, hint=Message("K3O-905")), Options())
    noted = render(name, one(outcome=Outcome.ACCEPTABLE, notes=(Message("K3O-905"),)), Options())
    for text in (hinted, noted):
        assert " ".join(text.split()).count("or declare float32.") == 1


def test_a_saved_acceptable_result_still_says_what_it_warns_of() -> None:
    saved = parse(render("json", one(outcome=Outcome.ACCEPTABLE, diagnoses=WARNED), Options()), "f")
    text = " ".join(render("text", saved, Options()).split())
    assert "base_url carries a query (?x). Remove everything" in text
    assert "the output is float32 where bfloat16 was declared [K3O-905]" in text


def test_text_of_an_acceptable_result_is_brief_unless_asked() -> None:
    report = one(outcome=Outcome.ACCEPTABLE, diagnoses=WARNED, evidence={"body": "long"})
    assert "long" not in render("text", report, Options())
    assert "long" in render("text", report, Options(verbosity=Verbosity.VERBOSE))
    assert render("text", report, Options(verbosity=Verbosity.QUIET)).count("\n") == 1


def test_an_endpoint_may_have_several_mistakes_an_operator_has_one() -> None:
    assert "    or  " in render("text", one(diagnoses=WARNED), Options())
    assert "    also  " in render("text", one(diagnoses=WARNED, suite="link"), Options())


@pytest.mark.parametrize("name", ["text", "markdown", "html", "junit"])
@pytest.mark.parametrize(
    ("lang", "title", "twice"),
    [("en", "skipped: no room", "skipped: skipped"), ("zh", "已跳过：没有空间", "已跳过")],
)
def test_a_reason_that_begins_with_the_outcome_says_it_once(
    name: str, lang: str, title: str, twice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = replace(hints.get("K3O-904"), title={lang: title, "en": title})
    monkeypatch.setattr(hints, "_entries", lambda: {"K3O-904": entry})
    monkeypatch.setattr(hints, "_one", {"K3O-904": entry}.get)
    skipped = one(outcome=Outcome.SKIPPED, notes=(Message("K3O-904"),))
    text = render(name, skipped, Options(lang=lang))
    assert title.partition(" ")[2] in text
    assert twice not in text


@pytest.mark.parametrize("value", [math.nan, math.inf, 2.0])
def test_a_value_over_its_limit_is_shown(value: float) -> None:
    text = render("text", one(metrics={"m": value}, limits={"m": 1.0}), Options())
    assert "limit 1" in text


def test_json_matches_the_shipped_schema(report: Report) -> None:
    path = Path("k3check/report/schema-v1.json")
    schema = json.loads((HERE.parents[1] / path).read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(json.loads(render("json", report, Options())))
    validator.validate(json.loads(render("json", replace(report, findings=[]), Options())))


def test_the_shipped_schema_is_up_to_date() -> None:
    from k3check.report.schema import json_schema

    path = HERE.parents[1] / "k3check/report/schema-v1.json"
    assert json.loads(path.read_text("utf-8")) == json_schema()


def test_json_has_exactly_the_keys_of_the_contract(report: Report) -> None:
    data = json.loads(render("json", report, Options()))
    assert list(data) == [
        "schema_version", "tool", "started_at", "duration_s", "environment", "config", "summary",
        "checks",
    ]  # fmt: skip
    assert list(data["summary"]) == [
        "verdict", "pass", "acceptable", "fail", "skipped", "crashed", "timed_out",
    ]  # fmt: skip
    for check in data["checks"]:
        assert list(check) == [
            "id", "suite", "operator", "case", "outcome", "title", "metrics", "limits", "location",
            "series", "diagnoses", "hint", "evidence", "notes", "duration_s",
        ]  # fmt: skip
        for diagnosis in check["diagnoses"]:
            assert list(diagnosis) == [
                "code", "slug", "title", "confidence", "residual", "margin",
            ]  # fmt: skip


def test_json_writes_what_is_not_finite_as_text() -> None:
    values = {"a": math.nan, "b": math.inf, "c": -math.inf}
    data = json.loads(
        render("json", one(metrics=values, evidence={"deep": [values]}), Options()),
        parse_constant=lambda name: pytest.fail(f"{name} is not JSON"),
    )
    expected = {"a": "NaN", "b": "Infinity", "c": "-Infinity"}
    assert data["checks"][0]["metrics"] == expected
    assert data["checks"][0]["evidence"] == {"deep": [expected]}


def test_json_keys_and_codes_are_english_in_chinese_too(report: Report) -> None:
    english = json.loads(render("json", report, Options()))
    chinese = json.loads(render("json", report, Options(lang="zh")))
    assert [list(check) for check in english["checks"]] == [list(c) for c in chinese["checks"]]
    assert [c["outcome"] for c in english["checks"]] == [c["outcome"] for c in chinese["checks"]]
    boundary = chinese["checks"][3]
    assert boundary["diagnoses"][0]["code"] == "K3O-901"
    assert boundary["hint"]["text"] == "传递块内最后一个 token 之后的状态。"


def test_json_says_what_is_wrong_also_without_a_diagnosis(report: Report) -> None:
    hints_by_id = {
        check["id"]: check["hint"]
        for check in json.loads(render("json", report, Options()))["checks"]
    }
    assert hints_by_id["kda_chunk/fp16-decay"]["text"] == (
        "the output has values that are not finite. Accumulate the decay in float32."
    )
    assert hints_by_id["kda_chunk/boundary"]["text"] == (
        "Hand over the state after the chunk's last token."
    )


def test_junit_counts_agree_with_the_report(report: Report) -> None:
    root = ET.fromstring(render("junit", report, Options()))
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == (
        "8", "3", "2", "1",
    )  # fmt: skip
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == [check.id for check in report.findings]


def test_github_keeps_every_annotation_on_one_line_and_escapes_its_parts(report: Report) -> None:
    lines = render("github", report, Options()).splitlines()
    errors = [line for line in lines if line.startswith("::error ")]
    assert len(errors) == 5
    assert all(line.startswith(("::error ", "::warning ", "note: ")) for line in lines[:-1])
    assert "100%25%0A" in errors[0]
    assert ",file=k3check.toml,line=4::" in errors[-1]


def test_github_has_one_annotation_a_cause() -> None:
    found = [finding(id=f"kda_step/{n}", hint=Message("K3O-903")) for n in range(3)]
    found.append(finding(id="kda_gate/x", operator="kda_gate", hint=Message("K3O-903")))
    text = render("github", Report(found, "", 0.0), Options())
    assert text.count("::error ") == 2
    assert "2 more fail in the same way: kda_step/1, kda_step/2" in text


class _Balanced(HTMLParser):
    VOID = ("meta",)

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_balanced_and_takes_no_markup_from_the_user() -> None:
    parser = _Balanced()
    attack = "<script>alert(1)</script><b>"
    parser.feed(
        render("html", one(title=attack, evidence={attack: attack}, series={"s": [1.0]}), Options())
    )
    assert parser.open == []
    assert not {"script", "b", "link", "img", "iframe"} & parser.seen


def test_markdown_fences_are_longer_than_any_in_the_evidence() -> None:
    text = render("markdown", one(evidence={"body": "````\nstill inside"}), Options())
    assert "  `````text\n  ````\n  still inside\n  `````" in text


def test_markdown_tables_keep_their_columns() -> None:
    text = render("markdown", one(id="a|b", title="c | d\ne"), Options())
    row = next(line for line in text.splitlines() if line.startswith("| ❌") and "a\\|b" in line)
    assert row == "| ❌ | `a\\|b` | c \\| d e | fail |"
