"""Functions in engine/ that take or return tensors document their shapes, as in `x [rows, hidden]`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support import REPOSITORY as ROOT

_SHAPE = re.compile(r"(?<![\w\])])\[[^\]]+\]")  # not an index, as in `plans[r]`
_TENSOR = re.compile(r"\bTensor\b")
_ANY_SHAPE = {
    "engine/backends/native/linear.py: _address": "takes a tensor of any shape",
    "engine/checkpoints/safetensors_weights.py: SafetensorsWeights._tensor": "reads a tensor of any shape",
    "engine/model/decoder.py: ModelWeights.matrices": "returns memory, whose form only the backend knows",
    "engine/model/linear.py: Linear.weights": "returns memory, whose form only the backend knows",
}


def functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def handles_tensors(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = [node.annotation for node in ast.walk(function.args) if isinstance(node, ast.arg)]
    return any(_TENSOR.search(ast.unparse(node)) for node in (*arguments, function.returns) if node)


def documents_shapes(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> bool:
    signature = lines[function.lineno - 1 : max(function.lineno, function.body[0].lineno - 1)]
    comments = [line.partition("#")[2] for line in signature]
    return any(_SHAPE.search(text) for text in (ast.get_docstring(function) or "", *comments))


def only_stores(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method is an `__init__` that calls nothing but the base class's."""
    calls = [ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
    return function.name == "__init__" and set(calls) <= {"super", "super().__init__"}


@dataclass(frozen=True, slots=True)
class _Class:
    bases: tuple[str, ...]
    methods: frozenset[str]
    members: frozenset[str]  # methods and attributes
    documented: frozenset[str]  # methods with shapes


def described(node: ast.ClassDef, lines: list[str]) -> _Class:
    """Describe a class without its bases."""
    bases = tuple(ast.unparse(base).partition("[")[0] for base in node.bases)
    methods = list(functions(node.body))
    names = frozenset(method.name for method in methods)
    stored = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    stored |= {n.id for item in node.body for n in ast.iter_child_nodes(item) if isinstance(n, ast.Name)}
    return _Class(bases, names, names | stored, frozenset(m.name for m in methods if documents_shapes(m, lines)))


def ancestry(name: str, classes: dict[str, _Class]) -> list[_Class]:
    """Return a class and all its bases in engine/."""
    own = classes[name]
    return [own, *(each for base in own.bases if base in classes for each in ancestry(base, classes))]


def inherited(name: str, classes: dict[str, _Class]) -> set[str]:
    """Return the methods whose shapes a base class documents, or a protocol that the class has all methods of."""
    own = ancestry(name, classes)
    members = frozenset[str]().union(*(each.members for each in own))
    found = set[str]().union(*(each.documented for each in own[1:]))
    for protocol in (name for name, each in classes.items() if "Protocol" in each.bases):
        parts = ancestry(protocol, classes)
        if all(part.methods <= members for part in parts):
            found = found.union(*(part.documented for part in parts))
    return found


def undocumented(root: Path) -> Iterator[str]:
    """Yield functions without shapes. The docstring of a class serves its `__init__` too."""
    texts = {path: path.read_text("utf-8") for path in sorted(root.rglob("*.py"))}
    files = {path.relative_to(root.parent).as_posix(): (ast.parse(t).body, t.splitlines()) for path, t in texts.items()}
    nodes = [(path, node, lines) for path, (body, lines) in files.items() for node in body]
    classes = {node.name: described(node, lines) for _, node, lines in nodes if isinstance(node, ast.ClassDef)}
    for path, (body, lines) in files.items():
        for function in functions(body):
            if handles_tensors(function) and not documents_shapes(function, lines):
                yield f"{path}: {function.name}"
    for path, node, lines in nodes:
        if isinstance(node, ast.ClassDef):
            known = inherited(node.name, classes)
            if _SHAPE.search(ast.get_docstring(node) or ""):
                known.add("__init__")
            for method in functions(node.body):
                exempt = method.name in known or only_stores(method) or documents_shapes(method, lines)
                if handles_tensors(method) and not exempt:
                    yield f"{path}: {node.name}.{method.name}"


def test_functions_of_tensors_document_shapes() -> None:
    assert set(undocumented(ROOT / "engine")) == set(_ANY_SHAPE)
