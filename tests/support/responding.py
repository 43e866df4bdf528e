"""Requests of OpenAI's Responses API, and the events of its streams."""

from __future__ import annotations

import json
from typing import Any

from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

PATH = "/v1/responses"
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "Of a city.",
    "parameters": {"type": "object", "properties": {}},
}


def events_of(content: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream, valid by OpenAI's types and numbered in turn."""
    events = []
    for block in content.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        _EVENT.validate_python(events[-1])
        assert name == f"event: {events[-1]['type']}"
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    return events
