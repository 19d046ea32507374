"""A provider's settings as Cline's descendants Roo and Kilo keep them: one flat table a profile.

The kind of provider says which of the table's keys hold address, key and model
(RooCodeInc/Roo-Code packages/types/src/provider-settings.ts). The official libraries make the
requests, so the address is taken as it stands (src/api/providers/openai.ts, anthropic.ts,
openai-native.ts).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k3check.config.client import Client, sdk
from k3check.config.dialects.base import Value
from k3check.config.pick import picked
from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.document import Document, Path_


@dataclass(frozen=True)
class Kind:
    """Which keys of a profile one kind of provider reads.

    Attributes:
        base, key, model: names of keys; an empty one is not there.
        default: the address where the profile has none.
        wire: the API.
    """

    base: str = ""
    key: str = ""
    model: str = "apiModelId"
    default: str = ""
    wire: str = "openai"


KINDS = {
    "openai": Kind("openAiBaseUrl", "openAiApiKey", "openAiModelId"),
    "openai-native": Kind(
        "openAiNativeBaseUrl",
        "openAiNativeApiKey",
        default="https://api.openai.com/v1",
        wire="responses",
    ),
    "anthropic": Kind(
        "anthropicBaseUrl", "apiKey", default="https://api.anthropic.com", wire="anthropic"
    ),
    "moonshot": Kind("moonshotBaseUrl", "moonshotApiKey", default="https://api.moonshot.ai/v1"),
    "openrouter": Kind(
        "openRouterBaseUrl",
        "openRouterApiKey",
        "openRouterModelId",
        default="https://openrouter.ai/api/v1",
    ),
    "litellm": Kind("litellmBaseUrl", "litellmApiKey", "litellmModelId"),
    "groq": Kind("", "groqApiKey", default="https://api.groq.com/openai/v1"),
}
_COMMON = (
    ("openAiHeaders", "api.headers"),
    ("modelTemperature", "model.temperature"),
)


@dataclass(frozen=True)
class Profile:
    """What a profile says.

    Attributes:
        values: as a dialect reads them.
        client: how its requests are made.
        notes: what is worth telling.
    """

    values: tuple[Value, ...]
    client: Client
    notes: tuple[Message, ...] = ()


def read(document: Document, entry: Mapping[str, Any], at: Path_, field: str, tool: str) -> Profile:
    """Read one profile.

    Args:
        document: the file, for places.
        entry: the profile's table.
        at: its key path.
        field: the key that says the kind of provider.
        tool: the client's name.
    """
    name = str(entry.get(field) or "")
    kind = KINDS.get(name, KINDS["openai"])
    notes = []
    if name not in KINDS:
        where = document.where((*at, field))
        notes.append(Message("K3C-122", {"where": where, "found": name or "no provider"}))
    fields = ((kind.base, "api.base_url"), (kind.key, "api.api_key"), (kind.model, "model.name"))
    # The client writes an empty text where it has none.
    values = [v for v in picked(entry, at, (*fields, *_COMMON)) if v.value not in ("", {})]
    if kind.default:
        values.append(Value("api.base_url", kind.default, (), source="client"))
    return Profile(tuple(values), _client(kind, entry, tool, name), tuple(notes))


def _client(kind: Kind, entry: Mapping[str, Any], tool: str, name: str) -> Client:
    title = f"{tool} with {name}" if name not in ("", "openai") else tool
    if kind.wire == "anthropic":
        auth = "bearer" if entry.get("anthropicUseAuthToken") is True else "auto"
        plain = sdk(title, "anthropic")
        return Client(title, "anthropic", plain.path, "bearer" if auth == "bearer" else "auto")
    return sdk(title, "responses" if kind.wire == "responses" else "openai")
