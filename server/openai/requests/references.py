"""References within JSON schemas: pointers, `$id` and `$anchor`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urljoin

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LONGEST_ADDRESS = 300  # characters; joined ones add up
Resolver = Callable[[str], Any]


def resolver(root: object) -> Resolver:
    """Return a function from a reference to the part of the schema `root` that it names, or None.

    References are relative to the schema's own `$id`, not to those of its parts.
    """
    named: dict[str, Any] = {"": root, "#": root}
    stack = [(root, "")]  # parts, with the addresses that theirs are relative to
    while stack:
        part, base = stack.pop()
        if isinstance(part, dict):
            if isinstance(name := part.get("$id"), str):
                named.setdefault(name, part)
                if len(name) <= _LONGEST_ADDRESS:
                    base = _join(base, name.partition("#")[0])
                    named.setdefault(base, part)
            for name in (part.get("$anchor"), part.get("$dynamicAnchor")):
                if isinstance(name, str):
                    named.setdefault(f"#{name}", part)
                    named.setdefault(f"{base}#{name}", part)
        stack += [(inner, base) for inner in _inside(part)]
    name = root.get("$id") if isinstance(root, dict) else None
    start = _join("", name.partition("#")[0]) if isinstance(name, str) else ""

    def resolve(reference: str) -> Any:
        address, _, pointer = reference.partition("#")
        joined = _join(start, address)
        if reference in named or (pointer and not pointer.startswith("/")):
            return named.get(reference, named.get(f"{joined}#{pointer}"))
        return _follow(named.get(address, named.get(joined)), pointer)

    return resolve


def _join(base: str, address: str) -> str:
    """Return an absolute address; the same one if it would be long, or if it is none."""
    if len(base) + len(address) > _LONGEST_ADDRESS:
        return address
    try:
        return urljoin(base, address)
    except ValueError:
        return address


def _follow(target: Any, pointer: str) -> Any:
    """Return the part of `target` that a JSON pointer names, or None."""
    for name in pointer.split("/")[1:]:
        name = unquote(name).replace("~1", "/").replace("~0", "~")
        if isinstance(target, list):
            index = int(name) if name.isdecimal() and len(name) < 10 else len(target)
            target = target[index] if index < len(target) else None
        else:
            target = target.get(name) if isinstance(target, dict) else None
    return target


def _inside(part: object) -> Iterable[Any]:
    return part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


def objects_in(root: object) -> Iterator[dict[str, Any]]:
    """Yield all objects in a schema, those in constants too."""
    stack = [root]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            yield part
        stack += _inside(part)
