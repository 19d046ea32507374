"""What each key of a configuration does: the one place that says so.

Every key of the model is in one of these tables; the test suite lists them all. What is obeyed
names the module that reads it; what is compared is a fact of the released model
(:mod:`k3check.config.facts`); what is neither is told to whoever sets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from k3check.config.facts import COMPARED
from k3check.config.models import OperatorConfig
from k3check.model import Message
from k3check.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.config.loaded import Loaded, Origin
    from k3check.config.models import Config

#: key -> suite that is not run where the key is false
SWITCHES = {
    "validation.enable_kda": "kda",
    "validation.enable_flashkda": "flashkda",
    "validation.enable_attn_residuals": "attnres",
    "attn_residuals.enabled": "attnres",
}

#: module -> the keys that it reads
READ: Mapping[str, Sequence[str]] = {
    "k3check.config.meaning": (*SWITCHES, "validation.compare_with_reference"),
    "k3check.link.request": (
        *(
            f"api.{name}"
            for name in ("base_url", "api_key", "timeout_seconds", "max_retries", "headers")
        ),
        *(
            f"model.{name}"
            for name in (
                "name", "context_window", "max_output_tokens", "temperature", "top_p", "n",
                "presence_penalty", "frequency_penalty",
            )
        ),
        "client.extra_body",
        *(
            f"link.{name}"
            for name in ("protocol", "auth", "proxy", "ca_file", "agent_turns", "needle_tokens")
        ),
    ),
    "k3check.checking.from_config": (
        "model.semantics",
        "validation.numerical_tolerance",
        *(
            f"operators.{operator}.{name}"
            for operator in OPERATORS
            for name in OperatorConfig.model_fields
            if name != "timeout"
        ),
    ),
    "k3check.checking.option_values": tuple(f"operators.{name}.timeout" for name in OPERATORS),
    "k3check.operators.kda.article": (
        "flashkda.chunk_size", "logging.log_kda_state_norm", "logging.log_chunk_boundary",
    ),
    "k3check.operators.kda.candidate": ("flashkda.use_ut_transform", "flashkda.bind_dplr_to_k"),
    "k3check.operators.attn_res.article": ("attn_residuals.enable_gating",),
    "k3check.operators.moe.article": ("moe.quantile_balancing",),
}  # fmt: skip

#: keys that no check depends on; whoever sets one is told
UNREAD = (
    "api.provider",
    "model.path",
    "kda.beta_init",
    "flashkda.prefill_parallel",
    "logging.level",
    "logging.log_dir",
    "serving.host",
    "serving.port",
    "attention.type",
    "cache.strategy",
    "cache.checkpoint_interval",
    "cache.affinity_scheduling",
    "client.stream",
    "client.background_model",
    "client.agent",
    "client.permissions",
)


def use_of(key: str) -> str:
    """What becomes of a key: the module that reads it, ``compared``, or ``told``.

    Raises:
        KeyError: there is no such key.
    """
    for module, keys in READ.items():
        if key in keys:
            return module
    if key in COMPARED:
        return "compared"
    if key in UNREAD:
        return "told"
    raise KeyError(key)


def notes(config: Config, origins: Mapping[str, Origin]) -> list[Message]:
    """What a configuration sets and k3check does not obey."""
    found = []
    mine = [key for key in UNREAD if key in origins and origins[key].where != "default"]
    if mine:
        first = origins[mine[0]]
        where = first.where if first.line is None else f"{first.where}:{first.line}"
        found.append(Message("K3C-193", {"where": where, "keys": ", ".join(mine)}))
    key = "validation.compare_with_reference"
    if not config.validation.compare_with_reference:
        found.append(Message("K3C-194", {"where": str(origins[key])}))
    return found


def switched_off(config: Config) -> dict[str, str]:
    """The suites that a configuration switches off, each with the key that does."""
    off: dict[str, str] = {}
    for key, suite in SWITCHES.items():
        section, _, name = key.partition(".")
        if getattr(getattr(config, section), name) is False:
            off.setdefault(suite, key)
    return off


def off_notes(loaded: Loaded, suites: Sequence[str]) -> list[Message]:
    """What is not run because the configuration says so.

    Args:
        loaded: the configuration.
        suites: those that the command line asks for by name: they are run all the same.
    """
    return [
        Message("K3C-192", {"where": str(loaded.origins[key]), "suite": suite, "key": key})
        for suite, key in switched_off(loaded.config).items()
        if suite not in suites
    ]
