"""Convert chat requests: the chat template, tools and structured answers."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pydantic_core

from server.http.errors import invalid
from server.openai.replies.build import ReplyFormat
from server.openai.replies.calls import TOOL_MARKS, make_parser
from server.openai.replies.endpoints import CHAT, MISTRAL_CHAT, MISTRAL_ID_LENGTH
from server.openai.replies.parsers import THINK_CLOSE, THINK_OPEN
from server.openai.requests import schemas
from server.openai.requests.structured import answer_schema, check_tools, grammar_of, tool_call_grammar
from server.openai.requests.translate import EncodedPrompts, Translator

ChatRequest = schemas.ChatCompletionRequest | schemas.TokenizeRequest


class ChatTranslator(Translator[schemas.ChatCompletionRequest]):
    request_type = schemas.ChatCompletionRequest
    endpoint = CHAT
    adds_special_tokens = False

    def _encode_prompts(self, request: schemas.ChatCompletionRequest) -> EncodedPrompts:
        if request.top_logprobs and not request.logprobs:
            raise invalid("'top_logprobs' requires 'logprobs': true.", "top_logprobs")
        tools, forced = self._tools(request)
        check_turn(request)
        rendered = self.render(request, request.messages, tools)
        prompt = self._encode(rendered)
        self._check_length(len(prompt), self._max_tokens(request))  # before building a grammar, which takes far longer
        partial_answer = (_text_content(request.messages[-1]) or "") if request.continue_final_message else ""
        in_reasoning = partial_answer.rfind(THINK_OPEN) > partial_answer.rfind(THINK_CLOSE)
        thinking = self._thinks and (in_reasoning or rendered.rstrip().endswith(THINK_OPEN))
        schema = answer_schema(request.response_format)
        parallel = request.parallel_tool_calls and not isinstance(request.tool_choice, schemas.NamedTool)
        calls = None
        if tools and (forced or schema is not None):
            calls = tool_call_grammar(self._tool_format, forced or tools, self._grammar_marker, parallel=parallel)
        param = "tools" if forced else "response_format"
        may_think = self._thinks and not (thinking or partial_answer or rendered.rstrip().endswith(THINK_CLOSE))
        think_open = self._grammar_marker(THINK_OPEN) if may_think else None
        grammar = grammar_of(schema, calls, thinking=thinking, optional=not forced, param=param, think_open=think_open)
        format = ReplyFormat(
            MISTRAL_CHAT if self._tool_format == "mistral" else CHAT,
            (),
            parser=partial(
                make_parser,
                self._tool_format if tools else None,
                reasoning=self._thinks,
                thinking=thinking,
                names=frozenset(tool.function.name for tool in tools),
            ),
            max_calls=None if parallel else 1,
        )
        markers = TOOL_MARKS.get(self._tool_format, ()) if tools else ()
        if self._thinks:
            markers = (*markers, THINK_OPEN, THINK_CLOSE)
        return EncodedPrompts(
            (prompt,),
            format,
            logprobs=(request.top_logprobs or 0) if request.logprobs else None,
            grammar=grammar,
            grammar_param=param,
            predicted=self._predicted(request.prediction),
            special_markers=any(map(self._tokenizer.is_special, markers)),
        )

    def render(self, request: ChatRequest, messages: Sequence[schemas.Message], tools: Sequence[schemas.Tool]) -> str:
        """Render the prompt's text, for a request that passes `check_turn`. Raises APIError, RequestError."""
        template = [_template_message(index, message) for index, message in enumerate(messages)]
        if self._tool_format == "mistral":
            _shorten_ids(template)
        self.check_characters(sum(len(message["content"]) for message in template))
        if request.continue_final_message and template[-1]["role"] != "assistant":
            raise invalid(
                "'continue_final_message' requires an assistant message at the end of 'messages'.",
                "continue_final_message",
            )
        described = [tool.model_dump(exclude_none=True) for tool in tools]
        return self._tokenizer.render_chat(
            template,
            described,
            request.chat_template_kwargs,
            add_generation_prompt=request.add_generation_prompt and not request.continue_final_message,
            continue_final_message=request.continue_final_message,
            literal=self.literal,
        )

    def _tools(self, request: schemas.ChatCompletionRequest) -> tuple[list[schemas.Tool], list[schemas.Tool]]:
        """Return the tools in the prompt, and those of which the model must call one."""
        choice = request.tool_choice
        if not request.tools:
            if choice not in (None, "none", "auto"):
                raise invalid("'tool_choice' requires 'tools'.", "tool_choice")
            return [], []
        check_tools(request.tools)
        if len({tool.function.name for tool in request.tools}) < len(request.tools):
            raise invalid("The names of 'tools' must differ.", "tools")
        if choice == "none":
            return [], []
        if not self._tool_format:
            raise invalid("This model's chat template does not support tools.", "tools")
        if isinstance(choice, schemas.NamedTool):
            named = [tool for tool in request.tools if tool.function.name == choice.function.name]
            if not named:
                raise invalid("'tool_choice' names a tool that is not in 'tools'.", "tool_choice")
            return request.tools, named
        return request.tools, request.tools if choice == "required" else []

    def _predicted(self, prediction: schemas.PredictionContent | None) -> tuple[int, ...]:
        """Return the tokens of a predicted answer, at most those of one context."""
        if prediction is None:
            return ()
        content = prediction.content
        text = content if isinstance(content, str) else "".join(part.text for part in content)
        tokens = self._encode(text[: self._info.max_model_len * self._tokenizer.longest_token])
        known = next((i for i, token in enumerate(tokens) if token >= self._info.vocab_size), len(tokens))
        return tokens[: min(known, self._info.max_model_len)]

    def _grammar_marker(self, text: str) -> str:
        """Return a marker in a grammar's notation: an added token by its id, other text as a string."""
        token = self._tokenizer.added_token_id(text)
        return json.dumps(text) if token is None else f"<[{token}]>"

    def _max_tokens(self, request: schemas.ChatCompletionRequest) -> int | None:
        return request.max_completion_tokens or request.max_tokens


