"""Situations: what a client was given, what the endpoint answers, and what is true.

``public_cases`` are rebuilt from public reports, ``own_cases`` are further ones that the rows of
the diagnosis were not written for. Each case stands for its kind.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3check.link.probes.tools import NAME, SCHEMA
from tests.link.faulty import Connection, FaultyServer, Request, http, sse

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

FOLDERS = ("public_cases", "own_cases")
ARGUMENTS = {"room": "Curie", "slot": {"day": "tuesday", "hour": 15}, "guests": ["Ada", "Emmy"]}
assert set(ARGUMENTS) == set(SCHEMA["required"])


def cases(*folders: str) -> list[dict[str, Any]]:
    """The cases of the folders, each with its file's name as ``id``."""
    here = Path(__file__).parent
    files = [f for folder in folders or FOLDERS for f in sorted((here / folder).glob("*.json"))]
    return [json.loads(f.read_text("utf-8")) | {"id": f.stem} for f in files]


def question_of(document: Any) -> str:
    """The question's text, in whichever API."""
    asked = document.get("messages") or document.get("input") or ""
    if isinstance(asked, str):
        return asked
    content = asked[-1].get("content", "")
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)


def fits(when: dict[str, Any], request: Request, document: Any) -> bool:
    """Whether an answer is meant for a request."""
    path = request.target.partition("?")[0]
    if when.get("method", request.method) != request.method:
        return False
    if "path" in when and not fnmatchcase(path, when["path"]):
        return False
    for word in when.get("has", ()):
        if word == "tools":
            good = bool(document.get("tools"))
        elif word == "stream":
            good = document.get("stream") is True
        elif word.startswith("model="):
            good = document.get("model") == word.removeprefix("model=")
        else:
            name, _, pattern = word.removeprefix("header ").partition("=")
            good = fnmatchcase(request.headers.get(name, ""), pattern)
        if not good:
            return False
    return True


@dataclass
class Server(FaultyServer):
    """Answers as a case says."""

    scripts: list[Any] = field(default_factory=list)
    case: dict[str, Any] = field(default_factory=dict)
    connections: int = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def play(self, case: dict[str, Any]) -> None:
        """Take a case; what came before is forgotten."""
        self.case, self.connections = case, 0
        self.requests.clear()

    def _talk(self, sock: socket.socket) -> None:
        self.connections += 1
        raw = self.case.get("otherwise")
        if isinstance(raw, dict) and "raw" in raw:
            sock.sendall(raw["raw"].encode("latin-1"))
            Connection(sock, self._stopped).reset()
            return
        self.scripts = [self._script]
        super()._talk(sock)

    def _script(self, connection: Connection, request: Request) -> None:
        document = json.loads(request.body) if request.body else {}
        answers = self.case.get("answers", ())
        chosen = next((a for a in answers if fits(a["when"], request, document)), None)
        told = self.case["otherwise"] if chosen is None else chosen.get("answer", chosen)
        with contextlib.suppress(OSError):
            connection.send(self._bytes(told, request, document))

    def _bytes(self, told: Any, request: Request, document: Any) -> bytes:
        if told == "healthy":
            return self._healthy(request, document, {})
        if "healthy_but" in told:
            return self._healthy(request, document, told["healthy_but"])
        body = _filled(told.get("body", ""), document)
        headers = dict(told.get("headers", {}))
        kind = headers.pop("content-type", None)
        text = body if isinstance(body, str) else json.dumps(body)
        return http(told["status"], text, kind, headers=headers.items())

    def _healthy(self, request: Request, document: Any, but: dict[str, Any]) -> bytes:
        path = request.target.partition("?")[0]
        if request.method == "GET" and path.endswith("/models"):
            card = {"id": self.case["model"], "object": "model"}
            return http(200, {"object": "list", "data": [card]})
        for tail, make in (
            ("/chat/completions", _chat),
            ("/messages", _messages),
            ("/responses", _responses),
        ):
            if request.method == "POST" and path.endswith(tail):
                return make(document, _filled(but, document))
        return http(404, {"error": {"message": "not found"}})


def word_of(text: str) -> str:
    """The word that is asked for."""
    found = re.search(r"nothing else: (\S+)|the word (\w+) and nothing", text)
    return (found.group(1) or found.group(2)) if found else "done"


