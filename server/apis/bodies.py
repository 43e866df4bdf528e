"""Pydantic models of the bodies of chat completions, completions, /tokenize and /detokenize.

Null fields are dropped before validation (`server.edge.reading`), so an optional field is absent or has its type.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema

from server.apis.parts import MAX_AGENT_TOOLS, text_instead
from server.conversation import MAX_TURNS, Form, FormKind
from server.edge.errors import invalid
from server.edge.reading import NullableModel, RequestModel
from server.options import MAX_COUNT, Name, Options, StopString, TemplateVariables, TokenId, ToolName
from server.prepare import Ask

MAX_STOP_STRINGS = 4
MAX_PROMPTS = 2048
MAX_TOOLS = 128
MAX_TOP_LOGPROBS = 20
MAX_COMPLETION_LOGPROBS = 5
MAX_METADATA = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512

MetadataKey = Annotated[str, Field(max_length=MAX_METADATA_KEY)]
MetadataValue = Annotated[str, Field(max_length=MAX_METADATA_VALUE)]
Metadata = Annotated[dict[MetadataKey, MetadataValue], Field(max_length=MAX_METADATA)]
StopStrings = StopString | Annotated[list[StopString], Field(max_length=MAX_STOP_STRINGS, fail_fast=True)]
_TEXT = {"type": "string", "minLength": 1}
_IDS = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_LISTS = [{"type": "array", "items": items, "minItems": 1, "maxItems": MAX_PROMPTS} for items in (_TEXT, _IDS)]
# `server.apis.completions` checks prompts: pydantic would report an error for each of a million token ids.
Prompt = Annotated[Any, WithJsonSchema({"anyOf": [_TEXT, _IDS, *_LISTS]})]


# Fields of vLLM and llama.cpp that ask for a form of the answer.
_FORM_FIELDS: dict[str, FormKind] = {
    "guided_json": "json",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
    "structural_tag": "structural_tag",
    "json_schema": "json",
    "grammar": "grammar",
}
_SATISFIED = ("disable_any_whitespace", "disable_fallback")  # options of vLLM that hold here in any case


class StreamOptions(NullableModel):
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


class ResponseFormat(NullableModel):
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
    tools: Annotated[list[NamedTool], Field(min_length=1, max_length=MAX_AGENT_TOOLS, fail_fast=True)]


class AllowedChoice(RequestModel):
    """The only tools that the prompt describes."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


# A function that must be called, or the only tools.
ToolChoice = Annotated[NamedTool | AllowedChoice, Field(discriminator="type")]


def stop_strings(stop: str | Sequence[str] | None) -> Sequence[str]:
    """Return the stop strings of a field that may have one or several."""
    return [stop] if isinstance(stop, str) else stop or ()


class GenerationRequest(Options):
    """Fields of both chat completions and completions."""

    max_tokens: int | None = Field(default=None, ge=1, le=MAX_COUNT)
    stop: StopStrings | None = None
    n: int = Field(default=1, ge=1, le=128, description="Number of choices per prompt.")
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
    stream_options: StreamOptions | None = None

    def ask(self, max_tokens: int | None, logprobs: int | None, *, prompt_logprobs: bool = False) -> Ask:
        """Return what the client asks for beside the prompt. Raises APIError for options of a stream without one."""
        if self.stream_options not in (None, StreamOptions()) and not self.stream:
            raise invalid("'stream_options' is only allowed with 'stream': true.", "stream_options")
        return Ask(
            self,
            max_tokens,
            stop=stop_strings(self.stop),
            n=self.n,
            logprobs=logprobs,
            logprobs_path="logprobs",
            prompt_logprobs=prompt_logprobs,
            rounds=self.return_rounds,
        )

    def form(self) -> Form | None:
        """Return what the answer must match, or None for text. Raises APIError if several fields ask for a form."""
        forms = [*self._forms()]
        if any(form.kind == "json" for form in forms):  # a schema says more than that the answer is an object
            forms = [form for form in forms if form.kind != "json_object"]
        if len(forms) > 1:
            names = ", ".join(f"'{form.path}'" for form in forms)
            raise invalid(f"An answer can have one form only, but {names} ask for one each.", forms[1].path)
        return forms[0] if forms else None

    def _forms(self) -> Iterator[Form]:
        """Yield the forms that OpenAI's field, vLLM's present and older ones, and llama.cpp's ask for."""
        format = self.response_format
        if format is not None and format.type == "json_object":
            yield Form("json_object", True, "response_format")
        if format is not None and format.type == "json_schema":
            if format.json_schema is None:
                path = "response_format.json_schema"
                raise invalid(f"Missing required parameter: '{path}'.", path)
            strict = format.json_schema.strict is True
            yield Form("json", format.json_schema.schema_, "response_format", strict)
        if format is not None and format.type == "structural_tag":
            yield Form("structural_tag", format.model_dump(exclude_unset=True), "response_format")
        for name, value in (self.structured_outputs or {}).items():
            if value is None or value is False or name in _SATISFIED:
                continue
            if name not in get_args(FormKind):
                allowed = ", ".join(get_args(FormKind))
                raise invalid(f"'structured_outputs' may have {allowed}, but not {name!r:.80}.", "structured_outputs")
            yield Form(cast(FormKind, name), value, f"structured_outputs.{name}")
        for field, kind in _FORM_FIELDS.items():
            value = getattr(self, field)
            if value is not None and (value or field != "grammar"):  # llama.cpp's page sends an empty grammar
                yield Form(kind, value, field)


