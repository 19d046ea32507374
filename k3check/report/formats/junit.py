"""JUnit XML, for whatever shows test results: one test suite per suite, one test case per check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from k3check.model import Outcome
from k3check.plain import clean, one_line
from k3check.report.formats.lines import details, warnings
from k3check.report.texts import check_title, note_of, outcome_word, reason_of, title_of

if TYPE_CHECKING:
    from k3check.model import Finding, Report
    from k3check.report.formats import Options


def render(report: Report, options: Options) -> str:
    """The report as JUnit XML.

    A failed check is a ``failure``; a crash or time-out of the code under test an ``error``.
    """
    xml = JUnitXml("k3check")
    for suite_name in dict.fromkeys(finding.suite for finding in report.findings):
        suite = TestSuite(clean(suite_name))
        suite.timestamp = report.started_at
        if report.built_in_note is not None and suite_name != "link":
            suite.add_property("note", one_line(note_of(report.built_in_note, options.lang)))
        for finding in report.findings:
            if finding.suite == suite_name:
                suite.add_testcase(_case(finding, options))
        xml.add_testsuite(suite)
    xml.update_statistics()  # type: ignore[no-untyped-call]  # junitparser types only part of itself
    data: bytes = xml.tostring()  # type: ignore[no-untyped-call]  # the same
    return data.decode("utf-8") + "\n"


def _case(finding: Finding, options: Options) -> TestCase:
    case = TestCase(clean(finding.id), classname=f"k3check.{clean(finding.suite)}")
    case.time = round(finding.duration_s, 6)
    result: Failure | Error | Skipped
    if finding.outcome is Outcome.SKIPPED:
        result = Skipped(one_line(reason_of(finding, options.lang)))
    elif finding.outcome.is_failure:
        kind = Failure if finding.outcome is Outcome.FAIL else Error
        result = kind(_headline(finding, options.lang), _code(finding))
        result.text = "\n".join(details(finding, options.lang))
    else:
        notes = [clean(note_of(note, options.lang)) for note in finding.notes]
        if finding.outcome is Outcome.ACCEPTABLE:
            warned = [part.text for part in warnings(finding, options.lang)]
            notes = [outcome_word(finding.outcome, options.lang), *warned, *notes]
        if notes:
            case.system_out = "\n".join(notes)
        return case
    case.result = [result]
    return case


def _headline(finding: Finding, lang: str) -> str:
    first = next(iter(finding.diagnoses), None) or finding.hint
    title = one_line(check_title(finding, lang))
    return f"{title}: {one_line(title_of(first, lang))}" if first is not None else title


def _code(finding: Finding) -> str:
    first = next(iter(finding.diagnoses), None) or finding.hint
    return one_line(first.code) if first is not None else finding.outcome.value
