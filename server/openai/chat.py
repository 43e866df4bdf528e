"""Chats to engine requests: the template, tools, structured answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pydantic_core

from server.http.errors import invalid
from server.openai.replies.build import CHAT, MISTRAL_CHAT, MISTRAL_ID, Form
from server.openai.replies.calls import TOOL_MARKS, make_parser
from server.openai.replies.parsers import THINK_CLOSE, THINK_OPEN
from server.openai.requests.schemas import (
    ChatCompletionRequest,
    Message,
    NamedTool,
    Prediction,
    TextPart,
    TokenizeRequest,
    Tool,
)
from server.openai.requests.structured import answer_schema, calls_grammar, check_size, grammar_of
from server.openai.requests.translate import Prepared, Translator


class ChatTranslator(Translator[ChatCompletionRequest]):
    kind = ChatCompletionRequest
    dialect = CHAT
    bare_prompts = False

    def _prompts(self, request: ChatCompletionRequest) -> Prepared:
        if request.top_logprobs and not request.logprobs:
            raise invalid("'top_logprobs' needs 'logprobs': true.", "top_logprobs")
        tools, forced = self._tools(request)
        rendered = self.render(
            request.messages,
            tools,
            request.chat_template_kwargs,
            go_on=request.continue_final_message,
            open_turn=opens_turn(request),
        )
        prompt = self._encode(rendered)
        self._check_length(len(prompt), None)  # before a grammar is made, which takes far longer
        begun = (_text(request.messages[-1]) or "") if request.continue_final_message else ""
        opened = begun.rfind(THINK_OPEN) > begun.rfind(THINK_CLOSE)  # and gone on with
        thinking = self._thinks and (opened or rendered.rstrip().endswith(THINK_OPEN))
        schema = answer_schema(request.response_format)
        parallel = request.parallel_tool_calls and not isinstance(request.tool_choice, NamedTool)
        calls = None
        if tools and (forced or schema is not None):
            calls = calls_grammar(self._tool_format, forced or tools, self._marker, parallel=parallel)
        param = "tools" if forced else "response_format"
        may_think = self._thinks and not (thinking or begun or rendered.rstrip().endswith(THINK_CLOSE))
        thinks = self._marker(THINK_OPEN) if may_think else None
        grammar = grammar_of(schema, calls, thinking=thinking, optional=not forced, param=param, thinks=thinks)
        form = Form(
            MISTRAL_CHAT if self._tool_format == "mistral" else CHAT,
            (),
            parser=partial(
                make_parser,
                self._tool_format if tools else None,
                reasoning=self._thinks,
                thinking=thinking,
                names=frozenset(tool.function.name for tool in tools),
            ),
            most_calls=None if parallel else 1,
        )
        return Prepared(
            (prompt,),
            form,
            logprobs=(request.top_logprobs or 0) if request.logprobs else None,
            grammar=grammar,
            grammar_param=param,
            predicted=self._predicted(request.prediction),
            special_markers=any(map(self._tokenizer.skips, self._marks(tools=bool(tools)))),
        )

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        options: Mapping[str, Any],
        *,
        open_turn: bool,
        go_on: bool,
    ) -> str:
        """The prompt's text. Raises APIError, RequestError."""
        template = [_template_message(index, message) for index, message in enumerate(messages)]
        if self._tool_format == "mistral":
            _shorten_ids(template)
        self.check_characters(sum(len(message["content"]) for message in template))
        if go_on and template[-1]["role"] != "assistant":
            raise invalid("Only an assistant's message can be gone on with.", "continue_final_message")
        described = [tool.model_dump(exclude_none=True) for tool in tools]
        return self._tokenizer.render_chat(template, described, options, open_turn=open_turn, go_on=go_on)

    def _tools(self, request: ChatCompletionRequest) -> tuple[list[Tool], list[Tool]]:
        """The tools that the model is shown, and of these those of which one has to be called."""
        choice = request.tool_choice
        if not request.tools:
            if choice not in (None, "none", "auto"):
                raise invalid("'tool_choice' needs 'tools'.", "tool_choice")
            return [], []
        for index, tool in enumerate(request.tools):
            check_size(tool.function.parameters, f"tools[{index}].function.parameters")
        if len({tool.function.name for tool in request.tools}) < len(request.tools):
            raise invalid("Two tools have the same name.", "tools")
        if choice == "none":
            return [], []
        if not self._tool_format:
            raise invalid("This model's chat template knows no tools.", "tools")
        if isinstance(choice, NamedTool):
            named = [tool for tool in request.tools if tool.function.name == choice.function.name]
            if not named:
                raise invalid("'tool_choice' names a tool that is not in 'tools'.", "tool_choice")
            return request.tools, named
        return request.tools, request.tools if choice == "required" else []

    def _predicted(self, prediction: Prediction | None) -> tuple[int, ...]:
        """Its tokens, no more than the context can hold."""
        if prediction is None:
            return ()
        content = prediction.content
        text = content if isinstance(content, str) else "".join(part.text for part in content)
        tokens = self._encode(text[: self._info.max_model_len * self._tokenizer.longest_token])
        known = next((i for i, token in enumerate(tokens) if token >= self._info.vocab_size), len(tokens))
        return tokens[: min(known, self._info.max_model_len)]

    def _marks(self, *, tools: bool) -> Sequence[str]:
        """What the parsers of an answer look for."""
        calls = TOOL_MARKS.get(self._tool_format, ()) if tools else ()
        return (*calls, THINK_OPEN, THINK_CLOSE) if self._thinks else calls

    def _marker(self, text: str) -> str:
        """A marker as a grammar writes it: a token of its own by its id."""
        token = self._tokenizer.added_id(text)
        return json.dumps(text) if token is None else f"<[{token}]>"

    def _max_tokens(self, request: ChatCompletionRequest) -> int | None:
        return request.max_completion_tokens or request.max_tokens


