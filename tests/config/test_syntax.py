"""TOML and JSON: positions of keys, and syntax errors with line, column and caret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from k3check.config import json_text, toml_text
from k3check.config.document import Position, dotted
from k3check.config.source import Source
from k3check.errors import UsageError

if TYPE_CHECKING:
    from tests.config.support import Refuser

KEY = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)
SCALAR = (
    st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
    | st.sampled_from(['a"b', "a'b", '"""', "'''", "a\\", "a\nb", "[x]", "#", "k = 1"])
)
TABLES = st.dictionaries(
    KEY,
    st.recursive(
        SCALAR,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
        max_leaves=12,
    ),
    max_size=4,
)


def paths(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    if isinstance(data, dict):
        for key, value in data.items():
            found += paths(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            found += paths(value, (*path, index))
    return found


@given(TABLES)
def test_toml_every_key_has_a_position(data: dict[str, Any]) -> None:
    text = tomli_w.dumps(data)
    parsed, positions = toml_text.parse(Source(text, "x.toml"))
    assert parsed == data
    assert set(positions) == set(paths(data))
    lines = text.split("\n")
    for path, place in positions.items():
        rest = lines[place.line - 1][place.column - 1 :]
        # What stands there starts the key, its header, or the list's item.
        if isinstance(path[-1], str) and path[-1].isascii() and path[-1].isalnum():
            assert path[-1] in rest


@given(TABLES, st.sampled_from([None, 2]))
def test_json_every_key_has_a_position(data: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    parsed, positions = json_text.parse(Source(text, "x.json"))
    assert parsed == data
    assert set(positions) == set(paths(data))
    lines = text.split("\n")
    for path, place in positions.items():
        if isinstance(path[-1], str):
            rest = lines[place.line - 1][place.column - 1 :]
            assert rest.startswith(json.dumps(path[-1], ensure_ascii=False))


TOML = '''\
# first
[api]   # comment
base_url = "a # b"
 timeout_seconds=5

[operators . "kda_chunk"]
options = { scale = 1.0, "odd.key" = [ 1,
  2 ] }
notes = """
[not.a.table]
k = 1
"""
lit = \'\'\'
k = 2\'\'\'
a.b.c = 1
[[list]]
x = 1
[[list]]
y = 2
[list.sub]
z = 3
'''


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        (("api",), 2, 1),
        (("api", "base_url"), 3, 1),
        (("api", "timeout_seconds"), 4, 2),
        (("operators", "kda_chunk"), 6, 1),
        (("operators", "kda_chunk", "options", "scale"), 7, 13),
        (("operators", "kda_chunk", "options", "odd.key"), 7, 26),
        (("operators", "kda_chunk", "options", "odd.key", 1), 8, 3),
        (("operators", "kda_chunk", "notes"), 9, 1),
        (("operators", "kda_chunk", "lit"), 13, 1),
        (("operators", "kda_chunk", "a", "b", "c"), 15, 1),
        (("list", 0, "x"), 17, 1),
        (("list", 1, "y"), 19, 1),
        (("list", 1, "sub", "z"), 21, 1),
    ],
)
def test_toml_positions(path: tuple[str | int, ...], line: int, column: int) -> None:
    data, positions = toml_text.parse(Source(TOML, "x.toml"))
    assert positions[path] == Position(line, column)
    assert set(positions) == set(paths(data)) | {("list",)}


@pytest.mark.parametrize(
    ("text", "code", "where", "words"),
    [
        ('{\n  "base_url": "x",\n  // no\n}', "K3C-013", "3:3", ""),
        ('// no\n{"base_url": "x"}', "K3C-013", "1:1", ""),
        ('{"base_url": /* no */ "x"}', "K3C-013", "1:14", ""),
        ('{"base_url": "x",\n}', "K3C-014", "1:17", "'}'"),
        ('{"base_url": ["x",]}', "K3C-014", "1:18", "']'"),
        ('{"base_url": "x",\n"base_url": "y"}', "K3C-015", "2:1", "line 1"),
        ('{"a": {"b": 1, "b": 2}}', "K3C-015", "1:16", "a.b"),
        ('{"base_url": "x"', "K3C-012", "1:17", "ends before '}'"),
        ('{"base_url": }', "K3C-012", "1:14", "expected a value"),
        ('{"base_url" "x"}', "K3C-012", "1:13", "':'"),
        ('{"a": 1 "b": 2}', "K3C-012", "1:9", "','"),
        ("{'base_url': 1}", "K3C-012", "1:2", "double quotes"),
        ("{“base_url”: 1}", "K3C-012", "1:2", "double quotes"),
        ("{base_url: 1}", "K3C-012", "1:2", "double quotes"),
        ('{"a": True}', "K3C-012", "1:7", "write true"),
        ('{"a": NaN}', "K3C-012", "1:7", "NaN"),
        ('{"a": 1} x', "K3C-012", "1:10", "follows"),
        ('{"a": "x', "K3C-012", "1:7", "closing double quote"),
        ('{"a": "x\ny"}', "K3C-012", "1:9", "line break"),
        ('{"a": "\\q"}', "K3C-012", "1:8", "escape"),
        ("[1]", "K3C-017", None, ""),
        ('"text"', "K3C-017", None, ""),
        ('{"a":' + "[" * 100 + "]" * 100 + "}", "K3C-016", "1:37", "32"),
        ("{" + '"a":{' * 50000, "K3C-016", None, "32"),
        ('{"a": ' + "9" * 5000 + "}", "K3C-018", "1:7", ""),
        ('{"model": "\\ud800"}', "K3C-019", None, ""),
        ('{"\\ud800": 1}', "K3C-019", None, ""),
        ('{"model": "\\u0000"}', "K3C-019", None, ""),
    ],
)
def test_json_errors(text: str, code: str, where: str | None, words: str, refused: Refuser) -> None:
    error = refused(text, "settings.json")
    assert error.code == code
    if where is not None:
        assert error.where == f"settings.json:{where}"
    assert words in error.what


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("[api]\nbase_url = x\n", "K3C-011", "2:12"),
        ("[api\n", "K3C-011", "1:5"),
        ("[api]\na = 1\na = 2\n", "K3C-029", "3:1  api.a"),
        ("[api]\na : 1\n", "K3C-011", "2:3"),
        ("[api]\na = “x”\n", "K3C-011", "2:5"),
        ("a = [" * 5000, "K3C-011", None),
        ("a = " + "[" * 5000 + "]" * 5000, "K3C-016", None),
        (".".join("a" * 5000) + " = 1", "K3C-016", None),
        ("a = " + "{a = " * 40 + "1" + "}" * 40, "K3C-016", None),
        ("a = " + "9" * 5000, "K3C-018", None),
        ("a = 0x" + "f" * 5000, "K3C-018", None),
        ("[kda]\nd_k = 9223372036854775808\n", "K3C-018", "2  kda.d_k"),
        ("[kda]\nd_k = 2020-01-01\n", "K3C-022", "2  kda.d_k"),
    ],
)
def test_toml_errors(text: str, code: str, where: str | None, refused: Refuser) -> None:
    error = refused(text)
    assert error.code == code
    if where is not None:
        assert error.where == f"config.toml:{where}"


