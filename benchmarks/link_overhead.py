"""How much longer the link check takes than a bare httpx script with the same requests.

Both run against the demo endpoint, each in a process of its own, so that imports count.
Run it on an idle machine: ``python benchmarks/link_overhead.py [ROUNDS]``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from k3check.link.demo import DemoServer

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

OURS = """
import sys
from k3check.link import check
from k3check.link.request import LinkRequest, Secret
from k3check.report.listener import Silent

base, key, model = sys.argv[1:]
found = check(LinkRequest(base, Secret(key), model), Silent())
assert [f.outcome.value for f in found] == ["pass"] * 5, found
"""


def seconds(script: str, server: DemoServer) -> float:
    """Wall time of one run of a script."""
    begun = time.perf_counter()
    arguments = [server.base_url, server.api_key, server.model]
    # Compiled modules are kept, as they are for an installed package.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, env=env)
    return time.perf_counter() - begun


def main() -> None:
    """Run both in turn and print the shortest times and their ratio."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with DemoServer() as server:
        for script in (BARE, OURS):  # the first run fills the file cache
            seconds(script, server)
        times = [(seconds(BARE, server), seconds(OURS, server)) for _ in range(rounds)]
    # The shortest time is what the work takes; everything above it is the machine's other load.
    bare, ours = min(a for a, _ in times), min(b for _, b in times)
    print(f"bare httpx    {bare:.3f} s")
    print(f"k3check link  {ours:.3f} s")
    print(f"ratio         {ours / bare:.2f}, at most 1.5")


if __name__ == "__main__":
    main()
