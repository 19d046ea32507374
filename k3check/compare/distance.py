"""Distances between an output and its reference, computed in float64.

The distance that verdicts rest on is the relative L2 error, sqrt(sum (x - r)^2 / sum r^2), over
the whole tensor and over each window of tokens, each head and each channel. A whole-tensor norm
alone dilutes one bad head or token; an elementwise rule alone is blind to scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WINDOW = 32
#: What a part of a tensor (one window, head or channel) is measured against is at least this
#: share of the whole tensor's RMS: a head that is nearly zero has no relative error worth judging.
LEAST_PART = 1e-2

#: Elements that are computed with at once: five copies of them in float64 take 80 MiB.
SLICE = 2**21

#: axis in the tensor -> name of the metric over its parts
PARTS = {"token": "worst_window", "head": "worst_head", "channel": "worst_channel"}


@dataclass(frozen=True)
class Part:
    """The relative errors of a tensor's parts along one axis, and which is the worst."""

    errors: torch.Tensor
    worst: float
    index: int


@dataclass(frozen=True)
class Measurement:
    """How far a tensor is from its reference.

    Attributes:
        relative_l2: over the whole tensor.
        parts: by metric name (``worst_window`` ...).
        max_abs: largest absolute deviation; its multi-dimensional index is ``max_index``.
        cosine: of the angle between the two, explanatory only: it cannot see a scale.
        best_scale: the factor a that minimises |x - a r|.
        reference_rms: size of the reference.
    """

    relative_l2: float
    parts: Mapping[str, Part] = field(default_factory=dict)
    max_abs: float = 0.0
    max_index: tuple[int, ...] = ()
    cosine: float = 1.0
    best_scale: float = 1.0
    reference_rms: float = 0.0

    def values(self) -> dict[str, float]:
        """Metric name -> value, for those that are judged."""
        return {"relative_l2": self.relative_l2} | {n: p.worst for n, p in self.parts.items()}


def slices(*tensors: torch.Tensor) -> Iterator[tuple[int, int, tuple[torch.Tensor, ...]]]:
    """Tensors of one shape in pieces that are small enough to compute with in float64.

    Yields:
        The dimension that is cut, where the piece begins there, and the piece of every tensor.
    """
    shape = tensors[0].shape
    if tensors[0].numel() <= SLICE:
        yield 0, 0, tensors
        return
    dim = max(range(len(shape)), key=lambda d: shape[d])
    step = max(1, SLICE * shape[dim] // tensors[0].numel())
    for start in range(0, shape[dim], step):
        length = min(step, shape[dim] - start)
        yield dim, start, tuple(x.narrow(dim, start, length) for x in tensors)


def all_finite(x: torch.Tensor) -> bool:
    """Whether no element is NaN or infinite."""
    return all(bool(torch.isfinite(piece).all()) for _, _, (piece,) in slices(x))


def same(x: torch.Tensor, y: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether x has y's values once it is brought to a dtype."""
    return all(torch.equal(a.to(dtype), b) for _, _, (a, b) in slices(x, y))


def relative_l2(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """sqrt(sum (actual - expected)^2 / sum expected^2); inf where only the reference is zero."""
    difference = size = 0.0
    for _, _, (got, right) in slices(actual, expected):
        difference = math.hypot(difference, (got.double() - right.double()).norm().item())
        size = math.hypot(size, right.double().norm().item())
    if size == 0.0:
        return 0.0 if difference == 0.0 else math.inf
    return difference / size


@dataclass
class _Sums:
    """Sums over the pieces of a tensor."""

    error: float = 0.0
    size: float = 0.0
    inner: float = 0.0
    own: float = 0.0
    largest: float = -1.0
    place: tuple[int, ...] = ()


def measure(actual: torch.Tensor, expected: torch.Tensor, axes: tuple[str, ...]) -> Measurement:
    """Measure two finite tensors of one shape, piece by piece where they are large.

    Args:
        actual, expected: any floating dtype; compared in float64.
        axes: the name of each dimension; ``token``, ``head`` and ``channel`` get parts.
    """
    if expected.numel() == 0:
        return Measurement(0.0)
    shape, sums = expected.shape, _Sums()
    parted = [d for d, axis in enumerate(axes) if axis in PARTS and shape[d] > 1]
    along = {d: torch.zeros(2, shape[d], dtype=torch.float64) for d in parted}
    for dim, start, (got, right) in slices(actual, expected):
        reference, wide = right.double(), got.double()
        deviation = wide - reference
        furthest = int(deviation.abs().argmax())
        distance = deviation.flatten()[furthest].abs().item()
        if not distance <= sums.largest:
            place = list(unravelled(furthest, right.shape))
            if place:
                place[dim] += start
            sums.largest, sums.place = distance, tuple(place)
        sums.inner += float((wide * reference).sum())
        sums.own += float(wide.square().sum())
        squares, sizes = deviation.square(), reference.square()
        sums.error += float(squares.sum())
        sums.size += float(sizes.sum())
        for d, total in along.items():
            others = [other for other in range(len(shape)) if other != d]
            end = start + right.shape[d] if d == dim else shape[d]
            begin = start if d == dim else 0
            for row, x in zip(total, (squares, sizes), strict=True):
                row[begin:end] += (x.sum(dim=others) if others else x).cpu()
    mean_square = sums.size / expected.numel()
    return Measurement(
        relative_l2=_ratio(sums.error, sums.size),
        parts={
            PARTS[axes[d]]: _part(error, size, axes[d], mean_square)
            for d, total in along.items()
            for error, size in [(total * shape[d] / expected.numel()).unbind()]
        },
        max_abs=sums.largest,
        max_index=sums.place,
        cosine=sums.inner / math.sqrt(sums.own * sums.size) if sums.own and sums.size else 0.0,
        best_scale=sums.inner / sums.size if sums.size else math.nan,
        reference_rms=math.sqrt(mean_square),
    )


def _ratio(error: float, size: float) -> float:
    return math.sqrt(error / size) if size else (0.0 if error == 0 else math.inf)


def _part(error: torch.Tensor, size: torch.Tensor, axis: str, mean_square: float) -> Part:
    """Relative error of every slice along one dimension (of every window, for tokens).

    Args:
        error, size: mean squares at every place of the dimension.
        axis: its name.
        mean_square: of the whole reference.
    """
    if axis == "token":
        error, size = (_windows(x) for x in (error, size))
    floor = LEAST_PART**2 * mean_square
    ratios = (
        error / size.clamp(min=floor if floor > 0 else torch.finfo(torch.float64).tiny)
    ).sqrt()
    worst = int(ratios.argmax())
    return Part(ratios, ratios[worst].item(), worst)


def _windows(x: torch.Tensor) -> torch.Tensor:
    """Means over windows of tokens; the last one may be shorter."""
    return torch.stack([part.mean() for part in x.split(WINDOW)])


def unravelled(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index of an element that is given by its place in row-major order.

    ``torch.unravel_index`` does the same, and imports a computer algebra system for it.
    """
    index = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        index.append(place)
    return tuple(reversed(index))
