"""The manifest of a folder of test vectors, read without torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from k3check import hints
from k3check.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
_MOST_BYTES = 64 * 2**20
#: what every case must have, and of which type
_NEEDED = {
    "operator": str,
    "case": str,
    "folder": str,
    "semantics": str,
    "convention": str,
    "recipe": dict,
    "values": dict,
    "outputs": dict,
    "sha256": dict,
}


def unusable(code: str, where: str, *, found: str, accepted: str) -> UsageError:
    """A folder that cannot be used, in the words of its code."""
    return UsageError(code, hints.title(code), where, found, accepted, hints.fix(code))


def read_manifest(root: Path) -> dict[str, Any]:
    """A folder's manifest.

    Raises:
        UsageError: there is none, it is damaged, or of another version.
    """
    path = root / MANIFEST
    found: Any = None
    try:
        if path.stat().st_size <= _MOST_BYTES:
            found = json.loads(path.read_text("utf-8"))
        why = "a file that has no list of cases"
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        why = str(error)
    if not isinstance(found, dict) or not isinstance(found.get("cases"), list):
        raise unusable(
            "K3C-240",
            str(path),
            found=why[:200],
            accepted="a folder that k3check vectors export or describe wrote",
        )
    if found.get("schema_version") != SCHEMA_VERSION:
        raise unusable(
            "K3C-241",
            str(path),
            found=f"schema_version {found.get('schema_version')!r}"[:100],
            accepted=f"schema_version {SCHEMA_VERSION}",
        )
    return found


def folders(root: Path) -> dict[str, list[dict[str, Any]]]:
    """The cases of a manifest by operator.

    Raises:
        UsageError: a case of it lacks something or points elsewhere.
    """
    by_operator: dict[str, list[dict[str, Any]]] = {}
    for number, case in enumerate(read_manifest(root)["cases"]):
        lacking = (
            sorted(k for k, kind in _NEEDED.items() if not isinstance(case.get(k), kind))
            if isinstance(case, dict)
            else sorted(_NEEDED)
        )
        if lacking:
            raise unusable(
                "K3C-242",
                f"{root / MANIFEST}  cases[{number}]",
                found=f"no {', '.join(lacking)}",
                accepted=", ".join(_NEEDED),
            )
        by_operator.setdefault(case["operator"], []).append(case)
    return by_operator
