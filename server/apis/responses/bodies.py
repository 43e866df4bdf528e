"""Pydantic models of the bodies of OpenAI's Responses API."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag

from server.apis.bodies import MAX_TOP_LOGPROBS, Metadata, StopStrings
from server.edge.reading import NullableModel, Objects
from server.options import MAX_COUNT, Name, Options, TemplateVariables

# Tools that run on OpenAI's servers. Codex offers its models some, whatever their provider.
HOSTED = (
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "file_search",
    "code_interpreter",
    "image_generation",
    "mcp",
    "tool_search",
    "programmatic_tool_calling",
)


Parts = Annotated[list[dict[str, Any]], Field(fail_fast=True)]


class RepeatedModel(NullableModel):
    """A part that the reply repeats, with all of its fields."""

    model_config = ConfigDict(extra="allow")


class FunctionTool(RepeatedModel):
    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolFormat(RepeatedModel):
    type: Literal["text", "grammar"] = "text"
    syntax: str = ""
    definition: str = ""


class CustomTool(RepeatedModel):
    """A tool whose input is a text."""

    type: Literal["custom"]
    name: str
    description: str = ""
    format: ToolFormat = ToolFormat()


class OtherTool(NullableModel):
    """A tool that is left out, because it runs on OpenAI's servers, or refused."""

    type: Any = None


def _tool_kind(tool: Any) -> str:
    kind = tool.get("type") if isinstance(tool, dict) else getattr(tool, "type", None)
    return kind if kind in ("function", "custom", "namespace") else "other"


InnerTool = Annotated[
    Annotated[FunctionTool, Tag("function")]
    | Annotated[CustomTool, Tag("custom")]
    | Annotated[OtherTool, Tag("namespace")]
    | Annotated[OtherTool, Tag("other")],
    Discriminator(_tool_kind),
]


class Namespace(RepeatedModel):
    type: Literal["namespace"]
    name: str
    description: Any = None
    tools: Annotated[list[InnerTool], Field(fail_fast=True)] = Field(default_factory=list)


Tool = Annotated[
    Annotated[FunctionTool, Tag("function")]
    | Annotated[CustomTool, Tag("custom")]
    | Annotated[Namespace, Tag("namespace")]
    | Annotated[OtherTool, Tag("other")],
    Discriminator(_tool_kind),
]


class ChosenTool(RepeatedModel):
    type: str | None = None
    name: str | None = None
    namespace: str | None = None


class ToolChoice(ChosenTool):
    mode: Literal["auto", "required"] = "auto"
    tools: Annotated[list[ChosenTool], Field(fail_fast=True)] = Field(default_factory=list)


class MessageItem(NullableModel):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | Parts


class ReasoningItem(NullableModel):
    type: Literal["reasoning"]
    content: str | Parts | None = None
    summary: str | Parts = Field(default_factory=list)


class CallItem(NullableModel):
    """A call. Those of tools that only OpenAI describes have further fields."""

    model_config = ConfigDict(extra="allow")

    type: str
    id: str | None = None
    call_id: str | None = None
    status: Any = None
    caller: Any = None


class FunctionCallItem(CallItem):
    name: str
    namespace: str | None = None
    arguments: str | dict[str, Any] = "{}"


class CustomCallItem(CallItem):
    name: str
    namespace: str | None = None
    input: str


class OutputItem(CallItem):
    """The result of a call."""

    output: str | dict[str, Any] | Parts | None = None


class ToolsItem(NullableModel):
    """An item that offers further tools, as the output of a search does too."""

    model_config = ConfigDict(extra="allow")

    type: Literal["additional_tools"]


class ReferenceItem(NullableModel):
    """Stands for an item of a stored response."""

    type: Literal["item_reference"] | None = None
    id: str


class OtherItem(NullableModel):
    """An item that is left out or refused."""

    type: Any = None


def _item_kind(item: Any) -> str:
    if not isinstance(item, dict):
        return "other" if getattr(item, "type", None) is None else str(item.type)
    kind = item.get("type")
    if kind is None:
        return "item_reference" if "id" in item and item.keys() <= {"type", "id"} else "message"
    if not isinstance(kind, str):
        return "other"
    if kind in ("message", "reasoning", "function_call", "custom_tool_call", "item_reference"):
        return kind
    if kind == "additional_tools":
        return "tools"
    if kind.endswith("_output") or kind == "mcp_approval_response":
        return "output"
    return "call" if kind.endswith("_call") or kind in ("mcp_approval_request", "program") else "other"


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[ReasoningItem, Tag("reasoning")]
    | Annotated[FunctionCallItem, Tag("function_call")]
    | Annotated[CustomCallItem, Tag("custom_tool_call")]
    | Annotated[CallItem, Tag("call")]
    | Annotated[OutputItem, Tag("output")]
    | Annotated[ToolsItem, Tag("tools")]
    | Annotated[ReferenceItem, Tag("item_reference")]
    | Annotated[OtherItem, Tag("other")],
    Discriminator(_item_kind),
]


class TextFormat(NullableModel):
    model_config = ConfigDict(extra="forbid")

    type: Literal["text", "json_object", "json_schema"]
    name: Name | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    description: str | None = Field(default=None, description="Ignored: the prompt does not show the schema.")
    strict: bool | None = None


class Text(NullableModel):
    format: Annotated[TextFormat | None, BeforeValidator(lambda value: value or None)] = None
    verbosity: str | None = Field(default=None, description="Given to the chat template.")


class Reasoning(NullableModel):
    effort: str | None = Field(default=None, description="Given to the chat template.")


class ResponsesRequest(Options):
    input: str | Annotated[list[Item], Field(fail_fast=True), Objects] | None = None
    instructions: str | None = None
    max_output_tokens: int | None = Field(default=None, ge=1, le=MAX_COUNT)
    max_tool_calls: int | None = Field(default=None, ge=0, description="Limits tools on OpenAI's servers: ignored.")
    tools: Annotated[list[Tool], Field(fail_fast=True)] = Field(default_factory=list)
    tool_choice: Literal["none", "auto", "required"] | ToolChoice = "auto"
    parallel_tool_calls: bool = True
    text: Text = Text()
    reasoning: Reasoning = Reasoning()
    include: Annotated[list[str], Field(fail_fast=True)] = Field(default_factory=list)
    top_logprobs: int = Field(default=0, ge=0, le=MAX_TOP_LOGPROBS)
    stop: StopStrings | None = None
    metadata: Metadata = Field(default_factory=dict)
    prompt_cache_key: Any = None
    safety_identifier: Any = None
    user: Any = None
    chat_template_kwargs: TemplateVariables


class StoringRequest(ResponsesRequest):
    """A request to a server that stores responses."""

    previous_response_id: str | None = Field(default=None, description="The response that this one continues.")
    store: bool = True


class Stored(NullableModel):
    """What is validated apart from a body: items of stored responses, or the tools of an item."""

    items: Annotated[list[Item], Field(fail_fast=True)] = Field(default_factory=list)
    tools: Annotated[list[Tool], Field(fail_fast=True)] = Field(default_factory=list)
