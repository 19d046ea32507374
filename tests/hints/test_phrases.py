"""What is said without a code is said in Chinese, too."""

from __future__ import annotations

import ast
import json
import pickle
import re
import string
from pathlib import Path

import pytest

from k3check import hints
from k3check.checking import plan
from k3check.config.problems import meant, problem
from k3check.hints.phrases import _phrases, coded, phrase
from k3check.link.probes import probes
from k3check.masking import Masker
from k3check.model import Text, from_plain, to_plain
from k3check.nouns.capabilities import WORDS, listed, not_taken
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.runners.built_in import told_apart

CHINESE = re.compile(r"[\u4e00-\u9fff]")
# Texts that are the same word in Chinese.
SAME = ("token", "base URL", "{name}：{reason}")


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("profile", ["quick", "full", "stress"])
def test_every_title_of_a_check_of_operators_has_a_phrase(profile: str) -> None:
    yours = {"kda_chunk": CandidateSpec("kda_chunk", target="a:b", convention="k3check")}
    requests = [
        OpsRequest(profile=profile),
        OpsRequest(profile=profile, settings={"kda": {"d_k": 96, "d_v": 32}}),
        OpsRequest(profile=profile, candidates=yours),
    ]
    for request in requests:
        checks = plan(request, lambda *_args: lambda **_inputs: None)
        assert checks
        for check in told_apart(checks, request):
            assert CHINESE.search(phrase(check.title, "zh", "titles")), check.title


def test_every_title_of_a_probe_has_a_phrase() -> None:
    assert probes()
    for probe in probes():
        assert CHINESE.search(phrase(probe.title, "zh", "titles")), probe.title


def test_every_capability_has_a_phrase() -> None:
    for words in WORDS.values():
        assert CHINESE.search(phrase(words, "zh", "reasons")), words


def test_phrases_are_complete() -> None:
    for section in _phrases().values():
        for english, chinese in section.items():
            assert CHINESE.search(chinese) or chinese in SAME
            assert names(chinese) == names(english)


def test_what_fills_a_text_is_told_too() -> None:
    reason = Text(
        "{name} has no parameter {names}: add it for {what}",
        name="f()",
        names="cu_seqlens",
        what=listed(["packed"]),
    )
    assert reason == "f() has no parameter cu_seqlens: add it for packed sequences"
    assert phrase(reason, "zh", "reasons") == "f() 没有参数 cu_seqlens：加上它以支持打包序列"
    several = not_taken({"final_state", "initial_state", "own_thing"})
    assert several == "the convention does not take a final state, an initial state, own thing"
    assert phrase(several, "zh", "reasons") == "该约定不接受最终状态、初始状态、own thing"
    title = Text("in multiples of {m}: {title}", m=64, title="one token, quick forgetting")
    assert title == "in multiples of 64: one token, quick forgetting"
    assert phrase(title, "zh", "titles") == "长度为 64 的倍数：一个 token，快速遗忘"


def test_no_finished_sentence_is_taken_apart() -> None:
    for section, words in _phrases().items():
        for english in words:
            if section == "mutants" or "{" not in english:
                continue
            filled = english.format(**dict.fromkeys(names(english), "x1"))
            assert phrase(filled, "zh", section) == filled


def test_every_template_in_the_code_has_a_phrase() -> None:
    """And no phrase with placeholders is left that nothing says."""
    said: set[str] = set()
    for path in Path(hints.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                said.add(node.value)
    endings = {s for s in said if s.startswith((" from {low}", " of at most {n}", " above {low}"))}
    for section, words in _phrases().items():
        for english in words:
            if "{" not in english or section in ("mutants", "evidence"):
                continue
            assert english in said or any(english.endswith(end) for end in endings), english


def test_a_text_survives_the_pipe_and_masking() -> None:
    key = "sk-canary-7Qm2vX9pLw4Zt8Kd"
    inner = Text("{name} is not set", name=key)
    text = Text("{title} x{n}", title=inner, n=2)
    back = from_plain(json.loads(json.dumps(to_plain({"a": [text, "b", 1]}))))
    assert back == {"a": [f"{key} is not set x2", "b", 1]}
    assert back["a"][0].values["title"].template == "{name} is not set"
    assert pickle.loads(pickle.dumps(text)) == text
    masked = Masker([key]).value(text)
    assert masked == "*** is not set x2"
    assert masked.values["title"].template == "{name} is not set"


@pytest.mark.parametrize("text", ["", "my own words {x}", "a\nb", "ValueError: a text"])
def test_other_words_stay_as_they_are(text: str) -> None:
    for section in ("titles", "reasons", "evidence", "usage"):
        assert phrase(text, "zh", section) == text
    assert phrase("a text", "en", "usage") == "a text"


@pytest.mark.parametrize("code", [code for code in hints.codes() if code.startswith("K3C")])
def test_a_usage_error_is_said_in_chinese_by_its_code(code: str) -> None:
    entry = hints.get(code)
    values = {name.partition(":")[0]: f"<{name}-1>" for name in names(entry.title["en"])}
    title = Text(entry.title["en"], hints.title(code, values=values), **values)
    assert coded(code, title, "zh") == hints.title(code, "zh", values)
    assert coded(code, title, "en") == title
    assert coded(code, "something else entirely", "zh") == "something else entirely"


def test_an_error_says_by_itself_which_code_and_values_it_has() -> None:
    error = problem("K3C-080", where="kda2", name="kda2")
    assert error.what == "there is no suite kda2"
    assert coded("K3C-080", error.what, "zh") == "没有名为 kda2 的套件"
    assert error.fix is not None
    assert CHINESE.search(coded("K3C-080", error.fix, "zh"))
    assert coded("K3C-080", meant("kda"), "zh") == '是否想写 "kda"？'