def test_the_caret_stands_under_the_column(refused: Refuser) -> None:
    detail = refused("[api]\nbase_url = x\n").detail
    assert detail is not None
    line, caret = detail.split("\n")
    assert line == "2 | base_url = x"
    assert caret == "  |            ^"
    assert line[caret.index("^")] == "x"


def test_a_long_line_is_cut_around_the_caret(refused: Refuser) -> None:
    detail = refused("a = [" + "1, " * 200 + "? ]").detail
    assert detail is not None
    line, caret = detail.split("\n")
    assert len(line) < 80
    assert line[caret.index("^")] == "?"


def test_a_json_value_alone_is_named() -> None:
    with pytest.raises(UsageError):
        json_text.parse(Source('{"a": 1', "x"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("a", "b-c"), "a.b-c"),
        (("a", "b.c", 0, "d"), 'a."b.c"[0].d'),
        (('q"x',), '"q\\"x"'),
    ],
)
def test_dotted(path: tuple[str | int, ...], text: str) -> None:
    assert dotted(path) == text


@pytest.mark.parametrize(
    ("text", "key", "first", "second"),
    [
        ("[api]\nmax_retries = 1\n\nmax_retries = 2\n", "api.max_retries", 2, "4:1"),
        ("[api]\na = 1\n[model]\nname = 'x'\n[api]\nb = 2\n", "api", 1, "5:1"),
        ("[a]\nb = 1\n[a.b]\nc = 1\n", "a.b", 2, "3:1"),
        ("a = { x = 1, y = 2, x = 3 }\n", "a.x", 1, "1:21"),
        ('a = 1\n"a" = """\nlong\n"""\n', "a", 1, "2:1"),
        ("[[a]]\n[a.b]\n[[a]]\n[a.b]\nc = 1\nc = 2\n", "a[1].b.c", 5, "6:1"),
        ("a.b = 1\na.c = 1\na.b = [\n1,\n]\n", "a.b", 1, "3:1"),
        ("# one\u2028line\na = 1\na = 1", "a", 2, "3:1"),
    ],
)
def test_a_toml_key_that_is_written_twice_is_named_with_both_lines(
    text: str, key: str, first: int, second: str, refused: Refuser
) -> None:
    error = refused(text)
    assert error.code == "K3C-029"
    assert error.where == f"config.toml:{second}  {key}"
    assert error.what == f"{key} is written twice, first in line {first}"
    assert error.fix == "Keep one of the two."


@pytest.mark.parametrize("text", ["[a]\nb = 1\n[c\n", "a = 1\nb = [1,\n", "a = 1 a = 1\n"])
def test_other_toml_mistakes_stay_syntax_errors(text: str, refused: Refuser) -> None:
    assert refused(text).code == "K3C-011"
