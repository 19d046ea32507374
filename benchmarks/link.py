"""How much longer the link check takes than a bare httpx script with the same requests.

Four things run in turn against one demo endpoint, each in a process of its own, so that imports
count: the bare script; the same with the libraries imported that any command line of k3check needs;
the check as a function; and ``k3check link`` as a user types it (configuration, report and all).
The check is held against the bare script, the command against the script with its libraries: each
at most 1.5. (Importing typer, rich and pydantic alone costs about as much as the three requests.)

Run it on an idle machine: ``python benchmarks/link.py [ROUNDS]``.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from k3check.link.demo import DemoServer

ROOT = Path(__file__).parents[1]

BARE = """
import json, sys
import httpx

base, key, model = sys.argv[1:]
headers = {"authorization": f"Bearer {key}"}
question = [{"role": "user", "content": "Reply with this word and nothing else: k3-abcdef"}]
body = {"model": model, "messages": question, "max_completion_tokens": 2048,
        "reasoning_effort": "low"}
tool = {"type": "function", "function": {"name": "book", "parameters": {
    "type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]}}}
with httpx.Client(headers=headers, timeout=30) as client:
    url = base + "/chat/completions"
    plain = client.post(url, json=body).raise_for_status().json()
    assert plain["choices"][0]["message"]["content"]
    with client.stream("POST", url, json=body | {"stream": True}) as response:
        lines = [line for line in response.iter_lines() if line.startswith("data: {")]
    assert [json.loads(line[6:]) for line in lines]
    called = client.post(url, json=body | {"tools": [tool], "tool_choice": "required"})
    assert called.raise_for_status().json()["choices"][0]["message"]["tool_calls"]
"""

# What the command line is made of, imported as far as a command with options and a model needs it.
LIBRARIES = """
import typer, typer._adapters, rich.console, rich.text, pydantic
class Model(pydantic.BaseModel):
    name: str
"""

CHECK = """
import sys
from k3check.link import check
from k3check.link.request import LinkRequest, Secret
from k3check.report.listener import Silent

base, key, model = sys.argv[1:]
found = check(LinkRequest(base, Secret(key), model), Silent())
assert [f.outcome.value for f in found] == ["pass"] * 5, found
"""
MOST = 1.5


def processor() -> float:
    """Processor seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def seconds(command: list[str], folder: str, env: dict[str, str]) -> tuple[float, float]:
    """Wall time of one run, and the processor's.

    Raises:
        SystemExit: the command failed, so that its time means nothing.
    """
    before, begun = processor(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    took, used = time.perf_counter() - begun, processor() - before
    if done.returncode != 0:
        raise SystemExit(f"{command[:3]} exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return took, used


def main() -> None:
    """Run all in turn and print the shortest times and their ratios."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with DemoServer() as server, tempfile.TemporaryDirectory() as folder:
        arguments = [server.base_url, server.api_key, server.model]
        given = ["--base-url", server.base_url, "--model", server.model]
        commands = {
            "bare": [sys.executable, "-c", BARE, *arguments],
            "libraries": [sys.executable, "-c", LIBRARIES + BARE, *arguments],
            "check()": [sys.executable, "-c", CHECK, *arguments],
            "command": [sys.executable, "-m", "k3check", "link", *given],
        }
        # Compiled modules are kept, as they are for an installed package.
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= {
            "PYTHONPATH": str(ROOT),
            "K3CHECK_API_KEY": server.api_key,
        }
        best = dict.fromkeys(commands, (float("inf"), float("inf")))
        for number in range(rounds + 1):
            for name, command in commands.items():
                wall, used = seconds(command, folder, env)
                if number:  # the first round fills the file cache
                    best[name] = min(best[name][0], wall), min(best[name][1], used)
    # The shortest time is what the work takes; everything above it is the machine's other load.
    for name, against in (("bare", "bare"), ("libraries", "bare"), ("check()", "bare"),
                          ("command", "libraries"), ("command", "bare")):  # fmt: skip
        (wall, used), (other, other_used) = best[name], best[against]
        print(f"{name:<9} {wall:.3f} s, {wall / other:.2f} x {against:<9}  "
              f"processor {used:.3f} s, {used / other_used:.2f} x")  # fmt: skip
    print(f"wanted: check() at most {MOST} x bare, the command at most {MOST} x libraries")


if __name__ == "__main__":
    main()
