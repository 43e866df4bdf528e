"""Convert the tools of OpenAI's Responses API, and choices among them, to those of chat completions."""

from collections.abc import Iterable, Iterator, Set

from server.http.errors import invalid
from server.openai.requests.adapted import Body, an_object, objects, string, without_nulls
from server.openai.requests.messages import CUSTOM_INPUT
from server.openai.requests.schemas import MAX_ADAPTED_TOOLS
from server.openai.responses.events import OfferedTool

DOT = "."  # between a namespace and a name
# Tools that run on OpenAI's servers. Codex offers its models some, whatever their provider.
_HOSTED = (
    *("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11", "file_search"),
    *("code_interpreter", "image_generation", "mcp", "tool_search", "programmatic_tool_calling"),
)
_CALLS = {"function": "function_call", "custom": "custom_tool_call"}  # type of a tool → of the items that call it
TOOL_LISTS = ("additional_tools", "tool_search_output")  # items that offer further tools


def offered_tools(body: Body) -> dict[str, tuple[OfferedTool, Body, str]]:
    """Return the client's tools, with their paths in the body, by the names of the functions that they become.

    A name in a namespace has that before it, and a dot. Tools that run on OpenAI's servers are left out. Raises
    APIError for others.
    """
    found: dict[str, tuple[OfferedTool, Body, str]] = {}
    for tool, param in _all_tools(body):
        space = string(tool, "name", param) if tool.get("type") == "namespace" else None
        inner = [(tool, param)]
        if space is not None:
            inner = [(part, f"{param}.tools[{i}]") for i, part in enumerate(objects(tool, "tools", param))]
        for part, path in inner:
            kind = part.get("type")
            if not isinstance(kind, str) or kind not in _CALLS:
                raise invalid(
                    f"Tools of type {kind!r:.80} are not supported, only functions and custom tools.",
                    f"{path}.type",
                )
            own = string(part, "name", path)
            name = own if space is None else f"{space}{DOT}{own}"
            if name in found and path.startswith("tools"):  # items may repeat a tool
                raise invalid("The names of 'tools' must differ.", f"{path}.name")
            found[name] = OfferedTool(_CALLS[kind], own, space), part, path
            if len(found) > MAX_ADAPTED_TOOLS:
                raise invalid(f"A request can have at most {MAX_ADAPTED_TOOLS} tools.", "tools")
    return found


def _all_tools(body: Body) -> Iterator[tuple[Body, str]]:
    """Yield the tools of a body, and those that items add to them, with their paths."""
    lists = [(body, "")]
    if isinstance(items := body.get("input"), list):
        lists += [
            (item, f"input[{i}]")
            for i, item in enumerate(items)
            if isinstance(item, dict) and item.get("type") in TOOL_LISTS
        ]
    for holder, path in lists:
        for index, tool in enumerate(objects(holder, "tools", path)):
            if tool.get("type") not in _HOSTED:
                yield tool, f"{path}.tools[{index}]".lstrip(".")


def as_function(name: str, tool: Body, param: str) -> Body:
    """Return a tool as a function in the format of chat completions. Raises APIError."""
    tool = without_nulls(tool)
    given = _custom(tool, param) if tool["type"] == "custom" else tool
    fields = ("description", "parameters", "strict")
    return {"type": "function", "function": {"name": name} | {key: given[key] for key in fields if key in given}}


def _custom(tool: Body, param: str) -> Body:
    """Return a custom tool, whose input is a text, as a function. Its description has the grammar of the text."""
    format, description = an_object(tool, "format", param), string(tool, "description", param, "")
    if format.get("type", "text") == "grammar":
        syntax, definition = (string(format, field, f"{param}.format") for field in ("syntax", "definition"))
        description = f"{description}\n\nThe input must match this grammar ({syntax}):\n{definition}".lstrip()
    elif format.get("type", "text") != "text":
        raise invalid(f"'{param}.format.type' must be 'text' or 'grammar'.", f"{param}.format.type")
    parameters = {"type": "object", "properties": {CUSTOM_INPUT: {"type": "string"}}, "required": [CUSTOM_INPUT]}
    return {"description": description, "parameters": parameters | {"additionalProperties": False}}


def listed_tools(body: Body) -> list[Body]:
    """Return the tools of a request that the prompt describes."""
    return [tool for tool in objects(body, "tools", "") if tool.get("type") not in _HOSTED]


def tool_choice(choice: Body, names: Iterable[str]) -> Body:
    """Return a choice among the functions of these names in the format of chat completions. Raises APIError."""
    if choice.get("type") in ("function", "custom"):
        (name,) = _chosen(choice, {*names})
        return {"type": "function", "function": {"name": name}}
    if choice.get("type") != "allowed_tools":
        raise invalid("'tool_choice' must be a string, a function or allowed tools.", "tool_choice.type")
    chosen = [tool for tool in objects(choice, "tools", "tool_choice") if tool.get("type") not in _HOSTED]
    if len(chosen) > MAX_ADAPTED_TOOLS:
        raise invalid(f"A choice can have at most {MAX_ADAPTED_TOOLS} tools.", "tool_choice.tools")
    known = {*names}
    found = dict.fromkeys(name for tool in chosen for name in _chosen(tool, known))
    allowed = [{"type": "function", "function": {"name": name}} for name in found]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.get("mode", "auto"), "tools": allowed}}


def _chosen(tool: Body, names: Set[str]) -> list[str]:
    """Return the full names of a chosen function, which may lack its namespace, or of all in a namespace."""
    name = string(tool, "name", "tool_choice")
    if tool.get("type") == "namespace":
        return [full for full in names if full.startswith(f"{name}{DOT}")]
    if tool.get("namespace"):
        return [f"{tool['namespace']}{DOT}{name}"]
    if name in names:
        return [name]
    within = [full for full in names if full.endswith(f"{DOT}{name}")]
    return within if len(within) == 1 else [name]
