"""Building the errors of a configuration, so that all are worded alike."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check import hints
from k3check.errors import LISTED, UsageError
from k3check.masking.settings import scrub
from k3check.model import Text
from k3check.plain import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(eq=False)
class CombinedError(UsageError):
    """The first of several errors of one input.

    Attributes:
        others: the further ones, each complete. ``detail`` has them as plain text.
        own_detail: the first one's own detail.
    """

    others: tuple[UsageError, ...] = ()
    own_detail: str | None = None


_TYPES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    dict: "a table",
    list: "a list",
}


def problem(
    code: str,
    *,
    where: str | None = None,
    found: str | None = None,
    accepted: str | None = None,
    detail: str | None = None,
    fix: str | None = None,
    **values: Any,
) -> UsageError:
    """An error whose sentences come from the hints' texts.

    Args:
        code: ``K3C-nnn``.
        where, found, accepted, detail: as in :class:`k3check.errors.UsageError`.
        fix: a sentence that knows more than the code's own.
        values: fill the placeholders of title and fix.
    """
    entry = hints.get(code)
    return UsageError(
        code,
        Text(entry.title["en"], hints.title(code, values=values), **values),
        where=where,
        found=found,
        accepted=accepted,
        fix=fix or Text(entry.fix["en"], hints.fix(code, values=values), **values),
        detail=detail,
    )


def meant(name: str) -> Text:
    """The fix for a name that is nearly right."""
    return Text('Did you mean "{name}"?', name=name)


def scrubbed(error: UsageError, known: Iterable[str]) -> UsageError:
    """The same error with secrets removed and control characters escaped in every text."""
    known = tuple(known)

    def safe(text: str | None) -> str | None:
        if text is None:
            return None
        if isinstance(text, Text):
            safe_text = text.with_values(lambda v: safe(v) if isinstance(v, str) else v)
            return safe_text if scrub(safe_text, known) == safe_text else scrub(safe_text, known)
        return clean(scrub(text, known))

    texts: dict[str, Any] = {
        name: safe(getattr(error, name)) for name in ("where", "found", "accepted", "fix", "detail")
    }
    what = safe(error.what) or ""
    if isinstance(error, CombinedError):
        others = tuple(scrubbed(other, known) for other in error.others)
        return CombinedError(
            error.code, what, **texts, others=others, own_detail=safe(error.own_detail)
        )
    return UsageError(error.code, what, **texts)


def combined(problems: Sequence[UsageError], last: str = "") -> UsageError:
    """Several errors as one: the first, with the others in its detail.

    Args:
        problems: at least one.
        last: a line that holds for all of them.
    """
    first, *rest = problems
    if not rest and not last:
        return first
    if not rest:
        detail = f"{first.detail}\n{last}" if first.detail else last
        return UsageError(
            first.code, first.what, first.where, first.found, first.accepted, first.fix, detail
        )
    lines = [first.detail] if first.detail else []
    lines.append(f"and {len(rest)} more:")
    for other in rest[:LISTED]:
        line = str(other)
        if other.found:
            line += f"; found {other.found}"
        if other.accepted:
            line += f"; accepted: {other.accepted}"
        lines.append(line)
        if other.fix:
            lines.append(f"  {other.fix}")
    if len(rest) > LISTED:
        lines.append(f"... and {len(rest) - LISTED} more")
    if last:
        lines.append(last)
    more = [*(first.others if isinstance(first, CombinedError) else ()), *map(_alone, rest)]
    for other in rest:
        more += other.others if isinstance(other, CombinedError) else ()
    return CombinedError(
        first.code,
        first.what,
        where=first.where,
        found=first.found,
        accepted=first.accepted,
        fix=first.fix,
        detail="\n".join(lines),
        others=tuple(more),
        own_detail=_alone(first).detail,
    )


def _alone(error: UsageError) -> UsageError:
    """The first of several errors without the others."""
    if not isinstance(error, CombinedError):
        return error
    return UsageError(
        error.code, error.what, error.where, error.found, error.accepted, error.fix,
        error.own_detail,
    )  # fmt: skip


def type_of(value: object) -> str:
    """A value's type in the words of a configuration file."""
    return _TYPES.get(type(value), type(value).__name__)


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was probably meant: spelling and case may differ, else None."""
    by_plain = {_plain(candidate): candidate for candidate in candidates}
    # difflib is quadratic in the length; no name of ours comes near this one.
    close = difflib.get_close_matches(_plain(name)[:80], by_plain, n=1, cutoff=0.6)
    return by_plain[close[0]] if close else None
