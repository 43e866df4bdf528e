"""Numbers and lists of the published schemas: both ends are accepted, and one more is refused with the limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from server.apis.bodies import ChatCompletionRequest, CompletionRequest
from server.config import ServerConfig
from tests.support.fake import INFO, FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, ask

REQUESTS: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    CHAT_PATH: (ChatCompletionRequest, CHAT),
    TEXT_PATH: (CompletionRequest, TEXT),
}
MOST_VALUES = 200_000  # of a body; some lists may be longer


COMPANIONS: dict[str, dict[str, Any]] = {
    "top_logprobs": {"logprobs": True, "max_tokens": 5},
    "min_tokens": {"max_tokens": 2**31 - 1},
}


class End(NamedTuple):
    path: str
    field: str
    limit: float
    inside: Any
    outside: Any


def item(field: str, schema: dict[str, Any], index: int) -> Any:
    """An item of a list or mapping."""
    samples = {"messages": CHAT["messages"][0], "tools": {"type": "function", "function": {"name": f"f{index}"}}}
    kinds = {"string": "a", "integer": 1, "array": [1]}
    return samples[field] if field in samples else kinds[schema["items"]["type"]]


def ends(path: str, field: str, schema: dict[str, Any]) -> Iterator[End]:
    """Yield the ends of a field's ranges in a JSON schema."""
    for variant in schema.get("anyOf", ()):
        yield from ends(path, field, variant)
    step = 1 if schema.get("type") == "integer" else 1e-3
    for keyword, sign in (("minimum", -1), ("maximum", 1)):
        if (limit := schema.get(keyword)) is not None:
            yield End(path, field, limit, limit, limit + sign * step)
    if (limit := schema.get("exclusiveMinimum")) is not None:
        yield End(path, field, limit, limit + 1e-9, limit)
    for keyword, more in (("minLength", -1), ("maxLength", 1)):
        if (limit := schema.get(keyword)) is not None:
            yield End(path, field, limit, "a" * limit, "a" * (limit + more))
    for keyword, more in (("minItems", -1), ("maxItems", 1)):
        if (limit := schema.get(keyword)) is not None and limit < MOST_VALUES:
            items = [item(field, schema, index) for index in range(limit + 1)]
            yield End(path, field, limit, items[:limit], items[: limit + more])
    if (limit := schema.get("maxProperties")) is not None:
        items = {str(index): "a" if field == "metadata" else 1 for index in range(limit + 1)}
        yield End(path, field, limit, {key: items[key] for key in list(items)[:limit]}, items)


def all_ends() -> Iterator[End]:
    for path, (model, _) in REQUESTS.items():
        for field, schema in model.model_json_schema()["properties"].items():
            yield from ends(path, field, schema)
    yield End(CHAT_PATH, "metadata", 64, {"k" * 64: "v"}, {"k" * 65: "v"})
    yield End(CHAT_PATH, "metadata", 512, {"k": "v" * 512}, {"k": "v" * 513})
    for path in REQUESTS:
        yield End(path, "stop", 4096, ["x" * 4096], ["x" * 4097])
        yield End(path, "logit_bias", 100, {"1": 100}, {"1": 100.1})
        yield End(path, "logit_bias", -100, {"1": -100}, {"1": -100.1})


ENDS = [*all_ends()]


def test_the_schemas_have_these_ranges() -> None:
    limits = {(end.field, end.limit) for end in ENDS}
    assert {("stop", 4), ("tools", 128), ("n", 128), ("metadata", 16), ("top_logprobs", 20), ("top_k", -1)} <= limits
    assert {("logit_bias", 1024), ("messages", 16384), ("prompt", 2048), ("max_tokens", 2**31 - 1)} <= limits


class RoomyEngine(FakeEngine):
    """An engine that refuses nothing within the schemas' ranges."""

    info = replace(INFO, max_model_len=2**32, vocab_size=2048, max_queued=2**14)


@pytest.mark.parametrize("end", ENDS, ids=[f"{end.path.split('/')[2]}-{end.field}-{end.limit}" for end in ENDS])
def test_an_end_is_accepted_and_one_more_is_refused_with_the_limit(end: End) -> None:
    body = REQUESTS[end.path][1] | COMPANIONS.get(end.field, {})
    config = ServerConfig(scheduling_policy="priority")

    def reply_to(value: Any) -> Any:
        engine = RoomyEngine(capacity=2**14)
        return ask(engine, "POST", end.path, json=body | {end.field: value}, config=config)

    inside, outside = reply_to(end.inside), reply_to(end.outside)
    assert inside.status_code == 200, inside.text[:300]
    assert outside.status_code == 400
    error = outside.json()["error"]
    assert error["param"].startswith(end.field)
    named = str(end.limit) in error["message"] or f"{end.limit:g}" in error["message"]
    assert named or end.outside in ("", []), error["message"]
