"""Pydantic models of the bodies of Anthropic's Messages API."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from server.apis.parts import MAX_AGENT_TOOLS
from server.conversation import MAX_TURNS
from server.edge.reading import NullableModel, Whole
from server.options import MAX_COUNT, Options, StopString, TemplateVariables, ToolName

MAX_STOP_SEQUENCES = 64
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")  # the last two are of tools on Anthropic's servers


class TextBlock(NullableModel):
    type: Literal["text"]
    text: str


class ThinkingBlock(NullableModel):
    type: Literal["thinking"]
    thinking: str


class CallBlock(NullableModel):
    type: Literal["tool_use", "server_tool_use", "mcp_tool_use"]
    id: str
    name: str
    input: dict[str, Any] = Field(default_factory=dict)


class ResultBlock(NullableModel):
    """The result of a call. Those of tools on Anthropic's servers have types of their own."""

    type: Annotated[str, Field(pattern="tool_result$")]
    tool_use_id: str
    content: str | dict[str, Any] | list[dict[str, Any]] | None = None
    is_error: bool = False


class OtherBlock(NullableModel):
    """A block that is not read, such as redacted thinking, or refused, such as an image."""

    model_config = ConfigDict(extra="allow")

    type: Any = None


def _kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", None)
    if kind in ("text", "thinking"):
        return str(kind)
    if kind in _CALLS:
        return "call"
    return "result" if isinstance(kind, str) and kind.endswith("tool_result") else "other"


Block = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ThinkingBlock, Tag("thinking")]
    | Annotated[CallBlock, Tag("call")]
    | Annotated[ResultBlock, Tag("result")]
    | Annotated[OtherBlock, Tag("other")],
    Discriminator(_kind),
]
Content = str | Annotated[list[Block], Field(fail_fast=True)]


class Message(NullableModel):
    role: Literal["user", "assistant", "system"]
    content: Content


def _only_custom(kind: str) -> str:
    if kind not in ("custom", ""):
        raise PydanticCustomError("hosted_tool", "only custom tools are supported")
    return kind


class CustomTool(NullableModel):
    type: Annotated[str, AfterValidator(_only_custom)] = "custom"
    name: ToolName
    description: str | None = None
    input_schema: dict[str, Any] = Field(default_factory=dict)
    strict: bool | None = None
    input_examples: list[Any] | None = Field(default=None, description="Given to the chat template.")


class ToolChoice(NullableModel):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool = False


class Thinking(NullableModel):
    type: Literal["enabled", "adaptive", "disabled"]
    budget_tokens: Annotated[Whole, Field(ge=-1, le=MAX_COUNT)] | None = None
    display: Literal["summarized", "omitted"] | None = None


class OutputFormat(NullableModel):
    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfig(NullableModel):
    effort: str | None = None
    format: Annotated[OutputFormat | None, BeforeValidator(lambda value: value or None)] = None


class CountTokensRequest(Options):
    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_TURNS, fail_fast=True)]
    system: Content | None = None
    stop_sequences: Annotated[list[StopString], Field(max_length=MAX_STOP_SEQUENCES, fail_fast=True)] = Field(
        default_factory=list
    )
    tools: Annotated[list[CustomTool], Field(max_length=MAX_AGENT_TOOLS, fail_fast=True)] = Field(default_factory=list)
    tool_choice: ToolChoice = ToolChoice(type="auto")
    thinking: Thinking | None = None
    output_config: OutputConfig = OutputConfig()
    output_format: OutputFormat | None = Field(default=None, description="The older place of output_config.format.")
    chat_template_kwargs: TemplateVariables


class MessagesRequest(CountTokensRequest):
    max_tokens: int = Field(ge=0, le=MAX_COUNT, description="0: only read the prompt.")
