"""The tools of OpenAI's Responses API, and choices among them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from server.apis.parts import CUSTOM_INPUT, MAX_AGENT_TOOLS
from server.apis.responses import bodies
from server.conversation import Tool, ToolChoice, ToolMode
from server.edge.errors import invalid
from server.options import TOOL_NAME

DOT = "."  # separator of a namespace and a name
Place = tuple[bodies.Tool, str]  # a tool with its path


class OfferedTool(NamedTuple):
    """A tool of a request, which the model knows as a function."""

    kind: str  # type of the items that call it
    name: str
    namespace: str | None
    tool: Tool


def offered_tools(tools: Iterable[Place]) -> dict[str, OfferedTool]:
    """Return tools by the names of the functions that they become.

    A name in a namespace has that before it, and a dot. Tools that run on OpenAI's servers are left out. Raises
    APIError for others.
    """
    found: dict[str, OfferedTool] = {}
    for tool, path, space in _each(tools):
        if not isinstance(tool, bodies.FunctionTool | bodies.CustomTool):
            raise invalid(
                f"Tools of type {tool.type!r:.80} are not supported, only functions and custom tools.",
                f"{path}.type",
            )
        name = tool.name if space is None else f"{space}{DOT}{tool.name}"
        if not TOOL_NAME.fullmatch(name):
            reason = f"String should match pattern {TOOL_NAME.pattern!r}"
            raise invalid(f"Invalid value for '{path}.name': {reason}.", f"{path}.name")
        if name in found and path.startswith("tools"):  # items may repeat a tool
            raise invalid("The names of 'tools' must differ.", f"{path}.name")
        if isinstance(tool, bodies.CustomTool):
            found[name] = OfferedTool("custom_tool_call", tool.name, space, _custom(name, tool, path))
        else:
            function = Tool(name, f"{path}.parameters", tool.description, tool.parameters, tool.strict)
            found[name] = OfferedTool("function_call", tool.name, space, function)
        if len(found) > MAX_AGENT_TOOLS:
            raise invalid(f"A request can have at most {MAX_AGENT_TOOLS} tools.", "tools")
    return found


def _each(
    tools: Iterable[Place],
) -> Iterator[tuple[bodies.FunctionTool | bodies.CustomTool | bodies.OtherTool, str, str | None]]:
    """Yield tools with their paths and namespaces."""
    for tool, path in tools:
        if isinstance(tool, bodies.Namespace):
            for index, inner in enumerate(tool.tools):
                yield inner, f"{path}.tools[{index}]", tool.name
        elif tool.type not in bodies.HOSTED:
            yield tool, path, None


def _custom(name: str, tool: bodies.CustomTool, path: str) -> Tool:
    """Return a custom tool as a function of one text. Its description has the grammar of the text."""
    format, description = tool.format, tool.description
    if format.type == "grammar":
        if not (format.syntax and format.definition):
            missing = "definition" if format.syntax else "syntax"
            raise invalid(f"Missing required parameter: '{path}.format.{missing}'.", f"{path}.format.{missing}")
        rules = f"The input must match this grammar ({format.syntax}):\n{format.definition}"
        description = f"{description}\n\n{rules}".lstrip()
    parameters = {
        "type": "object",
        "properties": {CUSTOM_INPUT: {"type": "string"}},
        "required": [CUSTOM_INPUT],
        "additionalProperties": False,
    }
    return Tool(name, f"{path}.parameters", description, parameters)


def chosen(choice: bodies.ToolChoice | ToolMode, offered: Mapping[str, object]) -> ToolChoice:
    """Return a choice among the functions of these names. Raises APIError."""
    if not isinstance(choice, bodies.ToolChoice):
        return ToolChoice(choice)
    known = offered.keys()
    if choice.type in ("function", "custom"):
        return ToolChoice("required", frozenset(_names([(choice, "tool_choice")], known)), single=True)
    if choice.type != "allowed_tools":
        raise invalid("'tool_choice' must be a string, a function or allowed tools.", "tool_choice.type")
    tools = [
        (tool, f"tool_choice.tools[{index}]")
        for index, tool in enumerate(choice.tools)
        if tool.type not in bodies.HOSTED
    ]
    if len(tools) > MAX_AGENT_TOOLS:
        raise invalid(f"A choice can have at most {MAX_AGENT_TOOLS} tools.", "tool_choice.tools")
    names = frozenset(_names(tools, known))
    if not names:
        raise invalid("'tool_choice.tools' must name at least one tool.", "tool_choice.tools")
    return ToolChoice(choice.mode, names, path="tool_choice.tools")


def _names(tools: Sequence[tuple[bodies.ChosenTool, str]], known: Set[str]) -> Iterator[str]:
    """Yield the full names of chosen functions, which may lack their namespace, and of all in a chosen namespace."""
    for tool, path in tools:
        name = tool.name
        if name is None:
            raise invalid(f"Missing required parameter: '{path}.name'.", f"{path}.name")
        within = [full for full in known if full.endswith(f"{DOT}{name}")]
        if tool.type == "namespace":
            yield from (full for full in known if full.startswith(f"{name}{DOT}"))
        elif tool.namespace:
            yield f"{tool.namespace}{DOT}{name}"
        elif name in known or len(within) != 1:
            yield name
        else:
            yield within[0]
