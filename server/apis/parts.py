"""Parts of messages and of tools' results, and what several APIs make of them."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pydantic_core

from server.edge.errors import APIError, invalid

CUSTOM_INPUT = "input"  # the only argument of the function that stands for a custom tool
MAX_AGENT_TOOLS = 1024  # in the APIs that agents use; OpenAI's chats allow fewer
_MEDIA = ("image", "screenshot", "file", "document", "audio", "video")  # in the types of parts

Kinds = Mapping[str, str]  # type of a part → its field with the text


def template_variables(effort: str | None, verbosity: str | None, others: Mapping[str, Any]) -> dict[str, Any]:
    """Return the additional variables of the chat template. Templates ignore those that they do not know."""
    variables: dict[str, Any] = {}
    if effort is not None:
        variables["reasoning_effort"] = effort
    if effort == "none":
        variables["enable_thinking"] = False
    if verbosity is not None:
        variables["verbosity"] = verbosity
    return variables | dict(others)


def part_text(part: Mapping[str, Any], kinds: Kinds, path: str) -> str:
    """Return the text of a part. Raises APIError for other types of content."""
    kind = part.get("type")
    field = kinds.get(kind) if isinstance(kind, str) else None
    if field is None:
        raise not_text(kinds, path)
    if not isinstance(text := part.get(field), str):
        raise invalid(f"'{path}.{field}' must be a string.", f"{path}.{field}")
    return text


def not_text(kinds: Kinds, path: str) -> APIError:
    return invalid(f"'{path}' must have one of the types {', '.join(kinds)}: this model reads text only.", path)


def result_text(content: str | Mapping[str, Any] | list[dict[str, Any]] | None, kinds: Kinds, path: str) -> str:
    """Return the text of a tool's result, also for parts that are no text."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    texts = []
    for index, part in enumerate(parts):
        is_text = isinstance(kind := part.get("type"), str) and kind in kinds
        texts.append(part_text(part, kinds, f"{path}[{index}]") if is_text else text_instead(part))
    return "\n".join(texts)


def text_instead(part: Mapping[str, Any]) -> str:
    """Return what stands for a part of a tool's result that is no text, so that the conversation can go on.

    Images, files and the like are named. Other objects become their JSON.
    """
    kind = part.get("type")
    if isinstance(kind, str) and any(word in kind for word in _MEDIA):
        return f"[{kind} omitted]"
    return json.dumps(part, ensure_ascii=False)


def arguments_of(arguments: Any) -> Any:
    """Return the arguments of an earlier call as an object, or as they are: the answer may have ended within them."""
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = pydantic_core.from_json(arguments.strip() or "{}", allow_inf_nan=False)
    return {} if arguments is None else arguments
