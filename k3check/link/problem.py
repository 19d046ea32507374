"""One thing wrong with an endpoint's settings, found before a packet is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Severity(StrEnum):
    """What a problem does."""

    BLOCK = "block"  # a failure, and nothing is sent
    FAIL = "fail"
    WARN = "warn"
    NOTE = "note"


@dataclass(frozen=True)
class Problem:
    """One thing wrong with the settings.

    Attributes:
        code: of its texts.
        severity: what it does.
        values: for the texts; never the key.
        key: the dotted configuration key that it is about.
        fixed: the value that this key should have, where it is certain; None where it is not.
    """

    code: str
    severity: Severity
    values: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    fixed: Any = None