def _filled(value: Any, document: Any) -> Any:
    """A body with its placeholders filled."""
    if isinstance(value, dict):
        return {k: _filled(v, document) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(v, document) for v in value]
    if not isinstance(value, str):
        return value
    question = question_of(document) if document else ""
    for name, text in (
        ("{question}", question),
        ("{word}", word_of(question)),
        ("{tool}", NAME),
        ("{arguments}", json.dumps(ARGUMENTS)),
        ("{model}", str(document.get("model", ""))),
    ):
        value = value.replace(name, text)
    return value


USAGE = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}


def _chat(document: dict[str, Any], but: dict[str, Any]) -> bytes:
    called = bool(document.get("tools"))
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "" if called else word_of(question_of(document)),
        "reasoning_content": "One moment.",
    }
    if called:
        function = {"name": NAME, "arguments": json.dumps(ARGUMENTS)}
        call = {"id": f"{NAME}:0", "type": "function", "function": function}
        message["tool_calls"] = [call]
    finish = but.get("finish_reason", "tool_calls" if called else "stop")
    message |= {k: v for k, v in but.items() if k != "finish_reason"}
    message = {k: v for k, v in message.items() if v is not None}
    about = {"id": "chatcmpl-1", "created": _now(), "model": document.get("model")}
    if not document.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return http(200, about | {"object": "chat.completion", "choices": [choice], "usage": USAGE})
    deltas = [{k: v} for k, v in message.items() if k != "tool_calls"]
    deltas += [{"tool_calls": [c | {"index": i} for i, c in enumerate(message["tool_calls"])]}
               ] if message.get("tool_calls") else []  # fmt: skip
    head = about | {"object": "chat.completion.chunk"}
    chunks = [head | {"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": USAGE}
    return sse(*chunks, head | last, "[DONE]")


def _now() -> int:
    import time

    return int(time.time())


def _messages(document: dict[str, Any], but: dict[str, Any]) -> bytes:
    called = bool(document.get("tools"))
    use = {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": ARGUMENTS}
    said = {"type": "text", "text": but.get("content") or word_of(question_of(document))}
    block = use if called else said
    thought = {"type": "thinking", "thinking": "One moment."}
    made = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": document.get("model"),
        "content": [thought, block], "stop_reason": "tool_use" if called else "end_turn",
        "usage": {"input_tokens": 20, "output_tokens": 10},
    }  # fmt: skip
    if not document.get("stream"):
        return http(200, made)
    empty = made | {"content": [], "stop_reason": None}
    delta = {"type": "text_delta", "text": said["text"]}
    events: Iterable[dict[str, Any]] = (
        {"type": "message_start", "message": empty},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "thinking_delta", "thinking": "One moment."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": delta},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
         "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    )  # fmt: skip
    lines = [f"event: {e['type']}\ndata: {json.dumps(e)}" for e in events]
    return sse(*lines)


def _responses(document: dict[str, Any], but: dict[str, Any]) -> bytes:
    called = bool(document.get("tools"))
    text = but.get("content") or word_of(question_of(document))
    part = {"type": "output_text", "text": text}
    message = {"type": "message", "role": "assistant", "content": [part]}
    call = {"type": "function_call", "call_id": "call_1", "name": NAME,
            "arguments": json.dumps(ARGUMENTS)}  # fmt: skip
    made = {
        "id": "resp_1", "object": "response", "created_at": _now(), "status": "completed",
        "model": document.get("model"),
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "One moment."}]},
            call if called else message,
        ],
        "usage": {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30},
    }  # fmt: skip
    if not document.get("stream"):
        return http(200, made)
    events = (
        {"type": "response.created", "response": made | {"output": [], "status": "in_progress"}},
        {"type": "response.output_text.delta", "delta": text},
        {"type": "response.completed", "response": made},
    )
    return sse(*(f"event: {e['type']}\ndata: {json.dumps(e)}" for e in events))


def model_of(client: dict[str, Any]) -> str:
    """The model that the case's client asks for, for the healthy server's list."""
    if client["given_by"] == "flags":
        return str(client["model"])
    text = json.dumps(client["file"]["json"])
    found = re.search(r"(kimi-k3|kimi-for-coding)", text)
    return found.group(1) if found else "kimi-k3"
