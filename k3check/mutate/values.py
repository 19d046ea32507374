"""Mutation operators in value: what becomes of every number by itself, or of a row of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from k3check.mutate.mutation import Change, Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from k3check.mutate.site import Visit

LN2 = math.log(2.0)


def plain(
    slug: str, rank: int, change: Callable[[torch.Tensor], torch.Tensor], words: str, fix: str
) -> Change:
    """A change of the value alone."""

    def apply(seen: Visit, _memory: Memory) -> torch.Tensor:
        return change(seen.value)

    return Change(slug, apply, words, fix, rank)


def _rounded(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x.to(dtype).to(x.dtype)


def _where_positive(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    def apply(x: torch.Tensor) -> torch.Tensor:
        if bool((x < 0).any()):
            raise ValueError("no such value of a negative number")
        return change(x)

    return apply


_ONCE = "Use {site} as it is, once."
ELEMENTWISE: tuple[Change, ...] = (
    plain("zero", 1, torch.zeros_like, "{site} is left out (taken as zero)",
          "Put {site} back where the reference has it."),
    plain("one", 1, torch.ones_like, "{site} is left out (taken as one)",
          "Put {site} back where the reference has it."),
    plain("negated", 1, lambda x: -x, "{site} has the opposite sign", "Change the sign of {site}."),
    plain("doubled", 1, lambda x: 2 * x, "{site} is doubled", _ONCE),
    plain("halved", 1, lambda x: x / 2, "{site} is halved", "Use the whole of {site}."),
    plain("squared", 1, lambda x: x * x, "{site} is squared (used twice)", _ONCE),
    plain("root", 2, _where_positive(torch.sqrt), "the square root of {site} is taken",
          "Use {site} itself, not its root."),
    plain("reciprocal", 2, torch.reciprocal, "{site} is inverted (1 / x)",
          "Use {site} itself, not its reciprocal."),
    plain("absolute", 2, torch.abs, "the sign of {site} is lost (its magnitude is used)",
          "Keep the sign of {site}."),
    plain("complement", 2, lambda x: 1 - x, "1 minus {site} is used in place of {site}",
          "Use {site} itself, not 1 minus it."),
    plain("plus-one", 2, lambda x: 1 + x, "1 is added to {site}", "Use {site} without adding 1."),
    plain("times-ln2", 2, lambda x: x * LN2, "{site} is multiplied by ln 2",
          "Use one base throughout: natural logarithms with exp, or base 2 with exp2."),
    plain("over-ln2", 2, lambda x: x / LN2, "{site} is divided by ln 2",
          "Use one base throughout: natural logarithms with exp, or base 2 with exp2."),
    plain("times-1.702", 5, lambda x: x * 1.702, "{site} is multiplied by 1.702 (GELU's)", _ONCE),
    plain("quadrupled", 4, lambda x: 4 * x, "{site} is multiplied by 4", _ONCE),
    plain("quartered", 4, lambda x: x / 4, "{site} is divided by 4", _ONCE),
    plain("exp", 2, torch.exp, "exp is applied once more to {site}",
          "Remove the extra exp of {site}."),
    plain("log", 2, _where_positive(torch.log), "a logarithm is taken of {site}",
          "Use {site} without a logarithm."),
    plain("sigmoid", 2, torch.sigmoid, "a sigmoid is applied to {site} once more",
          "Remove the extra sigmoid of {site}."),
    plain("logit", 3, torch.logit, "the sigmoid of {site} is missing",
          "Apply the sigmoid to {site}."),
    plain("softplus-for-sigmoid", 4, lambda x: F.softplus(torch.logit(x)),
          "{site} is a softplus; the reference has a sigmoid", "Use a sigmoid for {site}."),
    plain("tanh-for-sigmoid", 4, lambda x: torch.tanh(torch.logit(x)),
          "{site} is a tanh; the reference has a sigmoid", "Use a sigmoid for {site}."),
    plain("clamped-logit", 5, lambda x: torch.logit(x).clamp(0, 1),
          "{site} is a clamp to 0 ... 1; the reference has a sigmoid",
          "Use a sigmoid for {site}."),
    plain("hard-sigmoid", 4, lambda x: F.hardsigmoid(torch.logit(x)),
          "{site} is a hard sigmoid; the reference has a sigmoid", "Use a sigmoid for {site}."),
    plain("tanh", 2, torch.tanh, "a tanh is applied to {site}", "Remove the tanh of {site}."),
    plain("silu", 3, F.silu, "SiLU is applied to {site}", "Remove the SiLU of {site}."),
    plain("relu", 2, torch.relu, "negative values of {site} are cut to zero",
          "Let {site} be negative."),
    plain("softplus", 3, F.softplus, "softplus is applied to {site}",
          "Remove the softplus of {site}."),
    plain("gelu", 4, F.gelu, "GELU is applied to {site}", "Remove the GELU of {site}."),
    plain("clamped-one", 3, lambda x: x.clamp(-1, 1), "{site} is clamped to -1 ... 1",
          "Remove the clamp of {site}."),
    plain("clamped-unit", 3, lambda x: x.clamp(0, 1), "{site} is clamped to 0 ... 1",
          "Remove the clamp of {site}."),
    plain("at-least-minus-one", 4, lambda x: x.clamp(min=-1),
          "{site} is clamped to at least -1", "Remove the clamp of {site}."),
    plain("at-least-tiny", 4, lambda x: x.clamp(min=1e-2), "{site} is clamped to at least 0.01",
          "Remove the clamp of {site}."),
    plain("in-bfloat16", 2, _rounded(torch.bfloat16), "{site} is rounded to bfloat16",
          "Keep {site} in float32."),
    plain("in-half", 2, _rounded(torch.float16), "{site} is rounded to float16",
          "Keep {site} in float32."),
    plain("in-float8", 4, _rounded(torch.float8_e4m3fn), "{site} is rounded to float8 (e4m3)",
          "Keep {site} in float32."),
)  # fmt: skip


def along_axis(axis: str, dim: int) -> Iterator[Change]:
    """Changes of whole rows along an axis: normalised, centred, a softmax."""

    def made(
        slug: str, rank: int, change: Callable[[torch.Tensor], torch.Tensor], words: str, fix: str
    ) -> Change:
        return plain(f"{slug}-{axis}", rank, change, words, fix)

    yield made(
        "l2-normalised", 2, lambda x: x / x.square().sum(dim, keepdim=True).sqrt(),
        "{site} is normalised to length one over the " + axis + " axis",
        "Use {site} without that norm.",
    )  # fmt: skip
    yield made(
        "rms-normalised", 2, lambda x: x / x.square().mean(dim, keepdim=True).sqrt(),
        "{site} is divided by its root mean square over the " + axis + " axis",
        "Use {site} without that norm.",
    )  # fmt: skip
    yield made(
        "sum-normalised", 3, lambda x: x / x.sum(dim, keepdim=True),
        "{site} is divided by its sum over the " + axis + " axis",
        "Use {site} without dividing by the sum.",
    )  # fmt: skip
    yield made(
        "centred", 3, lambda x: x - x.mean(dim, keepdim=True),
        "the mean over the " + axis + " axis is taken off {site}",
        "Use {site} without taking off its mean.",
    )  # fmt: skip
    yield made(
        "softmax", 3, lambda x: x.softmax(dim),
        "a softmax over the " + axis + " axis is applied to {site}",
        "Use {site} without a softmax.",
    )  # fmt: skip
    yield made(
        "max-shifted", 4, lambda x: x - x.amax(dim, keepdim=True),
        "the maximum over the " + axis + " axis is taken off {site}",
        "Use {site} without taking off its maximum.",
    )  # fmt: skip


def constants(sizes: Mapping[str, int]) -> Iterator[Change]:
    """Times and over the sizes of the call and their roots (the call tells them by name)."""
    for name in sizes:
        for words, power, rank in (
            (f"sqrt({name})", 0.5, 3),
            (f"1/sqrt({name})", -0.5, 3),
            (name, 1.0, 3),
            (f"1/{name}", -1.0, 3),
        ):

            def apply(
                seen: Visit, memory: Memory, name: str = name, power: float = power
            ) -> torch.Tensor:
                return seen.value * math.pow(memory.facts["sizes"][name], power)

            slug = words.replace("/", "-over-").replace("(", "-").replace(")", "")
            yield Change(
                f"times-{slug}", apply, "{site} is multiplied by " + words,
                "Remove the factor " + words + " from {site}.", rank,
            )  # fmt: skip


def numbers(known: Iterable[str]) -> Iterator[Change]:
    """Times and over the numbers that the call was given (a scaling factor, a bound)."""
    for name in known:
        for word, power in (("multiplied", 1.0), ("divided", -1.0)):

            def apply(
                seen: Visit, memory: Memory, name: str = name, power: float = power
            ) -> torch.Tensor:
                return seen.value * math.pow(memory.facts["numbers"][name], power)

            yield Change(
                f"{word}-by-{name.replace(' ', '-')}", apply,
                "{site} is " + word + " by " + name + " once too often",
                "Use {site} without " + name + " there.", 2,
            )  # fmt: skip
