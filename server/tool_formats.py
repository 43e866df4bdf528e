"""The formats of tool calls in a model's text. `server.answer.calls` parses them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """How a model writes calls, each a JSON object. The default leaves calls in the text."""

    name: str = ""
    marks: tuple[str, ...] = ()  # markers around calls; some models have special tokens for them
    arguments_key: str = "arguments"
    item: str = "call"  # one call with its markers, in Lark
    separator: str = ""  # text between two calls
    calls: str = "{}"  # what is around all calls, in Lark
    id_length: int | None = None  # letters and digits, where chat templates reject other ids


HERMES = ToolFormat(
    "hermes",
    marks=("<tool_call>", "</tool_call>"),
    item=r'<tool_call> "\n" call "\n" </tool_call>',
    separator="\n",
)
LLAMA3 = ToolFormat("llama3_json", arguments_key="parameters", separator="; ")
MISTRAL = ToolFormat(
    "mistral",
    marks=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
    separator=", ",
    calls='[TOOL_CALLS] "[" {} "]"',
    id_length=9,
)
TOOL_FORMATS = {format.name: format for format in (HERMES, LLAMA3, MISTRAL)}
