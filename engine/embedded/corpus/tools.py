"""Tool calls in the Hermes format, and the answer after a tool's result.

A call is `<tool_call>`, a line of JSON with the name and the arguments in the schema's order, and `</tool_call>`; an
optional argument is given only if the user says it. A result is answered by one fixed sentence a tool.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from engine.embedded.corpus.base import Draw, Example, Message, Phrases, fill, phrases
from engine.embedded.corpus.tools_form import Arguments, Tool
from engine.embedded.corpus.tools_made_up import made_up
from engine.embedded.corpus.tools_services import SERVICE_TOOLS
from engine.embedded.corpus.tools_values import Kind, Said
from engine.embedded.corpus.tools_words import PERSONAL_TOOLS
from engine.embedded.corpus.wordings import wordings

TOOLS = (*PERSONAL_TOOLS, *SERVICE_TOOLS)

GREETED = "Hello! How can I help you?"
THANKED = "You are welcome!"
NONE_FITS = "None of the tools I have can do that."

GREETINGS = phrases(
    """Hello! / Hi! / Hey / (Hello|Hi) there! / Good (morning|evening|afternoon)! / Hi, how are you? /
    Hello, can you help me? / Hey there / (Hello|Hi), are you there? / Hi assistant! / Hello / Good day! / hi /
    Hello, nice to meet you!""",
    more=wordings("tools.GREETINGS"),
)
THANKS = phrases(
    """Thanks! / Thank you. / Thanks a lot! / Thank you (very|so) much! / Great, thanks. / Many thanks! /
    Thanks, that is all. / thank you / OK, thank you! / Thanks for your help! / (Perfect|Good|Nice), thank you. /
    thanks / That helps, thanks! / Thank you, that was all.""",
    more=wordings("tools.THANKS"),
)
FOLLOW_UPS = phrases(
    """And {value}? / What about {value}? / And for {value}? / How about {value}? / And what about {value}? /
    Now for {value}, please. / The same for {value}. / (Please do|Do) the same for {value}. / OK, and {value}? /
    Now {value}. / {value}? / And how about {value}? / Thanks. And {value}? / Can you also check {value}? /
    Also {value}, please. / What about {value} then? / And now the same for {value} / Next: {value}""",
    more=wordings("tools.FOLLOW_UPS"),
)
BOTH = Phrases(
    "{first} {second}",
    "{first} And {lower}",
    "{first} Then {lower}",
    "{first} Also, {lower}",
    "1. {first} 2. {second}",
    "{first} And then {lower}",
    "First: {first} Second: {second}",
    "Two things. {first} {second}",
    "{first} After that, {lower}",
    "{first}\n{second}",
    "- {first}\n- {second}",
    "I have two wishes: {first} {second}",
    "{first} Also: {second}",
    "{first} And also: {second}",
    more=wordings("tools.BOTH"),
)
PAIRS = ("{a} and {b}", "{a} and {b}", "both {a} and {b}", "{a} and also {b}", "{a} as well as {b}", "{a} & {b}")
ERRORS = phrases(
    """not found / {slot} not found / no connection / access denied / timeout / service not available /
    unknown {slot} / invalid {slot} / too many requests / please try again later / server error {code} /
    the service is down / {slot} is not valid / not allowed""",
    more=wordings("tools.ERRORS"),
)
SUCCESS: tuple[Arguments, ...] = (
    {"status": "ok"},
    {"success": True},
    {"result": "done"},
    {"status": "success"},
    {"ok": True},
    {"status": "done"},
)
CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)


@dataclass(frozen=True)
class Asked:
    """One request to one tool, and how it ends; `casual` if the text may be retyped as people type."""

    tool: Tool
    text: str
    call: Arguments
    result: Arguments
    sentence: str
    key: str
    casual: bool


class Offered:
    """A tool in one conversation, with the names drawn for it."""

    def __init__(self, draw: Draw, tool: Tool) -> None:
        self.tool = tool
        name = draw.choice(tool.names)
        self.name = _camel_case(name) if draw.chance(0.1) else name
        self.names = {slot.name: draw.choice(slot.names) for slot in tool.parameters}
        self.schema = self._schema(draw)

    def _schema(self, draw: Draw) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        described = draw.chance(0.6)
        for slot in self.tool.parameters:
            properties[self.names[slot.name]] = dict(slot.kind.schema())
            if described:
                properties[self.names[slot.name]]["description"] = _described(draw, slot.kind)
        required = [self.names[slot.name] for slot in self.tool.parameters if slot.name not in self.tool.optional]
        parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
        if draw.chance(0.08):
            parameters["additionalProperties"] = False
        function = {"name": self.name, "description": draw.expand(self.tool.description), "parameters": parameters}
        return {"type": "function", "function": function}

    def ask(self, draw: Draw) -> Asked:
        """A request, in one case of three with the optional arguments if there are any."""
        values = self._values(draw, with_optional=draw.chance(0.33))
        said = {name: value[1] for name, value in values.items()}
        text = draw.phrase(self.tool.requests, **said, **self.tool.fixed)
        if not text.startswith(tuple(said.values())):
            text = text[0].upper() + text[1:]
        for name, pool in self.tool.optional.items():
            if name in values:
                text = f"{_ended(text)} {draw.phrase(pool, **said)}"
        return self._asked(draw, text, values)

    def ask_pair(self, draw: Draw) -> tuple[str, list[Asked]]:
        """One request for two values of a lookup."""
        first, second = self._values(draw), self._values(draw)
        (name,) = first
        form, a, b = draw.choice(PAIRS), first[name][1], second[name][1]
        pair = draw.expand(form, a=a, b=b)
        text = draw.phrase(self.tool.requests, **{name: pair}, **self.tool.fixed)
        text = text.replace(f'"{pair}"', draw.expand(form, a=f'"{a}"', b=f'"{b}"'))
        return text, [self._asked(draw, text, first), self._asked(draw, text, second)]

    def follow_up(self, draw: Draw) -> Asked:
        """A second request to a lookup, which says the new value alone."""
        values = self._values(draw)
        ((_, said),) = values.values()
        return self._asked(draw, draw.phrase(FOLLOW_UPS, value=said), values)

    def _values(self, draw: Draw, with_optional: bool = False) -> dict[str, Said]:
        """What is asked for, no value twice."""
        values: dict[str, Said] = {}
        for slot in self.tool.parameters:
            if slot.name not in self.tool.optional or with_optional:
                value = slot.kind.make(draw)
                while value[0] in [other for other, _ in values.values()]:
                    value = slot.kind.make(draw)
                values[slot.name] = value
        return values

    def _asked(self, draw: Draw, text: str, values: dict[str, Said]) -> Asked:
        arguments = {name: value for name, (value, _) in values.items()}
        named = {self.names[name]: value for name, value in arguments.items()}
        result, shown = self._result(draw, arguments, named)
        shown.update({name: said if isinstance(value, bool) else value for name, (value, said) in values.items()})
        if draw.chance(0.06):
            message = draw.phrase(ERRORS, slot=next(iter(named), "request"), code=draw.integer(400, 599))
            result, sentence = {"error": message}, f"That did not work: {message}."
        else:
            sentence = fill(self.tool.sentence, shown)
        return Asked(
            self.tool,
            text,
            {"name": self.name, "arguments": named},
            result,
            sentence,
            f"{self.tool.names[0]} {_json(arguments)}" if arguments else "",
            self._may_be_casual(text, values),
        )

    def _result(self, draw: Draw, arguments: Arguments, named: Arguments) -> tuple[Arguments, dict[str, object]]:
        """The tool's result, and its values by the names that the sentence has for them."""
        if self.tool.compute:
            result = self.tool.compute(draw, arguments)
            return result, dict(result)
        if not self.tool.results:
            return draw.choice(SUCCESS), {}
        shown: dict[str, object] = {slot.name: slot.kind.make(draw)[0] for slot in self.tool.results}
        result = {draw.choice(slot.names): shown[slot.name] for slot in self.tool.results}
        if draw.chance(0.25):
            result = dict(draw.sample(list(result.items()), len(result)))
        if draw.chance(0.25) and not named.keys() & result.keys():
            result = named | result
        return result, shown

    def _may_be_casual(self, text: str, values: dict[str, Said]) -> bool:
        said = tuple(said for _, said in values.values())
        free = tuple(values[slot.name][1] for slot in self.tool.parameters if slot.kind.free and slot.name in values)
        return not text.startswith(said) and not text.endswith(free)


