"""From codes to sentences: what a finding's messages say in the reader's language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k3check import hints
from k3check.hints.phrases import phrase
from k3check.model import BUILT_IN_ONLY, MUTANT, PLACES, Diagnosis, Finding, Message, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from k3check.hints.phrases import Section
    from k3check.model import Report


@dataclass(frozen=True)
class SavedMessage(Message):
    """A message read from a saved report, which keeps the sentence and not the values."""

    text: str = ""


@dataclass(frozen=True)
class SavedDiagnosis(Diagnosis):
    """A diagnosis read from a saved report."""

    slug: str = ""
    title: str = ""


LABELS: dict[str, dict[str, str]] = {
    "en": {
        "pass": "pass",
        "acceptable": "acceptable",
        "fail": "fail",
        "skipped": "skipped",
        "crashed": "crashed",
        "timed_out": "timed out",
        "high": "high confidence",
        "medium": "medium confidence",
        "low": "a lead",
        "measured": "measured",
        "limit": "limit",
        "times": "{ratio} x",
        "worst": "worst at",
        "likely": "likely",
        "found": "found",
        "seen": "seen",
        "warning": "warning",
        "warnings": "warnings",
        "also": "also",
        "again": "as for {check} [{code}]",
        "built_in": "built-in operators only",
        "tensor_right": "{tensor} right",
        "tensor_wrong": "{tensor} wrong",
        "like_rounding": "an error of rounding's size",
        "like_precision": "small error",
        "like_structure": "large error",
        "cosine": "cosine {value}",
        "best_scale": "scale {value}",
        "first_bad_token": "from token {value}",
        "follow": "{count} more fail in the same way: ",
        "follows": "1 more fails in the same way: ",
        "same": "{count} more: the same, at the same place",
        "same_one": "1 more: the same, at the same place",
        "timed_out_too": "{count} more timed out",
        "or": "or",
        "and": "and",
        "residual": "residual {residual} x baseline error",
        "margin": "next candidate {margin} x further away",
        "fix": "fix",
        "more": "more",
        "error": "error",
        "where": "where",
        "found_there": "found",
        "accepted": "accepted",
        "others": "and {count} more:",
        "one_other": "and 1 more:",
        "unlisted": "... and {count} more",
        "interrupted": "interrupted",
        "nothing": "nothing was checked",
        "written": "written to",
        "no_file": "no configuration file; defaults, variables and options only",
        "hides": "shadows {hidden} from {where}",
        "requests_go_to": "requests go to",
        "hidden_defaults": "{count} keys that nothing sets: -v shows them",
        "failed_so_far": "{count} failed",
        "note": "note",
        "notes": "notes",
        "hidden_notes": "{count} notes on checks: -v shows them",
        "hidden_note": "1 note on a check: -v shows it",
        "cut": "... {count} more lines: -v shows them",
        "in": "in",
        "config": "configuration",
        "checks": "checks",
        "check": "check",
        "outcome": "outcome",
        "environment": "environment",
        "unset": "not set",
        "requests": "sends to",
        "shadows": "shadows",
        "setups": "{count} tools are set up here",
        "one_setup": "1 tool is set up here",
        "what": "What is checked",
        "why": "Why it matters",
        "tell": "How to tell",
        "cause": "Typical cause",
        "how": "Fix",
        "sketch": "Sketch",
        "origin": "Seen in",
    },
    "zh": {
        "pass": "通过",
        "acceptable": "可接受",
        "fail": "失败",
        "skipped": "跳过",
        "crashed": "崩溃",
        "timed_out": "超时",
        "high": "置信度高",
        "medium": "置信度中",
        "low": "线索",
        "measured": "实测",
        "limit": "上限",
        "times": "{ratio} 倍",
        "worst": "最差位置",
        "likely": "可能原因",
        "found": "发现",
        "seen": "观察",
        "warning": "警告",
        "warnings": "警告",
        "also": "另外",
        "again": "同 {check} [{code}]",
        "built_in": "仅内置算子",
        "tensor_right": "{tensor} 正确",
        "tensor_wrong": "{tensor} 错误",
        "like_rounding": "误差为舍入量级",
        "like_precision": "误差小",
        "like_structure": "误差大",
        "cosine": "余弦 {value}",
        "best_scale": "缩放 {value}",
        "first_bad_token": "从第 {value} 个 token 起",
        "follow": "另有 {count} 项以同样的方式失败：",
        "follows": "另有 1 项以同样的方式失败：",
        "same": "另有 {count} 项：在同一位置、同样的方式",
        "same_one": "另有 1 项：在同一位置、同样的方式",
        "timed_out_too": "另有 {count} 项超时",
        "or": "或",
        "and": "以及",
        "residual": "残差为基线误差的 {residual} 倍",
        "margin": "次优候选远 {margin} 倍",
        "fix": "修复",
        "more": "详情",
        "error": "错误",
        "where": "位置",
        "found_there": "实际",
        "accepted": "可接受",
        "others": "另有 {count} 处：",
        "one_other": "另有 1 处：",
        "unlisted": "... 还有 {count} 处",
        "interrupted": "已中断",
        "nothing": "没有检查任何内容",
        "written": "已写入",
        "no_file": "没有配置文件；只有默认值、环境变量和选项",
        "hides": "覆盖了 {where} 的 {hidden}",
        "requests_go_to": "请求地址",
        "hidden_defaults": "另有 {count} 项未设置: 用 -v 显示",
        "failed_so_far": "{count} 项失败",
        "note": "提示",
        "notes": "提示",
        "hidden_notes": "检查项上有 {count} 条提示: 用 -v 显示",
        "hidden_note": "检查项上有 1 条提示: 用 -v 显示",
        "cut": "... 另有 {count} 行: 用 -v 显示",
        "in": "用时",
        "config": "配置",
        "checks": "检查项",
        "check": "检查",
        "outcome": "结果",
        "environment": "环境",
        "unset": "未设置",
        "requests": "发送到",
        "shadows": "被覆盖",
        "setups": "本机有 {count} 个工具的设置",
        "one_setup": "本机有 1 个工具的设置",
        "what": "检查什么",
        "why": "为什么重要",
        "tell": "如何判断",
        "cause": "常见原因",
        "how": "修复",
        "sketch": "示例",
        "origin": "出处",
    },
}


def label(name: str, lang: str, **values: object) -> str:
    """A word of the report's own frame."""
    return LABELS.get(lang, LABELS["en"])[name].format(**values)


