"""What the configuration's tests share: the articles' files, a canary, the fixtures' types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.load import Override
    from k3check.config.loaded import Loaded
    from k3check.errors import UsageError

ARTICLES = Path(__file__).parent / "articles"
CANARY = "canary-7f3a91c04be2d655"


class Loader(Protocol):
    def __call__(
        self,
        text: str | bytes,
        name: str = "config.toml",
        *,
        env: Mapping[str, str] | None = None,
        overrides: Mapping[str, Override] | None = None,
    ) -> Loaded: ...


class Refuser(Protocol):
    def __call__(self, text: str | bytes, name: str = "config.toml", **more: Any) -> UsageError: ...


def everything(error: UsageError) -> str:
    """Every text of an error."""
    parts = (error.what, error.where, error.found, error.accepted, error.fix, error.detail)
    return "\n".join([str(error), repr(error), *(part for part in parts if part)])