class Tools:
    name = "tools"

    def make(self, draw: Draw) -> Example:
        kind = draw.random.random()
        if kind < 0.4:
            return self._one_call(draw)
        if kind < 0.52:
            return self._two_calls(draw)
        if kind < 0.76:
            return self._result(draw)
        if kind < 0.9:
            return self._second_request(draw)
        return self._no_call(draw)

    def check(self, example: Example, answer: str) -> bool:
        if example.expect is None:
            return answer.strip() == example.answer
        return parse_calls(answer) == [_plain(call) for call in example.expect]

    def _one_call(self, draw: Draw) -> Example:
        asked = Offered(draw, tool := _tool(draw))
        return self._example([], [request := asked.ask(draw)], _user(draw, request), _offer(draw, [asked], tool))

    def _two_calls(self, draw: Draw) -> Example:
        requests, offered, text = _two_requests(draw)
        return self._example([], requests, text, _offer(draw, offered, offered[0].tool))

    def _result(self, draw: Draw) -> Example:
        if draw.chance(0.2):
            requests, offered, text = _two_requests(draw)
        else:
            offered = [Offered(draw, _tool(draw))]
            requests = [offered[0].ask(draw)]
            text = _user(draw, requests[0])
        messages = _answered(requests, text)
        tools = _offer(draw, offered, offered[0].tool)
        return Example(self.name, messages, _key(requests), None, [tool.schema for tool in tools])

    def _second_request(self, draw: Draw) -> Example:
        """After a request and its answer: the same for another value, another tool, or thanks."""
        offered = [Offered(draw, _tool(draw))]
        before = [offered[0].ask(draw)]
        messages = _answered(before, _user(draw, before[0]))
        kind = draw.random.random()
        if kind < 0.12:
            messages += [_says("user", draw.phrase(THANKS)), _says("assistant", THANKED)]
            tools = _offer(draw, offered, offered[0].tool)
            return Example(self.name, messages, "", None, [tool.schema for tool in tools])
        if offered[0].tool.is_lookup and kind < 0.75:
            request = offered[0].follow_up(draw)
            text = request.text
        else:
            offered.append(Offered(draw, _other_tool(draw, offered[0].tool)))
            request = offered[1].ask(draw)
            text = _user(draw, request)
        tools = _offer(draw, offered, offered[0].tool)
        if draw.chance(0.3):
            messages += _answered([request], text)
            return Example(self.name, messages, _key([request]), None, [tool.schema for tool in tools])
        return self._example(messages, [request], text, tools)

    def _no_call(self, draw: Draw) -> Example:
        kind, key = draw.random.random(), ""
        if kind < 0.55:
            missing = Offered(draw, tool := _tool(draw))
            request = missing.ask(draw)
            text, answer, key = _user(draw, request), NONE_FITS, request.key
            tools = _offer(draw, [], tool)
        else:
            text, answer = (draw.phrase(GREETINGS), GREETED) if kind < 0.8 else (draw.phrase(THANKS), THANKED)
            tools = _offer(draw, [], None)
        messages = [_says("user", text), _says("assistant", answer)]
        return Example(self.name, messages, key, None, [tool.schema for tool in tools])

    def _example(self, before: list[Message], requests: list[Asked], text: str, tools: list[Offered]) -> Example:
        calls = [request.call for request in requests]
        messages = [*before, _says("user", text), _says("assistant", show_calls(calls))]
        return Example(self.name, messages, _key(requests), calls, [tool.schema for tool in tools])


