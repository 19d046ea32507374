"""What a user of the official SDKs does; run by the peers' Python, not collected as a test.

    python sdk_client.py openai|anthropic|responses BASE_URL MODEL      with the key in SDK_KEY

Prints one JSON object: what worked, or the class of the exception.
"""

import json
import os
import sys


def openai(base_url: str, model: str) -> dict[str, object]:
    """Chat, the same as a stream, a tool call, the list of models."""
    from openai import OpenAI

    client = OpenAI(base_url=base_url, api_key=os.environ["SDK_KEY"], max_retries=0, timeout=30)
    ask = {"role": "user", "content": "Reply with this word and nothing else: k3-sdk"}
    plain = client.chat.completions.create(model=model, messages=[ask])
    pieces, reason = [], None
    stream = client.chat.completions.create(model=model, messages=[ask], stream=True)
    for chunk in stream:
        for choice in chunk.choices:
            pieces.append(choice.delta.content or "")
            reason = choice.finish_reason or reason
    schema = {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]}
    called = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "Book the room Curie. Use the tool."}],
        tools=[{"type": "function", "function": {"name": "book_room", "parameters": schema}}],
        tool_choice="required",
    )
    calls = called.choices[0].message.tool_calls or []
    return {
        "text": plain.choices[0].message.content,
        "tokens": plain.usage.total_tokens if plain.usage else 0,
        "streamed": "".join(pieces),
        "finish": reason,
        "tools": [[call.function.name, json.loads(call.function.arguments)] for call in calls],
        "models": [card.id for card in client.models.list()],
    }


def anthropic(base_url: str, model: str) -> dict[str, object]:
    """One message, the same as a stream, a tool call as a stream."""
    from anthropic import Anthropic

    client = Anthropic(base_url=base_url, api_key=os.environ["SDK_KEY"], max_retries=0, timeout=30)
    ask = {"role": "user", "content": "Reply with this word and nothing else: k3-sdk"}
    message = client.messages.create(model=model, max_tokens=2048, messages=[ask])
    texts = [block.text for block in message.content if block.type == "text"]
    with client.messages.stream(model=model, max_tokens=2048, messages=[ask]) as stream:
        streamed = "".join(stream.text_stream)
        last = stream.get_final_message()
    schema = {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]}
    with client.messages.stream(
        model=model,
        max_tokens=2048,
        messages=[{"role": "user", "content": "Book the room Curie. Use the tool."}],
        tools=[{"name": "book_room", "input_schema": schema}],
        tool_choice={"type": "any"},
    ) as stream:
        called = stream.get_final_message()
    return {
        "text": "".join(texts),
        "tokens": message.usage.output_tokens,
        "streamed": streamed,
        "finish": last.stop_reason,
        "tools": [[b.name, b.input] for b in called.content if b.type == "tool_use"],
    }


def responses(base_url: str, model: str) -> dict[str, object]:
    """One response as a stream, and a tool call as a stream."""
    from openai import OpenAI

    client = OpenAI(base_url=base_url, api_key=os.environ["SDK_KEY"], max_retries=0, timeout=30)
    ask = "Reply with this word and nothing else: k3-sdk"
    with client.responses.stream(model=model, input=ask) as stream:
        pieces = [e.delta for e in stream if e.type == "response.output_text.delta"]
        last = stream.get_final_response()
    schema = {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]}
    with client.responses.stream(
        model=model,
        input="Book the room Curie. Use the tool.",
        tools=[{"type": "function", "name": "book_room", "parameters": schema}],
        tool_choice="required",
    ) as stream:
        called = stream.get_final_response()
    return {
        "text": last.output_text,
        "streamed": "".join(pieces),
        "finish": last.status,
        "tools": [
            [i.name, json.loads(i.arguments)] for i in called.output if i.type == "function_call"
        ],
    }


def main() -> None:
    """Run one and print what came of it."""
    kind, base_url, model = sys.argv[1:]
    try:
        result = {"openai": openai, "anthropic": anthropic, "responses": responses}[kind](
            base_url, model
        )
    except Exception as error:  # noqa: BLE001 - which one it is, is the result
        result = {"error": type(error).__name__}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
