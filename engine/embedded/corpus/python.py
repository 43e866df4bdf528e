"""Short Python functions on request; the answer is one code block."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from engine.embedded.corpus.base import Draw, Example, Phrases, chat
from engine.embedded.corpus.python_dicts import DICT_TASKS
from engine.embedded.corpus.python_functions import NUMBERS
from engine.embedded.corpus.python_lists import LIST_TASKS
from engine.embedded.corpus.python_sandbox import parameters, run
from engine.embedded.corpus.python_strings import STRINGS
from engine.embedded.corpus.python_task import Constant, Task
from engine.embedded.corpus.wordings import wordings


def _pool(name: str, text: str) -> Phrases:
    return Phrases(*" ".join(text.split()).split(" / "), more=wordings(f"python.{name}"))


TASKS: tuple[Task, ...] = (*NUMBERS, *STRINGS, *LIST_TASKS, *DICT_TASKS)

PLAIN = _pool(
    "PLAIN",
    """Write a Python function to {what}. / Write a (Python |)function that can {what}. /
    I need a (Python |)function to {what}. / Python function to {what} / How (do|can) I {what} in Python? /
    Give me (Python |)code to {what}. / Can you write (a Python function|Python code) to {what}? /
    {What} in Python. / Implement a function to {what}. / Create a Python function to {what}. /
    (python|Python): {what} / Code a function to {what}. / Please write Python code to {what}. /
    Show me how to {what} in Python. / Using Python, {what}. / Make a (Python |)function to {what}. /
    A function to {what}, please. / Write a short (Python |)function which should {what}. /
    Define a function to {what} in Python. / function to {what} / Could you give me a Python function to {what}? /
    I want to {what} in Python. / Write code to {what}. / Help me write a function to {what}. /
    What is a Python function to {what}? / def: {what} / Python code to {what} /
    I am looking for a (Python |)function to {what}. / Please give me a function that can {what}. /
    {What} with Python. / Write me a (small|short|simple) Python function to {what}. /
    Program a function to {what}. / In Python, how do I {what}? / Write Python to {what}. /
    Please implement a Python function to {what}.""",
)
NAMED = _pool(
    "NAMED",
    """Write a (Python |)function (called|named) {name} to {what}. / Write a function {name} that can {what}. /
    I need a (Python |)function (called|named) {name} to {what}. / Write a Python function {name} to {what}. /
    Give me a function (called|named) {name} that should {what}. / Python function {name} to {what} /
    Can you write a function {name} to {what}? / Implement {name} to {what}. /
    Create a function {name} to {what}. / Define a function (called|named) {name} that can {what}. /
    Implement a function {name} to {what}. / (Please code|Code) a function called {name} to {what}. /
    Write {name}, a function to {what}. / {name}: {what} / Make a function (named|called) {name} to {what}. /
    Write a function to {what}. Call it {name}. / I need a function to {what}. Its name is {name}. /
    Write a function to {what} and call it {name}. / (Python|python) function to {what}, name: {name} /
    {What} in Python. Name the function {name}. / How do I write a function {name} to {what} in Python? /
    Show me a function {name} to {what}. / Write a function to {what}. The name is {name}. /
    The function {name} should {what}. Write it. / Define {name} to {what}. /
    Please write the function {name} to {what}.""",
)
SIGNED = _pool(
    "SIGNED",
    """Complete the function: {signature} It should {what}. / Write the body of {signature} It should {what}. /
    {signature} This function should {what}. Complete it. / Finish this Python function to {what}: {signature} /
    Fill in this function so that it can {what}: {signature} / Implement {signature} It should {what}. /
    Complete this function to {what}: {signature} / Here is a function: {signature} It has to {what}. Write it. /
    {signature} Complete this Python function to {what}. / I want {signature} to {what}. Write the function. /
    Complete {signature} to {what}. / Finish the function {signature} It should {what}. /
    Write the function that begins with {signature} and can {what}. / Complete the code to {what}: {signature}""",
)
ONE_PARAMETER = _pool(
    "ONE_PARAMETER",
    """The parameter is called {names}. / It takes {names}. / Use {names} as the parameter. /
    Name the parameter {names}. / The argument is {names}. / Call the parameter {names}. / Parameter: {names}. /
    The parameter is {names}. / Its parameter is {names}. / The parameter should be called {names}. /
    Use the parameter name {names}. / Argument: {names}. / It has the parameter {names}. / It gets {names}.""",
)
TWO_PARAMETERS = _pool(
    "TWO_PARAMETERS",
    """The parameters are called {names}. / It takes {names}. / Use {names} as the parameters. /
    Name the parameters {names}. / The arguments are {names}. / Call the parameters {names}. /
    Parameters: {names}. / The parameters are {names}. / Its parameters are {names}. /
    The parameters should be called {names}. / Use the parameter names {names}. / Arguments: {names}. /
    It has the parameters {names}. / It gets {names}.""",
)

PARAMETER_NAMES = {
    "number": ("x", "num", "number", "k", "val"),
    "string": ("text", "string", "st", "line", "phrase"),
    "list": ("xs", "values", "data", "nums", "elements", "lst"),
    "dict": ("data", "mapping", "table", "entries"),
}
PAIRS_OF_NAMES = (("x", "y"), ("p", "q"), ("first", "second"), ("left", "right"), ("one", "two"))
VERBS = (
    *("get", "do", "run", "make", "calc", "compute", "find", "build", "check", "process", "handle", "apply", "solve"),
    *("use", "work"),
)
NOUNS = (
    *("it", "value", "result", "this", "thing", "data", "number", "text", "list", "answer", "output", "task", "job"),
    *("step", "part"),
)
SHORT_NAMES = (
    *("f", "g", "h", "func", "solve", "helper", "my_function", "my_func", "main", "foo"),
    *("bar", "run", "fn", "go"),
)

THAT_SHARE = 0.4  # of requests to train on for a function "to do" something that ask for one "that does" it
TO_DO = re.compile(r"([Ff]unction|\b[Cc]ode|[Ff]unction( called| named)? \S+)$")  # before "to do" it

BLOCK = re.compile(r"```(?:python|py)?\n(.*?)\n?```", re.DOTALL)


class Python:
    """`expect`: the function's name, its parameters if they were asked for, the reference and the calls to try."""

    name = "python"

    def make(self, draw: Draw) -> Example:
        task = draw.choice(TASKS)
        constant = task.constant(draw) if task.constant else None
        kind = draw.random.random()
        named = kind >= 0.45
        name = _function_name(draw, task) if named else task.names[0]
        asked = named and draw.chance(0.35) and len(task.parameters) < 3
        names = _parameter_names(draw, task) if asked else task.parameters
        what = draw.phrase(task.phrases, c=constant)
        slots = {"what": what, "What": what[0].upper() + what[1:]}
        if kind > 0.88:
            asked = True
            text = draw.phrase(SIGNED, signature=f"def {name}({', '.join(names)}):", **slots)
        else:
            shown = f"`{name}`" if draw.chance(0.4) else name
            text = draw.phrase(NAMED if named else PLAIN, name=shown, **slots)
            if draw.split == "train" and draw.chance(THAT_SHARE):
                text = _that(draw, text, what)
            text = text if asked or text.startswith(shown) else draw.casual(text)
            if asked:
                text = f"{_ended(text)} {_request(draw, names)}"
        source = task.source(name, names, constant)
        expect = {
            "name": name,
            "parameters": list(names) if asked else None,
            "source": source,
            "calls": task.tried(constant),
        }
        return Example(self.name, chat(text, f"```python\n{source}\n```"), _key(task, named, name, constant), expect)

    def check(self, example: Example, answer: str) -> bool:
        """Whether the code does on all calls what the reference does; text around the code is wrong."""
        text = answer.strip()
        block = BLOCK.fullmatch(text)
        code = block.group(1) if block else text
        name, wanted, calls = (example.expect[field] for field in ("name", "parameters", "calls"))
        try:
            if wanted is not None and parameters(code, name) != wanted:
                return False
            return _same(run(code, name, calls), run(example.expect["source"], name, calls))
        except Exception:
            return False


