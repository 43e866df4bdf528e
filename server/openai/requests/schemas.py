"""Pydantic models of request bodies; those of replies are in `server.openai.replies.schemas`.

Types are strict, as in OpenAI's API: "5" is not an integer, and true is not a number. Null fields are dropped before
validation (`bodies`), so an optional field is absent or has its type.
"""

import json
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema

MAX_STOP_STRINGS = 4
MAX_STOP_SEQUENCES = 64  # in the Messages API
MAX_STOP_CHARACTERS = 4096
MAX_STOP_IDS = 128
MAX_COUNT = 2**31 - 1
MAX_BIASES = 1024
MAX_ALLOWED_IDS = 3 * 2**16  # bodies have at most 200,000 values by default
MAX_BAD_WORDS = 128
MAX_PROMPTS = 2048
MAX_TOOLS = 128
MAX_ADAPTED_TOOLS = 1024
MAX_MESSAGES = 16384
MAX_TOP_LOGPROBS = 20
MAX_COMPLETION_LOGPROBS = 5
MAX_METADATA = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512

TokenId = Annotated[int, Field(ge=0)]
StopTokenIds = Annotated[list[TokenId], Field(max_length=MAX_STOP_IDS, fail_fast=True)]
Bias = Annotated[float, Field(ge=-100, le=100)]
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_./:-]{1,256}$")]  # MCP servers write dots, slashes and colons
StopString = Annotated[str, Field(min_length=1, max_length=MAX_STOP_CHARACTERS)]
CacheSalt = Annotated[str, Field(min_length=1, max_length=256)]
MetadataKey = Annotated[str, Field(max_length=MAX_METADATA_KEY)]
MetadataValue = Annotated[str, Field(max_length=MAX_METADATA_VALUE)]
_MEDIA = ("image", "screenshot", "file", "document", "audio", "video")  # in the types of parts
_TEXT = {"type": "string", "minLength": 1}
_IDS = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_LISTS = [{"type": "array", "items": items, "minItems": 1, "maxItems": MAX_PROMPTS} for items in (_TEXT, _IDS)]
# `translate` checks prompts: pydantic would report an error for each of a million token ids.
Prompt = Annotated[Any, WithJsonSchema({"anyOf": [_TEXT, _IDS, *_LISTS]})]


def _nullable(schema: dict[str, Any]) -> None:
    """Document that null counts as absent in every optional field."""
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        if name not in required:
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}]}


class RequestModel(BaseModel):
    """Base of all request bodies. `server.openai.requests.parameters` handles unknown fields."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, json_schema_extra=_nullable)


class StreamOptions(RequestModel):
    include_usage: bool = Field(default=False, description="Send the usage in a last chunk.")
    continuous_usage_stats: bool = Field(
        default=False, description="Send the usage so far in every chunk. Requires include_usage."
    )


class JsonSchemaFormat(RequestModel):
    model_config = ConfigDict(extra="forbid")  # a misspelt field would leave the answer unconstrained

    name: Name
    schema_: dict[str, Any] = Field(alias="schema")
    description: str | None = Field(default=None, description="Ignored: the prompt does not show the schema.")
    strict: bool | None = Field(
        default=None, description="Refuse keywords that cannot be enforced, instead of leaving them out."
    )


class ResponseFormat(RequestModel):
    model_config = ConfigDict(extra="forbid")

    type: Literal["text", "json_object", "json_schema", "structural_tag"]
    json_schema: JsonSchemaFormat | None = None
    format: dict[str, Any] | None = Field(default=None, description="Of a structural tag, as XGrammar writes it.")
    structures: list[dict[str, Any]] | None = Field(default=None, description="Of an older structural tag.")
    triggers: list[str] | None = None


class Function(RequestModel):
    """A tool's function. Further fields are passed to the chat template."""

    model_config = ConfigDict(extra="allow")

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(RequestModel):
    type: Literal["function"]
    function: Function


class NamedFunction(RequestModel):
    name: str


class NamedTool(RequestModel):
    type: Literal["function"]
    function: NamedFunction


class AllowedTools(RequestModel):
    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedTool], Field(min_length=1, max_length=MAX_ADAPTED_TOOLS, fail_fast=True)]


