"""Anthropic's Messages API: blocks become turns of a conversation."""

from collections.abc import Mapping, Sequence
from typing import Any

from server.answer.writer import ReplyWriter
from server.apis.api import CountingApi
from server.apis.fields import NO_VALUE, Defaults, FieldCheck, Inside, called_directly
from server.apis.messages import bodies
from server.apis.messages.events import MessageWriter
from server.apis.parts import not_text, result_text, template_variables
from server.conversation import Call, Conversation, Form, Tool, ToolChoice, Turns
from server.edge.errors import invalid
from server.edge.reading import without_nulls
from server.prepare import Ask, ParsedRequest

IGNORED = {
    "betas": "the bodies of beta versions are read too",
    "cache_control": "prefixes are cached anyway, and cached ones give the same tokens",
    "diagnostics": "adds figures about the cache to the reply",
    **dict.fromkeys(("inference_geo", "speed"), "all requests run here, at the same speed"),
    **dict.fromkeys(("user_profile_id", "workspace_id"), "a label for the client's records"),
    **dict.fromkeys(("billing_policy", "fallback_credit_token"), "nothing is billed"),
    "fallbacks": "no model declines here",
}


def _clears_thinking(body: Mapping[str, Any]) -> bool:
    """Whether the context is edited at most by what chat templates do themselves: earlier thinking is left out."""
    management = body["context_management"]
    edits = without_nulls(management).get("edits", []) if isinstance(management, dict) else None
    if not isinstance(edits, list) or not all(isinstance(edit, dict) for edit in edits):
        raise invalid("'context_management.edits' must be a list of objects.", "context_management.edits")
    return all(str(edit.get("type")).startswith("clear_thinking") for edit in edits)


_REFUSED: dict[str, Defaults] = {
    **dict.fromkeys(("container", "thread", "compaction"), NO_VALUE),
    "context_management": _clears_thinking,
    "mcp_servers": ([],),
}
_REFUSED_INSIDE: Inside = {
    "tools[]": {"allowed_callers": called_directly},
    "messages[]": {"clear_at": ("never",), "output_config": NO_VALUE},
    "output_config": {"task_budget": NO_VALUE},
}
_NAMES = {  # fields of chat completions → what replaces them
    "thinking_token_budget": "thinking.budget_tokens",
    "stop": "stop_sequences",
    "max_completion_tokens": "max_tokens",
    "reasoning_effort": "output_config.effort",
    "response_format": "output_config.format",
}
_TEXT = {"text": "text"}
# The first system block of Claude Code. It differs from request to request, so that no prefix could be shared.
_BILLING = "x-anthropic-billing-header:"


class MessagesApi(CountingApi):
    body = bodies.MessagesRequest
    prompt_path = "messages"
    fields = FieldCheck.of_other_api(
        bodies.MessagesRequest.model_fields, names=_NAMES, ignored=IGNORED, refused=_REFUSED, inside=_REFUSED_INSIDE
    )

    def parse(self, raw: bytes, key: str) -> tuple[ParsedRequest, ReplyWriter]:
        request = self.read(bodies.MessagesRequest, raw)
        self.model.preparer.check(request)
        # Clients send the most tokens that they know, because the API requires a number.
        prompt = self.model.chats.prompt(self._conversation(request), None)
        ask = Ask(request, request.max_tokens, capped=True, stop=request.stop_sequences)
        parsed = self.model.preparer.prepare("msg_", prompt, ask)
        lowered = parsed.sampling.max_tokens != request.max_tokens
        writer = MessageWriter(
            parsed.id,
            parsed.model,
            shows_thinking=request.thinking is None or request.thinking.display != "omitted",
            fills_context=lowered and self.model.preparer.fills_context(parsed),
        )
        return parsed, writer

    def count_tokens(self, raw: bytes, key: str) -> int:
        request = self.read(bodies.CountTokensRequest, raw)
        self.model.preparer.check_model(request.model)
        return self.model.chats.count_tokens(self._conversation(request))

    def _conversation(self, request: bodies.CountTokensRequest) -> Conversation:
        turns = Turns("messages")
        if request.system and (text := _system(request.system)):
            turns.say("system", text)
        for index, message in enumerate(request.messages):
            _add(turns, message, f"messages[{index}]")
        found = turns.all()
        if not found:
            raise invalid("'messages' must have at least one message that the model can read.", "messages")
        variables = dict(request.chat_template_kwargs)
        thinking, limit = request.thinking, None
        if thinking is not None:
            variables = {"enable_thinking": thinking.type != "disabled", **variables}
            limit = thinking.budget_tokens if self.model.chats.limits_thoughts else None
        last, form = found[-1], _form(request)
        continues = last.role == "assistant" and bool(last.text) and not last.calls
        if continues and form is not None:  # as with Anthropic
            raise invalid("The beginning of an answer cannot be combined with a format.", form.path)
        return Conversation(
            found,
            "messages",
            [_tool(request, index) for index in range(len(request.tools))],
            _choice(request.tool_choice),
            parallel=not request.tool_choice.disable_parallel_tool_use,
            form=form,
            variables=template_variables(request.output_config.effort, None, variables),
            continues=continues,
            thought_limit=limit,
            thought_limit_path="thinking.budget_tokens",
        )


