"""References within JSON schemas: pointers, `$id` and `$anchor`."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urljoin

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LONGEST_ADDRESS = 300  # characters; without a limit, nested relative addresses grow quadratically


class References:
    """The parts of a schema by their addresses."""

    def __init__(self, root: object) -> None:
        """Read the `$id`, `$anchor` and `$dynamicAnchor` of all parts."""
        self._named: dict[str, Any] = {"": root}
        self._bases: dict[int, str] = {}  # address that a part's references are relative to, by the part's identity
        self.parts: list[dict[str, Any]] = []  # all objects, those in constants too
        stack = [(root, "")]
        while stack:
            part, base = stack.pop()
            if isinstance(part, dict):
                self.parts.append(part)
                if isinstance(part.get("$id"), str):
                    base = _join(base, part["$id"])
                    self._named.setdefault(base.removesuffix("#"), part)
                    base = base.partition("#")[0]
                for anchor in (part.get("$anchor"), part.get("$dynamicAnchor")):
                    if isinstance(anchor, str):
                        self._named.setdefault(f"{base}#{anchor}", part)
                self._bases[id(part)] = base
            stack += [(inner, base) for inner in inside(part)]
        self._root_base = self._bases.get(id(root), "")

    def target(self, part: Mapping[str, Any], key: str) -> Any:
        """Return what the reference under `key` names, or None. For a part of no schema, it is relative to the root."""
        if not isinstance(reference := part[key], str):
            return None
        address = _join(self._bases.get(id(part), self._root_base), reference)
        if address in self._named:
            return self._named[address]
        address, _, pointer = address.partition("#")
        found = self._named.get(address)
        for name in pointer.split("/")[1:]:
            name = unquote(name).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                index = int(name) if name.isdecimal() and len(name) < 10 else len(found)
                found = found[index] if index < len(found) else None
            else:
                found = found.get(name) if isinstance(found, dict) else None
        return found if not pointer or pointer.startswith("/") else None

    def inside(self, part: object) -> list[Any]:
        """Return what is directly in an object or a list, and what its references name."""
        targets = [self.target(part, key) for key in REFERENCES if key in part] if isinstance(part, dict) else []
        return inside(part) + targets


def _join(base: str, address: str) -> str:
    """Return an absolute address; the same one if it would be long, or if it is none."""
    if len(base) + len(address) > _LONGEST_ADDRESS:
        return address
    try:
        return urljoin(base, address)
    except ValueError:
        return address


def inside(part: object) -> list[Any]:
    """Return what is directly in an object or a list."""
    if isinstance(part, dict):
        return [*part.values()]
    return part if isinstance(part, list) else []
