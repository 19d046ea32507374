"""Write docs/benchmarks.md: the exact reference and the built-in side by side with other code.

Run it from the repository's root: ``python docs/make_benchmarks.py``. It measures on this machine's
CPU, or on its GPU with ``--device cuda``. All numbers of a row come from one run, so ratios hold
where times do not. ``--bench FILE`` takes in what ``k3check bench --output FILE`` has written on
another machine.
"""

from __future__ import annotations

import argparse
import math
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from k3check.nouns.recipe import EXACT
from k3check.operators.kda import exact, reference
from k3check.operators.kda.semantics import K3, KdaInterface

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Path(__file__).with_name("benchmarks.md")
GIVEN = KdaInterface(gate="ln", beta="prob", norm="caller")
SIZES = {
    "cpu": ((64, 4), (256, 4), (1024, 4), (4096, 4), (1024, 1), (1024, 16)),
    "cuda": ((1024, 96), (8192, 96), (32768, 96), (8192, 24)),
}
#: The token loop is only run up to so many tokens.
LOOP = 4096


def made(tokens: int, heads: int, device: str) -> dict[str, torch.Tensor]:
    """Inputs of K = V = 128 with the released model's gates."""
    draw = torch.Generator(device).manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, device=device).double()

    q, k = (torch.nn.functional.normalize(normal(1, tokens, heads, 128), dim=-1) for _ in "qk")
    gate = -5 * torch.sigmoid(normal(1, tokens, heads, 128))
    beta = normal(1, tokens, heads).sigmoid()
    v, state = normal(1, tokens, heads, 128), normal(1, heads, 128, 128)
    return {"q": q, "k": k, "v": v, "gate": gate, "beta": beta, "initial_state": state}


def seconds(call: Callable[[], object], device: str, times: int) -> float:
    """The best of some calls."""
    best = math.inf
    for _ in range(times):
        if device == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return best


def row(tokens: int, heads: int, device: str) -> tuple[str, float]:
    """A row of the table, and the fast form's time."""
    x = made(tokens, heads, device)
    fast = seconds(lambda: exact.evaluate_fast(K3, GIVEN, x), device, 4)
    loop = naive = math.nan
    if tokens <= LOOP:
        loop = seconds(lambda: reference.evaluate(K3, GIVEN, x, EXACT), device, 1)
        naive = fla(x, device)
    told = [f"{1e3 * value:.3g} ms" if value == value else "" for value in (fast, loop, naive)]
    ratios = [f"{value / fast:.1f}" if value == value else "" for value in (loop, naive)]
    cells = (tokens, heads, told[0], told[1], ratios[0], told[2], ratios[1])
    return "| " + " | ".join(map(str, cells)) + " |", fast


def fla(x: dict[str, torch.Tensor], device: str) -> float:
    """The plain token loop of flash-linear-attention, in float32 inside; NaN without it."""
    try:
        from fla.ops.kda.naive import naive_recurrent_kda
    except ImportError:
        return math.nan
    names = ("q", "k", "v", "gate", "beta")
    given = [x[name].float() for name in names]
    state = x["initial_state"].float()
    return seconds(lambda: naive_recurrent_kda(*given, 1.0, state, True), device, 1)


def page(device: str, threads: int, bench: Path | None) -> str:
    """The page, measured now."""
    torch.set_num_threads(threads)
    card = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {threads} thread(s)"
    python, today = f"Python {platform.python_version()}", datetime.now(UTC).date().isoformat()
    rows, times = [], {}
    for tokens, heads in SIZES[device]:
        text, times[tokens, heads] = row(tokens, heads, device)
        rows.append(text)
    lines = [
        "# Benchmarks",
        "",
        "Made by `python docs/make_benchmarks.py`. Ratios are of times from one run, one machine.",
        "",
        ", ".join((card, f"torch {torch.__version__}", python, today)) + ".",
        "",
        "## The exact reference of KDA",
        "",
        "Float64, K = V = 128, gates of the released model, a state from before. *Loop* is the",
        "reference's own loop over tokens in float64, *fla* that of flash-linear-attention",
        "(`naive_recurrent_kda`, in float32).",
        "",
        "| T | H | fast | loop | loop / fast | fla | fla / fast |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        slopes(times),
    ]
    if bench is not None:
        lines += [
            "",
            "## Prefill: `k3check bench`",
            "",
            "```text",
            bench.read_text().strip(),
            "```",
        ]
    return "\n".join(lines) + "\n"


def slopes(times: dict[tuple[int, int], float]) -> str:
    """How the fast form grows: exponents between the smallest and the largest of each size."""
    heads = max({h for _, h in times}, key=lambda h: sum(k[1] == h for k in times))
    T = sorted(t for t, h in times if h == heads)
    tokens = max({t for t, _ in times}, key=lambda t: sum(k[0] == t for k in times))
    H = sorted(h for t, h in times if t == tokens)
    over_T = math.log(times[T[-1], heads] / times[T[0], heads]) / math.log(T[-1] / T[0])
    over_H = math.log(times[tokens, H[-1]] / times[tokens, H[0]]) / math.log(H[-1] / H[0])
    return (
        f"Growth of the fast form: T^{over_T:.2f} from {T[0]} to {T[-1]} tokens at H = {heads}, "
        f"H^{over_H:.2f} from {H[0]} to {H[-1]} heads at T = {tokens}."
    )


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bench", type=Path)
    given = parser.parse_args()
    PAGE.write_text(page(given.device, given.threads, given.bench))


if __name__ == "__main__":
    main()