class TextPart(RequestModel):
    type: Literal["text"]
    text: str


class RefusalPart(RequestModel):
    type: Literal["refusal"]
    refusal: str


Part = Annotated[TextPart | RefusalPart, Field(discriminator="type")]


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
    """A message. Further fields, such as `name`, are passed to the chat template."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[Part], Field(fail_fast=True), BeforeValidator(_written)] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[Any] | None = None
    function_call: Any = None
    tool_call_id: str | None = None


class PredictionContent(RequestModel):
    """A text that most of the answer is expected to match."""

    type: Literal["content"]
    content: str | Annotated[list[TextPart], Field(min_length=1, fail_fast=True)]


class TemplateRequest(RequestModel):
    """What the prompt of a chat has beside the messages."""

    tools: Annotated[list[Tool], Field(max_length=MAX_TOOLS, fail_fast=True)] = Field(default_factory=list)
    chat_template_kwargs: TemplateVariables
    add_generation_prompt: bool = Field(default=True, description="Let the chat template open the assistant's turn.")
    continue_final_message: bool = Field(default=False, description="Continue the last message, without a new turn.")


class ChatCompletionRequest(TemplateRequest, GenerationRequest):
    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_TURNS, fail_fast=True)]
    max_completion_tokens: int | None = Field(
        default=None, ge=1, le=MAX_COUNT, description="Takes precedence over max_tokens."
    )
    logprobs: bool = False
    top_logprobs: int | None = Field(default=None, ge=0, le=MAX_TOP_LOGPROBS, description="Requires logprobs.")
    tool_choice: ToolChoice | Literal["none", "auto", "required"] = "auto"
    parallel_tool_calls: bool = Field(default=True, description="Allow several tool calls in one message.")
    reasoning_effort: str | None = Field(
        default=None, description='Given to the chat template; "none" also sets its `enable_thinking` to false.'
    )
    thinking_token_budget: int | None = Field(
        default=None, ge=-1, le=MAX_COUNT, description="Most tokens of the reasoning; -1: no limit."
    )
    verbosity: str | None = Field(default=None, description="Given to the chat template.")
    prediction: PredictionContent | None = Field(default=None, description="Expected text. Drafts are copied from it.")
    metadata: Metadata | None = Field(default=None, description="Ignored, within OpenAI's limits.")


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


class TokenizeRequest(TemplateRequest):
    """Either a prompt or a chat."""

    model: str = ""
    prompt: str | None = None
    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_TURNS, fail_fast=True)] | None = None
    add_special_tokens: bool | None = Field(default=None, description="Default: true for a prompt, false for a chat.")
    return_token_strs: bool = False


class DetokenizeRequest(RequestModel):
    model: str = ""
    tokens: Annotated[list[TokenId], Field(fail_fast=True)]
