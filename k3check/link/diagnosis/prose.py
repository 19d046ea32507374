"""Whether a text is one that somebody wrote, an echo, or a tool call that nobody parsed."""

from __future__ import annotations

import re
from typing import Any

# Words and characters that hardly any sentence does without. Token salad has next to none of them,
# whatever its length.
_COMMON = frozenset(
    [
        "the",
        "a",
        "an",
        "is",
        "are",
        "am",
        "was",
        "be",
        "this",
        "that",
        "it",
        "i",
        "you",
        "we",
        "to",
        "of",
        "and",
        "in",
        "for",
        "not",
        "no",
        "yes",
        "on",
        "with",
        "as",
        "at",
        "by",
        "my",
        "your",
        "me",
        "can",
        "will",
        "do",
        "does",
        "hello",
        "hi",
        "sorry",
        "ok",
        "okay",
        "please",
        "here",
        "what",
        "how",
        "done",
        "answer",
        "response",
        "der",
        "die",
        "das",
        "und",
        "ich",
        "ist",
        "nicht",
        "ein",
        "le",
        "la",
        "les",
        "un",
        "une",
        "et",
        "je",
        "est",
        "que",
        "el",
        "los",
        "de",
        "es",
        "si",
        "por",
    ]
)
_COMMON_HAN = frozenset("的一是不了在人有我他这中大来上个们到说和地也你好吗")
_FEW_WORDS = 3
_LEAST_SHARE = 0.1


def readable(text: str) -> bool:
    """True for a text in some language; one of a few words may be anything and counts as one."""
    words = re.findall(r"[^\W\d_]+", text[:4000].lower())
    han = [c for c in text[:4000] if "\u4e00" <= c <= "\u9fff"]
    if len(han) > len(words):
        return len(han) <= _FEW_WORDS or any(c in _COMMON_HAN for c in han)
    if len(words) <= _FEW_WORDS:
        return True
    return sum(word in _COMMON for word in words) >= max(1.0, _LEAST_SHARE * len(words))


def question_of(body: Any) -> str:
    """The last question of a request, in whichever API; empty if it cannot be told."""
    asked = (body or {}).get("messages") or (body or {}).get("input")
    if isinstance(asked, list) and asked and isinstance(asked[-1], dict):
        asked = asked[-1].get("content")
    return asked if isinstance(asked, str) else ""


def echoed(question: str, answer: str) -> bool:
    """The answer is the question again, whole, and hardly anything else."""
    asked, said = " ".join(question.lower().split()), " ".join(answer.lower().split())
    return len(asked) >= 20 and asked in said and len(said) <= 1.5 * len(asked) + 20


# The marks between which models write their calls, before a parser makes calls of them: Kimi's,
# those of Hermes and Qwen, Mistral's, Llama's, DeepSeek's.
_MARKS = re.compile(
    r"<\|tool_calls?_\w+\|>|<tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>|<function=\w+>|"
    r"<｜tool▁calls?▁\w+｜>|<invoke name="
)


def call_marks(text: str) -> str:
    """The first mark of an unparsed tool call, empty if there is none."""
    found = _MARKS.search(text[:100_000])
    return found.group(0) if found else ""
