"""Runs a function that a model wrote: no imports, few builtins, limits of steps, time and size.

This keeps off what goes wrong by chance (endless loops, huge values); it is no fence against somebody who means harm.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from time import monotonic
from types import FrameType
from typing import Any

MAX_STEPS = 200_000  # bytecode instructions of one call, about ten a line; a loop in one line has no line events
MAX_SECONDS = 1.0
MAX_SIZE = 100_000  # items of a range or a sequence, bits of an integer, digits of a literal
FILE = "<answer>"

FORBIDDEN = (
    *(ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.ClassDef, ast.With, ast.Try, ast.TryStar, ast.Match),
    *(ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await, ast.LShift, ast.MatMult, ast.Delete),
)
ATTRIBUTES = frozenset(
    name for kind in (str, list, dict, set, tuple, int, float) for name in dir(kind) if not name.startswith("_")
) - {
    "format",
    "format_map",
    "translate",
    "maketrans",
    "to_bytes",
    "from_bytes",
    "expandtabs",
    "center",
    "ljust",
    "rjust",
    "zfill",
}


class Refused(Exception):
    """The text is not run, or not run any further."""


def run(source: str, name: str, calls: Sequence[Sequence[Any]]) -> list[Any]:
    """What the function `name` of `source` returns for each list of arguments.

    Raises Refused if the text may not be run or takes too long, and whatever the function raises.
    """
    names: dict[str, Any] = {"__builtins__": BUILTINS, "_times": _times, "_power": _power}
    _limited(partial(exec, _compiled(source), names))
    function = names.get(name)
    if not callable(function):
        raise Refused(f"no function {name}")
    return [_limited(partial(function, *deepcopy(list(call)))) for call in calls]


def parameters(source: str, name: str) -> list[str] | None:
    """The names of the parameters of the function `name`; None if there is no such function."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return [argument.arg for argument in node.args.args]
    return None


def _compiled(source: str) -> Any:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        _examine(node)
    return compile(ast.fix_missing_locations(_Guards().visit(tree)), FILE, "exec")


def _examine(node: ast.AST) -> None:
    if isinstance(node, FORBIDDEN):
        raise Refused(type(node).__name__)
    if isinstance(node, ast.Attribute) and node.attr not in ATTRIBUTES:
        raise Refused(f"attribute {node.attr}")
    if isinstance(node, ast.Name) and node.id.startswith("_") and node.id.strip("_"):
        raise Refused(f"name {node.id}")
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > MAX_SIZE:
        raise Refused("a large number")
    if isinstance(node, ast.FormattedValue) and node.format_spec:
        raise Refused("a format")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
        raise Refused("a format")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


class _Guards(ast.NodeTransformer):
    """Products and powers, which can be huge in one step, become calls that look at the size first."""

    CALLS: Mapping[type[ast.operator], str] = {ast.Mult: "_times", ast.Pow: "_power"}

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in self.CALLS:
            return node
        return ast.copy_location(self._call(node.op, node.left, node.right), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in self.CALLS:
            return node
        read = deepcopy(node.target)
        read.ctx = ast.Load()
        value = self._call(node.op, read, node.value)
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)

    def _call(self, op: ast.operator, left: ast.expr, right: ast.expr) -> ast.Call:
        return ast.Call(func=ast.Name(id=self.CALLS[type(op)], ctx=ast.Load()), args=[left, right], keywords=[])


def _limited(action: Callable[[], Any]) -> Any:
    """The action's result, if it stays below the limits; steps are counted in the examined text alone."""
    steps = 0
    end = monotonic() + MAX_SECONDS

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if frame.f_code.co_filename != FILE:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            if steps > MAX_STEPS or monotonic() > end:
                raise Refused("too many steps")
            for value in frame.f_locals.values():
                _examine_size(value)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return action()
    finally:
        sys.settrace(before)


def _examine_size(value: Any) -> Any:
    if isinstance(value, int):
        size = value.bit_length()
    else:
        size = len(value) if isinstance(value, str | list | tuple | dict | set) else 0
    if size > MAX_SIZE:
        raise Refused("a large value")
    return value


def _times(a: Any, b: Any) -> Any:
    for sequence, count in ((a, b), (b, a)):
        if isinstance(sequence, str | list | tuple) and isinstance(count, int) and len(sequence) * count > MAX_SIZE:
            raise Refused("a large value")
    return a * b


def _power(a: Any, b: Any, modulus: int | None = None) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() * abs(b) > MAX_SIZE:
        raise Refused("a large value")
    return pow(a, b, modulus)


def _range(*bounds: int) -> range:
    found = range(*bounds)
    if len(found) > MAX_SIZE:
        raise Refused("a long range")
    return found


BUILTINS: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(abs, all, any, bin, bool, chr, dict, divmod, enumerate, filter, float, int, isinstance, len, list, map, max),
        *(min, ord, reversed, round, set, sorted, str, sum, tuple, zip, ValueError),
    )
} | {"range": _range, "pow": _power}
