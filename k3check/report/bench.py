"""How a speed comparison is shown: a bar for each engine in the terminal, and JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from k3check.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1

_BAR = 20

_TEXTS = {
    "en": {
        "title": "KDA prefill, {shape}, {dtype}, {device}",
        "floor": "floor here {ms}: {bound}, at {copy} TB/s and {product} TFLOP/s measured",
        "bytes": "moving bytes",
        "products": "products",
        "wrong": "wrong result, not timed: {why}",
        "skipped": "not run: {why}",
        "impossible": "faster than this device can be: not all of the work was done, or it is "
        "done after the time was taken",
        "first": "first call {seconds}",
        "by": "ran {engine}",
        "ratio": "Both toggles on: {ratio:.2f} times as fast as both off.",
        "yours": "{name}: {ratio:.2f} times the speed of the built-in.",
    },
    "zh": {
        "title": "KDA 预填充，{shape}，{dtype}，{device}",
        "floor": "本机下限 {ms}：{bound}；实测 {copy} TB/s、{product} TFLOP/s",
        "bytes": "数据搬运",
        "products": "矩阵乘",
        "wrong": "结果错误，未计时：{why}",
        "skipped": "未运行：{why}",
        "impossible": "快过本设备的极限：工作没有全部完成，或在计时之后才完成",
        "first": "首次调用 {seconds}",
        "by": "实际运行 {engine}",
        "ratio": "两个开关都打开：速度是都关闭时的 {ratio:.2f} 倍。",
        "yours": "{name}：速度是内置实现的 {ratio:.2f} 倍。",
    },
}


@dataclass(frozen=True)
class Row:
    """One engine.

    Attributes:
        name: how it is called in the report.
        seconds: median of the timed calls; None where it was not timed.
        spread: half of the distance between the quartiles.
        calls: how many calls were timed.
        first_call_s: the first call, compiling included.
        engine: what really ran.
        correct: whether its result is right; None where it was not run.
        why: why it was not timed.
        impossible: faster than the device's measured rates allow.
    """

    name: str
    seconds: float | None = None
    spread: float = 0.0
    calls: int = 0
    first_call_s: float | None = None
    engine: str = ""
    correct: bool | None = None
    why: str = ""
    impossible: bool = False


@dataclass(frozen=True)
class Floor:
    """What the device cannot be faster than.

    Attributes:
        seconds: the larger one of both times below.
        bytes_s, products_s: every input read and every output written once; the fewest products.
        copy_rate: bytes per second of a large copy, read and written ones counted.
        product_rate: operations per second of a large matrix product in the inputs' dtype.
    """

    seconds: float
    bytes_s: float
    products_s: float
    copy_rate: float
    product_rate: float


@dataclass(frozen=True)
class Bench:
    """A speed comparison."""

    shape: Mapping[str, int]
    dtype: str
    device: str
    floor: Floor
    rows: tuple[Row, ...]
    environment: Mapping[str, Any]

    def seconds_of(self, name: str) -> float | None:
        """The time of an engine by name."""
        return next((row.seconds for row in self.rows if row.name == name), None)

    @property
    def failed(self) -> bool:
        """Whether an engine's result is wrong or its speed impossible."""
        return any(row.correct is False or row.impossible for row in self.rows)

    @property
    def toggles_ratio(self) -> float | None:
        """How many times as fast the built-in is with both toggles on as with both off."""
        on, off = (
            self.seconds_of(toggled(ut=True, bound=True)),
            self.seconds_of(toggled(ut=False, bound=False)),
        )
        return off / on if on and off else None


def toggled(*, ut: bool, bound: bool) -> str:
    """The name of the built-in with its two toggles."""
    return f"built-in  ut={'on' if ut else 'off'} bind={'on' if bound else 'off'}"


def duration(seconds: float) -> str:
    """``1.23 ms``, ``45.6 us``, ``7.89 s``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def to_json(bench: Bench) -> str:
    """Plain data; None where there is no number."""
    said = {
        "schema_version": SCHEMA_VERSION,
        **asdict(bench),
        "toggles_ratio": bench.toggles_ratio,
        "verdict": "fail" if bench.failed else "pass",
    }
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"


def to_text(bench: Bench, lang: str = "en") -> str:
    """A bar chart: the longer, the slower."""
    say = _TEXTS[lang]
    shape = " ".join(f"{name}={size}" for name, size in bench.shape.items())
    floor = bench.floor
    bound = say["bytes" if floor.bytes_s >= floor.products_s else "products"]
    lines = [
        say["title"].format(shape=shape, dtype=bench.dtype, device=bench.device),
        say["floor"].format(
            ms=duration(floor.seconds),
            bound=bound,
            copy=f"{floor.copy_rate / 1e12:.3g}",
            product=f"{floor.product_rate / 1e12:.3g}",
        ),
        "",
    ]
    longest = max((row.seconds or 0.0 for row in bench.rows), default=0.0)
    width = max(len(row.name) for row in bench.rows)
    for row in bench.rows:
        lines += _row(row, longest, width, floor, say)
    lines += ["", *_conclusions(bench, say)]
    return "\n".join(lines) + "\n"


def _row(row: Row, longest: float, width: int, floor: Floor, say: Mapping[str, str]) -> list[str]:
    name = row.name.ljust(width)
    if row.seconds is None:
        said = say["wrong" if row.correct is False else "skipped"].format(why=one_line(row.why))
        return [f"{name}  {said}"]
    bar = "█" * max(1, round(_BAR * row.seconds / longest))
    time = f"{duration(row.seconds)} ± {duration(row.spread)}"
    lines = [f"{name}  {time:>19}  {bar:<{_BAR}} {row.seconds / floor.seconds:.3g}x"]
    told = []
    if row.engine:
        told.append(say["by"].format(engine=one_line(row.engine)))
    if row.first_call_s is not None and row.first_call_s > 1.0:
        told.append(say["first"].format(seconds=duration(row.first_call_s)))
    if row.impossible:
        told.append(say["impossible"])
    return lines + [f"{'':{width}}  {text}" for text in told]


def _conclusions(bench: Bench, say: Mapping[str, str]) -> list[str]:
    found = []
    if bench.toggles_ratio is not None:
        found.append(say["ratio"].format(ratio=bench.toggles_ratio))
    best = bench.seconds_of(toggled(ut=True, bound=True))
    found += [
        say["yours"].format(name=row.name, ratio=best / row.seconds)
        for row in bench.rows
        if best and row.seconds and not row.name.startswith("built-in")
    ]
    return found
