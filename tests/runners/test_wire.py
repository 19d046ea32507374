"""Messages survive the pipe; foreign bytes are recognised."""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import PurePosixPath
from types import MappingProxyType

import pytest

from k3check.errors import UsageError
from k3check.model import Confidence, Diagnosis, Finding, Message, Outcome
from k3check.runners import wire


def through_a_pipe(kind, **values):
    reader, writer = os.pipe()
    try:
        wire.Sender(writer).send(kind, **values)
        os.close(writer)
        receiver = wire.Receiver()
        while data := os.read(reader, 7):  # never a frame at once
            receiver.feed(data)
        return list(receiver.messages())
    finally:
        os.close(reader)


def test_a_full_finding_survives():
    finding = Finding(
        id="kda_chunk/long",
        suite="flashkda",
        operator="kda_chunk",
        case="long",
        outcome=Outcome.FAIL,
        title="长序列 \udcff",
        metrics={"rel_l2": math.inf, "cosine": 0.1},
        limits={"rel_l2": 1e-3},
        location={"tensor": "output", "token": 64},
        series={"norm": [1.0, -math.inf]},
        diagnoses=(Diagnosis("K3O-013", Confidence.MEDIUM, 0.5, None, {"factor": 2}),),
        hint=Message("K3O-013", {"factor": 2}),
        evidence={"printed": "a\nb"},
        notes=(Message("K3O-001"),),
        duration_s=0.25,
    )
    (message,) = through_a_pipe("finished", finding=wire.finding_to_plain(finding))
    assert wire.finding_from_plain(message["finding"]) == finding


def test_nan_survives():
    finding = Finding("a/b", "kda", None, None, Outcome.FAIL, "t", metrics={"x": math.nan})
    (message,) = through_a_pipe("finished", finding=wire.finding_to_plain(finding))
    assert math.isnan(wire.finding_from_plain(message["finding"]).metrics["x"])


def test_other_mappings_sequences_and_paths_become_plain():
    (message,) = through_a_pipe(
        "x", mapping=MappingProxyType({"a": 1}), seq=range(2), path=PurePosixPath("p")
    )
    assert message == {"kind": "x", "mapping": {"a": 1}, "seq": [0, 1], "path": "p"}


def test_what_is_not_plain_is_refused():
    with pytest.raises(TypeError, match="object in a message"):
        wire.Sender(1).send("x", value=object())


def test_a_usage_error_survives_with_every_field():
    error = UsageError("K3C-060", "what", "where", "found", "accepted", "fix", "detail")
    (message,) = through_a_pipe("usage", error=wire.usage_to_plain(error))
    again = wire.usage_from_plain(message["error"])
    assert vars(again) == vars(error)


def test_an_incomplete_frame_is_no_message_yet():
    receiver = wire.Receiver()
    receiver.feed(struct.pack(">I", 100) + b"{")
    assert list(receiver.messages()) == []


@pytest.mark.parametrize(
    "data",
    [
        b"plain text from somebody else",
        struct.pack(">I", 3) + b"{,}",
        struct.pack(">I", 2) + b"[]",
        struct.pack(">I", 2) + b"{}",
        struct.pack(">I", 12) + b'{"kind": 12}',
        struct.pack(">I", 200_000) + b"[" * 200_000,
        struct.pack(">I", 1) + b"\xff",
    ],
)
def test_foreign_bytes_are_recognised(data):
    receiver = wire.Receiver()
    receiver.feed(data)
    with pytest.raises(wire.BrokenWireError):
        list(receiver.messages())


@pytest.mark.parametrize(
    "change", [{"outcome": "great"}, {"hint": {"x": 1}}, {"diagnoses": [{}]}, {"more": 1}]
)
def test_a_damaged_finding_is_recognised(change):
    plain = wire.finding_to_plain(Finding("a/b", "kda", None, None, Outcome.PASS, "t"))
    with pytest.raises(wire.BrokenWireError):
        wire.finding_from_plain({**json.loads(json.dumps(plain)), **change})
