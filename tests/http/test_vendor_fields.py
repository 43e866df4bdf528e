"""A documented field of OpenAI, Anthropic, vLLM or llama.cpp has its effect, has none to have, or gets a 400."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

import pytest
from anthropic.types import message_create_params
from anthropic.types.beta import message_create_params as beta_create_params
from openai.types import completion_create_params
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.responses import response_create_params
from pydantic import BaseModel
from typing_extensions import is_typeddict

from engine.types import GenerateRequest
from server.apis import messages, responses
from server.apis.bodies import ChatCompletionRequest, CompletionRequest
from server.apis.fields import CHAT_FIELDS, COMPLETION_FIELDS, IGNORED, Defaults, FieldCheck
from server.apis.messages.api import MessagesApi
from server.apis.responses.api import ResponsesApi
from tests.support import vendor_fields
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, ask
from tests.support.speaking import TalkingEngine


class Api(NamedTuple):
    path: str
    body: dict[str, Any]  # of a valid request
    sdk: tuple[type, ...]  # the SDK's types of bodies
    others: Iterable[str]  # fields of vLLM and llama.cpp
    check: FieldCheck
    models: tuple[type[BaseModel], ...] = ()
    ignored: Mapping[str, str] = {}


LLAMA = vendor_fields.LLAMA
HI = {"messages": CHAT["messages"], "max_tokens": 5}
APIS = {
    "chat": Api(
        CHAT_PATH,
        CHAT,
        (chat_create_params.CompletionCreateParamsStreaming, chat_create_params.CompletionCreateParamsNonStreaming),
        {*vendor_fields.VLLM_CHAT, *LLAMA, *vendor_fields.LLAMA_CHAT},
        CHAT_FIELDS,
        (ChatCompletionRequest,),
    ),
    "completions": Api(
        TEXT_PATH,
        TEXT,
        (completion_create_params.CompletionCreateParamsStreaming,),
        {*vendor_fields.VLLM_COMPLETIONS, *LLAMA, *vendor_fields.LLAMA_COMPLETIONS},
        COMPLETION_FIELDS,
        (CompletionRequest,),
    ),
    "responses": Api(
        "/v1/responses",
        {"input": "Hi"},
        (response_create_params.ResponseCreateParamsStreaming,),
        {*vendor_fields.VLLM_RESPONSES, *LLAMA},
        ResponsesApi.fields,
        ignored=responses.api.IGNORED,
    ),
    "messages": Api(
        "/v1/messages",
        HI,
        (message_create_params.MessageCreateParamsStreaming, beta_create_params.MessageCreateParamsStreaming),
        LLAMA,
        MessagesApi.fields,
        ignored=messages.api.IGNORED,
    ),
}
NAMES = [*APIS]

# What objects need around a field that is tested.
AROUND: dict[str, dict[str, dict[str, Any]]] = {
    "chat": {
        "messages[]": {"role": "user", "content": "Hi"},
        "messages[].tool_calls[]": {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        "tools[]": {"type": "function", "function": {"name": "f"}},
        "tools[].function": {"name": "f"},
        "response_format": {"type": "json_object"},
    },
    "completions": {"response_format": {"type": "json_object"}},
    "responses": {
        "input[]": {"role": "user", "content": "Hi"},
        "input[].output[]": {"type": "input_text", "text": "a"},
        "tools[]": {"type": "function", "name": "f"},
        "tools[].tools[]": {"type": "function", "name": "f"},
    },
    "messages": {
        "messages[]": {"role": "user", "content": "Hi"},
        "messages[].content[]": {"type": "tool_result", "tool_use_id": "t1"},
        "tools[]": {"name": "f", "input_schema": {"type": "object"}},
    },
}
# Fields of objects that have further objects inside, where those above would not do.
OUTSIDE: dict[tuple[str, str], dict[str, Any]] = {
    ("chat", "messages[].tool_calls[]"): {"role": "assistant", "content": ""},
    ("responses", "input[].output[]"): {"type": "function_call_output", "call_id": "c1"},
    ("responses", "input[].summary[]"): {"type": "reasoning"},
    ("responses", "tools[].tools[]"): {"type": "namespace", "name": "a"},
}


def typed_dicts(hint: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects that a type allows, with the path to each: `[]` stands for the index in a list."""
    if is_typeddict(hint):
        yield path, hint
        return
    listed = isinstance(get_origin(hint), type) and not issubclass(get_origin(hint) or int, Mapping)
    inner = f"{path}[]" if listed and issubclass(get_origin(hint) or int, Iterable) else path
    for argument in () if get_origin(hint) is Literal else get_args(hint):
        yield from typed_dicts(argument, inner)


