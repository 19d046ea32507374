"""Nothing heavy is imported before it is needed, and torch never."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "httpx", "httpx_sse", "pydantic", "rich")


LINT = """
from k3check.link import check
from k3check.link.request import LinkRequest
from k3check.report.listener import Silent
check(LinkRequest(offline=True), Silent())
"""
DEMO = """
from k3check.link import check
from k3check.link.demo import DemoServer
from k3check.link.request import LinkRequest, Secret
from k3check.report.listener import Silent
with DemoServer() as demo:
    found = check(LinkRequest(demo.base_url, Secret(demo.api_key), demo.model), Silent())
assert [f.outcome.value for f in found] == ["pass"] * 5, found
"""


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import k3check.link, k3check.link.request", ()),
        ("from k3check.link import probe_names; probe_names()", ()),
        (LINT, ()),
        ("from k3check.link.demo import DemoServer\nwith DemoServer(): pass", ()),
        (DEMO, ("httpx", "httpx_sse", "rich")),
    ],
)
def test_imports(code: str, allowed: tuple[str, ...]) -> None:
    # httpx imports rich where it is installed, for its own command line.
    forbidden = [name for name in HEAVY if name not in allowed]
    script = (
        f"import sys\nsys.modules['torch'] = None\n{code}\n"
        f"bad = [n for n in {forbidden!r} if sys.modules.get(n) is not None]\nassert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