def _key(task: Task, named: bool, name: str, constant: Constant | None) -> str:
    """Nothing for a task by its default name, which has to be known."""
    parts = [task.names[0], *([name] if named else []), *([] if constant is None else [str(constant)])]
    return " ".join(parts) if len(parts) > 1 else ""


def _function_name(draw: Draw, task: Task) -> str:
    kind = draw.random.random()
    if kind < 0.35:
        return draw.choice(task.names)
    if kind < 0.5:
        return draw.choice(SHORT_NAMES)
    verb, noun = draw.choice(VERBS), draw.choice((*NOUNS, draw.made_up_word(2)))
    if kind < 0.6:
        return verb + noun.capitalize()
    return f"{verb}_{noun}" if kind < 0.85 else draw.made_up_word(draw.integer(1, 3))


def _parameter_names(draw: Draw, task: Task) -> Sequence[str]:
    if len(task.parameters) == 2:
        return draw.choice((*PAIRS_OF_NAMES, task.parameters))
    return (draw.choice(PARAMETER_NAMES[task.kind]),)


def _request(draw: Draw, names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names] if draw.chance(0.4) else list(names)
    return draw.phrase(ONE_PARAMETER if len(names) == 1 else TWO_PARAMETERS, names=" and ".join(quoted))


def _that(draw: Draw, text: str, what: str) -> str:
    """The same request for a function that does it, where the text says "function … to do it"."""
    before, to, after = text.partition(f" to {what}")
    if not to or not TO_DO.search(before):
        return text
    verb, _, others = what.partition(" ")
    return f"{before} {draw.choice(('that', 'that', 'which'))} {_third_person(verb)} {others}{after}"


def _third_person(verb: str) -> str:
    if verb.endswith("ly"):
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def _ended(text: str) -> str:
    return text if text[-1] in ".?!" else text + "."


def _same(a: Any, b: Any) -> bool:
    """Equal, and of the same kind: True is not 1, a list is not a tuple; 2.0 is 2."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, int | float) and isinstance(b, int | float) and math.isclose(a, b, abs_tol=1e-9)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


SKILL = Python()
