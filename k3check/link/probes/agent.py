"""A loop with real tools in a temporary folder, as a coding agent runs it, on whichever API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3check.link.asking import ask, most_output, request_body, tool
from k3check.link.diagnosis.tools import arguments_of
from k3check.link.findings import of_asked
from k3check.link.gate import NAMES
from k3check.link.probes import Cost, Probe
from k3check.link.turns import FIELD, answered, opening
from k3check.link.wire.jsonsafe import get
from k3check.model import Confidence, Diagnosis

if TYPE_CHECKING:
    from k3check.link.asking import Asked
    from k3check.link.session import Session
    from k3check.model import Finding

_TITLE = "an agent's loop with tools"
_FILE = "config.json"
_BEFORE = {"name": "demo", "timeout": 30, "retries": 3}
_AFTER = _BEFORE | {"timeout": 60}
_MOST_BYTES = 64 * 1024
_TASK = (
    f"Read {_FILE}, set its field timeout to 60 and leave everything else as it is, write the "
    "file, then validate it. Work with the tools alone; when the file is valid, say so in one "
    "sentence."
)


# Each tool's name, description and parameters, all of them texts.
_TOOLS = (
    ("read_file", "Return the text of a file.", ("path",)),
    ("write_file", "Replace the text of a file.", ("path", "content")),
    ("validate_json", "Say whether a file is valid JSON.", ("path",)),
)


def _tools(wire: str) -> list[dict[str, Any]]:
    """The tools as an API describes them."""
    made = []
    for name, description, parameters in _TOOLS:
        properties = {p: {"type": "string"} for p in parameters}
        schema = {"type": "object", "properties": properties, "required": list(parameters)}
        made.append(tool(wire, name, description, schema))
    return made


class Workshop:
    """The tools, confined to one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.used: list[str] = []

    def call(self, name: str, arguments: Any) -> str:
        """Run a tool; what goes wrong is its result, as an agent would be told."""
        self.used.append(name)
        path = self._path(get(arguments, "path"))
        if path is None:
            return "error: no such file"
        try:
            if name == "read_file":
                return path.read_text("utf-8")
            if name == "write_file":
                content = get(arguments, "content")
                if not isinstance(content, str) or len(content) > _MOST_BYTES:
                    return "error: content must be a text"
                path.write_text(content, "utf-8")
                return "written"
            if name == "validate_json":
                json.loads(path.read_text("utf-8"))
                return "valid JSON"
        except (OSError, ValueError, RecursionError) as error:
            return f"error: {type(error).__name__}"
        return "error: no such tool"

    def _path(self, given: Any) -> Path | None:
        """A path inside the folder; an answer from outside never reaches further."""
        if not isinstance(given, str) or "\0" in given or len(given) > 200:
            return None
        path = (self.folder / given).resolve()
        return path if path.parent == self.folder and not path.is_symlink() else None

    def problem(self) -> str:
        """What is wrong with the file at the end, or empty."""
        try:
            found = json.loads((self.folder / _FILE).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return "it is no valid JSON"
        if not isinstance(found, dict) or found.get("timeout") != _AFTER["timeout"]:
            return "timeout is not 60"
        return "" if found == _AFTER else "other fields were changed"


def run(session: Session) -> Finding:
    """Let the model work until it stops calling tools."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="k3check-") as name:
        folder = Path(name)
        (folder / _FILE).write_text(json.dumps(_BEFORE, indent=2), "utf-8")
        shop = Workshop(folder)
        asked, turns, finished = _loop(session, shop)
        more: list[Diagnosis] = []
        remarks: list[Diagnosis] = []
        if not asked.result.failing:
            values = {"turns": turns, "used": ", ".join(shop.used[:12]) or "none"}
            problem = shop.problem()
            if not shop.used and session.canned:
                remarks.append(Diagnosis("K3L-642", Confidence.HIGH, values=values))
            elif not shop.used:
                more.append(Diagnosis("K3L-669", Confidence.HIGH, values=values))
            elif not finished:
                more.append(Diagnosis("K3L-667", Confidence.HIGH, values=values))
            elif problem:
                values = values | {"problem": problem}
                more.append(Diagnosis("K3L-668", Confidence.HIGH, values=values))
    return of_asked(
        session,
        "agent",
        _TITLE,
        asked,
        more=remarks,
        failures=session.redactor.value(more),
        metrics={"turns": float(turns), "tool_calls": float(len(shop.used))},
    )


def _loop(session: Session, shop: Workshop) -> tuple[Asked, int, bool]:
    """The last exchange, the number of turns, and whether the model came to an end by itself."""
    wire, history = session.wire, opening(_TASK)
    asked: Asked | None = None
    turns = max(1, session.request.agent_turns)
    for turn in range(1, turns + 1):
        body = request_body(session, wire, "") | {FIELD[wire]: history, "tools": _tools(wire)}
        asked = ask(session, wire, body)
        answer = asked.result.seen.answer
        if not asked.result.answered or answer is None or not answer.calls:
            return asked, turn, True
        results = [
            (call.id, shop.call(call.name, arguments_of(call)[0])) for call in answer.calls[:16]
        ]
        history += answered(wire, asked.result.seen, results)
    assert asked is not None
    return asked, turns, False


PROBE = Probe(
    "agent",
    _TITLE,
    50,
    run,
    cost=lambda request: Cost(
        request.agent_turns, request.agent_turns * (1200 + most_output(request))
    ),
    needs=(*NAMES, "tools"),
)
