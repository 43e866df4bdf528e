"""Pydantic models of the replies of Anthropic's Messages API, for the OpenAPI document and for tests."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class AnthropicError(BaseModel):
    type: str
    message: str
    details: dict[str, Any] | None = Field(default=None, description="For SDKs: fields that they must leave out.")


class AnthropicErrorReply(BaseModel):
    type: Literal["error"]
    error: AnthropicError
    request_id: str


class TextReply(BaseModel):
    type: Literal["text"]
    text: str


class ThinkingReply(BaseModel):
    type: Literal["thinking"]
    thinking: str
    signature: str


class ToolUseReply(BaseModel):
    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


class MessageUsage(BaseModel):
    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    output_tokens: int


class MessageReply(BaseModel):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[TextReply | ThinkingReply | ToolUseReply]
    stop_reason: Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded"] | None
    stop_sequence: str | None
    usage: MessageUsage


class CountedTokens(BaseModel):
    input_tokens: int