def _described(draw: Draw, kind: Kind) -> str:
    """The description of a parameter, sometimes with an example, which is not what the user asks for."""
    text = draw.expand(kind.description)
    if kind.type == "string" and not kind.enum and draw.chance(0.15):
        text += f", e.g. {kind.make(draw)[0]}"
    return text


def show_calls(calls: list[Arguments]) -> str:
    return "\n".join(f"<tool_call>\n{_json(call)}\n</tool_call>" for call in calls)


def parse_calls(text: str) -> list[Arguments] | None:
    """The calls that `text` consists of; None if it has anything else in it."""
    if CALL.sub("", text).strip():
        return None
    try:
        calls = [json.loads(found) for found in CALL.findall(text)]
    except ValueError:
        return None
    return [_plain(call) for call in calls]


def _plain(value: Any) -> Any:
    """`value` so that == tells true from 1, but not 5.0 from 5."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bool):
        return ("bool", value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _says(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _key(requests: list[Asked]) -> str:
    return " ".join(request.key for request in requests).strip()


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _ended(text: str) -> str:
    return text if text[-1] in ".?!" else text + "."


def _user(draw: Draw, request: Asked) -> str:
    return draw.casual(request.text) if request.casual else request.text


def _answered(requests: list[Asked], text: str) -> list[Message]:
    """From the user's text to the assistant's sentence on the results."""
    return [
        _says("user", text),
        _says("assistant", show_calls([request.call for request in requests])),
        *(_says("tool", _json(request.result)) for request in requests),
        _says("assistant", " ".join(request.sentence for request in requests)),
    ]


def _tool(draw: Draw) -> Tool:
    return made_up(draw) if draw.chance(0.4) else draw.choice(TOOLS)


def _other_tool(draw: Draw, tool: Tool, like: Tool | None = None) -> Tool:
    """A tool of another group, and with other names."""
    while True:
        other = made_up(draw, like) if like or draw.chance(0.3) else draw.choice(TOOLS)
        if other.group != tool.group and not set(other.names) & set(tool.names):
            return other


def _two_requests(draw: Draw) -> tuple[list[Asked], list[Offered], str]:
    """One text that asks for two calls: a lookup of two values, or two tools."""
    offered = [Offered(draw, _tool(draw))]
    if offered[0].tool.is_lookup and draw.chance(0.7):
        text, pair = offered[0].ask_pair(draw)
        return pair, offered, text
    offered.append(Offered(draw, _other_tool(draw, offered[0].tool)))
    requests = [tool.ask(draw) for tool in offered]
    second = requests[1].text
    keeps_capital = second.startswith(("I ", "I'")) or not requests[1].casual
    lower = second if keeps_capital else second[0].lower() + second[1:]
    return requests, offered, draw.phrase(BOTH, first=_ended(requests[0].text), second=second, lower=lower)


def _offer(draw: Draw, wanted: list[Offered], about: Tool | None) -> list[Offered]:
    """`wanted` among others, in random order, up to four; none of the others would do what `about` does."""
    count = max(draw.choice((1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4)), len(wanted))
    tools = list(wanted)
    while len(tools) < count:
        confusing = about if about and about.fixed and draw.chance(0.4) else None
        other = _other_tool(draw, about, confusing) if about else _tool(draw)
        if not any(set(other.names) & set(tool.tool.names) for tool in tools):
            tools.append(Offered(draw, other))
    return draw.sample(tools, len(tools))


SKILL = Tools()