class ToolChoice(RequestModel):
    """A function that must be called, or the only tools that the prompt describes."""

    type: Literal["function", "allowed_tools"]
    function: NamedFunction | None = None
    allowed_tools: AllowedTools | None = None


class GenerationRequest(RequestModel):
    """Fields of both chat completions and completions."""

    lowers_max_tokens: ClassVar[bool] = False  # to what the context has room for, instead of refusing the request

    model: str = Field(default="", description="Name of a served model. Default: the first one.")
    max_tokens: int | None = Field(default=None, ge=1, le=MAX_COUNT)
    temperature: float | None = Field(default=None, ge=0, le=2, description="Default: the checkpoint's value, else 1.")
    top_p: float | None = Field(
        default=None, ge=0, le=1, description="0: the likeliest token. Default: the checkpoint's value, else 1."
    )
    top_k: int | None = Field(
        default=None, ge=-1, le=MAX_COUNT, description="-1 or 0 disables it. Default: the checkpoint's value, else off."
    )
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1, description="Absent or -1: a random seed.")
    stop: StopString | Annotated[list[StopString], Field(max_length=MAX_STOP_STRINGS, fail_fast=True)] | None = None
    n: int = Field(default=1, ge=1, le=128, description="Number of choices per prompt.")
    min_p: float | None = Field(
        default=None, ge=0, le=1, description="Minimum probability of a token relative to that of the most likely one."
    )
    presence_penalty: float = Field(default=0.0, ge=-2, le=2)
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    repetition_penalty: float | None = Field(
        default=None, ge=1e-3, le=1e3, description="1 disables it. Default: the checkpoint's value, else 1."
    )
    logit_bias: dict[str, Bias] = Field(
        default_factory=dict,
        description="Token id → value added to its logit.",
        json_schema_extra={"maxProperties": MAX_BIASES, "propertyNames": {"pattern": "^[0-9]+$"}},
    )
    stop_token_ids: StopTokenIds = Field(default_factory=list)
    allowed_token_ids: Annotated[list[TokenId], Field(max_length=MAX_ALLOWED_IDS, fail_fast=True)] = Field(
        default_factory=list, description="The only tokens that may be drawn."
    )
    bad_words: Annotated[list[StopString], Field(max_length=MAX_BAD_WORDS, fail_fast=True)] = Field(
        default_factory=list, description="Words that must not occur."
    )
    min_tokens: int = Field(default=0, ge=0, le=MAX_COUNT, description="Minimum number of tokens in the answer.")
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    response_format: ResponseFormat | None = None
    structured_outputs: dict[str, Any] | None = Field(
        default=None, description="One of json, json_object, regex, choice, grammar (Lark or GBNF) and structural_tag."
    )
    guided_json: dict[str, Any] | str | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    structural_tag: dict[str, Any] | str | None = Field(default=None, description="As in structured_outputs.")
    json_schema: dict[str, Any] | None = None
    grammar: str | None = None
    return_rounds: bool = Field(default=False, description="Return the draft and verification rounds of each choice.")
    stream: bool = False
    stream_options: StreamOptions | None = None
    priority: int = Field(
        default=0,
        ge=-MAX_COUNT,
        le=MAX_COUNT,
        description="Lower ones run first. Requires --scheduling-policy priority.",
    )
    cache_salt: CacheSalt | None = Field(
        default=None, description="Only requests with the same salt share cached prefixes."
    )
    draft_policy: str | None = Field(default=None, description="Draft policy of this request. Default: the server's.")


class TextPart(RequestModel):
    type: Literal["text"]
    text: str


class RefusalPart(RequestModel):
    type: Literal["refusal"]
    refusal: str


Part = Annotated[TextPart | RefusalPart, Field(discriminator="type")]


def text_instead(part: dict[str, Any]) -> str:
    """Return what stands for a part of a tool's result that is no text, so that the conversation can go on.

    Images, files and the like are named. Other objects become their JSON.
    """
    kind = part.get("type")
    if isinstance(kind, str) and any(word in kind for word in _MEDIA):
        return f"[{kind} omitted]"
    return json.dumps(part, ensure_ascii=False)


