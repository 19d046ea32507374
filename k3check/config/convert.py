"""Any dialect as our own ``config.toml``: what ``k3check config convert`` writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from k3check.config.show import effective
from k3check.config.source import display
from k3check.masking.settings import escaped, is_secret_path, scrub

if TYPE_CHECKING:
    from k3check.config.loaded import Loaded

_USERINFO = re.compile(r"(?<=//)[^/\s@]*@")


def convert(loaded: Loaded) -> str:
    """A loaded configuration as TOML text.

    Only what is set is written. Secrets are left out and named in a comment; everything else
    loads back to the same configuration.
    """
    import tomli_w

    # Even an otherwise empty file stays recognisable as ours.
    data: dict[str, Any] = {"api": {}}
    omitted: list[str] = []
    for key, value in effective(loaded):
        if loaded.origins[key].where == "default" or value is None:
            continue
        path = key.split(".")
        kept = _without_secrets(value, tuple(path), loaded.secrets, omitted)
        if kept is None:
            continue
        *parents, last = path
        node = data
        for part in parents:
            node = node.setdefault(part, {})
        node[last] = kept
    for name in loaded.config.operators:
        # A table without a key of its own still says that the built-in operator is configured.
        data.setdefault("operators", {}).setdefault(name, {})
    lines = ["# A k3check configuration; `k3check config schema` describes every key."]
    if loaded.path is not None:
        lines.append(f"# Converted from {display(loaded.path.name)} ({loaded.dialect}).")
    if "api.api_key" in omitted:
        lines.append("# The API key is not written here: set the variable K3CHECK_API_KEY.")
    others = [scrub(key, loaded.secrets) for key in omitted if key != "api.api_key"]
    lines += [f"# Not written: {key}." for key in others]
    return "\n".join(lines) + "\n\n" + tomli_w.dumps(data)


def _without_secrets(
    value: Any, path: tuple[str, ...], known: tuple[str, ...], omitted: list[str]
) -> Any:
    """A value that TOML can hold and everybody may read; None if nothing is left."""
    if is_secret_path(path) or value is None:
        omitted.append(_comment(path))
        return None
    if isinstance(value, dict):
        kept = {k: _without_secrets(v, (*path, k), known, omitted) for k, v in value.items()}
        return {k: v for k, v in kept.items() if v is not None}
    if isinstance(value, list):
        items = [_without_secrets(v, (*path, str(i)), known, omitted) for i, v in enumerate(value)]
        return [item for item in items if item is not None]
    if isinstance(value, str) and scrub(value, known) != value:
        bare = _USERINFO.sub("", value)
        if scrub(bare, known) == bare:
            omitted.append(_comment((*path, "user and password in the address")))
            return bare
        omitted.append(_comment(path))
        return None
    return value


def _comment(path: tuple[str, ...]) -> str:
    """A key path that cannot end its comment's line."""
    return escaped(".".join(path))
