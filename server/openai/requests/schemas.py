"""Requests as they are accepted; `server.openai.replies.schemas` has what is said to them.

Types are strict, as OpenAI's are: "5" is no integer, true is no number. Null fields are dropped before validation
(`translate`), so an optional field is absent or of its type.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

MAX_STOP_STRINGS = 4
MAX_STOP_CHARACTERS = 4096
MAX_STOP_IDS = 128
MAX_COUNT = 2**31 - 1
MAX_BIASES = 1024
MAX_PROMPTS = 2048
MAX_TOOLS = 128
MAX_MESSAGES = 16384
MAX_TOP_LOGPROBS = 20
MAX_COMPLETION_LOGPROBS = 5

TokenId = Annotated[int, Field(ge=0)]
StopTokenIds = Annotated[list[TokenId], Field(max_length=MAX_STOP_IDS, fail_fast=True)]
Bias = Annotated[float, Field(ge=-100, le=100)]
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
StopString = Annotated[str, Field(min_length=1, max_length=MAX_STOP_CHARACTERS)]
_TEXT = {"type": "string", "minLength": 1}
_IDS = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_LISTS = [{"type": "array", "items": items, "minItems": 1, "maxItems": MAX_PROMPTS} for items in (_TEXT, _IDS)]
# A list of a million token ids is checked by hand (`translate`): a union would report every element.
Prompt = Annotated[Any, WithJsonSchema({"anyOf": [_TEXT, _IDS, *_LISTS]})]


def _nullable(schema: dict[str, Any]) -> None:
    """Document that JSON null means absent for every optional field."""
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        if name not in required:
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}]}


class RequestModel(BaseModel):
    """Base of what clients send; unknown fields are dealt with in `server.openai.requests.parameters`."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, json_schema_extra=_nullable)


class StreamOptions(RequestModel):
    include_usage: bool = Field(default=False, description="One last chunk carries the usage.")


class JsonSchemaFormat(RequestModel):
    name: Name
    schema_: dict[str, Any] = Field(alias="schema")
    description: str | None = None
    strict: bool | None = Field(default=None, description="Schemas are always followed.")


class ResponseFormat(RequestModel):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None


class Function(RequestModel):
    """A tool's function; further fields are handed to the chat template as they are."""

    model_config = ConfigDict(extra="allow")

    name: Name
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


class GenerationRequest(RequestModel):
    """What chat and completions have in common."""

    model: str = Field(default="", description="A served model's name; absent: the first.")
    max_tokens: int | None = Field(default=None, ge=1, le=MAX_COUNT)
    temperature: float | None = Field(default=None, ge=0, le=2, description="Absent: the checkpoint's, else 1.")
    top_p: float | None = Field(default=None, gt=0, le=1, description="Absent: the checkpoint's, else 1.")
    top_k: int | None = Field(
        default=None, ge=-1, le=MAX_COUNT, description="-1 or 0: off. Absent: the checkpoint's, else off."
    )
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1, description="Absent or -1: drawn at random.")
    stop: StopString | Annotated[list[StopString], Field(max_length=MAX_STOP_STRINGS, fail_fast=True)] | None = None
    n: int = Field(default=1, ge=1, le=128, description="Choices per prompt.")
    min_p: float | None = Field(default=None, ge=0, le=1, description="Least share of the top token's probability.")
    presence_penalty: float = Field(default=0.0, ge=-2, le=2)
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    repetition_penalty: float | None = Field(
        default=None, ge=1e-3, le=1e3, description="1: none. Absent: the checkpoint's."
    )
    logit_bias: dict[str, Bias] = Field(
        default_factory=dict,
        description="By token id; added to its logit.",
        json_schema_extra={"maxProperties": MAX_BIASES, "propertyNames": {"pattern": "^[0-9]+$"}},
    )
    stop_token_ids: StopTokenIds = Field(default_factory=list)
    min_tokens: int = Field(default=0, ge=0, le=MAX_COUNT, description="Before the answer may end.")
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    response_format: ResponseFormat | None = None
    return_rounds: bool = Field(default=False, description="Choices tell, round by round, what was drafted.")
    stream: bool = False
    stream_options: StreamOptions | None = None
    draft_policy: str | None = Field(default=None, description="Drafts with this policy instead of the server's.")


class TextPart(RequestModel):
    type: Literal["text"]
    text: str


class Message(RequestModel):
    """One message; further fields (name, tool_calls, tool_call_id …) are handed to the chat template as they are."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[TextPart], Field(min_length=1, fail_fast=True)] | None = None


class Prediction(RequestModel):
    """An answer that is expected for the most part."""

    type: Literal["content"]
    content: str | Annotated[list[TextPart], Field(min_length=1, fail_fast=True)]


class ChatCompletionRequest(GenerationRequest):
    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)]
    max_completion_tokens: int | None = Field(default=None, ge=1, le=MAX_COUNT, description="Wins over max_tokens.")
    logprobs: bool = False
    top_logprobs: int | None = Field(default=None, ge=0, le=MAX_TOP_LOGPROBS, description="Only with logprobs.")
    tools: Annotated[list[Tool], Field(max_length=MAX_TOOLS, fail_fast=True)] = Field(default_factory=list)
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool = Field(default=True, description="Whether one message may call several tools.")
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict, description="Further variables of the template.")
    add_generation_prompt: bool = Field(default=True, description="Whether the template opens the assistant's turn.")
    continue_final_message: bool = Field(default=False, description="The last message is gone on with, not answered.")
    prediction: Prediction | None = Field(default=None, description="Drafts are copied from it where it fits.")


class CompletionRequest(GenerationRequest):
    prompt: Prompt
    max_tokens: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    logprobs: int | None = Field(default=None, ge=0, le=MAX_COMPLETION_LOGPROBS, description="Alternatives per token.")
    echo: bool = Field(default=False, description="The prompt precedes the answer.")


class TokenizeRequest(RequestModel):
    """A prompt, or a chat."""

    model: str = ""
    prompt: str | None = None
    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)] | None = None
    tools: Annotated[list[Tool], Field(max_length=MAX_TOOLS, fail_fast=True)] = Field(default_factory=list)
    add_special_tokens: bool | None = Field(default=None, description="Absent: for a bare prompt, not for a chat.")
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    return_token_strs: bool = False


class DetokenizeRequest(RequestModel):
    model: str = ""
    tokens: Annotated[list[TokenId], Field(fail_fast=True)]
