"""One report with everything that a report can have, and texts that no other work changes."""

from __future__ import annotations

import math

import pytest

from k3check import hints
from k3check.hints import Entry
from k3check.model import Confidence, Diagnosis, Finding, Message, Outcome, Report


def _entry(code: str, slug: str, title: str, fix: str, zh: tuple[str, str]) -> Entry:
    return Entry(
        code=code,
        slug=slug,
        title={"en": title, "zh": zh[0]},
        fix={"en": fix, "zh": zh[1]},
        sections={"what": {"en": f"What {slug} checks.", "zh": f"{slug} 检查什么。"}},
        sketch="state = last(state)" if code == "K3O-901" else None,
        origin=("owner/repo#1",) if code == "K3O-901" else (),
    )


ENTRIES = {
    entry.code: entry
    for entry in (
        _entry(
            "K3O-901",
            "state.boundary",
            "the state handed on misses the last token of each {size}-token chunk",
            "Hand over the state after the chunk's last token.",
            (
                "传递的状态缺少每个 {size} token 块的最后一个 token",
                "传递块内最后一个 token 之后的状态。",
            ),
        ),
        _entry(
            "K3O-902",
            "decay.shifted",
            "the decay of the previous token is used",
            "Use the decay of the same token.",
            ("使用了前一个 token 的衰减", "使用同一 token 的衰减。"),
        ),
        _entry(
            "K3O-903",
            "output.nan",
            "the output has values that are not finite",
            "Accumulate the decay in float32.",
            ("输出包含非有限值", "用 float32 累积衰减。"),
        ),
        _entry(
            "K3O-904",
            "memory.short",
            "the state needs {need} of memory, {free} are free",
            "Lower d_k and d_v.",
            ("状态需要 {need} 内存, 可用 {free}", "减小 d_k 和 d_v。"),
        ),
        _entry(
            "K3O-905",
            "dtype.widened",
            "the output is float32 where bfloat16 was declared",
            "Convert the output, or declare float32.",
            ("输出为 float32, 声明的是 bfloat16", "转换输出, 或声明 float32。"),
        ),
        _entry(
            "K3L-901",
            "url.query",
            "base_url carries a query ({query})",
            "Remove everything from the question mark on.",
            ("base_url 带有查询串 ({query})", "删除问号及其后的内容。"),
        ),
        _entry(
            "K3C-901",
            "model.block-size",
            "attn_residuals.block_size is 10; the released model has 12",
            "Set block_size = 12.",
            ("attn_residuals.block_size 为 10; 发布的模型为 12", "设置 block_size = 12。"),
        ),
    )
}

FINDINGS = (
    Finding(
        id="kda_step/dense",
        suite="kda",
        operator="kda_step",
        case="dense",
        outcome=Outcome.PASS,
        title="three steps equal the dense formula",
        metrics={"output.rel_l2": 1.25e-7, "steps": 3},
        limits={"output.rel_l2": 4e-7},
        series={"state norm": [1.0, 1.5, 2.0, 1.5]},
        notes=(Message("K3O-905"),),
        duration_s=0.25,
    ),
    Finding(
        id="kda_gate/window",
        suite="kda",
        operator="kda_gate",
        case="window",
        outcome=Outcome.ACCEPTABLE,
        title="alpha stays in its window",
        metrics={"output.rel_l2": 5e-3},
        limits={"output.rel_l2": 6e-3},
    ),
    Finding(
        id="kda_step/state-4096",
        suite="kda",
        operator="kda_step",
        case="state-4096",
        outcome=Outcome.SKIPPED,
        title="a state of 4096 x 4096",
        hint=Message("K3O-904", {"need": "1.5 GiB", "free": "0.4 GiB"}),
    ),
    Finding(
        id="kda_chunk/boundary",
        suite="flashkda",
        operator="kda_chunk",
        case="boundary",
        outcome=Outcome.FAIL,
        title="chunkwise equals token by token",
        metrics={"output.rel_l2": 0.032, "state.rel_l2": 2e-7, "output.window": math.inf},
        limits={"output.rel_l2": 1e-6, "state.rel_l2": 1e-6, "output.window": 2e-6},
        location={"tensor": "output", "token": 64, "head": 3},
        series={"error": [1e-7, 1e-7, 0.03, math.nan, 0.001, 0.001]},
        diagnoses=(
            Diagnosis("K3O-901", Confidence.HIGH, 1.2, 40.0, {"size": 64}),
            Diagnosis("K3O-902", Confidence.LOW),
        ),
        evidence={
            "printed_output": "[bold red]warm\x1b[2J up[/] <b>& 100%\r\n```\nsecond line\u202e"
        },
        duration_s=1.5,
    ),
    Finding(
        id="kda_chunk/fp16-decay",
        suite="flashkda",
        operator="kda_chunk",
        case="fp16-decay",
        outcome=Outcome.FAIL,
        title="cumulative decay in half precision",
        metrics={"output.rel_l2": math.nan},
        limits={"output.rel_l2": 1e-3},
        hint=Message("K3O-903"),
    ),
    Finding(
        id="kda_chunk/crash",
        suite="flashkda",
        operator="kda_chunk",
        case="crash",
        outcome=Outcome.CRASHED,
        title="the operator returns",
        evidence={"traceback": "\n".join(f"frame {n}" for n in range(1, 16))},
    ),
    Finding(
        id="kda_chunk/hang",
        suite="flashkda",
        operator="kda_chunk",
        case="hang",
        outcome=Outcome.TIMED_OUT,
        title="the operator returns",
        metrics={"seconds": 2.0},
        limits={"seconds": 2.0},
        duration_s=2.0,
    ),
    Finding(
        id="link/chat",
        suite="link",
        operator=None,
        case=None,
        outcome=Outcome.FAIL,
        title="one chat request, as configured",
        location={"file": "k3check.toml", "line": 4},
        diagnoses=(Diagnosis("K3L-901", Confidence.MEDIUM, values={"query": "?utm_source=x"}),),
        evidence={"status": 404, "body": {"error": {"message": "Invalid URL | (POST /api)"}}},
        notes=(Message("K3L-999"),),
        duration_s=0.125,
    ),
)

REPORT = Report(
    findings=FINDINGS,
    started_at="2026-01-02T03:04:05+00:00",
    duration_s=4.25,
    environment={"python": "3.11.7", "torch": "2.13.0", "threads": 2, "devices": []},
    config_path="k3check.toml",
    config_dialect="config",
    config_notes=(Message("K3C-901"),),
)


@pytest.fixture(autouse=True)
def texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the product's texts by the fixture's: a reworded hint must not change a golden."""
    monkeypatch.setattr(hints, "_entries", lambda: ENTRIES)
    monkeypatch.setattr(hints, "_one", ENTRIES.get)


@pytest.fixture
def report() -> Report:
    """The shared report."""
    return REPORT
