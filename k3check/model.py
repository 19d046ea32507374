"""Findings and the report: what a run yields, whatever was checked and however it is shown.

Texts are not stored here. Every text that a user reads in a finding has a code, and
:mod:`k3check.hints` holds the sentences in each language; a finding keeps the code and the values
that the sentence names.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from k3check.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


#: In a diagnosis's values: the code of another mistake that is there together with this one.
TOGETHER = "together_with"

#: The code of a mistake that nobody listed; its words and its slug are in the values.
MUTANT = "K3O-900"
#: The code of what separates wrong places from right ones, where nothing explains them.
PLACES = "K3O-901"

#: The code of the note that no operator of the user's was under test.
BUILT_IN_ONLY = "K3C-096"


class Text(str):
    """A sentence of ours: it reads as its English, and can be said in any language.

    What is translated is the template, and what fills it each for itself; nobody has to recognise
    a finished sentence.

    Attributes:
        template: the English with placeholders, which finds the words of another language.
        values: fill the placeholders; texts among them are translated too, a tuple is a list.
    """

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, /, _english: str | None = None, **values: Any) -> Self:
        """The text; ``_english`` is the finished sentence where more than filling made it."""
        said = {k: ", ".join(v) if isinstance(v, tuple) else v for k, v in values.items()}
        made = super().__new__(cls, template.format(**said) if _english is None else _english)
        made.template, made.values = template, values
        return made

    def with_values(self, change: Callable[[Any], Any]) -> Text:
        """The same sentence about changed values, e.g. masked ones."""
        values = {name: change(value) for name, value in self.values.items()}
        same = all(values[name] == value for name, value in self.values.items())
        return Text(self.template, str(self) if same else None, **values)

    def __reduce__(self) -> tuple[Any, ...]:
        return _text, (self.template, str(self), dict(self.values))


def _text(template: str, english: str, values: Mapping[str, Any]) -> Text:
    return Text(template, english, **values)


# In data that leaves the process: the key under which a text's template stands.
_TEMPLATE = "k3check text"


def to_plain(value: Any) -> Any:
    """A value as plain data that keeps what :class:`Text` knows."""
    if isinstance(value, Text):
        return {_TEMPLATE: value.template, "english": str(value), "values": to_plain(value.values)}
    if hasattr(value, "items"):
        return {key: to_plain(item) for key, item in value.items()}
    return [to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def from_plain(value: Any) -> Any:
    """Rebuild what :func:`to_plain` wrote."""
    if isinstance(value, dict):
        if _TEMPLATE in value:
            values = {
                str(k): tuple(v) if isinstance(v, list) else v
                for k, v in from_plain(value["values"]).items()
            }
            return Text(str(value[_TEMPLATE]), str(value["english"]), **values)
        return {key: from_plain(item) for key, item in value.items()}
    return [from_plain(item) for item in value] if isinstance(value, list) else value


class Outcome(StrEnum):
    """What became of a check."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    ACCEPTABLE = "acceptable"
    FAIL = "fail"
    SKIPPED = "skipped"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"

    @property
    def is_failure(self) -> bool:
        """True for what makes the command exit with 1."""
        return self in (Outcome.FAIL, Outcome.CRASHED, Outcome.TIMED_OUT)


class Confidence(StrEnum):
    """How sure a diagnosis is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True)
class Message:
    """A coded text: ``code`` finds the sentence, ``values`` fill its placeholders."""

    code: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """One mistake that would explain a failure.

    Attributes:
        code: ``K3O-nnn`` or ``K3L-nnn``; title and slug come from :mod:`k3check.hints`.
        confidence: how sure.
        residual: distance to what the mistake would produce, in units of the baseline's error;
            None where nothing numeric was compared.
        margin: the next distinguishable candidate's residual over this one's.
        values: fill the placeholders of title and hint.
    """

    code: str
    confidence: Confidence
    residual: float | None = None
    margin: float | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        id: ``operator/case`` or ``link/probe``; stable between runs.
        suite: an operator suite's name, or ``link``.
        title: what was checked, in a few words.
        metrics, limits: measured values and what they were judged by, under the same names.
        location: where the worst deviation is (``{"tensor": "output", "token": 64, ...}``).
        series: values along a position, drawn as sparklines.
        evidence: what was seen: an excerpt of a body, a traceback, printed output.
    """

    id: str
    suite: str
    operator: str | None
    case: str | None
    outcome: Outcome
    title: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    location: Mapping[str, Any] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    diagnoses: Sequence[Diagnosis] = ()
    hint: Message | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[Message] = ()
    duration_s: float = 0.0


@dataclass(frozen=True)
class Report:
    """Everything one command found.

    Attributes:
        config_notes: what is worth knowing about the configuration as a whole; shown to people,
            not part of the JSON report.
    """

    findings: Sequence[Finding]
    started_at: str
    duration_s: float
    environment: Mapping[str, Any] = field(default_factory=dict)
    config_path: str | None = None
    config_dialect: str | None = None
    config_notes: Sequence[Message] = ()

    @property
    def built_in_note(self) -> Message | None:
        """The note that none of the operators that were checked is the user's; None if one is."""
        notes = (note for finding in self.findings for note in finding.notes)
        return next((note for note in notes if note.code == BUILT_IN_ONLY), None)

    def counts(self) -> dict[Outcome, int]:
        """Number of findings per outcome, every outcome present."""
        seen = Counter(finding.outcome for finding in self.findings)
        return {outcome: seen[outcome] for outcome in Outcome}

    @property
    def verdict(self) -> Outcome:
        """``fail`` if anything failed, ``skipped`` if nothing was checked, else ``pass``."""
        if any(finding.outcome.is_failure for finding in self.findings):
            return Outcome.FAIL
        if all(finding.outcome is Outcome.SKIPPED for finding in self.findings):
            return Outcome.SKIPPED
        return Outcome.PASS

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that the verdict stands for."""
        return {
            Outcome.FAIL: ExitCode.FINDINGS,
            Outcome.SKIPPED: ExitCode.INTERNAL,
            Outcome.PASS: ExitCode.OK,
        }[self.verdict]
