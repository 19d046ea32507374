"""The facts of the released model agree with each other and with what the texts say."""

from __future__ import annotations

import json
import re
from pathlib import Path

from k3check import released
from k3check.config import facts
from k3check.config.describe import _property
from k3check.config.model_map import by_period


def test_the_layers_add_up() -> None:
    assert (released.LAYERS, released.KDA_LAYERS, len(released.MLA_LAYERS)) == (93, 69, 24)
    assert (released.BLOCK, released.BLOCKS) == (12, 8)
    kinds = by_period(released.LAYERS)
    rule = [index + 1 for index, kind in enumerate(kinds) if kind == "mla"]
    assert [*rule, 93] == list(released.MLA_LAYERS)


def test_the_keys_descriptions_name_the_same_numbers() -> None:
    told = 0
    for fact in facts.FACTS:
        text = _property(fact.key)["description"]
        number = re.search(r"(?:^|[; ])(-?[0-9][0-9.e-]*|true) (?:in K3)|K3 fixes ([0-9.]+)", text)
        if number is None or fact.right is None:
            continue
        stated = json.loads((number[1] or number[2]).rstrip("."))
        assert stated == fact.right, fact.key
        told += 1
    assert told > 20


def test_no_other_file_has_the_facts() -> None:
    root = Path(released.__file__).parent
    names = re.compile(r"1_048_576|\b(?:7168|33792|896|3584|1536)\b")
    for path in (root / "config").glob("*.py"):
        code = re.sub(r'description="[^"]*"', "", path.read_text("utf-8"))
        assert not names.search(code), path.name
    for path in (root / "link").rglob("*.py"):
        assert not names.search(path.read_text("utf-8")), path.name
