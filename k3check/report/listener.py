"""How a running command tells its caller what it is doing, without printing anything itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from k3check.model import Finding


class Listener(Protocol):
    """Receives a run's events in order; a progress display is one, a test's list another."""

    def planned(self, total: int) -> None:
        """``total`` more checks are going to run."""

    def started(self, check_id: str, title: str) -> None:
        """A check begins."""

    def finished(self, finding: Finding) -> None:
        """A check has its result."""


class Silent:
    """A listener that ignores everything."""

    def planned(self, total: int) -> None:
        """Ignore it."""

    def started(self, check_id: str, title: str) -> None:
        """Ignore it."""

    def finished(self, finding: Finding) -> None:
        """Ignore it."""
