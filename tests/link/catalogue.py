"""One fixture for each known failure: what came over the wire, and the diagnosis it must get.

Bodies are those of section C and D of the link specification (measured or read in source there);
the rest is written after the shapes that it describes.
"""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from k3check.link.apis.answers import Answer
from k3check.link.request import Secret
from tests.link.faulty import answer, chunk, http, sse

if TYPE_CHECKING:
    from tests.link.faulty import Connection, Request

NONCE = "k3-nonce"
# The shape of a JSON Web Token.
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3MDAwMDAwMDB9.c2lnbmF0dXJlLWNhbmFyeQ"


@dataclass(frozen=True)
class Fixture:
    """A response on the wire.

    Attributes:
        name: unique, in words.
        code: the only diagnosis it may get.
        script: bytes, or a function that writes to the connection.
        pretend: the base URL that the diagnosis shall believe in; the loopback's by default.
        path: appended to the loopback's base URL.
        wire, stream, facts, nonce, body: of the request.
        request: fields of the LinkRequest.
        sent: chargeable requests sent before.
        timeout_s: of the call.
        proxied: the loopback server is the proxy, the endpoint is ``pretend``.
    """

    name: str
    code: str
    script: Any
    pretend: str = ""
    path: str = ""
    wire: str = "openai"
    stream: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    nonce: str = NONCE
    body: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    auth: str = "bearer"
    sent: int = 0
    timeout_s: float = 5.0
    proxied: bool = False


def error(status: int, message: str, type_: str = "", code: Any = ..., **more: Any) -> bytes:
    """An error in OpenAI's shape."""
    inner: dict[str, Any] = {"message": message, "type": type_}
    if code is not ...:
        inner["code"] = code
    headers = more.pop("headers", ())
    return http(status, {"error": inner | more}, headers=headers)


def page(status: int, title: str, server: str = "nginx/1.22.1", **more: Any) -> bytes:
    """A web server's error page."""
    body = (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1>"
        f"</center>\r\n<hr><center>{server}</center>\r\n</body>\r\n</html>\r\n"
    )
    return http(status, body, "text/html", **more)


APP = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>New API</title></head>'
    '<body><noscript>You need to enable JavaScript</noscript><div id="root"></div></body></html>'
)
CLOUDFLARE = (("Server", "cloudflare"), ("CF-RAY", "8f00baa1b2c3d4e5-FRA"))
MOONSHOT = (("Msh-Request-Id", "0a1b2c3d"),)
RID = "(request id: 20260714120000123456789abcdef)"


def cloudflare(status: int, text: str) -> bytes:
    head = f"<!DOCTYPE html><html><head><title>{text}</title></head>"
    body = f"{head}<body>{text} Cloudflare</body></html>"
    return http(status, body, "text/html; charset=UTF-8", headers=CLOUDFLARE)


def cloudflare_error(status: int, number: int, heading: str) -> bytes:
    """Cloudflare's page of an error of the 1000s: its title is the same for blocks and limits."""
    body = (
        '<!DOCTYPE html><html lang="en-US"><head><title>Access denied | gateway.test used '
        'Cloudflare to restrict access</title></head><body><h1><span data-translate="error">Error'
        f"</span> <span>{number}</span></h1><span>Ray ID: 8f1015a1b2c3d4e5</span><h2>{heading}</h2>"
        "</body></html>"
    )
    return http(status, body, "text/html; charset=UTF-8", headers=CLOUDFLARE)


def good(**changes: Any) -> bytes:
    return http(200, answer(**changes))


def usage(prompt: Any, completion: Any, total: Any = ..., **more: Any) -> dict[str, Any]:
    made = {"prompt_tokens": prompt, "completion_tokens": completion}
    if total is not ...:
        made["total_tokens"] = total
    return made | more


END = chunk({}, "stop", usage=usage(20, 10, 30))
ROLE = chunk({"role": "assistant", "content": ""})
THINK = chunk({"reasoning_content": "Say the word."})
TEXT = chunk({"content": NONCE})
DONE = "[DONE]"


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

# Connections.


def dated(status: int, body: dict[str, Any], off: timedelta) -> Any:
    """An answer whose header Date is so far from our clock at the time when it is sent."""

    def script(connection: Connection, request: Request) -> None:
        date = format_datetime(datetime.now(UTC) + off, usegmt=True)
        connection.send(http(status, body, headers=(("Date", date),)))

    return script


def close(connection: Connection, request: Request) -> None:
    """Not a byte."""


def reset(connection: Connection, request: Request) -> None:
    connection.reset()


def cut(connection: Connection, request: Request) -> None:
    connection.send(http(200, b'{"id', length=100))


def refused_unread(connection: Connection, request: Request) -> None:
    """tinyproxy: a page without length, then a reset, for the request's body was not read."""
    connection.send(
        b"HTTP/1.0 407 Proxy Authentication Required\r\nServer: tinyproxy/1.11.1\r\n"
        b'Proxy-Authenticate: Basic realm="tinyproxy"\r\nContent-Type: text/html\r\n\r\n<html>'
    )
    connection.sleep(0.1)
    connection.reset()


def too_large_unread(connection: Connection, request: Request) -> None:
    connection.send(page(413, "413 Request Entity Too Large", length=9999))
    connection.sleep(0.1)
    connection.reset()


def silent(connection: Connection, request: Request) -> None:
    connection.sleep(3)


def drip(connection: Connection, request: Request) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    for _ in range(100):
        connection.send(b" ")
        connection.sleep(0.03)


def header_drip(connection: Connection, request: Request) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(100):
        connection.send(b"a")
        connection.sleep(0.03)


def many_headers(connection: Connection, request: Request) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\n" + b"X-Big: " + b"a" * 200_000 + b"\r\n\r\n")


def informational_flood(connection: Connection, request: Request) -> None:
    for _ in range(100):
        connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 20)
        connection.sleep(0.03)


def endless(connection: Connection, request: Request) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    for _ in range(200):
        connection.send(b" " * 65536)


def bomb(connection: Connection, request: Request) -> None:
    data = gzip.compress(b" " * 50_000_000)
    connection.send(http(200, data, headers=(("Content-Encoding", "gzip"),)))


def pings(connection: Connection, request: Request) -> None:
    connection.send(sse(ROLE, THINK))
    for _ in range(100):
        connection.send(b": ping\n\n")
        connection.sleep(0.03)


def pings_only(connection: Connection, request: Request) -> None:
    connection.send(STREAM_HEAD)
    for _ in range(100):
        connection.send(b": ping\n\n")
        connection.sleep(0.03)


def silent_stream(connection: Connection, request: Request) -> None:
    connection.send(STREAM_HEAD)
    connection.sleep(3)


def held_open(connection: Connection, request: Request) -> None:
    connection.send(sse(ROLE, THINK, TEXT, END, DONE))
    connection.sleep(3)


def buffered(connection: Connection, request: Request) -> None:
    connection.sleep(0.7)
    pieces = [chunk({"content": c}) for c in NONCE]
    connection.send(sse(ROLE, THINK, *pieces, END, DONE))


def stream_reset(connection: Connection, request: Request) -> None:
    connection.send(sse(ROLE, THINK, TEXT))
    connection.sleep(0.05)
    connection.reset()


def endless_line(connection: Connection, request: Request) -> None:
    connection.send(sse(ROLE, THINK) + b"data: ")
    for _ in range(100):
        connection.send(b"x" * 65536)


def endless_events(connection: Connection, request: Request) -> None:
    connection.send(sse(ROLE))
    event = f"data: {json.dumps(chunk({'reasoning_content': 'a'}))}\n\n".encode()
    for _ in range(60):
        connection.send(event * 200)


