"""References within JSON schemas: pointers, `$id` and `$anchor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
Resolver = Callable[[str], Any]


def resolver(root: object) -> Resolver:
    """Return a function from a reference to the part of the schema `root` that it names, or None."""
    named: dict[str, Any] = {"#": root}
    for part in objects_in(root):
        for key, prefix in (("$id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")):
            if isinstance(part.get(key), str):
                named.setdefault(prefix + part[key], part)

    def resolve(reference: str) -> Any:
        if reference in named or not reference.startswith("#/"):
            return named.get(reference)
        target: Any = root
        for name in reference[2:].split("/"):
            name = unquote(name).replace("~1", "/").replace("~0", "~")
            if isinstance(target, list):
                index = int(name) if name.isdecimal() and len(name) < 10 else len(target)
                target = target[index] if index < len(target) else None
            else:
                target = target.get(name) if isinstance(target, dict) else None
        return target

    return resolve


def objects_in(root: object) -> Iterator[dict[str, Any]]:
    """Yield all objects in a schema, those in constants too."""
    stack = [root]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            yield part
            stack += part.values()
        elif isinstance(part, list):
            stack += part
