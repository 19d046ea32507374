"""The services behind the gateways: one that works, one that fails in the way its path names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.link.catalogue import error
from tests.link.faulty import FaultyServer, answer, chunk, http

if TYPE_CHECKING:
    from tests.link.faulty import Connection, Request

PAGE = "<!doctype html><html><head><title>Welcome</title></head><body>a page</body></html>"
QUOTA = "You exceeded your current quota, please check your plan and billing"
RPM = "max organization RPM: 3, please try again after 1 seconds"
PAUSE_S = 0.12
WORDS = ("Reply", "ing", " with", " one", " word", ": ")


def refuse(connection: Connection, request: Request) -> None:
    connection.send(error(401, "Invalid Authentication", "invalid_authentication_error"))


def slow_stream(connection: Connection, request: Request) -> None:
    """A stream whose pieces are worth seeing one by one, as they are made."""
    if not request.json.get("stream"):
        word = request.json["messages"][0]["content"].split()[-1]
        connection.send(http(200, answer(message={"content": word})))
        return
    connection.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n")
    connection.send(b"Content-Type: text/event-stream\r\n\r\n")
    word = request.json["messages"][0]["content"].split()[-1]
    pieces = [*({"content": text} for text in WORDS), {"content": word}]
    chunks = [chunk({"role": "assistant"}), chunk({"reasoning_content": "Which word?"})]
    chunks += [chunk(piece) for piece in pieces] + [chunk({}, "stop")]
    usage = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
    chunks[-1]["usage"] = usage
    for one in chunks:
        connection.send(sse_line(one))
        connection.sleep(PAUSE_S)
    connection.send(b"data: [DONE]\n\n")


def sse_line(document: object) -> bytes:
    """One event."""
    import json

    return b"data: " + json.dumps(document).encode() + b"\n\n"


BLANK = answer(
    message={"content": "", "reasoning_content": "Let me think. " * 40},
    choice={"finish_reason": "length"},
    usage={"prompt_tokens": 20, "completion_tokens": 2048, "total_tokens": 2068},
)

# By the first segment of the path.
FAULTS = {
    "refused": refuse,
    "page": http(200, PAGE, "text/html"),
    "nginx": http(
        502,
        "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1>"
        "</center><hr><center>nginx/1.22.1</center></body></html>",
        "text/html",
    ),
    "no-choices": http(200, answer(choices=[])),
    "blank": http(200, BLANK),
    "quota": error(429, QUOTA, "exceeded_current_quota_error"),
    "rpm": error(429, RPM, "rate_limit_reached_error"),
    "silent": lambda connection, request: connection.sleep(20),
    "slow-stream": slow_stream,
}


def by_path(connection: Connection, request: Request) -> None:
    """Fail as the path says."""
    fault = FAULTS.get(request.target.split("/")[1], http(404, {"detail": "Not Found"}))
    if callable(fault):
        fault(connection, request)
    else:
        connection.send(fault)


def faulty() -> FaultyServer:
    """The failing service; its base URLs are ``http://127.0.0.1:PORT/FAULT/v1``."""
    return FaultyServer([by_path])
