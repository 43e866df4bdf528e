"""Convert chat requests: the chat template, tools and structured answers."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from engine.errors import RequestError
from engine.types import ThoughtLimit
from server.http.errors import invalid
from server.openai.replies.build import ReplyFormat
from server.openai.replies.calls import TOOL_MARKS, make_parser
from server.openai.replies.endpoints import CHAT, MISTRAL_CHAT
from server.openai.replies.parsers import THINK_CLOSE, THINK_OPEN
from server.openai.requests import schemas
from server.openai.requests.answers import Answer, answer_of
from server.openai.requests.messages import in_turns, shorten_ids, template_messages, text_content, with_tools
from server.openai.requests.structured import check_tools, grammar_of, tool_call_grammar
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
        max_tokens = None if request.lowers_max_tokens else self._max_tokens(request)
        self._check_length(len(prompt), max_tokens)  # before building a grammar, which takes far longer
        partial_answer = (text_content(request.messages[-1]) or "") if request.continue_final_message else ""
        in_reasoning = partial_answer.rfind(THINK_OPEN) > partial_answer.rfind(THINK_CLOSE)
        thinking = self._thinks and (in_reasoning or rendered.rstrip().endswith(THINK_OPEN))
        parallel = request.parallel_tool_calls and not _names_function(request.tool_choice)
        may_think = self._thinks and not (thinking or partial_answer or rendered.rstrip().endswith(THINK_CLOSE))
        answer = answer_of(request, self._tokenizer)
        grammar, param = self._grammar(
            request, answer, tools, forced, parallel=parallel, thinking=thinking, may_think=may_think
        )
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
            must_call=bool(forced),
        )
        markers = TOOL_MARKS.get(self._tool_format, ()) if tools else ()
        if self._thinks:
            markers = (*markers, THINK_OPEN, THINK_CLOSE)
        if answer is not None:
            markers = (*markers, *answer.markers)
        return EncodedPrompts(
            (prompt,),
            format,
            logprobs=(request.top_logprobs or 0) if request.logprobs else None,
            grammar=grammar,
            grammar_param=param,
            predicted=self._predicted(request.prediction),
            thought_limit=self._thought_limit(request, begun=thinking),
            special_markers=any(map(self._tokenizer.is_special, markers)),
        )

    def _grammar(
        self,
        request: schemas.ChatCompletionRequest,
        answer: Answer | None,
        tools: Sequence[schemas.Tool],
        forced: Sequence[schemas.Tool],
        *,
        parallel: bool,
        thinking: bool,
        may_think: bool,
    ) -> tuple[str | None, str]:
        """Return the grammar of the answer, or None, and the field that it comes from. Raises APIError.

        `thinking`: the prompt has opened the reasoning; `may_think`: the model may open it.
        """
        calls = None
        if tools and (forced or answer is not None):
            places = {tool.function.name: place for place, tool in enumerate(request.tools)}
            positions = [places[tool.function.name] for tool in forced or tools]
            calls = tool_call_grammar(
                self._tool_format, forced or tools, self._grammar_marker, parallel=parallel, positions=positions
            )
        param = "tools" if forced or answer is None else answer.param
        if len(forced) == 1:
            param = f"tools[{request.tools.index(forced[0])}].function.parameters"
        if answer is not None and answer.grammar:
            if calls is not None or thinking:
                raise invalid("A grammar cannot be combined with tools or with reasoning.", answer.param)
            return answer.grammar, param
        schema, expression = (None, "") if answer is None else (answer.schema, answer.expression)
        grammar = grammar_of(
            *(schema, expression, calls),
            thinking=thinking,
            optional=not forced,
            think_open=self._grammar_marker(THINK_OPEN) if may_think else None,
            think_close=self._grammar_marker(THINK_CLOSE),
        )
        return grammar, param

    def count_tokens(self, request: schemas.ChatCompletionRequest) -> int:
        """Return the tokens of the prompt, which may exceed the context. Raises APIError, RequestError."""
        self.check_model(request.model)
        tools, _ = self._tools(request)
        check_turn(request)
        return len(self._encode(self.render(request, request.messages, tools)))

    def render(self, request: ChatRequest, messages: Sequence[schemas.Message], tools: Sequence[schemas.Tool]) -> str:
        """Render the prompt's text, for a request that passes `check_turn`. Raises APIError, RequestError."""
        template = template_messages(messages)
        if self._tool_format == "mistral":
            shorten_ids(template)
        self.check_characters(sum(len(message["content"]) for message in template))
        last = template[-1]
        if request.continue_final_message and (last["role"] != "assistant" or last.get("tool_calls")):
            raise invalid(
                "'continue_final_message' requires an assistant message without tool calls at the end of 'messages'.",
                "continue_final_message",
            )
        described = [] if self._describes_tools else [tool.model_dump(exclude_none=True) for tool in tools]
        if self._describes_tools:
            template = with_tools(template, tools)
        try:
            return self._render(request, template, described)
        except RequestError:
            for system in (True, False):
                turns = in_turns(template, system=system)
                with suppress(RequestError):
                    if turns != template:
                        return self._render(request, turns, described)
            raise

    def _render(self, request: ChatRequest, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
        return self._tokenizer.render_chat(
            messages,
            tools,
            _template_variables(request),
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
            raise invalid("This server leaves tool calls in the text (--tool-call-parser none).", "tools")
        if not isinstance(choice, schemas.ToolChoice):
            return request.tools, request.tools if choice == "required" else []
        if choice.type == "function":
            if choice.function is None:
                raise invalid("Missing required parameter: 'tool_choice.function'.", "tool_choice.function")
            return request.tools, _named(request.tools, [choice.function.name], "tool_choice")
        if choice.allowed_tools is None:
            raise invalid("Missing required parameter: 'tool_choice.allowed_tools'.", "tool_choice.allowed_tools")
        names = [tool.function.name for tool in choice.allowed_tools.tools]
        allowed = _named(request.tools, names, "tool_choice.allowed_tools.tools")
        return allowed, allowed if choice.allowed_tools.mode == "required" else []

    def _predicted(self, prediction: schemas.PredictionContent | None) -> tuple[int, ...]:
        """Return the tokens of a predicted answer, at most those of one context."""
        if prediction is None:
            return ()
        content = prediction.content
        text = content if isinstance(content, str) else "".join(part.text for part in content)
        tokens = self._encode(text[: self._info.max_model_len * self._tokenizer.longest_token])
        known = next((i for i, token in enumerate(tokens) if token >= self._info.vocab_size), len(tokens))
        return tokens[: min(known, self._info.max_model_len)]

    @property
    def limits_thoughts(self) -> bool:
        """Whether the reasoning of this model can have a limit."""
        return self._thinks and self._tokenizer.added_token_id(THINK_CLOSE) is not None

    def _thought_limit(self, request: schemas.ChatCompletionRequest, *, begun: bool) -> ThoughtLimit | None:
        """Return the limit of the reasoning, if the model reasons and the request has one. Raises APIError."""
        tokens = request.thinking_token_budget
        if tokens is None or tokens < 0 or not self._thinks:
            return None
        close = self._tokenizer.added_token_id(THINK_CLOSE)
        if close is None:
            name = "thinking_token_budget"
            raise invalid(
                f"'{name}' is not supported with this model: its reasoning ends with no token of its own.", name
            )
        return ThoughtLimit(tokens, self._tokenizer.added_token_id(THINK_OPEN), close, begun)

    def _grammar_marker(self, text: str) -> str:
        """Return a marker in a grammar's notation: an added token by its id, other text as a string."""
        token = self._tokenizer.added_token_id(text)
        return json.dumps(text) if token is None else f"<[{token}]>"

    def _max_tokens(self, request: schemas.ChatCompletionRequest) -> int | None:
        return request.max_tokens if request.max_completion_tokens is None else request.max_completion_tokens


def _names_function(choice: object) -> bool:
    return isinstance(choice, schemas.ToolChoice) and choice.type == "function"


def _named(tools: Sequence[schemas.Tool], names: Iterable[str], param: str) -> list[schemas.Tool]:
    """Return the tools with these names, in their order among all tools. Raises APIError if one is missing."""
    names = {*names}
    found = [tool for tool in tools if tool.function.name in names]
    if len(found) < len(names):
        raise invalid(f"'{param}' names a tool that is not in 'tools'.", param)
    return found


def _template_variables(request: ChatRequest) -> dict[str, Any]:
    """Return additional variables of the chat template. Templates ignore those that they do not know."""
    variables: dict[str, Any] = {}
    if isinstance(request, schemas.ChatCompletionRequest):
        if request.reasoning_effort is not None:
            variables["reasoning_effort"] = request.reasoning_effort
        if request.reasoning_effort == "none":
            variables["enable_thinking"] = False
        if request.verbosity is not None:
            variables["verbosity"] = request.verbosity
    return variables | request.chat_template_kwargs


def check_turn(request: ChatRequest) -> None:
    """Raise APIError if the prompt must both continue the last message and begin the assistant's."""
    begins = request.add_generation_prompt and "add_generation_prompt" in request.model_fields_set
    if request.continue_final_message and begins:
        raise invalid(
            "'add_generation_prompt' and 'continue_final_message' cannot both be true.", "continue_final_message"
        )
