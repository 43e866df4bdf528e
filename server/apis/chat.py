"""OpenAI's chat completions: messages become turns of a conversation."""

from collections.abc import Sequence
from dataclasses import replace

from server.answer.writer import ReplyWriter
from server.apis import bodies
from server.apis.api import Api
from server.apis.chunks import ChatWriter
from server.apis.fields import CHAT_FIELDS
from server.apis.parts import CUSTOM_INPUT, arguments_of, template_variables
from server.conversation import Call, Conversation, Role, Tool, ToolChoice, ToolMode, Turn
from server.edge.errors import invalid
from server.edge.reading import without_nulls
from server.prepare import ParsedRequest


class ChatApi(Api):
    body = bodies.ChatCompletionRequest
    prompt_path = "messages"
    fields = CHAT_FIELDS

    def parse(self, raw: bytes, key: str) -> tuple[ParsedRequest, ReplyWriter]:
        request = self.read(bodies.ChatCompletionRequest, raw)
        self.model.preparer.check(request, request.n)
        limit = request.max_tokens if request.max_completion_tokens is None else request.max_completion_tokens
        ask = request.ask(limit, (request.top_logprobs or 0) if request.logprobs else None)
        if request.top_logprobs and not request.logprobs:
            raise invalid("'top_logprobs' requires 'logprobs': true.", "top_logprobs")
        prompt = self.model.chats.prompt(_chat(request), limit)
        parsed = self.model.preparer.prepare("chatcmpl-", prompt, ask)
        return parsed, ChatWriter(parsed, self.model, request.stream_options)


def conversation(request: bodies.TemplateRequest, messages: Sequence[bodies.Message]) -> Conversation:
    """Return what a chat template gets of a body. Raises APIError."""
    found = _turns(messages)
    return Conversation(
        found,
        "messages",
        [_tool(tool.function, f"tools[{index}].function") for index, tool in enumerate(request.tools)],
        variables=request.chat_template_kwargs,
        opens_turn=request.add_generation_prompt,
        continues=_continues(request, found[-1]),
    )


def _chat(request: bodies.ChatCompletionRequest) -> Conversation:
    return replace(
        conversation(request, request.messages),
        choice=_choice(request.tool_choice),
        parallel=request.parallel_tool_calls,
        form=request.form(),
        prediction=_predicted(request.prediction),
        variables=template_variables(request.reasoning_effort, request.verbosity, request.chat_template_kwargs),
        thought_limit=request.thinking_token_budget,
        thought_limit_path="thinking_token_budget",
    )


def _continues(request: bodies.TemplateRequest, last: Turn) -> bool:
    """Whether the answer continues the last turn. Raises APIError if that is no answer, or if a turn must begin."""
    field = "continue_final_message"
    if not request.continue_final_message:
        return False
    if request.add_generation_prompt and "add_generation_prompt" in request.model_fields_set:
        raise invalid(f"'add_generation_prompt' and '{field}' cannot both be true.", field)
    if last.role != "assistant" or last.calls:
        raise invalid(f"'{field}' requires an assistant message without tool calls at the end of 'messages'.", field)
    return True


def _tool(function: bodies.Function, path: str) -> Tool:
    return Tool(
        function.name,
        f"{path}.parameters",
        description=function.description,
        parameters=function.parameters,
        strict=function.strict,
        fields=function.model_extra or {},
    )


def _choice(choice: bodies.ToolChoice | ToolMode) -> ToolChoice:
    if isinstance(choice, bodies.NamedTool):
        return ToolChoice("required", frozenset([choice.function.name]), single=True)
    if isinstance(choice, bodies.AllowedChoice):
        names = frozenset(tool.function.name for tool in choice.allowed_tools.tools)
        return ToolChoice(choice.allowed_tools.mode, names, path="tool_choice.allowed_tools.tools")
    return ToolChoice(choice)


def _predicted(prediction: bodies.PredictionContent | None) -> str:
    if prediction is None:
        return ""
    content = prediction.content
    return content if isinstance(content, str) else "".join(part.text for part in content)


def _turns(messages: Sequence[bodies.Message]) -> list[Turn]:
    """Return the turns of a chat, with tools instead of older functions. Raises APIError."""
    found = []
    function = "call_0"  # id of the last call of a function
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        fields = without_nulls(message.model_extra or {})
        calls = [_call(call, f"{path}.tool_calls[{place}]") for place, call in enumerate(message.tool_calls or ())]
        if message.function_call is not None and not calls:
            function = f"call_{index}"
            calls = [_call({"id": function, "function": message.function_call}, f"{path}.function_call")]
        text, thought = _text(message), None
        role: Role = "tool" if message.role == "function" else message.role
        if role == "assistant":
            text = "\n".join(filter(None, (text, message.refusal)))
            # Templates know the older name. An empty thought differs from none.
            thought = message.reasoning_content or message.reasoning or message.reasoning_content
        elif text is None and role != "tool":
            raise invalid("'content' is required in a message without tool calls.", f"{path}.content")
        result = function if message.role == "function" else message.tool_call_id
        found.append(Turn(role, text or "", thought, calls, result, fields))
    return found


def _text(message: bodies.Message) -> str | None:
    """Return the text of a message, whose parts are lines."""
    if isinstance(message.content, list):
        return "\n".join(
            part.refusal if isinstance(part, bodies.RefusalPart) else part.text for part in message.content
        )
    return message.content


def _call(call: object, path: str) -> Call:
    """Return a call of an earlier answer. Its arguments become an object, as chat templates expect, unless broken."""
    function = None
    if isinstance(call, dict):
        function = call.get("function")
        if "function" not in call and isinstance(custom := call.get("custom"), dict):
            function = {"name": custom.get("name"), "arguments": {CUSTOM_INPUT: custom.get("input", "")}}
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise invalid("A tool call must have a 'function' with a 'name' and 'arguments'.", path)
    id = call.get("id")
    return Call(function["name"], arguments_of(function.get("arguments")), None if id is None else str(id))
