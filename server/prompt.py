"""Prompts: a conversation becomes text by the chat template, token ids, and the form of its answer."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from engine.api import PromptTokenizer
from engine.errors import ContextLengthError, PromptError, RequestError
from engine.types import EngineInfo, ThoughtLimit
from server.answer.calls import make_parser
from server.answer.pieces import ReplyFormat
from server.conversation import THINK_CLOSE, THINK_OPEN, Conversation, Tool
from server.edge.errors import invalid
from server.forms.answers import answer_of
from server.forms.grammar import Answer, check_tools, grammar_of, tool_call_grammar
from server.templates import Message, in_turns, template_messages, with_tools
from server.tool_formats import ToolFormat

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompts of a request, which share everything else, and what their answers are like."""

    tokens: tuple[Tokens, ...]
    format: ReplyFormat  # `Preparer` completes it
    grammar: str | None = None
    grammar_path: str = "response_format"  # path of the field that asks for the grammar
    predicted: Tokens = ()
    thought_limit: ThoughtLimit | None = None
    special_markers: bool = False  # special tokens mark parts of the answer, so its text must include them


@dataclass(frozen=True, slots=True)
class Encoder:
    """Tokenises texts of limited length."""

    info: EngineInfo
    tokenizer: PromptTokenizer

    def tokens(self, text: str, path: str, *, special: bool, literal: bool = False) -> Tokens:
        """Return the token ids of a text, with those that the model expects around a bare prompt if `special`.

        Raises ContextLengthError for a text that is too long even to tokenise.
        """
        self.check_characters(len(text), path)
        return tuple(self.tokenizer.encode(text, add_special_tokens=special, literal=literal))

    def check_characters(self, characters: int, path: str) -> None:
        limit = self.info.max_model_len
        if characters > limit * self.tokenizer.longest_token:
            raise ContextLengthError(limit, characters=characters, param=path)

    def check_length(self, prompt_tokens: int, max_tokens: int | None, path: str) -> None:
        """Raise APIError or ContextLengthError for a prompt without tokens or too long for the requested answer."""
        limit = self.info.max_model_len
        if prompt_tokens == 0:
            raise invalid("The prompt is empty.", path)
        if prompt_tokens + (max_tokens or 1) > limit:
            raise ContextLengthError(limit, prompt_tokens, max_tokens, param=path)

    def check_ids(self, ids: Sequence[int], path: str) -> None:
        """Raise APIError naming the first of a list's items that is not a token id."""
        vocabulary = self.info.vocab_size
        if ids and not (min(ids) >= 0 and max(ids) < vocabulary):
            bad = next(position for position, token in enumerate(ids) if not 0 <= token < vocabulary)
            raise invalid(f"Token ids must be between 0 and {vocabulary - 1}.", f"{path}[{bad}]")

    def has_special(self, markers: Iterable[str]) -> bool:
        """Whether one of some markers is a special token, which decoded text omits."""
        return any(map(self.tokenizer.is_special, markers))


@dataclass(frozen=True, slots=True)
class _Thought:
    """The thought of an answer, as far as its prompt decides it."""

    begun: bool = False  # the prompt ends within it
    grammar: str = ""  # expression of what precedes the answer


