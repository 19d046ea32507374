"""Roo Code's exported settings: profiles by name, one of them the current one.

Source: RooCodeInc/Roo-Code src/core/config/importExport.ts (``providerProfiles``). For what a
profile's keys mean see :mod:`k3check.config.profiles`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config import profiles
from k3check.config.client import sdk
from k3check.config.dialects.base import Dialect, Reading, table
from k3check.config.pick import preferred, several, text
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_

_NAME = "Roo Code"


def _profiles(data: Mapping[str, Any]) -> dict[str, Any]:
    entries = table(table(data, "providerProfiles"), "apiConfigs")
    return {name: entry for name, entry in entries.items() if isinstance(entry, dict)}


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have profiles of providers."""
    return bool(_profiles(data))


def read(document: Document) -> Reading:
    """The current profile; else the first that speaks of Kimi, or the first."""
    entries = _profiles(document.data)
    name = text(document.data, "providerProfiles", "currentApiConfigName")
    name = name if name in entries else preferred(entries)
    at: Path_ = ("providerProfiles", "apiConfigs", name)
    profile = profiles.read(document, entries[name], at, "apiProvider", _NAME)
    other = several(document, at, name, list(entries))
    store = {"where": document.where(at), "store": "VS Code's secret storage"}
    return Reading(
        profile.values,
        notes=(*profile.notes, *((other,) if other else ())),
        client=profile.client,
        client_at=at,
        absent={"api.api_key": Message("K3C-151", store)},
    )


DIALECT = Dialect(
    name="roo",
    title="Roo Code's exported settings",
    looks_for="providerProfiles with currentApiConfigName and apiConfigs",
    recognise=recognise,
    read=read,
    evidence=lambda _data: ("providerProfiles",),
    syntaxes=("JSON",),
    speaks="by the profile's apiProvider",
    precedence="`currentApiConfigName` chooses",
    clients=(sdk(_NAME), sdk(f"{_NAME} with anthropic", "anthropic")),
)
