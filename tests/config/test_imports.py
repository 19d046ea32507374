"""Importing the configuration stays cheap."""

from __future__ import annotations

import subprocess
import sys


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_package_itself_loads_no_pydantic() -> None:
    assert "pydantic" not in modules_after("import k3check.config")


def test_loading_needs_neither_torch_nor_httpx_nor_tomli_w() -> None:
    found = modules_after("import k3check.config.load, k3check.config.show, k3check.config.convert")
    assert not {"torch", "httpx", "tomli_w", "rich"} & found
