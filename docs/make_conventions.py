"""Write docs/conventions.md: every calling convention of KDA's sequences and steps.

It is made from the conventions themselves; those of the other operators are on another page, see
:mod:`make_operator_conventions`.

Run it from the repository's root after a change of one: ``python docs/make_conventions.py``. A test
holds the page against what this would write.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

sys.path.insert(0, str(Path(__file__).parent))

from recorded_call import arguments, parameters

from k3check.operators import families
from k3check.operators.kda.conventions import (
    SEQUENCE_CONVENTIONS,
    STEP_CONVENTIONS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.nouns.convention import Convention, Example

PAGE = Path(__file__).with_name("conventions.md")
INTRODUCTION = """\
# Calling conventions of KDA

A convention says how your function takes and returns KDA's tensors, so that it can be checked as
it is. With `convention = "auto"` (or without one) it is recognised: a library's own function has
that library's convention, any other the one that shares most parameter names with it. `-v` says
which it was and why. A function that no convention fits is refused, with what it takes and what
each convention requires.

Shapes: B sequences of T tokens, or N packed into one row by `cu_seqlens`; H heads of q and k, each
serving HV / H heads of v; K channels of q and k, V of v. *Raw* is what the projection returns: the
gate before softplus or sigmoid, beta before its sigmoid.

Where a state is updated in place, that memory is what is checked, whatever is returned beside it.
In a pool the slots that belong to no sequence of the call hold NaN and huge values and must keep
every bit. Buffers that a function writes into hold NaN before the call.

The tables are what a function is called with. *dtype* and *state_dtype* are the declared ones
(`--dtype`, `--state-dtype`), float32 without. *Where your function has it*: without the parameter
it is not passed; what cannot be checked then is skipped, and the report names the parameter to
add. *In some cases*: the others have no such input. Further parameters need a default or a value
in `options`. A function that only takes multiples of some number of tokens says so with
`multiple_of = 64` in its section of the configuration: lengths are then rounded up, which the
titles of the cases say.

A target is a Python callable. A folder of tensor files is not taken as one.

[The other operators](conventions-operators.md) have a page of their own.

*This page is written by `docs/make_conventions.py`.*
"""
GATES = {
    "raw": "raw",
    "ln": "natural log decay",
    "log2": "log decay in base 2",
    "alpha": "the decay itself",
    "cumulative_log2": "log decay in base 2, summed within each chunk",
}
SCALES = {
    "argument": "an argument, K^-1/2 without",
    "fixed": "K^-1/2 inside",
    "folded": "folded into q by the caller",
    "none": "none",
}
MISSING = {
    "packed": "packed sequences",
    "grouped": "more heads of v than of q",
    "value_dim": "V other than K",
    "scale": "another scale than K^-1/2",
    "initial_state": "an initial state",
}


def page() -> str:
    """The whole page."""
    every = {**SEQUENCE_CONVENTIONS, **STEP_CONVENTIONS}
    parts = [INTRODUCTION]
    parts += [section(c, c.example) for c in every.values() if c.example is not None]
    return "\n".join(parts)


def section(convention: Convention, example: Example) -> str:
    """One convention: what it is, how it is configured, what the function takes."""
    lines = [f"## {convention.name}", "", f"{convention.summary}.", ""]
    if convention.refuses is None:
        lines += ["```toml", config(convention, example).rstrip(), "```", ""]
        if not example.options:
            lines += ["or", "", "```sh", command(convention, example), "```", ""]
    lines += ["```python", *wrapped(example.signature), f"# -> {example.returns}", "```", ""]
    if convention.refuses is None:
        lines += [*call(convention, example), ""]
        lines += [f"- {line}" for line in facts(convention, example)]
    else:
        lines.append(f"Cannot be checked as `{example.operator}`: {convention.refuses}.")
    return "\n".join([*lines, ""])


def command(convention: Convention, example: Example) -> str:
    """The same without a configuration; options need one."""
    found = f"k3check ops --operator {example.operator}={example.target}"
    found += f" --convention {example.operator}={convention.name}"
    if convention.name == "article":
        found += f" --semantics {example.operator}=article"
    if convention.dtype is not None:
        found += f" --dtype {convention.dtype} --state-dtype {convention.state_dtype}"
    return found


def call(convention: Convention, example: Example) -> Iterator[str]:
    """What the function is called with."""
    operator = next(op for f in families() for op in f.operators if op.name == example.operator)
    yield from ("| parameter | what is passed | when |", "|---|---|---|")
    for argument in arguments(operator, convention, example)[0]:
        yield f"| `{argument.name}` | {argument.passed} | {argument.when} |"


def config(convention: Convention, example: Example) -> str:
    """The example's section of a configuration."""
    values: dict[str, Any] = {"target": example.target, "convention": convention.name}
    if convention.name == "article":
        values["semantics"] = "article"
    if convention.dtype is not None:
        values |= {"dtype": convention.dtype, "state_dtype": convention.state_dtype}
    body = tomli_w.dumps(values)
    if example.options:
        inner = ", ".join(tomli_w.dumps({k: v}).strip() for k, v in example.options.items())
        body += f"options = {{ {inner} }}\n"
    return f"[operators.{example.operator}]\n{body}"


def facts(convention: Convention, example: Example) -> Iterator[str]:
    """What the function does itself, where its state is, and what it has no room for."""
    binding = convention.bind(frozenset(parameters(example.signature)), example.options)
    interface = binding.interface
    norm = "inside" if interface.norm == "op" else "by the caller"
    beta = "raw" if interface.beta == "logit" else "a probability"
    yield (
        f"gate: {GATES[interface.gate]}; beta: {beta}; norms of q and k: {norm}; "
        f"scale: {SCALES[interface.scale]}"
    )
    yield f"state: {example.state}"
    if convention.dtype is not None:
        yield f"usual precision: {convention.dtype}, state {convention.state_dtype}"
    sizes = [f"K = V = {interface.key_dim}"] if interface.key_dim else []
    sizes += [f"{interface.heads} heads"] if interface.heads else []
    sizes += [f"T a multiple of {interface.multiple_of}"] if interface.multiple_of > 1 else []
    if sizes:
        yield f"only {', '.join(sizes)}"
    without = [text for name, text in MISSING.items() if name not in interface.supports]
    if without:
        yield f"not taken, and not checked: {', '.join(without)}"
    for semantics, why in binding.excludes.items():
        yield f'not for `semantics = "{semantics}"`: {why}'
    if convention.positional:
        yield "arguments are passed by position, whatever they are called"
    if not convention.recognisable:
        own = f" unless the function is {convention.library}'s own" if convention.library else ""
        yield f"its names are another convention's too: name it{own}"


def wrapped(signature: str, width: int = 96) -> Iterator[str]:
    """A long signature on several lines."""
    line = ""
    for word in signature.split(" "):
        if line and len(line) + len(word) >= width:
            yield line
            line = f"    {word}"
        else:
            line = f"{line} {word}" if line else word
    yield line


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
