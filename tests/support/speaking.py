"""Engines that say a given text with tool calls, reasoning and log-probabilities, and what clients get of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.types import TokenLogprobs
from server.apis.replies import ChatCompletion, Completion
from tests.support.fake import INFO, FakeEngine
from tests.support.harness import CHAT_PATH, ask, sse

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Bern"}}\n</tool_call>'


def pieces(text: str, size: int = 5) -> tuple[str, ...]:
    return tuple(text[i : i + size] for i in range(0, len(text), size))


def spelled(text: str) -> tuple[str, ...]:
    """The pieces of a text whose tokens are bytes."""
    return tuple(piece for character in text for piece in ("",) * (len(character.encode()) - 1) + (character,))


class SpeakingEngine(FakeEngine):
    """An engine that adds log-probabilities on request; its template knows tools and reasoning."""

    info = replace(INFO, max_model_len=4096, tool_format="hermes", thinks=True)

    async def _events(self, request: Any) -> Any:
        async for event in super()._events(request):
            if request.sampling.logprobs is None:
                yield event
                continue
            top = tuple((97 + i, -0.5 - i) for i in range(request.sampling.logprobs))
            found = tuple(TokenLogprobs(byte, -0.25, top) for byte in event.text.encode())
            scored = request.prompt[1:] if request.sampling.prompt_logprobs and event.completion_tokens == 1 else ()
            prompt = tuple(TokenLogprobs(token, -0.75, top) for token in scored)
            yield replace(event, logprobs=found, prompt_logprobs=prompt, pieces=spelled(event.text))


def whole(engine: FakeEngine, path: str, body: dict[str, Any]) -> dict[str, Any]:
    reply = ask(engine, "POST", path, json=body)
    assert reply.status_code == 200, reply.text
    (ChatCompletion if path == CHAT_PATH else Completion).model_validate(reply.json())
    choice: dict[str, Any] = reply.json()["choices"][0]
    return choice


def deltas(engine: FakeEngine, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    reply = ask(engine, "POST", path, json=body | {"stream": True})
    assert reply.status_code == 200, reply.text
    return [choice for event in sse(reply.content)[:-1] for choice in event["choices"]]


# Answers, and the items of the Responses API that they become.
ANSWERS = {
    "text": ("Hello", ["message"]),
    "nothing": ("", ["message"]),
    "reasoning": ("<think>\nHm.\n</think>\n\nHello", ["reasoning", "message"]),
    "reasoning alone": ("<think>\nHm, hm", ["reasoning", "message"]),
    "a call": (CALL, ["function_call"]),
    "text and calls": (f"Let me see. {CALL}\n{CALL}", ["message", "function_call", "function_call"]),
    "reasoning and a call": (f"<think>\nHm.\n</think>\n{CALL}", ["reasoning", "function_call"]),
}


class RecordingEngine(SpeakingEngine):
    """Its template, unlike that of the others, knows the role of tools."""

    def __init__(self, script: tuple[str, ...] = ("Hel", "lo")) -> None:
        super().__init__(script)
        render = self.tokenizer.render_chat

        def rendered(messages: list[dict[str, Any]], *rest: Any, **options: Any) -> str:
            text = render([message for message in messages if message["role"] != "tool"], *rest, **options)
            self.tokenizer.rendered[-1]["messages"] = messages
            return text

        vars(self.tokenizer)["render_chat"] = rendered


class TalkingEngine(SpeakingEngine):
    def __init__(self, text: str = "Hello") -> None:
        super().__init__(pieces(text, 3) or ("",))