def bytewise(connection: Connection, request: Request) -> None:
    """Every byte a packet of its own: characters of three bytes arrive in pieces."""
    data = sse(ROLE, THINK, chunk({"content": "你好"}), END, DONE)
    data = data.replace(b"\\u4f60\\u597d", "你好".encode())
    for i in range(len(data)):
        connection.send(data[i : i + 1])


def redirect(status: int, location: str) -> bytes:
    return http(status, b"", "text/html", headers=(("Location", location),))


TOOL = {"tool": {"name": "book_room", "schema": {
    "type": "object",
    "properties": {"room": {"type": "string"}, "hour": {"type": "integer"}},
    "required": ["room", "hour"],
    "additionalProperties": False,
}}}  # fmt: skip


def call(arguments: Any, name: str = "book_room", ident: str = "book_room:0", **more: Any) -> bytes:
    """A good answer that calls a tool."""
    function = {"name": name, "arguments": arguments}
    made = {"id": ident, "type": "function", "function": function, "index": 0}
    return good(
        message={"content": "", "tool_calls": [made]}, choice={"finish_reason": "tool_calls"} | more
    )


def tool_use(given: Any) -> bytes:
    """A message of Anthropic's API that calls a tool."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "book_room", "input": given}
    return http(200, {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "kimi-k3",
        "content": [{"type": "thinking", "thinking": "Book it.", "signature": "x"}, block],
        "stop_reason": "tool_use", "usage": {"input_tokens": 20, "output_tokens": 10},
    })  # fmt: skip


ARGUMENTS = '{"room": "Curie", "hour": 15}'
F = Fixture

HTTP = (
    # The base URL explains it.
    F("404 and a query in the base", "K3L-004",
      error(404, "Invalid URL (POST /api)", "invalid_request_error"), path="?utm_source=x"),
    F("web page and a query in the base", "K3L-004", http(200, APP, "text/html"),
      path="?utm_source=x"),
    F("404 and a fragment in the base", "K3L-005", page(404, "404 Not Found"), path="#"),
    F("404 and a pasted endpoint", "K3L-006", http(404, {"detail": "Not Found"}),
      path="/chat/completions"),
    F("404 and a doubled version", "K3L-007", http(404, {"detail": "Not Found"}), path="/v1"),
    F("Anthropic base asked as OpenAI's", "K3L-010", http(404, {"detail": "Not Found"}),
      pretend="https://gateway.test/anthropic"),
    F("OpenAI base asked as Anthropic's", "K3L-009", http(404, {"detail": "Not Found"}),
      wire="anthropic", request={"protocol": "anthropic"}),
    F("the console instead of the API", "K3L-017", http(200, APP, "text/html"),
      pretend="https://platform.kimi.ai"),
    F("a proxy answers for this machine", "K3L-062", page(502, "502 Bad Gateway", "proxy"),
      pretend="http://localhost:4000/v1", proxied=True),
    # Keys.
    F("one-api: no token", "K3L-204", error(401, f"未提供令牌 {RID}", "one_api_error")),
    F("one-api: expired token", "K3L-205", error(401, f"该令牌已过期 {RID}", "one_api_error")),
    F("one-api: token without quota", "K3L-206",
      error(401, f"该令牌额度已用尽 {RID}", "one_api_error")),
    F("one-api: token switched off", "K3L-207",
      error(401, f"该令牌状态不可用 {RID}", "one_api_error")),
    F("one-api: unknown token", "K3L-203", error(401, f"无效的令牌 {RID}", "one_api_error")),
    F("new-api: unknown token", "K3L-203", error(401, f"Invalid token {RID}", "new_api_error")),
    F("one-api: a channel in the key", "K3L-220",
      error(403, f"普通用户不支持指定渠道 {RID}", "one_api_error")),
    F("LiteLLM: wrong key without a database", "K3L-209",
      error(400, "No connected db.", "no_db_connection", "400", param=None)),
    F("LiteLLM: no key", "K3L-210", http(500, "Internal Server Error", "text/plain")),
    F("Moonshot: mistyped key", "K3L-202",
      error(401, "Incorrect API key provided", "incorrect_api_key_error", headers=MOONSHOT),
      pretend="https://api.moonshot.ai/v1"),
    F("Moonshot: key of the other region", "K3L-201",
      error(401, "Invalid Authentication", "invalid_authentication_error", headers=MOONSHOT),
      pretend="https://api.moonshot.cn/v1"),
    F("Kimi Code: platform key", "K3L-211",
      error(401, "The API Key appears to be invalid", "invalid_authentication_error"),
      pretend="https://api.kimi.com/coding/v1"),
    F("wants x-api-key", "K3L-208",
      http(401, {"type": "error", "error": {"type": "authentication_error",
                                            "message": "x-api-key header is required"}})),
    F("wants Bearer", "K3L-208", http(401, {"error": "Authorization header missing (Bearer)"}),
      auth="x-api-key"),
    F("login page in front", "K3L-212", page(401, "401 Authorization Required")),
    F("Basic authentication in front", "K3L-212",
      http(401, "", "text/plain", headers=(("WWW-Authenticate", 'Basic realm="x"'),))),
    F("vLLM: wrong key", "K3L-200", http(401, {"error": "Unauthorized"})),
    F("llama.cpp: wrong key", "K3L-200",
      http(401, {"error": {"code": 401, "message": "Invalid API Key",
                           "type": "authentication_error"}}, headers=(("Server", "llama.cpp"),))),
    F("Anthropic: wrong key", "K3L-200",
      http(401, {"type": "error", "error": {"type": "authentication_error",
                                            "message": "invalid api key"}, "request_id": "r1"}),
      wire="anthropic", auth="x-api-key", pretend="https://gateway.test"),
    F("signed key, clock two hours off", "K3L-213",
      dated(401, {"error": {"message": "invalid token", "type": "auth"}}, timedelta(hours=-2)),
      request={"api_key": Secret(TOKEN)}),
    F("signature expired, clock a day behind", "K3L-213",
      dated(403, {"message": "Signature has expired"}, timedelta(days=1))),
    F("signed key, clock right", "K3L-200",
      dated(401, {"error": {"message": "no", "type": "auth"}}, timedelta(0)),
      request={"api_key": Secret(TOKEN)}),
    F("another key, clock two hours off", "K3L-200",
      dated(401, {"error": {"message": "no", "type": "auth"}}, timedelta(hours=-2))),
    # Permissions and money.
    F("new-api: user without quota", "K3L-215",
      error(403, f"用户额度不足, 剩余额度: ¥0.00 {RID}", "new_api_error",
            "insufficient_user_quota")),
    F("new-api: reservation fails", "K3L-215",
      error(403, f"预扣费额度失败 {RID}", "new_api_error", "pre_consume_token_quota_failed")),
    F("one-api: model not allowed", "K3L-216",
      error(403, f"该令牌无权使用模型：kimi-k3 {RID}", "one_api_error")),
    F("allow-list of addresses", "K3L-217",
      error(403, f"您的 IP 不在令牌允许访问的列表中 {RID}", "new_api_error")),
    F("Kimi Code: wrong client", "K3L-218",
      error(403, "Kimi For Coding is currently only available for Coding Agents",
            "access_terminated_error"), pretend="https://api.kimi.com/coding/v1"),
    F("Cloudflare challenge", "K3L-219", cloudflare(403, "Just a moment...")),
    F("Cloudflare 1020", "K3L-227", cloudflare_error(403, 1020, "Access denied")),
    F("Cloudflare 1010 for a client that takes no page", "K3L-227",
      http(403, "error code: 1010", "text/plain; charset=UTF-8", headers=CLOUDFLARE)),
    F("Cloudflare block without a number", "K3L-227",
      cloudflare(403, "Attention Required! | Cloudflare: Sorry, you have been blocked")),
    F("Moonshot: API not open", "K3L-221",
      error(403, "The API you are accessing is not open", "permission_denied_error",
            headers=MOONSHOT)),
    F("403 without a known text", "K3L-222", error(403, "Forbidden", "forbidden")),
    F("451", "K3L-223", http(451, {"message": "unavailable for legal reasons"})),
    F("country not served", "K3L-223",
      error(403, "Country, region, or territory not supported", "request_forbidden",
            "unsupported_country_region_territory")),
    F("402 in words of nobody's", "K3L-225", error(402, "Please settle up first", "pay")),
    F("OpenRouter: no credits", "K3L-304",
      http(402, {"error": {"code": 402, "message": "Insufficient credits"}, "user_id": "u"})),
    F("Kimi Code: no membership", "K3L-226",
      error(402, "Your membership does not cover this model", "membership_error")),
    # Paths.
    F("nginx 404", "K3L-230", page(404, "404 Not Found")),
    F("one-api: invalid URL", "K3L-231",
      error(404, "Invalid URL (POST /api/chat/completions)", "invalid_request_error")),
    F("one-api: no Responses API", "K3L-236",
      error(404, "Invalid URL (POST /v1/responses)", "invalid_request_error"), wire="responses",
      request={"protocol": "responses"}),
    F("one-api: no Messages API", "K3L-236",
      error(404, "Invalid URL (POST /v1/messages)", "invalid_request_error"), wire="anthropic",
      pretend="https://gateway.test", request={"protocol": "anthropic"}),
    F("one-api: Responses under a wrong base", "K3L-231",
      error(404, "Invalid URL (POST /api/v1/responses)", "invalid_request_error"),
      wire="responses", request={"protocol": "responses"}),
    F("FastAPI 404", "K3L-232", http(404, {"detail": "Not Found"})),
    F("llama.cpp 404", "K3L-232",
      http(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}},
           headers=(("Server", "llama.cpp"),))),
    F("Go 404", "K3L-233", http(404, "404 page not found\n", "text/plain; charset=utf-8")),
    F("404 without a known text", "K3L-234", http(404, "", None)),
    F("405", "K3L-235", http(405, {"detail": "Method Not Allowed"})),
    # Models.
    F("Moonshot: model or permission", "K3L-240",
      error(404, "Not found the model kimi-k33 or Permission denied", "resource_not_found_error",
            headers=MOONSHOT)),
    F("one-api: no channel", "K3L-241",
      error(503, f"当前分组 default 下对于模型 kimi-k3 无可用渠道 {RID}", "one_api_error")),
    F("new-api: no channel", "K3L-241",
      error(503, f"No available channel for model kimi-k3 under group default {RID}",
            "new_api_error", "model_not_found")),
    F("LiteLLM: unknown model", "K3L-242",
      error(400, "/chat/completions: Invalid model name passed in model=nope. Call /v1/models to "
            "view available models for your key.", "invalid_request_error", "400", param="model")),
    F("Ollama: model not pulled", "K3L-243",
      error(404, 'model "kimi-k3" not found, try pulling it first', "not_found_error", None)),
    F("vLLM: unknown model", "K3L-244",
      error(404, "The model `kimi-k3` does not exist.", "NotFoundError", 404, param="model")),
    F("old vLLM: unknown model", "K3L-244",
      http(404, {"object": "error", "message": "The model `kimi-k3` does not exist.",
                 "type": "NotFoundError", "param": None, "code": 404})),
    F("OpenAI: unknown model", "K3L-244",
      error(404, "The model `kimi-k3` does not exist or you do not have access to it.",
            "invalid_request_error", "model_not_found")),
    F("OpenRouter: invalid model", "K3L-245",
      http(400, {"error": {"code": 400, "message": "kimi-k3 is not a valid model ID"},
                 "user_id": "u"})),
    # Parameters.
    F("Moonshot: temperature", "K3L-250",
      error(400, "invalid temperature: only 1 is allowed for this model", "invalid_request_error",
            headers=MOONSHOT), body={"temperature": 0.6}),
    F("Moonshot: n", "K3L-250",
      error(400, "invalid n: only 1 is allowed for this model", "invalid_request_error"),
      body={"n": 2}),
    F("transformers: unknown field", "K3L-252",
      http(422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "expert_parallel"],
                             "msg": "Extra inputs are not permitted"}]}),
      body={"expert_parallel": True}),
    F("OpenAI: unknown field", "K3L-252",
      error(400, "Unrecognized request argument supplied: cache_strategy",
            "invalid_request_error"), body={"cache_strategy": "x"}),
    F("old gateway: max_completion_tokens", "K3L-253",
      error(400, "Unknown parameter: max_completion_tokens", "invalid_request_error"),
      body={"max_completion_tokens": 2048}),
    F("Moonshot: thinking missing on replay", "K3L-254",
      error(400, "thinking is enabled but reasoning_content is missing in assistant tool call "
            "message at index 1", "invalid_request_error", headers=MOONSHOT)),
    F("Moonshot: context", "K3L-255",
      error(400, "Invalid request: Your request exceeded model token limit : 262144 "
            "(requested: 300210)", "invalid_request_error", headers=MOONSHOT)),
    F("vLLM: context", "K3L-255",
      error(400, "This model's maximum context length is 131072 tokens. However, you requested "
            "140000 tokens (138976 in the messages, 1024 in the completion).", "BadRequestError",
            400)),
    F("llama.cpp: context", "K3L-255",
      http(400, {"error": {"code": 400, "message": "the request exceeds the available context "
                           "size, try increasing it", "type": "exceed_context_size_error",
                           "n_prompt_tokens": 9000, "n_ctx": 4096}})),
    F("LiteLLM: context", "K3L-255",
      error(400, "litellm.ContextWindowExceededError: too long", None, "400")),
    F("Moonshot: content filter", "K3L-256",
      error(400, "The request was rejected because it was considered high risk",
            "content_filter", headers=MOONSHOT)),
    F("new-api: sensitive words", "K3L-256",
      error(400, f"检测到敏感词 {RID}", "new_api_error", "sensitive_words_detected")),
    F("beta header", "K3L-257",
      http(400, {"type": "error", "error": {"type": "invalid_request_error", "message":
                 "Unexpected value(s) `fine-grained-tool-streaming` for the `anthropic-beta` "
                 "header"}}), wire="anthropic", auth="x-api-key", pretend="https://gateway.test"),
    F("Moonshot: tool schema", "K3L-258",
      error(400, "Invalid request: tools.function.parameters is not a valid moonshot flavored "
            "json schema: property 'x' has no type", "invalid_request_error"),
      body={"tools": []}),
    F("Moonshot: named function", "K3L-259",
      error(400, "tool_choice 'specified' is incompatible with thinking enabled",
            "invalid_request_error"), body={"tool_choice": {}}),
    F("vLLM: no tool parser", "K3L-267",
      error(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to '
            "be set", "BadRequestError", 400), body={"tool_choice": "auto", "tools": []}),
    F("vLLM: no tool parser, required", "K3L-267",
      error(400, 'tool_choice="required" requires --tool-call-parser to be set',
            "BadRequestError", 400), body={"tool_choice": "required", "tools": []}),
    F("SGLang: no tool parser", "K3L-267",
      http(400, {"object": "error", "message": "Tool call parser is not set",
                 "type": "BadRequest", "param": None, "code": 400}), body={"tools": []}),
    F("Moonshot: message size", "K3L-260",
      error(400, "total message size 2100000 exceeds limit 2097152", "invalid_request_error")),
    F("nginx 413", "K3L-261", page(413, "413 Request Entity Too Large")),
    F("Anthropic 413", "K3L-261",
      http(413, {"type": "error", "error": {"type": "request_too_large", "message": "too large"}}),
      wire="anthropic", auth="x-api-key", pretend="https://gateway.test"),
    F("Moonshot: unknown tool id", "K3L-262",
      error(400, "tool_call_id  is not found", "invalid_request_error", headers=MOONSHOT)),
    F("Moonshot: empty text", "K3L-263",
      error(400, "Invalid request: text content is empty", "invalid_request_error")),
    F("400 without a known text", "K3L-264", error(400, "Bad request", "invalid_request_error")),
    F("422 without a known text", "K3L-265",
      http(422, {"detail": [{"type": "missing", "loc": ["body", "prompt"], "msg": "required"}]})),
    F("Moonshot: tool twice", "K3L-266",
      error(400, "Invalid request: function name book_room is duplicated",
            "invalid_request_error")),
    F("nginx: client certificate", "K3L-128",
      page(400, "400 No required SSL certificate was sent")),
    F("nginx: http to the https port", "K3L-121",
      page(400, "400 The plain HTTP request was sent to HTTPS port")),
    # Gateways and services.
    F("one-api: saturated", "K3L-315",
      error(429, f"当前分组上游负载已饱和，请稍后再试 {RID}", "one_api_error")),
    F("LiteLLM: page upstream", "K3L-280",
      error(500, "litellm.InternalServerError: OpenAIException - Empty or invalid response from "
            "LLM endpoint. Received: '<!doctype html>'", None, "500",
            headers=(("x-litellm-version", "1.108.7"),))),
    F("LiteLLM: dead upstream", "K3L-281",
      error(500, "litellm.InternalServerError: InternalServerError: OpenAIException - Connection "
            "error.", None, "500", headers=(("x-litellm-call-id", "1"),))),
    F("LiteLLM: refused by its upstream", "K3L-287",
      error(401, "litellm.AuthenticationError: AuthenticationError: OpenAIException - Invalid "
            "Authentication", None, "401", headers=(("x-litellm-call-id", "1"),))),
    F("LiteLLM: parameter not on its list", "K3L-252",
      error(400, "litellm.UnsupportedParamsError: kimi-k3 doesn't support `reasoning.effort` (its "
            "model cost map entry lacks `supports_reasoning`). To drop unsupported params set "
            "`litellm.drop_params = True`", "invalid_request_error", "400",
            headers=(("x-litellm-call-id", "1"),)),
      body={"reasoning": {"effort": "low"}}, wire="responses"),
    F("proxy: password wanted, connection reset", "K3L-112", refused_unread,
      pretend="http://gateway.test/v1", proxied=True),
    F("nginx: body too large, connection reset", "K3L-261", too_large_unread),
    F("cc-switch: upstream fails", "K3L-282",
      error(502, "请求转发失败: 连接上游失败", "proxy_error")),
    F("one-api: upstream status", "K3L-283",
      error(500, f"bad response status code 500 {RID}", "upstream_error",
            "bad_response_status_code")),
    F("new-api: channel", "K3L-286",
      error(500, f"渠道密钥无效 {RID}", "new_api_error", "channel:invalid_key")),
    F("llama.cpp: loading", "K3L-277",
      http(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})),
    F("vLLM: expert parallelism", "K3L-285",
      error(500, "Expert parallel size must equal TP x DP: rank mismatch (16 != 8)",
            "InternalServerError", 500)),
    F("nginx 503", "K3L-278", page(503, "503 Service Temporarily Unavailable")),
    F("nginx 502", "K3L-272", page(502, "502 Bad Gateway")),
    F("nginx 504", "K3L-270", page(504, "504 Gateway Time-out")),
    F("408", "K3L-270", error(408, "timeout", "timeout")),
    F("Cloudflare 524", "K3L-271", cloudflare(524, "524: A timeout occurred")),
    F("Cloudflare 520", "K3L-273", cloudflare(520, "520: Web server is returning an error")),
    F("Cloudflare 522", "K3L-273", cloudflare(522, "522: Connection timed out")),
    F("Cloudflare 526", "K3L-275", cloudflare(526, "526: Invalid SSL certificate")),
    F("502 JSON", "K3L-274", error(502, "upstream failed", "bad_gateway")),
    F("Anthropic 529", "K3L-276",
      http(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
      wire="anthropic", auth="x-api-key", pretend="https://gateway.test"),
    F("503 JSON", "K3L-279", error(503, "Service unavailable", "service_unavailable")),
    F("llama.cpp 501", "K3L-284",
      http(501, {"error": {"code": 501, "message": "This feature is not supported",
                           "type": "not_supported_error"}})),
    F("Moonshot 500", "K3L-288", error(500, "unexpected output", "unexpected_output")),
    F("Squid page", "K3L-114",
      http(403, "<html><head><title>ERROR: The requested URL could not be retrieved</title></head>"
           "<body>Access Denied. Generated by squid/5.7</body></html>", "text/html",
           headers=(("X-Squid-Error", "ERR_ACCESS_DENIED 0"),)),
      pretend="http://gateway.test/v1", proxied=True),
    F("Squid page, and no proxy in use", "K3L-700",
      http(403, "<html><head><title>ERROR: The requested URL could not be retrieved</title></head>"
           "<body>Access Denied. Generated by squid/5.7</body></html>", "text/html",
           headers=(("X-Squid-Error", "ERR_ACCESS_DENIED 0"),))),
    F("407", "K3L-112", http(407, "", None), pretend="http://gateway.test/v1", proxied=True),
    # Providers' own words.
    F("OpenRouter: no tools", "K3L-706",
      error(404, "No endpoints found that support tool use.", code=404)),
    F("Kimi Code: account closed", "K3L-707",
      error(403, "Access terminated for a breach of the guidelines.", "access_terminated_error")),
    F("a suspended account", "K3L-707", error(403, "This account has been suspended.", "x")),
    F("Qianfan: key of the coding plan", "K3L-708",
      error(401, "use the other address", "x", "coding_plan_api_key_not_allowed")),
    F("OpenAI answers a gateway's user", "K3L-733",
      error(401, "Wrong key; see https://platform.openai.com/account/api-keys", "x")),
    F("output limit above the range", "K3L-710",
      error(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "x"),
      body={"max_tokens": 9000}),
    F("output limit inside the range", "K3L-728",
      error(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "x"),
      body={"max_tokens": 100}),
    F("Groq: one request above the rate", "K3L-711",
      error(413, "Too large on tokens per minute (TPM): Limit 6000, Requested 9000", "tokens",
            "rate_limit_exceeded")),
    F("a rate limit under 413", "K3L-312", error(413, "slow down", "x", "rate_limit_exceeded")),
    F("Bailian: tokens a minute", "K3L-312",
      error(429, "Allocated quota exceeded, please raise it", "insufficient_quota",
            "insufficient_quota")),
    F("Bailian: free quota alone", "K3L-729",
      error(403, "Free allocation used up", "x", "AllocationQuota.FreeTierOnly")),
    F("Groq: retired model", "K3L-716",
      error(400, "The model `kimi-k3` has been decommissioned", "x", "model_decommissioned")),
    F("gone model", "K3L-716", error(410, "kimi-k3 reached its end of life", "x")),
    F("NIM: function of another account", "K3L-705",
      http(404, {"status": 404, "title": "Not Found",
                 "detail": "Function 'f-1': Not found for account 'a-1'"})),
    F("Together: dedicated endpoint", "K3L-705",
      error(400, "Unable to access non-serverless model kimi-k3", "x", "model_not_available")),
    F("ModelScope: no provider", "K3L-705",
      error(400, "Model id : kimi-k3 , has no provider supported", "x")),
    F("Azure: deployment", "K3L-718", error(404, "It is not there", "x", "DeploymentNotFound")),
    F("Ark: model not activated", "K3L-737", error(404, "Activate it first", "x", "ModelNotOpen")),
    F("Groq: terms", "K3L-738", error(400, "Accept the terms", "x", "model_terms_required")),
    F("Groq: organization", "K3L-735",
      error(400, "Restricted", "x", "organization_restricted")),
    F("OpenRouter: data policy", "K3L-736",
      error(404, "No endpoints found matching your data policy", code=404)),
    F("ModelScope: account not bound", "K3L-734",
      error(401, "Please bind your Alibaba Cloud account before use.", "x")),
    F("server of one model", "K3L-727",
      http(400, {"detail": "Server is pinned to 'kimi-k2'; requested 'kimi-k3'"})),
    F("tools refused where chat worked", "K3L-719", error(400, "cannot do that", "x"),
      facts={"worked": True, "more": "tools"}),
    F("Apache 403", "K3L-700",
      http(403, '<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">\n<html><head>'
           "<title>403 Forbidden</title></head><body><h1>Forbidden</h1></body></html>",
           "text/html", headers=(("Server", "Apache/2.4"),))),
    F("Caddy 403 without a body", "K3L-700", http(403, "", None, headers=(("Server", "Caddy"),))),
    F("Caddy 502 without a body", "K3L-701", http(502, "", None, headers=(("Server", "Caddy"),))),
    F("a refused upstream", "K3L-702",
      http(500, {"status": "failure", "why": "connect ECONNREFUSED 127.0.0.1:5999"})),
    F("Envoy: no upstream", "K3L-702", http(503, "no healthy upstream", "text/plain")),
    F("a local proxy program", "K3L-709", error(502, "the local proxy failed to connect", "x")),
    F("no candidate", "K3L-739",
      error(503, "No available upstream candidate.", "x", "no_available_candidate")),
    F("a router's own key", "K3L-740",
      error(401, 'Error from provider: {"error":{"message":"Invalid Authentication"}}', "x")),
    F("DeepInfra: busy", "K3L-741", error(429, "Model busy, retry later", "x")),
    # Redirects.
    F("redirect to https", "K3L-290",
      redirect(301, "https://gateway.test/v1/chat/completions"), pretend="http://gateway.test/v1"),
    F("redirect to another host", "K3L-291",
      redirect(307, "https://collector.test/v1/chat/completions"),
      pretend="https://gateway.test/v1"),
    F("redirect to a path", "K3L-292", redirect(308, "/v1/chat/completions/")),
    F("redirect to a login", "K3L-293", redirect(302, "/login?next=%2Fv1")),
    F("redirect from https to http", "K3L-294",
      redirect(307, "http://gateway.test/v1/chat/completions"), pretend="https://gateway.test/v1"),
    F("redirect without a target", "K3L-295", http(302, "", None)),
    F("418", "K3L-299", http(418, "I'm a teapot", "text/plain")),
)  # fmt: skip

LIMITS = (
    F("Moonshot: RPM", "K3L-300",
      error(429, "Your account reached max organization RPM: 50, please try again after 1 seconds",
            "rate_limit_reached_error", headers=MOONSHOT)),
    F("Moonshot: concurrency", "K3L-301",
      error(429, "Your account reached max organization concurrency: 1, please try again after 1 "
            "seconds", "rate_limit_reached_error", headers=MOONSHOT)),
    F("Moonshot: TPM", "K3L-302",
      error(429, "Your account reached max organization TPM: 500000, please try again after 1 "
            "seconds", "rate_limit_reached_error", headers=MOONSHOT)),
    F("Moonshot: TPD", "K3L-303",
      error(429, "Your account reached max organization TPD: 1500000, please try again after 1 "
            "seconds", "rate_limit_reached_error", headers=MOONSHOT)),
    F("Moonshot: quota", "K3L-304",
      error(429, "Your account is suspended, please check your plan and billing details",
            "exceeded_current_quota_error", headers=MOONSHOT)),
    F("OpenAI: quota", "K3L-304",
      error(429, "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota", "insufficient_quota")),
    F("Moonshot: engine overloaded", "K3L-305",
      error(429, "The engine is currently overloaded, please try again later",
            "engine_overloaded_error", headers=MOONSHOT)),
    F("Kimi Code: period", "K3L-306",
      error(429, "You've reached your usage limit for this period.", "rate_limit_reached_error")),
    F("Anthropic: no credit", "K3L-304",
      http(400, {"type": "error", "error": {"type": "invalid_request_error", "message":
                 "Your credit balance is too low to access the Anthropic API. Please go to Plans "
                 "& Billing to upgrade or purchase credits."}}),
      wire="anthropic", auth="x-api-key", pretend="https://gateway.test"),
    F("LiteLLM: budget, 429", "K3L-316",
      error(429, "Budget has been exceeded! Current cost: 10.02, Max budget: 10.0",
            "budget_exceeded", "429", param=None)),
    F("LiteLLM: budget, 400", "K3L-316",
      error(400, "Budget has been exceeded! Current cost: 10.02, Max budget: 10.0",
            "budget_exceeded", "400", param=None)),
    F("one-api: empty 429", "K3L-307", http(429, "", None)),
    F("new-api: model limit", "K3L-308",
      error(429, f"您已达到请求数限制：1分钟内最多请求10次 {RID}", "new_api_error")),
    F("LiteLLM: cooldown", "K3L-309",
      error(429, "No deployments available for selected model, Try again in 5 seconds. Passed "
            "model=kimi-k3. all_deployments_in_cooldown", "throttling_error", "429",
            headers=(("x-litellm-version", "1.108.7"), ("retry-after", "5")))),
    F("Cloudflare 1015", "K3L-310",
      cloudflare(429, "Error 1015: You are being rate limited")),
    F("Cloudflare 1015 under the title of a block", "K3L-310",
      cloudflare_error(429, 1015, "You are being rate limited")),
    F("Cloudflare 1015 for a client that takes no page", "K3L-310",
      http(429, "error code: 1015", "text/plain; charset=UTF-8", headers=CLOUDFLARE)),
    F("Tier 0 after two requests", "K3L-311",
      error(429, "Your account reached max organization RPM: 3, please try again after 1 seconds",
            "rate_limit_reached_error", headers=MOONSHOT), sent=2),
    F("LiteLLM: rate", "K3L-312",
      error(429, "litellm.RateLimitError: slow down", "throttling_error", "429")),
    F("nginx 429", "K3L-314", page(429, "429 Too Many Requests")),
)  # fmt: skip

WIRE = (
    F("closed without a byte", "K3L-140", close),
    F("reset before the answer", "K3L-141", reset),
    F("body shorter than announced", "K3L-142", cut),
    F("silence", "K3L-143", silent, timeout_s=0.4),
    F("headers byte by byte", "K3L-143", header_drip, timeout_s=0.4),
    F("informational responses without end", "K3L-143", informational_flood, timeout_s=0.4),
    F("body byte by byte", "K3L-144", drip, timeout_s=0.4),
    F("header of 200 kB", "K3L-145", many_headers),
    F("gzip that is none", "K3L-146",
      http(200, b'{"choices": []}', headers=(("Content-Encoding", "gzip"),))),
    F("brotli unasked", "K3L-147",
      http(200, b"\x0b\x02\x80", headers=(("Content-Encoding", "br"),))),
    F("gzip bomb", "K3L-148", bomb),
    F("no HTTP", "K3L-149", b"SSH-2.0-OpenSSH_9.2p1\r\n"),
    F("TLS alert", "K3L-121", b"\x15\x03\x01\x00\x02\x02\x46"),
    F("endless body", "K3L-150", endless),
)  # fmt: skip

SHAPE = (
    F("web page with status 200", "K3L-400", http(200, APP, "text/html")),
    F("web page served as JSON", "K3L-400", http(200, APP)),
    F("nothing with status 200", "K3L-401", http(200, "")),
    F("204", "K3L-401", b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
    F("management route", "K3L-402",
      http(200, {"success": False, "message": "未登录且未提供 access token"})),
    F("error with status 200", "K3L-403",
      http(200, {"object": "error", "message": "The model does not exist", "type": "x",
                 "code": 404})),
    F("OpenRouter: error with status 200", "K3L-403",
      http(200, {"error": {"code": 502, "message": "Provider returned error", "metadata":
                 {"raw": '{"error":{"message":"busy"}}', "provider_name": "X"}}})),
    F("JSON list", "K3L-404", http(200, [1, 2])),
    F("JSON null", "K3L-404", http(200, None)),
    F("JSON string", "K3L-404", http(200, '"ok"')),
    F("text", "K3L-405", http(200, "Ollama is running", "text/plain")),
    F("JSON cut off", "K3L-406", http(200, json.dumps(answer())[:120])),
    F("NaN in the JSON", "K3L-407",
      http(200, json.dumps(answer(score="@")).replace('"@"', "NaN"))),
    F("byte order mark", "K3L-407", http(200, b"\xef\xbb\xbf" + json.dumps(answer()).encode())),
    F("key twice", "K3L-407", http(200, json.dumps(answer())[:-1] + ', "id": "again"}')),
    F("characters after the JSON", "K3L-407", http(200, json.dumps(answer()) + " ;")),
    F("JSON 100000 levels deep", "K3L-410", http(200, '{"a":' * 100_000)),
    F("number of 10000 digits", "K3L-410", http(200, '{"created": ' + "9" * 10_000 + "}")),
    F("no choices", "K3L-411", http(200, {"id": "1", "result": "hello"})),
    F("choices null", "K3L-411", good(choices=None)),
    F("choices empty", "K3L-412", good(choices=[])),
    F("message null", "K3L-414", good(choices=[{"index": 0, "message": None}])),
    F("old completions", "K3L-415",
      good(choices=[{"index": 0, "text": "hello", "finish_reason": "stop"}])),
    F("stream unasked", "K3L-416", sse(ROLE, TEXT, END, DONE)),
    F("JSON for a stream", "K3L-417", good(), stream=True),
    F("Anthropic's shape", "K3L-418",
      http(200, {"id": "1", "type": "message", "role": "assistant", "model": "kimi-k3",
                 "content": [{"type": "text", "text": NONCE}], "stop_reason": "end_turn",
                 "usage": {"input_tokens": 9, "output_tokens": 3}})),
    F("Responses shape", "K3L-419",
      http(200, {"id": "1", "object": "response", "output": [], "status": "completed"})),
    F("JSON served as text", "K3L-420", http(200, json.dumps(answer()), "text/plain")),
    F("chat completion for messages", "K3L-421", good(), wire="anthropic", auth="x-api-key",
      pretend="https://gateway.test"),
    F("something else for messages", "K3L-422", http(200, {"ok": True}), wire="anthropic",
      auth="x-api-key", pretend="https://gateway.test"),
    F("models without a list", "K3L-423", http(200, {"models": []}), wire="models"),
    F("login page of a network", "K3L-424",
      http(200, "<html><head><title>FortiGuard login</title></head><body>fortinet</body></html>",
           "text/html")),
)  # fmt: skip

STREAM = tuple(
    Fixture(name, code, script, stream=True, **more)
    for name, code, script, more in (
        ("ends in the middle", "K3L-500", sse(ROLE, THINK, TEXT), {}),
        ("reset in the middle", "K3L-500", stream_reset, {}),
        ("no [DONE]", "K3L-501", sse(ROLE, THINK, TEXT, END), {}),
        ("no finish_reason", "K3L-502",
         sse(ROLE, THINK, TEXT, chunk({}, None, usage=usage(20, 10, 30)), DONE), {}),
        ("connection stays open", "K3L-503", held_open, {}),
        ("event cut off", "K3L-504",
         sse(ROLE, THINK, '{"choices": [{"delta": {"con', END, DONE), {}),
        ("error inside", "K3L-505",
         sse(ROLE, THINK, {"error": {"message": "upstream died", "code": 502}}), {}),
        ("event: error", "K3L-505",
         sse(ROLE, 'event: error\ndata: {"message": "overloaded"}'), {}),
        ("only keep-alives", "K3L-506", pings, {"timeout_s": 0.6}),
        ("held back", "K3L-507", buffered, {}),
        ("served as JSON", "K3L-508",
         sse(ROLE, THINK, TEXT, END, DONE, content_type="application/json"), {}),
        ("usage in the choice", "K3L-511",
         sse(ROLE, THINK, TEXT, {**chunk(), "choices": [
             {"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage(20, 10, 30)}]},
             DONE), {}),
        ("whole text every time", "K3L-512",
         sse(ROLE, THINK, chunk({"content": "k3"}), chunk({"content": "k3-no"}),
             chunk({"content": "k3-nonce"}), END, DONE), {}),
        ("tool pieces without index", "K3L-514",
         sse(ROLE, THINK, chunk({"tool_calls": [{"id": "a:0", "function": {
             "name": "book_room", "arguments": "{}"}}]}),
             chunk({}, "tool_calls", usage=usage(20, 10, 30)), DONE), {"nonce": ""}),
        ("text lost", "K3L-515",
         sse(ROLE, THINK, TEXT, chunk({}, "stop", usage=usage(20, 859, 879)), DONE), {}),
        ("only pings from the start", "K3L-506", pings_only, {"timeout_s": 0.6}),
        ("silence from the start", "K3L-528", silent_stream, {"timeout_s": 0.4}),
        ("blanks from the start", "K3L-528", drip, {"timeout_s": 0.4}),
        ("no event", "K3L-516", sse(": ping"), {}),
        ("empty stream", "K3L-516", sse(), {}),
        ("only [DONE]", "K3L-516", sse(DONE), {}),
        ("line without end", "K3L-517", endless_line, {}),
        ("events without end", "K3L-518", endless_events, {}),
        ("thinking last", "K3L-519", sse(ROLE, TEXT, THINK, END, DONE), {}),
        ("usage without choices", "K3L-520",
         sse(ROLE, THINK, TEXT, chunk({}, "stop"), {"id": "1", "usage": usage(20, 10, 30)}, DONE),
         {}),
        ("empty choices first", "K3L-521",
         sse({**chunk(), "choices": []}, ROLE, THINK, TEXT, END, DONE), {}),
        ("null event", "K3L-522", sse(ROLE, THINK, "null", TEXT, END, DONE), {}),
        ("another model than before", "K3L-523", sse(ROLE, THINK, TEXT, END, DONE),
         {"facts": {"plain": "other-model"}}),
        ("another end than before", "K3L-523", sse(ROLE, THINK, TEXT, END, DONE),
         {"facts": {"plain": Answer("x", finish="tool_calls", model="kimi-k3")}}),
        ("messages instead of deltas", "K3L-524",
         sse({**chunk(), "choices": [{"index": 0, "finish_reason": None, "message": {
             "reasoning_content": "Say it.", "content": NONCE}}]}, END, DONE), {}),
        ("chunk without choices", "K3L-525",
         sse(ROLE, THINK, {"id": "1", "note": "x"}, TEXT, END, DONE), {}),
        ("no usage in the stream", "K3L-605", sse(ROLE, THINK, TEXT, chunk({}, "stop"), DONE), {}),
    )
)  # fmt: skip


def named(kind: str, **fields: Any) -> str:
    """An event of Anthropic's or the Responses stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | fields)}"


MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "kimi-k3", "content": [],
           "stop_reason": None, "usage": {"input_tokens": 20, "output_tokens": 1}}  # fmt: skip
A_START = named("message_start", message=MESSAGE)
A_PING = named("ping")
A_THINK = (
    named("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
    named("content_block_delta", index=0,
          delta={"type": "thinking_delta", "thinking": "Say the word."}),
    named("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "x"}),
    named("content_block_stop", index=0),
)  # fmt: skip
A_TEXT = (
    named("content_block_start", index=1, content_block={"type": "text", "text": ""}),
    named("content_block_delta", index=1, delta={"type": "text_delta", "text": NONCE[:3]}),
    named("content_block_delta", index=1, delta={"type": "text_delta", "text": NONCE[3:]}),
    named("content_block_stop", index=1),
)
A_TOOL = (
    named("content_block_start", index=1,
          content_block={"type": "tool_use", "id": "toolu_1", "name": "book_room", "input": {}}),
    named("content_block_delta", index=1,
          delta={"type": "input_json_delta", "partial_json": '{"room": "Cur'}),
    named("content_block_delta", index=1,
          delta={"type": "input_json_delta", "partial_json": 'ie", "hour": 15}'}),
    named("content_block_stop", index=1),
)  # fmt: skip


def ended(reason: str | None = "end_turn") -> str:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return named("message_delta", delta=delta, usage={"output_tokens": 10})


A_END = (ended(), named("message_stop"))
RESPONSE = {"id": "resp_1", "object": "response", "model": "kimi-k3", "status": "in_progress",
            "output": []}  # fmt: skip
R_START = named("response.created", response=RESPONSE)
R_THINK = named("response.reasoning_summary_text.delta", output_index=0, delta="Say the word.")
R_TEXT = named("response.output_text.delta", output_index=1, delta=NONCE)
R_USAGE = {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}
R_END = named("response.completed", response=RESPONSE | {"status": "completed", "usage": R_USAGE})
R_TOOL = (
    named("response.output_item.added", output_index=1,
          item={"type": "function_call", "call_id": "call_1", "name": "book_room",
                "arguments": ""}),
    named("response.function_call_arguments.delta", output_index=1, delta='{"room": "Cur'),
    named("response.function_call_arguments.delta", output_index=1, delta='ie", "hour": 15}'),
)  # fmt: skip


def typed_pings(connection: Connection, request: Request) -> None:
    """Anthropic's keep-alives are events; they are no sign of life of the model."""
    connection.send(sse(A_START, *A_THINK))
    for _ in range(100):
        connection.send((A_PING + "\n\n").encode())
        connection.sleep(0.03)


def typed_held_open(connection: Connection, request: Request) -> None:
    connection.send(sse(A_START, *A_THINK, *A_TEXT, *A_END))
    connection.sleep(3)


TYPED = tuple(
    Fixture(f"{'messages' if wire == 'anthropic' else 'responses'} stream: {name}", code, script,
            wire=wire, stream=True, auth="x-api-key" if wire == "anthropic" else "bearer", **more)
    for wire, name, code, script, more in (
        ("anthropic", "ends in the middle", "K3L-500", sse(A_START, *A_THINK, *A_TEXT), {}),
        ("anthropic", "no message_stop", "K3L-501",
         sse(A_START, *A_THINK, *A_TEXT, A_END[0]), {}),
        ("anthropic", "no stop_reason", "K3L-502",
         sse(A_START, *A_THINK, *A_TEXT, ended(None), A_END[1]), {}),
        ("anthropic", "connection stays open", "K3L-503", typed_held_open, {}),
        ("anthropic", "event cut off", "K3L-504",
         sse(A_START, *A_THINK, 'data: {"type": "content_block_del', *A_END), {}),
        ("anthropic", "overloaded inside", "K3L-505",
         sse(A_START, *A_THINK, named("error", error={"type": "overloaded_error",
                                                      "message": "Overloaded"})), {}),
        ("anthropic", "only pings", "K3L-506", typed_pings, {"timeout_s": 0.6}),
        ("anthropic", "nothing but a ping", "K3L-516", sse(A_PING), {}),
        ("anthropic", "chat completion chunks", "K3L-526", sse(ROLE, THINK, TEXT, END, DONE), {}),
        ("anthropic", "no message_start", "K3L-527", sse(*A_THINK, *A_TEXT, *A_END), {}),
        ("anthropic", "a delta without its block", "K3L-527",
         sse(A_START, *A_THINK, *A_TEXT[1:], *A_END), {}),
        ("anthropic", "events without names", "K3L-527",
         sse(*(e.partition("\n")[2] for e in (A_START, *A_THINK, *A_TEXT, *A_END))), {}),
        ("anthropic", "JSON instead", "K3L-417",
         http(200, MESSAGE | {"content": [{"type": "text", "text": NONCE}],
                              "stop_reason": "end_turn"}), {}),
        ("anthropic", "thinking ate the budget", "K3L-600",
         sse(A_START, *A_THINK, ended("max_tokens"), A_END[1]), {"body": {"max_tokens": 64}}),
        ("anthropic", "another model", "K3L-602",
         sse(named("message_start", message=MESSAGE | {"model": "claude-sonnet-4-5"}), *A_THINK,
             *A_TEXT, *A_END), {}),
        ("responses", "ends in the middle", "K3L-500", sse(R_START, R_THINK, R_TEXT), {}),
        ("responses", "failed", "K3L-505",
         sse(R_START, R_THINK, named("response.failed", response=RESPONSE | {
             "status": "failed", "error": {"code": "server_error", "message": "upstream died"}})),
         {}),
        ("responses", "error event", "K3L-505",
         sse(R_START, named("error", code="rate_limit", message="slow down", param=None)), {}),
        ("responses", "messages events", "K3L-526", sse(A_START, *A_THINK, *A_TEXT, *A_END), {}),
        ("responses", "thinking ate the budget", "K3L-600",
         sse(R_START, R_THINK, named("response.incomplete", response=RESPONSE | {
             "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
             "usage": R_USAGE})), {"body": {"max_output_tokens": 10}}),
        ("responses", "no usage", "K3L-605",
         sse(R_START, R_THINK, R_TEXT,
             named("response.completed", response=RESPONSE | {"status": "completed"})), {}),
    )
)  # fmt: skip

MEANING = (
    F("thinking ate the budget", "K3L-600",
      good(message={"content": ""}, choice={"finish_reason": "length"},
           usage=usage(20, 64, 84)), body={"max_completion_tokens": 64}),
    F("nothing at all", "K3L-601",
      good(message={"content": "", "reasoning_content": ""}, usage=usage(20, 1, 21))),
    F("Claude answers", "K3L-602", good(model="claude-sonnet-4-5")),
    F("K2 answers", "K3L-602", good(model="kimi-k2-0905-preview")),
    F("provider's prefix", "K3L-603", good(model="moonshotai/kimi-k3")),
    F("date in the name", "K3L-603", good(model="kimi-k3-20260714")),
    F("unknown name", "K3L-604", good(model="fast-model")),
    F("no usage", "K3L-605", good(usage=...)),
    F("half a usage", "K3L-605", good(usage={"prompt_tokens": 20})),
    F("usage as text", "K3L-606", good(usage=usage("20", "10"))),
    F("usage that does not add up", "K3L-606", good(usage=usage(20, 10, 31))),
    F("negative usage", "K3L-606", good(usage=usage(20, -1))),
    F("usage of zeros", "K3L-606", good(usage=usage(0, 0, 0))),
    F("no thinking", "K3L-607", good(message={"reasoning_content": None})),
    F("thinking renamed", "K3L-608",
      good(message={"reasoning_content": None, "reasoning": "Say the word."})),
    F("thinking billed and hidden", "K3L-609",
      good(message={"reasoning_content": None}, usage=usage(20, 400, 420))),
    F("thinking in the text", "K3L-610",
      good(message={"reasoning_content": None, "content": f"<think>Say it.</think>{NONCE}"})),
    F("answer in the thinking", "K3L-611", good(message={"content": ""})),
    F("unknown end", "K3L-612", good(choice={"finish_reason": "repeat"})),
    F("an echo", "K3L-712", good(message={"content": f"Reply with this word: {NONCE}"}),
      body={"messages": [{"role": "user", "content": f"Reply with this word: {NONCE}"}]}),
    F("token salad", "K3L-713",
      good(message={"content": "brol Ġvat 77 ekst ulmo snerp tich ogg wrelm"},
           choice={"finish_reason": "length"})),
    F("content as a list of parts", "K3L-714",
      good(message={"content": [{"type": "text", "text": NONCE}]})),
    F("a call that nobody parsed", "K3L-715",
      good(message={"content": "", "reasoning_content":
                    "<|tool_calls_section_begin|><|tool_call_begin|>functions.x:0"}),
      body={"tools": [{"type": "function"}]}, nonce=""),
    F("canned answer", "K3L-613", good(message={"content": "This is a mock response"})),
    F("more cached than sent", "K3L-614", good(usage=usage(20, 10, 30, cached_tokens=900))),
    F("an answer from 2001", "K3L-615", good(created=1_000_000_000)),
    F("thousand choices", "K3L-621", good(choices=answer()["choices"] * 1000)),
    F("thousand tool calls", "K3L-621",
      good(message={"content": "", "tool_calls": json.loads(
          '[{"id":"a:0","type":"function","function":{"name":"f","arguments":"{}"}}]') * 1000},
           choice={"finish_reason": "tool_calls"}), nonce=""),
    F("limit ignored", "K3L-622", good(usage=usage(20, 80, 100)),
      body={"max_completion_tokens": 64}),
    F("cut answer", "K3L-636", good(choice={"finish_reason": "length"})),
    F("filtered answer", "K3L-637", good(message={"content": ""},
                                         choice={"finish_reason": "content_filter"})),
    F("no model named", "K3L-640", good(model="")),
    F("no end", "K3L-641", good(choice={"finish_reason": None})),
    # Tools.
    F("tool ignored", "K3L-616", good(message={"content": "I cannot book rooms."}), facts=TOOL,
      nonce=""),
    F("tool ignored by a mock", "K3L-642", good(message={"content": "mock"}),
      facts=TOOL | {"canned": True}, nonce=""),
    F("arguments cut", "K3L-617", call('{"room": "Cur'), facts=TOOL, nonce=""),
    F("arguments as an object", "K3L-617", call({"room": "Curie", "hour": 15}), facts=TOOL,
      nonce=""),
    F("wrong type of an argument", "K3L-618", call('{"room": "Curie", "hour": "15"}'), facts=TOOL,
      nonce=""),
    F("argument missing", "K3L-618", call('{"room": "Curie"}'), facts=TOOL, nonce=""),
    F("another tool", "K3L-619", call(ARGUMENTS, name="functions.book_room"), facts=TOOL,
      nonce=""),
    F("end that is not tool_calls", "K3L-620", call(ARGUMENTS, finish_reason="stop"), facts=TOOL,
      nonce=""),
    F("messages: input as text", "K3L-644", tool_use(ARGUMENTS), wire="anthropic", facts=TOOL,
      nonce=""),
    F("messages: input as broken text", "K3L-644", tool_use('{"room": "Cur'), wire="anthropic",
      facts=TOOL, nonce=""),
    F("messages: no input", "K3L-644", tool_use(None), wire="anthropic", facts=TOOL, nonce=""),
    F("call without an id", "K3L-643", call(ARGUMENTS, ident=""), facts=TOOL, nonce=""),
)  # fmt: skip

GOOD = (
    F("a good answer", "", good()),
    F("a good stream", "", sse(ROLE, THINK, TEXT, END, DONE), stream=True),
    F("a good stream with CRLF", "", sse(ROLE, THINK, TEXT, END, DONE, end="\r\n\r\n"),
      stream=True),
    F("a good stream without the last blank line", "",
      sse(ROLE, THINK, TEXT, END)[:-1] + b"\ndata: [DONE]", stream=True),
    F("a good stream with comments, ids and a byte order mark", "",
      sse(": hello", ROLE, THINK).replace(b"\r\n\r\n", b"\r\n\r\n\xef\xbb\xbf", 1)
      + b"id: 7\nretry: 10\ndata:" + json.dumps(TEXT).encode() + b"\n\ndata: "
      + json.dumps(END).encode() + b"\n\ndata: [DONE]\n\n", stream=True),
    F("a good stream with bare CR", "", sse(ROLE, THINK, TEXT, END, DONE, end="\r\r"),
      stream=True),
    F("a good stream with data of several lines", "",
      sse(ROLE, THINK, "data: " + json.dumps(TEXT, indent=1).replace("\n", "\ndata: "), END, DONE),
      stream=True),
    F("a good stream whose characters are cut over packets", "", bytewise, stream=True,
      nonce="你好"),
    F("an answer of exactly the limit", "", good(usage=usage(20, 64, 84)),
      body={"max_completion_tokens": 64}),
    F("a good tool call", "", call(ARGUMENTS), facts=TOOL, nonce=""),
    F("a good message with a tool call", "", tool_use(json.loads(ARGUMENTS)), wire="anthropic",
      facts=TOOL, nonce=""),
    F("a good messages stream", "", sse(A_START, A_PING, *A_THINK, *A_TEXT, *A_END),
      wire="anthropic", stream=True),
    F("a good messages stream with a tool", "",
      sse(A_START, *A_THINK, *A_TOOL, ended("tool_use"), A_END[1]), wire="anthropic", stream=True,
      facts=TOOL, nonce=""),
    F("a good responses stream", "", sse(R_START, R_THINK, R_TEXT, R_END), wire="responses",
      stream=True),
    F("a good responses stream with a tool", "", sse(R_START, R_THINK, *R_TOOL, R_END),
      wire="responses", stream=True, facts=TOOL, nonce=""),
    F("a good responses stream that says all at its end", "",
      sse(R_START, named("response.completed", response=RESPONSE | {
          "status": "completed", "usage": R_USAGE, "output": [
              {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Say it."}]},
              {"type": "message", "content": [{"type": "output_text", "text": NONCE}]}]})),
      wire="responses", stream=True),
    F("gzip", "", http(200, gzip.compress(json.dumps(answer()).encode()),
                       headers=(("Content-Encoding", "gzip"),))),
    F("a good answer through Cloudflare", "", http(200, answer(), headers=CLOUDFLARE)),
)  # fmt: skip

FIXTURES = (*HTTP, *LIMITS, *WIRE, *SHAPE, *STREAM, *TYPED, *MEANING)
STARTED = time.time()
