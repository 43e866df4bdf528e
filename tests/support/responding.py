"""The APIs whose replies consist of blocks: OpenAI's Responses and Anthropic's Messages."""

from __future__ import annotations

import json
from typing import Any

from anthropic.types import Message, RawMessageStreamEvent
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from tests.support.fake import FakeEngine
from tests.support.harness import ask

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "Of a city.",
    "parameters": {"type": "object", "properties": {}},
}


class Api:
    """An API, and the types of its replies and events."""

    def __init__(self, path: str, reply: type[BaseModel], event: Any) -> None:
        self.path = path
        self._reply = reply
        self._event: TypeAdapter[Any] = TypeAdapter(event)

    def reply_to(self, engine: FakeEngine, body: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a request, which is valid by the SDK's type."""
        reply = ask(engine, "POST", self.path, json=body)
        assert reply.status_code == 200, reply.text
        self._reply.model_validate_json(reply.content)
        found: dict[str, Any] = reply.json()
        return found

    def events_of(self, content: bytes) -> list[dict[str, Any]]:
        """Return the events of a stream but for pings, valid by the SDK's types and numbered in turn if at all."""
        events = []
        for block in content.decode().strip().split("\n\n"):
            name, data = block.split("\n")
            event = json.loads(data.removeprefix("data: "))
            assert name == f"event: {event['type']}"
            if self is RESPONSES or event["type"] not in ("ping", "error"):
                self._event.validate_python(event)
            events.append(event)
        assert self is MESSAGES or [event["sequence_number"] for event in events] == [*range(len(events))]
        return [event for event in events if event["type"] != "ping"]


RESPONSES = Api("/v1/responses", Response, ResponseStreamEvent)
MESSAGES = Api("/v1/messages", Message, RawMessageStreamEvent)
