"""The articles' ``settings.json``: camel case, with ``operatorValidation``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from k3check.config.dialects import cline
from k3check.config.dialects.base import table_dialect
from k3check.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPERATOR = ("target", "convention", "semantics", "dtype", "device", "options", "timeout")

FIELDS: dict[str, str | None] = {
    "apiProvider": "api.provider",
    "baseUrl": "api.base_url",
    "apiKey": "api.api_key",
    "timeoutSeconds": "api.timeout_seconds",
    "maxRetries": "api.max_retries",
    "model": "model.name",
    "modelConfig.contextWindow": "model.context_window",
    "modelConfig.maxTokens": "model.max_output_tokens",
    "modelConfig.temperature": "model.temperature",
    "modelConfig.topP": "model.top_p",
    "operatorValidation.enableKDA": "validation.enable_kda",
    "operatorValidation.enableFlashKDA": "validation.enable_flashkda",
    "operatorValidation.enableAttnResiduals": "validation.enable_attn_residuals",
    "operatorValidation.numericalTolerance": "validation.numerical_tolerance",
    "operatorValidation.compareWithReference": "validation.compare_with_reference",
    "moe.routedExperts": "moe.num_routed_experts",
    "moe.sharedExperts": "moe.num_shared_experts",
    "moe.topK": "moe.top_k",
    "moe.loadBalancing": "moe.balancing",
    "logging.level": "logging.level",
    "logging.logDir": "logging.log_dir",
}


def _fields() -> dict[str, str | None]:
    """The article's keys, and operators as in our own dialect, in camel case."""
    fields = dict(FIELDS)
    for name in OPERATORS:
        for field in _OPERATOR:
            fields[f"operators.{name}.{field}"] = f"operators.{name}.{field}"
        fields[f"operators.{name}.stateDtype"] = f"operators.{name}.state_dtype"
        fields[f"operators.{name}.accumulateDtype"] = f"operators.{name}.accumulate_dtype"
    return fields


def recognise(data: Mapping[str, Any]) -> bool:
    """Whether data have a key that only this dialect has."""
    own = ("baseUrl", "modelConfig", "operatorValidation")
    # Cline has an apiProvider too.
    return any(k in data for k in own) or ("apiProvider" in data and not cline.recognise(data))


DIALECT = table_dialect(
    name="settings-json",
    title="the articles' settings.json",
    looks_for="apiProvider, baseUrl, apiKey, modelConfig, operatorValidation",
    fields=_fields(),
    recognise=recognise,
)
