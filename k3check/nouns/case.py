"""Named inputs that make some mistakes visible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from k3check.model import Message

#: Profiles from fewest to most checks; a check of a smaller profile is part of the larger ones.
PROFILES = ("quick", "full", "stress")


@dataclass(frozen=True)
class Case:
    """Named inputs that make some mistakes visible.

    Attributes:
        name: unique within the operator.
        why: one line: which mistakes it is there for.
        sees: slugs of faults that are visible in it by at least five times the limit.
        profile: the smallest profile it belongs to.
        needs: what an interface must support for it (``packed``, ``initial_state`` ...).
        spec: the family's own description, from which it builds the raw inputs.
        diagnosable: False where correct operators may differ from each other (ties), so that a
            mistake's prediction says nothing there.
        on_crash: what to say of a callable that raises in this case and in none before it.
        users_only: it shows how work is spread over a device, which the built-in leaves to torch.
    """

    name: str
    why: str
    sees: tuple[str, ...] = ()
    profile: str = "full"
    needs: frozenset[str] = frozenset()
    spec: Any = None
    diagnosable: bool = True
    on_crash: Message | None = field(default=None, hash=False)  # its values are a dict
    users_only: bool = False

    def belongs_to(self, profile: str) -> bool:
        """Whether the case runs in a profile."""
        return PROFILES.index(self.profile) <= PROFILES.index(profile)
