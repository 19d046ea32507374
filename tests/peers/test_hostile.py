"""Hostile servers against the whole command: its time and its memory stay bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.link import catalogue
from tests.link.faulty import FaultyServer, answer, http
from tests.link.wire.test_safety import HOSTILE
from tests.peers.running import link

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S = 1.0
START_S = 4.0  # of Python on a busy machine
MOST_MB = 200.0

# Of the others only the wording of the answer matters, which tests/link looks at.
HEAVY = (
    "endless chunked body",
    "chunked drip",
    "bomb in a bomb",
    "Retry-After of 31 years",
    "bomb",
    "endless body",
    "header drip",
    "informational flood",
    "huge header",
    "silence",
    "100000 choices",
    "100000 levels",
    "digits",
)
SERVERS = {
    **{name: ("chat", HOSTILE[name]) for name in HEAVY},
    "endless line": ("stream", catalogue.endless_line),
    "endless events": ("stream", catalogue.endless_events),
    "keep-alives only": ("stream", catalogue.pings),
    "200000 tool calls": (
        "tools",
        http(200, answer(message={"tool_calls": [{"id": "a"}] * 200_000})),
    ),
}


@pytest.mark.parametrize("name", SERVERS)
def test_time_and_memory_are_bounded(name: str, tmp_path: Path) -> None:
    probe, script = SERVERS[name]
    with FaultyServer([script]) as server:
        ran = link(tmp_path, server.base_url, probes=(probe,), timeout_s=TIMEOUT_S, retries=2)
    assert ran.code in (0, 1)
    assert ran.seconds < TIMEOUT_S + START_S
    assert ran.peak_mb < MOST_MB
