"""What is said without a code is said in Chinese, too."""

from __future__ import annotations

import re
import string

import pytest

from k3check import hints
from k3check.checking import plan
from k3check.hints.phrases import _phrases, phrase, retold
from k3check.link.probes import probes
from k3check.nouns.abilities import WORDS
from k3check.nouns.request import CandidateSpec, OpsRequest
from k3check.runners.built_in import told_apart

CHINESE = re.compile(r"[\u4e00-\u9fff]")
# Texts that are the same word in Chinese.
SAME = ("token", "base URL")


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


def test_what_stands_in_a_phrase_is_told_too() -> None:
    reason = "f() has no parameter cu_seqlens: add it for packed sequences"
    assert phrase(reason, "zh", "reasons") == "f() 没有参数 cu_seqlens：加上它以支持打包序列"
    several = "the convention does not take a final state, an initial state"
    assert phrase(several, "zh", "reasons") == "该约定不接受最终状态、初始状态"
    assert phrase("a final state, my own", "zh", "reasons") == "a final state, my own"
    title = "one token, quick forgetting (lengths rounded up to multiples of 64)"
    assert phrase(title, "zh", "titles") == ("一个 token，快速遗忘（长度已向上取整为 64 的倍数）")


@pytest.mark.parametrize("text", ["", "my own words {x}", "a\nb", "ValueError: a text"])
def test_other_words_stay_as_they_are(text: str) -> None:
    for section in ("titles", "reasons", "evidence", "usage"):
        assert phrase(text, "zh", section) == text
    assert phrase("a text", "en", "usage") == "a text"


@pytest.mark.parametrize("code", [code for code in hints.codes() if code.startswith("K3C")])
def test_a_filled_sentence_is_told_again_in_chinese(code: str) -> None:
    entry = hints.get(code)
    values = {name.partition(":")[0]: f"<{name}-1>" for name in names(entry.title["en"])}
    filled = hints.title(code, values=values)
    assert retold(code, filled, "zh", "title") == hints.title(code, "zh", values)
    assert retold(code, filled, "en", "title") == filled
    assert retold(code, "something else entirely", "zh", "title") is None