def _system(system: bodies.Content) -> str:
    if isinstance(system, str):
        return system
    texts = [_text(block, f"system[{index}]") for index, block in enumerate(system)]
    return "\n\n".join(text for text in texts if not text.startswith(_BILLING))


def _text(block: object, path: str) -> str:
    if not isinstance(block, bodies.TextBlock):
        raise not_text(_TEXT, path)
    return block.text


def _add(turns: Turns, message: bodies.Message, path: str) -> None:
    if isinstance(message.content, str):
        turns.say(message.role, message.content)
    elif message.role == "assistant":
        _add_answer(turns, message.content, path)
    else:
        _add_question(turns, message, message.content, path)


def _add_question(turns: Turns, message: bodies.Message, blocks: Sequence[object], path: str) -> None:
    """Add the blocks of a message. Results of the client's tools come before its text, as models expect them."""
    texts = []
    for index, block in enumerate(blocks):
        name = f"{path}.content[{index}]"
        if isinstance(block, bodies.ResultBlock) and block.type == "tool_result" and message.role == "user":
            turns.result(block.tool_use_id, _result(block, name))
        else:
            texts.append(_text(block, name))
    if texts or not blocks:
        turns.say(message.role, "\n".join(texts))


def _add_answer(turns: Turns, blocks: Sequence[Any], path: str) -> None:
    """Add the blocks of an answer, also those of tools that run on Anthropic's servers."""
    texts: list[str] = []  # texts that follow each other

    def say() -> None:
        if texts:
            turns.say("assistant", "".join(texts))
            texts.clear()

    for index, block in enumerate(blocks):
        name = f"{path}.content[{index}]"
        if block.type == "redacted_thinking":
            continue
        if isinstance(block, bodies.CallBlock | bodies.ResultBlock | bodies.ThinkingBlock):
            say()
        if isinstance(block, bodies.CallBlock):
            turns.call(Call(block.name, block.input, block.id))
        elif isinstance(block, bodies.ResultBlock) and block.type != "tool_result":
            turns.result(block.tool_use_id, _result(block, name))
        elif isinstance(block, bodies.ThinkingBlock):
            turns.think(block.thinking)
        else:
            texts.append(_text(block, name))
    if not blocks:
        texts.append("")
    say()


def _result(block: bodies.ResultBlock, path: str) -> str:
    text = result_text(block.content, _TEXT, f"{path}.content")
    return f"Error: {text}" if block.is_error else text  # chat templates know no failed results


def _tool(request: bodies.CountTokensRequest, index: int) -> Tool:
    tool, schema = request.tools[index], f"tools[{index}].input_schema"
    fields = {} if tool.input_examples is None else {"input_examples": tool.input_examples}
    return Tool(tool.name, schema, tool.description, tool.input_schema, tool.strict, fields)


def _choice(choice: bodies.ToolChoice) -> ToolChoice:
    if choice.type == "any":
        return ToolChoice("required")
    if choice.type != "tool":
        return ToolChoice(choice.type)
    if choice.name is None:
        raise invalid("Missing required parameter: 'tool_choice.name'.", "tool_choice.name")
    return ToolChoice("required", frozenset([choice.name]), single=True)


def _form(request: bodies.CountTokensRequest) -> Form | None:
    path = "output_config.format" if request.output_config.format else "output_format"
    format = request.output_config.format or request.output_format
    return None if format is None else Form("json", format.schema_, path)