@dataclass(frozen=True, slots=True)
class ChatPrompts:
    """Makes the prompts of conversations. Thread-safe."""

    encoder: Encoder
    literal: bool = False  # markers that a chat spells are text
    tool_format: ToolFormat = ToolFormat()  # format of this model's tool calls
    describes_tools: bool = False  # the chat template does not describe tools, so the server does
    thinks: bool = False  # the model may write its reasoning

    @property
    def limits_thoughts(self) -> bool:
        """Whether the thoughts of this model can have a limit."""
        return self.thinks and self.encoder.tokenizer.added_token_id(THINK_CLOSE) is not None

    def count_tokens(self, talk: Conversation) -> int:
        """Return the tokens of the prompt, which may exceed the context. Raises APIError, RequestError."""
        tools, _ = self._tools(talk)
        return len(self.encode(talk, self.render(talk, tools)))

    def encode(self, talk: Conversation, text: str, *, special: bool = False) -> Tokens:
        """Return the token ids of a rendered conversation. Raises ContextLengthError."""
        return self.encoder.tokens(text, talk.path, special=special, literal=self.literal)

    def prompt(self, talk: Conversation, max_tokens: int | None) -> Prompt:
        """Return the prompt of a conversation.

        The prompt and `max_tokens`, if not None, must fit the context. Raises APIError, RequestError.
        """
        tools, required = self._tools(talk)
        text = self.render(talk, tools)
        tokens = self.encode(talk, text)
        self.encoder.check_length(len(tokens), max_tokens, talk.path)  # a grammar would take far longer to make
        thought = self._thought(talk, text.rstrip())
        parallel = talk.parallel and not talk.choice.single
        answer = answer_of(talk.form, self.encoder.tokenizer)
        grammar, path = self._grammar(answer, tools, required, parallel=parallel, thought=thought)
        parser = partial(
            make_parser,
            self.tool_format.name if tools else None,
            reasoning=self.thinks,
            thinking=thought.begun,
            names=frozenset(tool.name for tool in tools),
        )
        return Prompt(
            (tokens,),
            ReplyFormat(parser=parser, max_calls=None if parallel else 1, must_call=bool(required)),
            grammar,
            path,
            predicted=self._predicted(talk.prediction),
            thought_limit=self._thought_limit(talk, begun=thought.begun),
            special_markers=self.encoder.has_special(self._markers(answer, tools)),
        )

    def _thought(self, talk: Conversation, text: str) -> _Thought:
        """Return what the prompt's text, without white space at its end, decides of the thought."""
        said = talk.turns[-1].text if talk.continues else ""
        if not self.thinks:
            return _Thought()
        if text.endswith(THINK_OPEN) or said.rfind(THINK_OPEN) > said.rfind(THINK_CLOSE):
            return _Thought(begun=True, grammar="think")
        if said or text.endswith(THINK_CLOSE):
            return _Thought()
        return _Thought(grammar=f"({self._grammar_marker(THINK_OPEN)} think)?")

    def _markers(self, answer: Answer | None, tools: Sequence[Tool]) -> Iterator[str]:
        """Yield the markers that the answer may have."""
        if tools:
            yield from self.tool_format.marks
        if self.thinks:
            yield THINK_OPEN
            yield THINK_CLOSE
        if answer is not None:
            yield from answer.markers

    def _grammar(
        self,
        answer: Answer | None,
        tools: Sequence[Tool],
        required: Sequence[Tool],
        *,
        parallel: bool,
        thought: _Thought,
    ) -> tuple[str | None, str]:
        """Return the grammar of the answer, or None, and the path of what it comes from. Raises APIError."""
        calls = None
        if tools and (required or answer is not None):
            calls = tool_call_grammar(self.tool_format, required or tools, self._grammar_marker, parallel=parallel)
        if answer is not None and answer.grammar and (calls is not None or thought.begun):
            raise invalid("A grammar cannot be combined with tools or with reasoning.", answer.param)
        path = "tools" if required or answer is None else answer.param
        if len(required) == 1:
            path = required[0].parameters_path
        close = self._grammar_marker(THINK_CLOSE)
        return grammar_of(None if required else answer, calls, thought=thought.grammar, think_close=close), path

    def render(self, talk: Conversation, tools: Sequence[Tool]) -> str:
        """Return the prompt's text. Raises APIError, RequestError."""
        messages = template_messages(talk.turns, id_length=self.tool_format.id_length)
        self.encoder.check_characters(sum(len(turn.text) for turn in talk.turns), talk.path)
        described: list[Message] = []
        if self.describes_tools:
            messages = with_tools(messages, tools)
        else:
            described = [tool.template() for tool in tools]
        try:
            return self._render(talk, messages, described)
        except RequestError:
            # Some templates want the user and the model to take turns, and some of these refuse system messages.
            for turns in (in_turns(messages, system=True), in_turns(messages, system=False)):
                with suppress(RequestError):
                    if turns != messages:
                        return self._render(talk, turns, described)
            raise

    def _render(self, talk: Conversation, messages: list[Message], tools: list[Message]) -> str:
        try:
            return self.encoder.tokenizer.render_chat(
                messages,
                tools,
                talk.variables,
                add_generation_prompt=talk.opens_turn and not talk.continues,
                continue_final_message=talk.continues,
                literal=self.literal,
            )
        except PromptError as error:  # only the caller knows the name of the field
            raise PromptError(str(error), param=talk.path) from None

    def _tools(self, talk: Conversation) -> tuple[Sequence[Tool], Sequence[Tool]]:
        """Return the tools in the prompt, and those of which the model must call one."""
        tools, choice = talk.tools, talk.choice
        if not tools:
            if choice.mode == "required" or choice.names is not None:
                raise invalid("'tool_choice' requires 'tools'.", "tool_choice")
            return [], []
        check_tools(tools)
        names = {tool.name for tool in tools}
        if len(names) < len(tools):
            raise invalid("The names of 'tools' must differ.", "tools")
        if choice.mode == "none":
            return [], []
        if not self.tool_format.name:
            raise invalid("This server leaves tool calls in the text (--tool-call-parser none).", "tools")
        if not names.issuperset(choice.names or ()):
            raise invalid(f"'{choice.path}' names a tool that is not in 'tools'.", choice.path)
        chosen = [tool for tool in tools if choice.names is None or tool.name in choice.names]
        if choice.single:
            return tools, chosen
        return chosen, chosen if choice.mode == "required" else []

    def _predicted(self, text: str) -> Tokens:
        """Return the tokens of a predicted answer, at most those of one context."""
        if not text:
            return ()
        info, tokenizer = self.encoder.info, self.encoder.tokenizer
        text = text[: info.max_model_len * tokenizer.longest_token]
        tokens = tokenizer.encode(text, add_special_tokens=False, literal=self.literal)
        return tuple(takewhile(lambda token: token < info.vocab_size, tokens[: info.max_model_len]))

    def _thought_limit(self, talk: Conversation, *, begun: bool) -> ThoughtLimit | None:
        """Return the limit of the thought, if the model thinks and the request has one. Raises APIError."""
        if talk.thought_limit is None or talk.thought_limit < 0 or not self.thinks:
            return None
        close, path = self.encoder.tokenizer.added_token_id(THINK_CLOSE), talk.thought_limit_path
        if close is None:
            reason = "its reasoning ends with no token of its own"
            raise invalid(f"'{path}' is not supported with this model: {reason}.", path)
        return ThoughtLimit(talk.thought_limit, self.encoder.tokenizer.added_token_id(THINK_OPEN), close, begun)

    def _grammar_marker(self, text: str) -> str:
        """Return a marker in a grammar's notation: an added token by its id, other text as a string."""
        token = self.encoder.tokenizer.added_token_id(text)
        return json.dumps(text) if token is None else f"<[{token}]>"
