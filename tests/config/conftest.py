"""Fixtures of the configuration's tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from k3check.config.load import load
from k3check.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from k3check.config.load import Override
    from k3check.config.loaded import Loaded
    from tests.config.support import Loader, Refuser


# A busy machine must not fail a test for being slow.
settings.register_profile("k3check", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("k3check")


@pytest.fixture
def loaded(tmp_path: Path) -> Loader:
    """Write a file and load it."""

    def run(
        text: str | bytes,
        name: str = "config.toml",
        *,
        env: Mapping[str, str] | None = None,
        overrides: Mapping[str, Override] | None = None,
    ) -> Loaded:
        raw = text.encode() if isinstance(text, str) else text
        (tmp_path / name).write_bytes(raw)
        return load(Path(name), cwd=tmp_path, env=env or {}, overrides=overrides)

    return run


@pytest.fixture
def refused(loaded: Loader) -> Refuser:
    """Write a file whose loading must fail, and return the error."""

    def run(text: str | bytes, name: str = "config.toml", **more: Any) -> UsageError:
        with pytest.raises(UsageError) as caught:
            loaded(text, name, **more)
        return caught.value

    return run
