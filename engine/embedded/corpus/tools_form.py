"""What a tool is made of: names to choose from, kinds of values, requests and a sentence on its result.

`a|b` in names are alternatives, drawn anew for each conversation, so that they have to be read from the schema; the
first is the slot's name in requests and sentences. Requests are separated by " / ".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.embedded.corpus.base import Draw, Phrases, phrases
from engine.embedded.corpus.tools_values import Kind
from engine.embedded.corpus.wordings import wordings

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Slot:
    name: str
    names: tuple[str, ...]
    kind: Kind


@dataclass(frozen=True)
class Tool:
    """`group`: tools of one group may fit the same request. `compute` gives results that depend on the arguments."""

    group: str
    names: tuple[str, ...]
    description: str
    parameters: tuple[Slot, ...]
    requests: Phrases
    results: tuple[Slot, ...]
    sentence: str
    optional: Mapping[str, Phrases] = field(default_factory=dict)
    compute: Callable[[Draw, Arguments], Arguments] | None = None
    fixed: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_lookup(self) -> bool:
        """One text in, a value out: can be asked for a second text by naming that alone."""
        required = [slot for slot in self.parameters if slot.name not in self.optional]
        return (
            len(required) == 1
            and required[0].kind.type == "string"
            and not required[0].kind.enum
            and not required[0].kind.free
            and (bool(self.results) or self.compute is not None)
        )


def slots(kinds: Mapping[str, Kind]) -> tuple[Slot, ...]:
    return tuple(Slot(names.split("|")[0], tuple(names.split("|")), kind) for names, kind in kinds.items())


def known(
    group: str,
    names: str,
    description: str,
    parameters: Mapping[str, Kind],
    requests: str,
    sentence: str,
    results: Mapping[str, Kind] | None = None,
    optional: Mapping[str, Phrases] | None = None,
    compute: Callable[[Draw, Arguments], Arguments] | None = None,
) -> Tool:
    return Tool(
        group,
        tuple(names.split("|")),
        description,
        slots(parameters),
        phrases(requests, more=wordings(f"tools.{names.split('|')[0]}")),
        slots(results or {}),
        sentence,
        optional or {},
        compute,
    )
