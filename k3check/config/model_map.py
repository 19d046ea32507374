"""What a released model's ``config.json`` says about its layers, and where that goes wrong.

Pure functions over parsed JSON, without torch. Lists of layers in the file count from 1: the model
tests ``i + 1`` of a layer ``i``. Source: moonshotai/Kimi-K3, modeling_kimi_linear.py, config.json.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from k3check.model import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Kind: TypeAlias = Literal["kda", "mla"]
KDA_LIST, MLA_LIST = "kda_layers", "full_attn_layers"
# Every fourth layer is full attention, and the last one too.
PERIOD = 4
_MOST_LAYERS = 4096
_SHOWN = 8
# The spelling that the released code reads, and others that people write.
SPELLINGS = {
    "num_experts_per_tok": "num_experts_per_token",
    "n_routed_experts": "num_experts",
    "n_shared_experts": "num_shared_experts",
}


def text_part(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The language model's part of a configuration, and its key path.

    Kimi K3 nests it in ``text_config``, Kimi-Linear is flat.
    """
    inner = config.get("text_config")
    return (inner, ("text_config",)) if isinstance(inner, dict) else (config, ())


def linear_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table ``linear_attn_config``; empty if there is none."""
    found = text_part(config)[0].get("linear_attn_config")
    return found if isinstance(found, dict) else {}


def semantics(config: Mapping[str, Any]) -> Literal["k3", "kimi-linear"]:
    """Which gate the model has: a lower bound is K3's, none is the softplus of Kimi-Linear."""
    bound = linear_part(config).get("gate_lower_bound")
    return "kimi-linear" if bound is None else "k3"


def layer_count(config: Mapping[str, Any]) -> int | None:
    """The number of layers; None if it is not stated as a usable number."""
    count = text_part(config)[0].get("num_hidden_layers")
    usable = type(count) is int and 0 < count <= _MOST_LAYERS
    return count if usable else None


def layer_kinds(config: Mapping[str, Any]) -> tuple[Kind, ...]:
    """Each layer's kind, the first layer first.

    As the model decides it: a layer is KDA if its number, from 1, is in ``kda_layers``, and full
    attention otherwise.

    Args:
        config: the parsed ``config.json``.

    Returns:
        One entry a layer; empty if the number of layers or the list is missing.
    """
    count = layer_count(config)
    listed = linear_part(config).get(KDA_LIST)
    if count is None or not isinstance(listed, list):
        return ()
    chosen = {number for number in listed if type(number) is int}
    return tuple("kda" if index + 1 in chosen else "mla" for index in range(count))


def by_period(count: int, period: int = PERIOD) -> tuple[Kind, ...]:
    """What a rule ``index % period == period - 1`` makes of the layers."""
    return tuple("mla" if index % period == period - 1 else "kda" for index in range(count))


def problems(
    config: Mapping[str, Any], where: Callable[[tuple[str, ...]], str] = ".".join
) -> tuple[Message, ...]:
    """What is wrong or worth knowing about a model's configuration.

    Args:
        config: the parsed ``config.json``.
        where: the place of a key path, for the messages.

    Returns:
        Messages K3C-130 (lists of layers), K3C-131 (a period-4 rule), K3C-132 (spelling), K3C-133
        (expert layers) and K3C-134 (place of the gate's bound).
    """
    _, root = text_part(config)
    place = where((*root, "linear_attn_config"))
    found = [
        *_lists(config, place),
        *_period(config, place),
        *_spelling(config, where),
        *_experts(config, where),
        *_bound(config, where),
    ]
    return tuple(found)


def _lists(config: Mapping[str, Any], place: str) -> list[Message]:
    """The two lists must name each layer once, counted from 1."""
    linear, count = linear_part(config), layer_count(config)
    lists = [linear.get(name) for name in (KDA_LIST, MLA_LIST)]
    kda, mla = (tuple(v) if isinstance(v, list) else None for v in lists)
    if kda is None and mla is None:
        return []

    def told(reason: str, layers: Sequence[Any]) -> Message:
        return Message("K3C-130", {"where": place, "reason": reason, "layers": _numbers(layers)})

    both = (*(kda or ()), *(mla or ()))
    wrong = [n for n in both if type(n) is not int]
    if wrong:
        return [told("not layer numbers", wrong)]
    found: list[Message] = []
    if 0 in both:
        return [told("counted from 0, where the model counts from 1", (0,))]
    twice = sorted(n for n, times in Counter(both).items() if times > 1)
    if twice:
        found.append(told("listed twice", twice))
    if count is None:
        return found
    beyond = sorted({n for n in both if not 1 <= n <= count})
    if beyond:
        found.append(told(f"not among the {count} layers", beyond))
    missing = sorted(set(range(1, count + 1)) - set(both))
    if missing and kda is not None and mla is not None:
        found.append(told("in neither list", missing))
    return found


def _period(config: Mapping[str, Any], place: str) -> list[Message]:
    """Where the usual rule for "three KDA, one full attention" differs from the lists."""
    kinds = layer_kinds(config)
    if not kinds or "mla" not in kinds or "kda" not in kinds:
        return []
    rule = by_period(len(kinds))
    wrong = [index for index, kind in enumerate(kinds) if kind != rule[index]]
    if not wrong:
        return []
    return [
        Message(
            "K3C-131",
            {
                "where": place,
                "wrong": _numbers(wrong),
                "kda": kinds.count("kda"),
                "mla": kinds.count("mla"),
                "by_rule": rule.count("mla"),
            },
        )
    ]


def _spelling(config: Mapping[str, Any], where: Callable[[tuple[str, ...]], str]) -> list[Message]:
    part, root = text_part(config)
    return [
        Message("K3C-132", {"where": where((*root, found)), "found": found, "right": right})
        for found, right in SPELLINGS.items()
        if found in part and part.get(right) != part[found]
    ]


def _experts(config: Mapping[str, Any], where: Callable[[tuple[str, ...]], str]) -> list[Message]:
    """The dense layers must lie inside the stack, and have a width of their own."""
    part, root = text_part(config)
    count, dense = layer_count(config), part.get("first_k_dense_replace")
    found = []
    if type(dense) is int and count is not None and not 0 <= dense <= count:
        reason = f"first_k_dense_replace is {dense} of {count} layers"
        place = where((*root, "first_k_dense_replace"))
        found.append(Message("K3C-133", {"where": place, "reason": reason}))
    width, expert = part.get("intermediate_size"), part.get("moe_intermediate_size")
    if type(dense) is int and dense > 0 and width is not None and width == expert:
        reason = f"intermediate_size is {width}, the experts' own width"
        place = where((*root, "intermediate_size"))
        found.append(Message("K3C-133", {"where": place, "reason": reason}))
    return found


def _bound(config: Mapping[str, Any], where: Callable[[tuple[str, ...]], str]) -> list[Message]:
    """The gate's bound is read from ``linear_attn_config`` and from nowhere else."""
    part, root = text_part(config)
    if linear_part(config).get("gate_lower_bound") is not None:
        return []
    for source, path in ((part, root), (config, ())):
        if source.get("gate_lower_bound") is not None:
            return [Message("K3C-134", {"where": where((*path, "gate_lower_bound"))})]
    return []


def _numbers(layers: Sequence[Any]) -> str:
    shown = ", ".join(str(n)[:20] for n in layers[:_SHOWN])
    return shown + (f" and {len(layers) - _SHOWN} more" if len(layers) > _SHOWN else "")
