"""Codex's ``auth.json``: the articles' shape and the client's real one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from k3check.config.dialects import codex
from k3check.config.dialects.base import Reading, table_dialect
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document

# The articles' file has exactly these three; the client itself writes the others.
_ARTICLE = {"base_url", "api_key", "model"}
_REAL = {"OPENAI_API_KEY", "tokens", "last_refresh"}


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data are exactly the articles' three keys, or have one that Codex writes."""
    return set(data) == _ARTICLE or bool(_REAL & set(data))


def fits(document: Document) -> bool:
    """Whether a file is Codex's: ``auth.json`` is JSON; the three keys in TOML are anybody's."""
    return document.syntax == "JSON" or bool(_REAL & set(document.data))


def finish(document: Document, reading: Reading) -> Reading:
    """Say what Codex itself does with the file; the endpoint is asked as Codex would."""
    if _REAL & set(document.data):
        reading = _of_codex(document, reading)
    ignored = [value for value in reading.values if value.key in ("api.base_url", "model.name")]
    if not ignored:
        return reading
    note = Message(
        "K3C-049",
        {
            "keys": ", ".join(str(value.path[-1]) for value in ignored),
            "where": document.where(ignored[0].path),
        },
    )
    return replace(reading, notes=(*reading.notes, note))


def _of_codex(document: Document, reading: Reading) -> Reading:
    """The client's own file: it holds a key or a login, and names no endpoint."""
    first = next(key for key in document.data if key in _REAL)
    where = document.where((first,))
    login = {"where": where, "client": "Codex", "login": "codex login"}
    return replace(
        reading,
        client=codex.CLIENT,
        client_at=(first,),
        absent={
            "api.base_url": Message("K3C-154", {"where": where}),
            "api.api_key": Message("K3C-150", login),
        },
    )


DIALECT = table_dialect(
    name="codex-auth",
    title="Codex's auth.json",
    looks_for="in JSON exactly base_url, api_key, model; or OPENAI_API_KEY, tokens, last_refresh",
    fields={
        "base_url": "api.base_url",
        "api_key": "api.api_key",
        "OPENAI_API_KEY": "api.api_key",
        "model": "model.name",
        "tokens": None,
        "last_refresh": None,
        "auth_mode": None,
    },
    recognise=recognise,
    fits=fits,
    finish=finish,
    models=False,
    speaks="responses",
    clients=(codex.CLIENT,),
)
