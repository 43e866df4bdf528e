"""References within JSON schemas: pointers from the root, and the names that `$id` and `$anchor` give to parts."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class References:
    """The parts of a schema by their addresses."""

    def __init__(self, root: object) -> None:
        self._named: dict[str, Any] = {"": root, "#": root}
        stack = [root]
        while stack:
            part = stack.pop()
            stack += inside(part)
            if isinstance(part, dict):
                for key, prefix in (("$id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")):
                    if isinstance(part.get(key), str):
                        self._named.setdefault(prefix + part[key], part)

    def target(self, part: Mapping[str, Any], key: str) -> Any:
        """Return what the reference under `key` names, or None."""
        if not isinstance(address := part[key], str):
            return None
        if address in self._named:
            return self._named[address]
        document, _, pointer = address.partition("#/")
        found = self._named.get(document) if pointer else None
        for name in pointer.split("/"):
            name = unquote(name).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                index = int(name) if name.isdecimal() and len(name) < 10 else len(found)
                found = found[index] if index < len(found) else None
            else:
                found = found.get(name) if isinstance(found, dict) else None
        return found


def inside(part: object) -> list[Any]:
    """Return what is directly in an object or a list."""
    if isinstance(part, dict):
        return [*part.values()]
    return part if isinstance(part, list) else []