def _written(parts: Any, message: ValidationInfo) -> Any:
    """Make all parts of a tool's result texts, and those that have the names of the Responses API."""
    result = message.data.get("role") in ("tool", "function")
    return [_as_text(part, result=result) for part in parts] if isinstance(parts, list) else parts


def _as_text(part: Any, *, result: bool) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("input_text", "output_text"):
        return part | {"type": "text"}
    written = not result or kind in (None, "text", "refusal")
    return part if written else {"type": "text", "text": text_instead(part)}


class Message(RequestModel):
    """A message. Further fields (name, tool_calls, tool_call_id, …) are passed to the chat template."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[Part], Field(fail_fast=True), BeforeValidator(_written)] | None = None


class PredictionContent(RequestModel):
    """A text that most of the answer is expected to match."""

    type: Literal["content"]
    content: str | Annotated[list[TextPart], Field(min_length=1, fail_fast=True)]


class ChatCompletionRequest(GenerationRequest):
    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)]
    max_completion_tokens: int | None = Field(
        default=None, ge=1, le=MAX_COUNT, description="Takes precedence over max_tokens."
    )
    logprobs: bool = False
    top_logprobs: int | None = Field(default=None, ge=0, le=MAX_TOP_LOGPROBS, description="Requires logprobs.")
    tools: Annotated[list[Tool], Field(max_length=MAX_TOOLS, fail_fast=True)] = Field(default_factory=list)
    tool_choice: Literal["none", "auto", "required"] | ToolChoice | None = None
    parallel_tool_calls: bool = Field(default=True, description="Allow several tool calls in one message.")
    chat_template_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Additional variables of the chat template."
    )
    reasoning_effort: str | None = Field(
        default=None, description='Given to the chat template; "none" also sets its `enable_thinking` to false.'
    )
    thinking_token_budget: int | None = Field(
        default=None, ge=-1, le=MAX_COUNT, description="Most tokens of the reasoning; -1: no limit."
    )
    verbosity: str | None = Field(default=None, description="Given to the chat template.")
    add_generation_prompt: bool = Field(default=True, description="Let the chat template open the assistant's turn.")
    continue_final_message: bool = Field(default=False, description="Continue the last message, without a new turn.")
    prediction: PredictionContent | None = Field(default=None, description="Expected text. Drafts are copied from it.")
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=MAX_METADATA)] | None = Field(
        default=None, description="Ignored, within OpenAI's limits."
    )


class AdaptedChatRequest(ChatCompletionRequest):
    """A chat request that stands for one of another API, in which agents offer more tools than OpenAI's chats allow."""

    tools: Annotated[list[Tool], Field(max_length=MAX_ADAPTED_TOOLS, fail_fast=True)] = Field(default_factory=list)


class MessagesChatRequest(AdaptedChatRequest):
    """A chat request of the Messages API. It requires `max_tokens`, so that clients send the most that they know."""

    lowers_max_tokens = True

    stop: Annotated[list[StopString], Field(max_length=MAX_STOP_SEQUENCES, fail_fast=True)] | None = None
    max_tokens: int | None = Field(default=None, ge=0, le=MAX_COUNT)  # 0: only read the prompt


class CompletionRequest(GenerationRequest):
    prompt: Prompt
    max_tokens: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    max_completion_tokens: int | None = Field(
        default=None, ge=0, le=MAX_COUNT, description="Takes precedence over max_tokens, as in chats."
    )
    logprobs: int | None = Field(
        default=None, ge=0, le=MAX_COMPLETION_LOGPROBS, description="Number of alternatives per token."
    )
    echo: bool = Field(default=False, description="Return the prompt before the answer.")


class TokenizeRequest(RequestModel):
    """Either a prompt or a chat."""

    model: str = ""
    prompt: str | None = None
    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)] | None = None
    tools: Annotated[list[Tool], Field(max_length=MAX_TOOLS, fail_fast=True)] = Field(default_factory=list)
    add_special_tokens: bool | None = Field(default=None, description="Default: true for a prompt, false for a chat.")
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    return_token_strs: bool = False


class DetokenizeRequest(RequestModel):
    model: str = ""
    tokens: Annotated[list[TokenId], Field(fail_fast=True)]
