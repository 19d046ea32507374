"""Write docs/conventions-operators.md: the conventions of every operator beside KDA's sequences.

Run it from the repository's root after a change of one:
``python docs/make_operator_conventions.py``. A test holds the page against what this would write,
and runs every example on it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from recorded_call import SPECS, arguments, parameters

from k3check.nouns.capabilities import WORDS
from k3check.operators import families

if TYPE_CHECKING:
    from collections.abc import Iterator

    from k3check.nouns.convention import Convention, Example
    from k3check.nouns.operator import Operator

PAGE = Path(__file__).with_name("conventions-operators.md")
INTRODUCTION = """\
# Calling conventions of the other operators

[Those of KDA](conventions.md) (`kda_step`, `kda_recurrent`, `kda_chunk`) have a page of their own,
which also says what a convention is and how one is recognised.

Each section shows a function of the form and the command that checks it; write your code in place
of the dots. The table is what the function is called with. *dtype* and *state_dtype* are the
declared ones (`--dtype`, `--state-dtype`), float32 without. *Where your function has it* means
that a function without the parameter is called without it; what cannot be checked then is skipped,
and the report names the parameter to add. *In some cases*: the others have no such input.
Further parameters need a default, or a value in `options`.

A function that only takes some numbers of tokens says so in the configuration:

```toml
[operators.short_conv]
target = "kernels/conv.py:short_conv"
multiple_of = 64
```

Lengths are then rounded up, and the report says so in the case's title; what is about a single
token, or about lengths in between, is skipped.

*This page is written by `docs/make_operator_conventions.py`.*
"""
#: What an instance is called with, where the convention is a class.
CALLED = {"gated_rms_norm": ("forward", "x, g"), "situ_glu": ("forward", "x")}
LETTERS = {
    "short_conv": "B sequences of T tokens, or N packed into one row; C channels, a kernel of W.",
    "gated_rms_norm": "B sequences of T tokens, H heads of D.",
    "gated_mla": "B sequences of T tokens behind P cached ones; a model width of D, H heads; Rq is "
    "the width of the query's latent.",
    "mxfp4_dequant": "R rows of C values.",
    "attn_res": "N sources, the prefix included, of T tokens and D channels.",
    "moe_router": "T tokens of D channels, E experts of which k are chosen.",
    "situ_glu": "T tokens, I values behind the activation.",
    "latent_moe": "T tokens of D channels, a latent of L, E experts of which k are chosen, I "
    "values inside each and S inside the shared one.",
    "kda_gate": "B sequences of T tokens, HV heads of v, K channels. A_log is the case's own: in "
    "`spare-rates` it has more entries than there are heads.",
}


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, *contents()]
    for operator in operators():
        parts += [f"## {operator.name}", "", f"{operator.title}. {LETTERS[operator.name]}", ""]
        for convention in operator.conventions.values():
            assert convention.example is not None, f"{convention.name} has no example"
            parts += [*section(operator, convention, convention.example), ""]
    return "\n".join(parts).rstrip() + "\n"


def operators() -> list[Operator]:
    """Every operator of the page."""
    return [op for f in families() for op in f.operators if op.name in SPECS]


def contents() -> Iterator[str]:
    """A line an operator, with its conventions."""
    for operator in operators():
        yield f"- [{operator.name}](#{operator.name}): {', '.join(operator.conventions)}"
    yield ""


def section(operator: Operator, convention: Convention, example: Example) -> Iterator[str]:
    """One convention: function, command, arguments, result."""
    yield from (f"### {operator.name}: {convention.name}", "", f"{convention.summary}.", "")
    yield from ("```python", *function(operator, convention, example), "```", "")
    yield from ("```sh", command(operator, convention, example), "```", "")
    passed, instance = arguments(operator, convention, example)
    yield from ("| parameter | what is passed | when |", "|---|---|---|")
    for argument in passed:
        yield f"| `{argument.name}` | {argument.passed} | {argument.when} |"
    yield ""
    if instance:
        yield f"- the instance is called with {', '.join(instance)}"
    yield f"- returns {example.returns}"
    for parameters_, words in needed(convention).items():
        yield f"- without {parameters_}: no check of {', '.join(words)}"
    room = sorted({n for c in operator.cases for n in c.needs} & {*WORDS})
    interface = convention.bind(frozenset(parameters(example.signature)), example.options).interface
    without = [WORDS[name] for name in room if name not in interface.supports]
    if without:
        yield f"- not taken, and not checked: {', '.join(without)}"
    if convention.telling:
        yield f"- recognised by one of {', '.join(convention.telling)}; else name it"
    if convention.positional:
        yield "- arguments are passed by position, whatever they are called"


def needed(convention: Convention) -> dict[str, list[str]]:
    """Parameters -> what is not checked without them."""
    found: dict[str, list[str]] = {}
    for capability, names in convention.abilities.items():
        key = " and ".join(f"`{name}`" for name in names)
        found.setdefault(key, []).append(WORDS[capability])
    return found


def function(operator: Operator, convention: Convention, example: Example) -> Iterator[str]:
    """The example's code, without what it computes."""
    name, _, rest = example.signature.partition("(")
    yield f"# {example.target.partition(':')[0]}"
    if convention.name != "module":
        yield from wrapped(f"def {example.signature}:")
        yield "    ..."
        return
    method, taken = CALLED[operator.name]
    yield from (f"class {name}(torch.nn.Module):", *wrapped(f"    def __init__(self, {rest}:"))
    yield from ("        super().__init__()", "        ...")
    yield from (f"    def {method}(self, {taken}):", "        ...")


def command(operator: Operator, convention: Convention, example: Example) -> str:
    """The command that checks the example."""
    named = f"--convention {operator.name}={convention.name}"
    if convention.name in operator.semantics:
        named += f" --semantics {operator.name}={convention.name}"
    return f"k3check ops --operator {operator.name}={example.target} {named}"


def wrapped(line: str, width: int = 96) -> Iterator[str]:
    """A long signature on several lines."""
    indent = " " * (len(line) - len(line.lstrip()) + 8)
    current = line[: len(line) - len(line.lstrip())]
    for word in line.split():
        if current.strip() and len(current) + len(word) >= width:
            yield current
            current = f"{indent}{word}"
        else:
            current = f"{current} {word}" if current.strip() else f"{current}{word}"
    yield current


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
