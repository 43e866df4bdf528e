"""Requests as they are accepted, replies as they are documented.

Types are strict, as OpenAI's are: "5" is no integer, true is no number. Null fields are dropped before validation
(`server.translate`), so an optional field is absent or of its type. Replies are built as plain dicts; their models here
document them in OpenAPI and check them in tests.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

MAX_STOP_STRINGS = 4

StopString = Annotated[str, Field(min_length=1)]
_TEXT = {"type": "string", "minLength": 1}
_IDS = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_LISTS = [{"type": "array", "items": items, "minItems": 1} for items in (_TEXT, _IDS)]
# A list of a million token ids is checked by hand (`server.translate`): a union would report every element.
Prompt = Annotated[Any, WithJsonSchema({"anyOf": [_TEXT, _IDS, *_LISTS]})]


def _nullable(schema: dict[str, Any]) -> None:
    """Document that JSON null means absent for every optional field."""
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        if name not in required:
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}]}


class RequestModel(BaseModel):
    """Base of what clients send; unknown fields are dealt with in `server.parameters`."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, json_schema_extra=_nullable)


class StreamOptions(RequestModel):
    include_usage: bool = Field(default=False, description="One last chunk carries the usage.")


class GenerationRequest(RequestModel):
    """What chat and completions have in common."""

    model: str = Field(default="", description="A served model's name; absent: the first.")
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2, description="Absent: the checkpoint's, else 1.")
    top_p: float | None = Field(default=None, gt=0, le=1, description="Absent: the checkpoint's, else 1.")
    top_k: int | None = Field(default=None, ge=-1, description="-1 or 0: off. Absent: the checkpoint's, else off.")
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1, description="Absent: drawn at random.")
    stop: StopString | Annotated[list[StopString], Field(max_length=MAX_STOP_STRINGS, fail_fast=True)] | None = None
    n: int = Field(default=1, ge=1, le=128, description="Choices per prompt.")
    ignore_eos: bool = False
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


class ChatCompletionRequest(GenerationRequest):
    messages: Annotated[list[Message], Field(min_length=1, fail_fast=True)]
    max_completion_tokens: int | None = Field(default=None, ge=1, description="Wins over max_tokens.")


class CompletionRequest(GenerationRequest):
    prompt: Prompt


class ErrorObject(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorReply(BaseModel):
    error: ErrorObject


class SpeculativeDecoding(BaseModel):
    """What drafting did for one choice; lengths in tokens, rates in tokens per second."""

    policy: str
    mean_acceptance_length: float
    draft_acceptance_rate: float | None
    num_rounds: int
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    skipped_attention: float
    skipped_mlp: float
    reselections: int
    tokens_per_second: float | None
    predicted_tpt: float | None


class ReplyMetrics(BaseModel):
    speculative_decoding: SpeculativeDecoding | None


class PromptTokensDetails(BaseModel):
    cached_tokens: int


class CompletionTokensDetails(BaseModel):
    accepted_prediction_tokens: int
    rejected_prediction_tokens: int
    reasoning_tokens: int


class Usage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails


class ReplyMessage(BaseModel):
    role: Literal["assistant"]
    content: str | None
    refusal: str | None


class Choice(BaseModel):
    index: int
    logprobs: None
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"]
    metrics: ReplyMetrics | None = Field(default=None, description="Only with several choices.")


class ChatChoice(Choice):
    message: ReplyMessage


class TextChoice(Choice):
    text: str


class Reply(BaseModel):
    id: str
    created: int
    model: str
    system_fingerprint: str | None
    usage: Usage
    metrics: ReplyMetrics | None = Field(default=None, description="Only with one choice.")


class ChatCompletion(Reply):
    object: Literal["chat.completion"]
    choices: list[ChatChoice]


class Completion(Reply):
    object: Literal["text_completion"]
    choices: list[TextChoice]


class ModelCard(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "knapserve"
    root: str
    parent: str | None = None
    max_model_len: int


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelCard]


class Status(BaseModel):
    status: Literal["ok"] = "ok"


class Version(BaseModel):
    version: str