def opens_turn(request: ChatCompletionRequest | TokenizeRequest) -> bool:
    """Whether the prompt ends with the beginning of an assistant's message. Raises APIError."""
    if not request.continue_final_message:
        return request.add_generation_prompt
    if request.add_generation_prompt and "add_generation_prompt" in request.model_fields_set:
        raise invalid(
            "'add_generation_prompt' and 'continue_final_message' exclude each other.", "continue_final_message"
        )
    return False


def _text(message: Message) -> str | None:
    if isinstance(message.content, list):
        return "\n".join(part.text for part in message.content if isinstance(part, TextPart))
    return message.content


def _template_message(index: int, message: Message) -> dict[str, Any]:
    """A message as chat templates expect it: text content, and further fields only where they say something."""
    content = _text(message)
    extra = {name: value for name, value in (message.model_extra or {}).items() if value is not None}
    if extra.get("tool_calls") == []:
        del extra["tool_calls"]  # templates ask whether it is there
    if content is None:
        if message.role != "assistant" or not extra.get("tool_calls"):
            raise invalid("A message needs content.", f"messages[{index}].content")
        content = ""
    if "tool_calls" in extra:
        extra["tool_calls"] = _template_calls(extra["tool_calls"], f"messages[{index}].tool_calls")
    return {"role": message.role, "content": content, **extra}


def _shorten_ids(messages: Sequence[dict[str, Any]]) -> None:
    """The ids of calls as Mistral's templates take them, also those that another server made."""
    for message in messages:
        for holder, name in ((message, "tool_call_id"), *((call, "id") for call in message.get("tool_calls", ()))):
            if isinstance(holder.get(name), str):
                holder[name] = "".join(filter(str.isalnum, holder[name]))[-MISTRAL_ID:].rjust(MISTRAL_ID, "0")


def _template_calls(calls: Any, param: str) -> list[dict[str, Any]]:
    """Tool calls of an earlier answer with their arguments as objects, which is what templates write out."""
    if not isinstance(calls, list):
        raise invalid("'tool_calls' is a list.", param)
    made = []
    for position, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise invalid("A tool call has a function with a name and arguments.", f"{param}[{position}]")
        arguments = function.get("arguments", "{}")
        if isinstance(arguments, str):
            try:
                arguments = pydantic_core.from_json(arguments or "{}", allow_inf_nan=False)
            except ValueError:
                raise invalid("The arguments of a tool call are JSON.", f"{param}[{position}].function") from None
        made.append(call | {"function": function | {"arguments": arguments}})
    return made
