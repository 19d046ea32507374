"""Kilo Code's ``config.json`` for the command line: ``provider`` names one of ``providers`` by id.

Source: Kilo-Org/kilocode cli/src/config. For what a provider's keys mean see
:mod:`k3check.config.profiles`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config import profiles
from k3check.config.client import sdk
from k3check.config.dialects.base import Dialect, Reading
from k3check.config.pick import preferred, several, text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_NAME = "Kilo Code"


def _providers(data: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], int]]:
    found: dict[str, tuple[dict[str, Any], int]] = {}
    entries = data.get("providers")
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict) and text(entry, "id") and text(entry, "provider"):
            found.setdefault(text(entry, "id"), (entry, index))
    return found


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data name one of a list of providers that have ids."""
    return bool(text(data, "provider")) and bool(_providers(data))


def read(document: Document) -> Reading:
    """The provider that is named; else the first that speaks of Kimi, or the first."""
    providers = _providers(document.data)
    name = text(document.data, "provider")
    notes: list[Message | None] = []
    if name not in providers:
        told = {"where": document.where(("provider",)), "key": "provider", "name": name}
        notes.append(Message("K3C-124", told))
        name = preferred(providers)
    entry, index = providers[name]
    at: Path_ = ("providers", index)
    profile = profiles.read(document, entry, at, "provider", _NAME)
    notes += profile.notes
    notes.append(several(document, at, name, list(providers)))
    login = {"where": document.where(at), "client": _NAME, "login": "kilocode auth"}
    own = text(entry, "provider") == "kilocode"
    return Reading(
        profile.values,
        notes=tuple(note for note in notes if note is not None),
        client=profile.client,
        client_at=at,
        absent={"api.api_key": Message("K3C-150", login)} if own else {},
    )


DIALECT = Dialect(
    name="kilo",
    title="Kilo Code's config.json",
    looks_for="provider, and a list providers with id, provider and that provider's keys",
    recognise=recognise,
    read=read,
    evidence=lambda _data: ("provider", "providers"),
    syntaxes=("JSON",),
    speaks="by the provider's kind",
    precedence="`provider` chooses",
    clients=(sdk(_NAME), sdk(f"{_NAME} with anthropic", "anthropic")),
)