def modelled(kinds: Iterable[type[BaseModel]]) -> dict[str, set[str]]:
    """Return the fields of request models by the path of their object."""
    found: dict[str, set[str]] = {}

    def visit(hint: Any, path: str) -> None:
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            found.setdefault(path, set()).update(field.alias or name for name, field in hint.model_fields.items())
            for name, field in hint.model_fields.items():
                visit(field.annotation, f"{path}.{field.alias or name}".lstrip("."))
            return
        for argument in get_args(hint):
            visit(argument, f"{path}[]" if get_origin(hint) is list else path)

    for kind in kinds:
        visit(kind, "")
    return found


def decided(name: str) -> dict[str, set[str]]:
    """Return the fields of objects that this server uses, refuses or ignores, by path."""
    found = modelled(APIS[name].models)
    tables = (vendor_fields.USED[name], vendor_fields.IGNORED_INSIDE[name], APIS[name].check.inside)
    for table in tables:
        for path, fields in table.items():
            found.setdefault(path, set()).update(fields.split() if isinstance(fields, str) else fields)
    return found


def body_with(name: str, path: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a valid request of an API with these fields of the object at a path."""
    value: Any = AROUND[name].get(path, {}) | fields
    steps = path.split(".")
    for depth in range(len(steps), 0, -1):
        step = steps[depth - 1]
        value = {step.removesuffix("[]"): [value] if step.endswith("[]") else value}
        if outer := ".".join(steps[: depth - 1]):
            value = AROUND[name].get(outer, {}) | OUTSIDE.get((name, path), {}) | value
    return APIS[name].body | value


def concrete(path: str) -> str:
    return path.replace("[]", "[0]")


def error_of(name: str, body: dict[str, Any]) -> str:
    """The message of a refused request, and the field that it names."""
    engine = TalkingEngine()
    reply = ask(engine, "POST", APIS[name].path, json=body)
    assert reply.status_code == 400, reply.text
    assert engine.submitted == []
    error = reply.json()["error"]
    return f"{error['message']} {error.get('param')}"


def submitted(name: str, change: Mapping[str, Any]) -> list[GenerateRequest]:
    """What the engine gets, but for ids."""
    engine = TalkingEngine()
    reply = ask(engine, "POST", APIS[name].path, json={"seed": 7} | APIS[name].body | change)
    assert reply.status_code == 200, reply.text
    return [(r.prompt, r.sampling, r.draft_policy, r.priority, r.cache_salt) for r in engine.submitted]  # type: ignore[misc]


@cache
def plain(name: str) -> list[GenerateRequest]:
    """What the engine gets of the body without changes."""
    return submitted(name, {})


def objects(name: str) -> tuple[dict[str, set[str]], set[tuple[str, str]]]:
    """Return the fields of the objects in requests that this server reads, by path, and path and `type` of the others.

    Objects in fields that are refused or ignored are left out.
    """
    api = APIS[name]
    whole = ({*IGNORED, *api.ignored} - api.check.inside.keys()) | (api.check.refused.keys() - api.check.known)
    rest: list[tuple[str, Any]] = [("", kind) for kind in api.sdk]
    seen: set[tuple[str, Any]] = set()
    fields: dict[str, set[str]] = {}
    others: set[tuple[str, str]] = set()
    while rest:
        path, kind = rest.pop()
        if (path, kind) in seen:
            continue
        seen.add((path, kind))
        hints = typing.get_type_hints(kind)
        tags, types = tags_of(hints.get("type")), vendor_fields.TYPES[name].get(path, "")
        unread = {tag for tag in tags if types and tag not in types.split()}
        others |= {(path, tag) for tag in unread}
        if unread and unread == tags:
            continue
        fields.setdefault(path, set()).update(hints)
        skipped = {*vendor_fields.IGNORED_INSIDE[name].get(path, ())} if path else whole
        skipped |= {field for field, default in api.check.inside.get(path, {}).items() if not default}
        for field in hints.keys() - skipped:
            rest += typed_dicts(hints[field], f"{path}.{field}".lstrip("."))
    return fields, others


def tags_of(hint: Any) -> set[str]:
    """Return the values of an object's `type`."""
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return {tag for argument in get_args(hint) for tag in tags_of(argument)}


@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_the_vendors_is_decided(name: str) -> None:
    api, found = APIS[name], decided(name)
    fields, _ = objects(name)
    assert len(fields[""]) > 15
    known = found | {"": api.check.known | api.check.refused.keys()}
    assert sorted(set(api.others) - known[""]) == []
    for path, inside in fields.items():
        assert sorted(inside - known.get(path, set())) == [], f"fields of {path or 'requests'}"


RESULTS = ("input[].output[]", "messages[].content[].content[]")  # what is no text there is told as JSON, or named


@pytest.mark.parametrize("name", NAMES)
def test_an_object_that_is_not_read_is_refused(name: str) -> None:
    for path, tag in sorted(objects(name)[1]):
        if path == "tools[]" and tag in vendor_fields.LEFT_OUT:
            continue
        if path == "messages[].tool_calls[]":  # custom tools are shown as functions
            continue
        if path in RESULTS or (path == "input[]" and tag in vendor_fields.FOREIGN_ITEMS | vendor_fields.TOOL_LISTS):
            continue
        message = error_of(name, body_with(name, path, {"type": tag, tag: {"a": "b"}}))
        assert concrete(path) in message, f"{path} {tag}: {message}"


def test_hosted_tools_are_left_out() -> None:
    tools = [{"type": tag} for tag in sorted(vendor_fields.LEFT_OUT)]
    assert submitted("responses", {"tools": tools}) == plain("responses")


@pytest.mark.parametrize("name", NAMES)
def test_nested_fields_of_other_vendors_are_decided(name: str) -> None:
    for path, fields in vendor_fields.OTHERS_INSIDE.get(name, {}).items():
        assert set(fields) <= decided(name)[path]


def test_reasons_are_given() -> None:
    tables = [reasons for paths in vendor_fields.IGNORED_INSIDE.values() for reasons in paths.values()]
    assert all(reason for table in [IGNORED, *tables] for reason in table.values())


# Changes that ask for more than the default, where it is a function of the body.
SPECIAL: dict[str, dict[str, Any]] = {
    "best_of": {"best_of": 2},
    "n_cmpl": {"n_cmpl": 2},
    "repeat_last_n": {"repeat_last_n": 64, "presence_penalty": 0.5},
    "context_management": {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
    "json_schema": {"json_schema": {"name": "a", "schema": {}}},
    "format": {"format": {"type": "any_text"}},
    "structures": {"structures": [{"begin": "a", "schema": {}, "end": "b"}]},
    "triggers": {"triggers": ["a"]},
    "allowed_callers": {"allowed_callers": ["programmatic"]},
}
SPECIAL_DEFAULTS: dict[str, list[dict[str, Any]]] = {
    "best_of": [{"best_of": 1}],
    "n_cmpl": [{"n_cmpl": 1}],
    "repeat_last_n": [{"repeat_last_n": 64}, {"repeat_last_n": -1}],
    "context_management": [{"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}],
    "allowed_callers": [{"allowed_callers": ["direct", "programmatic"]}],
}


def other_than(field: str, default: Defaults) -> dict[str, Any]:
    """Return a field with a value that is not its default but has its type."""
    if callable(default):
        return SPECIAL[field]
    known = default[0] if default else None
    if isinstance(known, bool):
        return {field: not known}
    if isinstance(known, (int, float)):
        return {field: 5}
    if isinstance(known, list):
        return {field: ["x"]}
    return {field: "x" if isinstance(known, str) else {"a": "b"}}


def defaults(field: str, default: Defaults) -> list[dict[str, Any]]:
    return SPECIAL_DEFAULTS.get(field, []) if callable(default) else [{field: value} for value in (*default, None)]


@pytest.mark.parametrize(
    ("name", "field"),
    [(name, field) for name in NAMES for field in APIS[name].check.refused if field not in APIS[name].check.known],
)
def test_a_refused_field_is_named_and_its_default_passes(name: str, field: str) -> None:
    default = APIS[name].check.refused[field]
    message = error_of(name, APIS[name].body | other_than(field, default))
    assert message.startswith(f"'{field}' is not supported")
    assert message.endswith(f" {field}" if name != "messages" else " None")
    for change in defaults(field, default):
        assert submitted(name, change) == plain(name)


@pytest.mark.parametrize(
    ("name", "path", "field"),
    [(name, path, field) for name in NAMES for path, fields in APIS[name].check.inside.items() for field in fields],
)
def test_a_refused_nested_field_is_named_and_its_default_passes(name: str, path: str, field: str) -> None:
    default = APIS[name].check.inside[path][field]
    message = error_of(name, body_with(name, path, other_than(field, default)))
    assert message.startswith(f"'{concrete(path)}.{field}' is not supported")
    without = submitted(name, body_with(name, path, {}))
    for change in defaults(field, default):
        if change[field] is not None:
            assert submitted(name, body_with(name, path, change)) == without


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name in NAMES for field in {**IGNORED, **APIS[name].ignored}]
)
def test_an_ignored_field_leaves_the_engines_request_as_it_is(name: str, field: str) -> None:
    value = {"a": "b"} if field in ("metadata", "prompt_cache_options") else 5
    assert submitted(name, {field: value}) == plain(name)