def check_turn(request: ChatRequest) -> None:
    """Raise APIError if the prompt must both continue the last message and begin the assistant's."""
    begins = request.add_generation_prompt and "add_generation_prompt" in request.model_fields_set
    if request.continue_final_message and begins:
        raise invalid(
            "'add_generation_prompt' and 'continue_final_message' cannot both be true.", "continue_final_message"
        )


def _text_content(message: schemas.Message) -> str | None:
    if isinstance(message.content, list):
        return "\n".join(part.text for part in message.content if isinstance(part, schemas.TextPart))
    return message.content


def _template_message(index: int, message: schemas.Message) -> dict[str, Any]:
    """Convert a message for chat templates: text content, and no null fields."""
    content = _text_content(message)
    extra = {name: value for name, value in (message.model_extra or {}).items() if value is not None}
    if extra.get("tool_calls") == []:
        del extra["tool_calls"]  # templates test whether the key exists
    if content is None:
        if message.role != "assistant" or not extra.get("tool_calls"):
            raise invalid("'content' is required in a message without tool calls.", f"messages[{index}].content")
        content = ""
    if "tool_calls" in extra:
        extra["tool_calls"] = _template_calls(extra["tool_calls"], f"messages[{index}].tool_calls")
    return {"role": message.role, "content": content, **extra}


def _shorten_ids(messages: Sequence[dict[str, Any]]) -> None:
    """Convert the ids of tool calls to the length that Mistral's templates accept."""
    for message in messages:
        for holder, name in ((message, "tool_call_id"), *((call, "id") for call in message.get("tool_calls", ()))):
            if isinstance(holder.get(name), str):
                characters = "".join(filter(str.isalnum, holder[name]))
                holder[name] = characters[-MISTRAL_ID_LENGTH:].rjust(MISTRAL_ID_LENGTH, "0")


def _template_calls(calls: object, param: str) -> list[dict[str, Any]]:
    """Return tool calls of an earlier answer with their arguments as objects, as templates expect."""
    if not isinstance(calls, list):
        raise invalid("'tool_calls' must be a list.", param)
    converted = []
    for position, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise invalid("A tool call must have a 'function' with a 'name' and 'arguments'.", f"{param}[{position}]")
        arguments = function.get("arguments", "{}")
        if isinstance(arguments, str):
            try:
                arguments = pydantic_core.from_json(arguments or "{}", allow_inf_nan=False)
            except ValueError:
                raise invalid(
                    "The 'arguments' of a tool call must be valid JSON.", f"{param}[{position}].function"
                ) from None
        converted.append(call | {"function": function | {"arguments": arguments}})
    return converted
