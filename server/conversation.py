"""What a client asks of a model: typed values between the APIs and the prompt.

What may be refused after the body is read knows its path in the body, such as "tools[0].input_schema".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from server.edge.errors import invalid
from server.edge.reading import without_nulls

MAX_TURNS = 16384
THINK_OPEN, THINK_CLOSE = "<think>", "</think>"  # around a thought, in a prompt and in an answer

FormKind = Literal["json", "json_object", "regex", "choice", "grammar", "structural_tag"]
ToolMode = Literal["none", "auto", "required"]
Role = Literal["system", "developer", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool in an earlier answer."""

    name: str
    arguments: Any  # an object; the text that the model wrote, if that is not valid JSON
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation. An answer may have a thought before its text, and calls after it."""

    role: Role
    text: str
    thought: str | None = None
    calls: Sequence[Call] = ()
    result_of: str | None = None  # id of the call whose result a tool's turn has
    fields: Mapping[str, Any] = field(default_factory=dict)  # further ones, which chat templates may read


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call."""

    name: str
    parameters_path: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None  # JSON schema of its arguments
    strict: bool | None = None  # refuse parameters that cannot be enforced
    fields: Mapping[str, Any] = field(default_factory=dict)  # further ones, which chat templates may read

    def template(self) -> dict[str, Any]:
        """Return the tool as chat templates know it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "strict": self.strict,
            **self.fields,
        }
        return {"type": "function", "function": without_nulls(function)}


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools the prompt describes, and whether the model must call one of them."""

    mode: ToolMode = "auto"
    names: frozenset[str] | None = None  # None: all tools
    single: bool = False  # one function is named, to be called once
    path: str = "tool_choice"  # path of the names


@dataclass(frozen=True, slots=True)
class Form:
    """What an answer must match, as the client gives it."""

    kind: FormKind
    value: Any
    path: str
    strict: bool = False  # refuse schemas that cannot be enforced


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat, and how it goes on."""

    turns: Sequence[Turn]
    path: str  # path of the turns
    tools: Sequence[Tool] = ()
    choice: ToolChoice = ToolChoice()
    parallel: bool = True  # the answer may have several calls
    form: Form | None = None
    prediction: str = ""  # a text that most of the answer is expected to match
    variables: Mapping[str, Any] = field(default_factory=dict)  # variables of the chat template
    opens_turn: bool = True  # let the chat template open the assistant's turn
    continues: bool = False  # the answer continues the last turn, which is an answer without calls
    thought_limit: int | None = None  # tokens; None or negative: no limit
    thought_limit_path: str = ""


class Turns:
    """Collects turns from items that may be parts of one turn."""

    def __init__(self, path: str) -> None:
        """`path` is that of the list, for the error of too many turns."""
        self._path = path
        self._turns: list[Turn] = []
        self._calls: list[Call] = []  # calls of the last turn, while it may have more
        self._thoughts: list[str] = []  # before the next answer
        self._later: list[str] = []  # texts after the first call of the last turn

    def say(self, role: Role, text: str) -> None:
        """Add a turn. The text of an answer after its calls is part of the same turn."""
        if role != "assistant":
            self._end_thought()
        elif self._calls and not self._thoughts:
            self._later.append(text)
            return
        self._add(Turn(role, text))

    def think(self, text: str) -> None:
        """Add a thought, which belongs to the next answer."""
        if text:
            self._thoughts.append(text)

    def call(self, call: Call) -> None:
        """Add a tool call to the last turn, if that is an answer, else to a new one."""
        if self._thoughts or not self._turns or self._turns[-1].role != "assistant":
            self._add(Turn("assistant", ""))
        self._calls.append(call)

    def result(self, id: str, text: str) -> None:
        """Add the result of a tool call."""
        self._end_thought()
        self._add(Turn("tool", text, result_of=id))

    def all(self) -> list[Turn]:
        """Return the turns."""
        self._end_thought()
        self._end_answer()
        return self._turns

    def _end_thought(self) -> None:
        """Add an answer that ended within its thought, if there is one."""
        if self._thoughts:
            self._add(Turn("assistant", ""))

    def _end_answer(self) -> None:
        """Complete the last turn. The parts of its text are paragraphs, unless there is white space between them."""
        if not self._calls:
            return
        parts: list[str] = []
        for text in filter(None, (self._turns[-1].text, *self._later)):
            apart = parts and not parts[-1][-1].isspace() and not text[0].isspace()
            parts += ["\n\n", text] if apart else [text]
        self._turns[-1] = replace(self._turns[-1], text="".join(parts), calls=self._calls)
        self._calls, self._later = [], []

    def _add(self, turn: Turn) -> None:
        self._end_answer()
        if len(self._turns) == MAX_TURNS:
            raise invalid(f"A conversation can have at most {MAX_TURNS} messages.", self._path)
        if turn.role == "assistant":
            turn = replace(turn, thought="\n".join(self._thoughts) or None)
            self._thoughts = []
        self._turns.append(turn)
