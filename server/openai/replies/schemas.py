"""Replies as they are documented. They are built as plain dicts; these models show them in OpenAPI and check them in
tests.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


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
    num_lookup_tokens: int
    num_accepted_lookup_tokens: int
    skipped_attention: float
    skipped_mlp: float
    reselections: int
    tokens_per_second: float | None
    predicted_tpt: float | None
    plan: str | None = Field(
        description="What the last draft by the model ran: attention and MLP layer by layer, then the head; 0 skipped, "
        "1 the model's own, 2 its copy in fewer bits, 3 that of an attention over the first and last tokens only."
    )


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


class CalledFunction(BaseModel):
    name: str
    arguments: str = Field(description="JSON, as the model wrote it.")


class ToolCall(BaseModel):
    id: str
    type: Literal["function"]
    function: CalledFunction


class ReplyMessage(BaseModel):
    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    tool_calls: list[ToolCall] | None = Field(default=None, description="Only where tools are called.")
    reasoning_content: str | None = Field(default=None, description="Only of models that think.")
    reasoning: str | None = Field(default=None, description="The same.")


class TopLogprob(BaseModel):
    token: str
    logprob: float
    bytes: list[int] | None


class ChatTokenLogprob(TopLogprob):
    top_logprobs: list[TopLogprob]


class ChatLogprobs(BaseModel):
    content: list[ChatTokenLogprob] | None
    refusal: None


class TextLogprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class Round(BaseModel):
    """One draft-verify-keep round of a choice."""

    tokens: list[tuple[str, bool]] = Field(description="Text of each token, and whether it is the model's own.")
    drafted: int
    accepted: int
    context: int
    plan: str | None = Field(
        description="What drafted: attention and MLP layer by layer, then the head; 0 skipped, 1 the model's own, 2 "
        "its copy in fewer bits, 3 that of an attention over the first and last tokens only. null: no part of the "
        "model drafted."
    )
    predicted_tpt: float | None
    source: Literal["model", "lookup", "prediction"] | None = Field(description="Of what was drafted; null: nothing.")


FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class Choice(BaseModel):
    index: int
    rounds: list[Round] | None = Field(default=None, description="Only with return_rounds; chunks have a `round` each.")
    finish_reason: FinishReason
    metrics: ReplyMetrics | None = Field(default=None, description="Only with several choices.")


class ChatChoice(Choice):
    message: ReplyMessage
    logprobs: ChatLogprobs | None


class TextChoice(Choice):
    text: str
    logprobs: TextLogprobs | None


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


class FunctionDelta(BaseModel):
    name: str | None = Field(default=None, description="Once, at the beginning of a call.")
    arguments: str


class ToolCallDelta(BaseModel):
    """A piece of one call; its id, type and name come with the first."""

    index: int
    id: str | None = None
    type: Literal["function"] | None = None
    function: FunctionDelta


class MessageDelta(BaseModel):
    """A piece of a message: the role once, then content, reasoning or tool calls; nothing at the end."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallDelta] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class ChoiceDelta(BaseModel):
    index: int
    round: Round | None = Field(default=None, description="Only with return_rounds.")
    finish_reason: FinishReason | None
    metrics: ReplyMetrics | None = Field(default=None, description="At the end, with several choices.")


class ChatChoiceDelta(ChoiceDelta):
    delta: MessageDelta
    logprobs: ChatLogprobs | None


class TextChoiceDelta(ChoiceDelta):
    text: str
    logprobs: TextLogprobs | None


class Chunk(BaseModel):
    id: str
    created: int
    model: str
    system_fingerprint: str | None
    usage: Usage | None = Field(default=None, description="Only with include_usage, in the last chunk.")
    metrics: ReplyMetrics | None = Field(default=None, description="In the last chunk, with one choice.")


class ChatCompletionChunk(Chunk):
    object: Literal["chat.completion.chunk"]
    choices: list[ChatChoiceDelta]


class CompletionChunk(Chunk):
    object: Literal["text_completion"]
    choices: list[TextChoiceDelta]


class ModelCard(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "knapserve"
    root: str
    parent: str | None = None
    max_model_len: int
    device: str
    dtype: str
    draft_policy: str  # of requests that name none
    draft_policies: list[str]  # that a request may name


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelCard]


class Status(BaseModel):
    status: Literal["ok"] = "ok"


class Version(BaseModel):
    version: str


class Tokenized(BaseModel):
    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None


class Detokenized(BaseModel):
    prompt: str