def title_of(message: Message | Diagnosis, lang: str) -> str:
    """The sentence of a message or diagnosis; the code itself where this version has no text."""
    if isinstance(message, SavedDiagnosis):
        return message.title
    if isinstance(message, SavedMessage):
        return message.text
    if hints.find(message.code) is None:
        return message.code
    return hints.title(message.code, lang, _told(message, lang))


def fix_of(message: Message | Diagnosis, lang: str) -> str:
    """The imperative sentence of a message; empty where there is none."""
    if isinstance(message, SavedMessage):
        return message.text
    if isinstance(message, SavedDiagnosis) or hints.find(message.code) is None:
        return ""
    return hints.fix(message.code, lang, _told(message, lang))


def _told(message: Message | Diagnosis, lang: str) -> Mapping[str, object]:
    """A message's values; those that are sentences of ours in the language."""
    section: Section = "mutants" if message.code in (MUTANT, PLACES) else "reasons"
    return {
        name: phrase(value, lang, section) if isinstance(value, str) else value
        for name, value in message.values.items()
    }


def check_title(finding: Finding, lang: str) -> str:
    """What was checked, in a few words."""
    return phrase(finding.title, lang, "titles")


def slug_of(diagnosis: Diagnosis) -> str:
    """The slug of a diagnosis; empty where this version does not know the code."""
    if isinstance(diagnosis, SavedDiagnosis):
        return diagnosis.slug
    if diagnosis.code == MUTANT:
        return str(diagnosis.values.get("slug", "mutant.unlisted"))
    entry = hints.find(diagnosis.code)
    return entry.slug if entry is not None else ""


def hint_of(finding: Finding) -> Message | None:
    """What to do about a finding: its own hint, else that of its first diagnosis."""
    if finding.hint is not None:
        return finding.hint
    first = next(iter(finding.diagnoses), None)
    if first is None or isinstance(first, SavedDiagnosis):
        return None
    return Message(first.code, first.values)


def note_of(note: Message, lang: str) -> str:
    """A note in full: what is noted, and what to do about it."""
    if isinstance(note, SavedMessage):
        return note.text
    return joined(title_of(note, lang), fix_of(note, lang), lang)


def joined(title: str, fix: str, lang: str) -> str:
    """What is wrong and what to do about it, as two sentences."""
    if not fix:
        return title
    return f"{title.rstrip('.。')}{'。' if lang == 'zh' else '. '}{fix}"


# Some reasons begin with the outcome, which every format says itself.
_SKIPPED = re.compile(r"^(?:skipped: |已跳过：|跳过：)")


def reason_of(finding: Finding, lang: str) -> str:
    """Why a check was skipped: its hint, else its first note, else the evidence's reason."""
    reason = str(finding.evidence.get("reason", ""))
    for message in (*((finding.hint,) if finding.hint else ()), *finding.notes):
        reason = title_of(message, lang)
        break
    return _SKIPPED.sub("", reason)


def other_notes(finding: Finding) -> Sequence[Message]:
    """A finding's notes without those that :func:`reason_of` and the summary already say."""
    said = finding.outcome is Outcome.SKIPPED and finding.hint is None
    notes = finding.notes[1:] if said else finding.notes
    return [note for note in notes if note.code != BUILT_IN_ONLY]


def verdict_word(report: Report, lang: str) -> str:
    """The verdict, and what a reader must not take it for."""
    word = outcome_word(report.verdict, lang)
    if report.built_in_note is None:
        return word
    return f"{word} ({label('built_in', lang)})"


def outcome_word(outcome: Outcome, lang: str) -> str:
    """An outcome as a word."""
    return label(outcome.value, lang)


def summary_line(counts: dict[Outcome, int], lang: str) -> str:
    """``12 pass, 1 fail``: the outcomes that occurred."""
    seen = [f"{n} {outcome_word(outcome, lang)}" for outcome, n in counts.items() if n]
    return ", ".join(seen)
