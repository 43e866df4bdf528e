"""The formats of structural tags: XGrammar's (`{"format": …}`), and the older ones of vLLM (`{"structures": …}`)."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, ConfigDict, Field

from server.edge.reading import RequestModel

Marker = Annotated[str, Field(min_length=1)]
Markers = Annotated[list[Marker], Field(min_length=1)]
Tags = Annotated[list["Tag"], Field(min_length=1)]


class _Strict(RequestModel):
    model_config = ConfigDict(extra="forbid")


class ConstString(_Strict):
    type: Literal["const_string"]
    value: str


class JsonSchema(_Strict):
    type: Literal["json_schema"]
    json_schema: dict[str, Any] | bool
    style: str = "json"


class Regex(_Strict):
    type: Literal["regex"]
    pattern: Marker


class AnyText(_Strict):
    type: Literal["any_text"]
    excludes: list[Marker] = Field(default=[], validation_alias=AliasChoices("excludes", "excluded_str"))


class Combined(_Strict):
    type: Literal["sequence", "or"]
    elements: Annotated[list["Format"], Field(min_length=1)]


class Tag(_Strict):
    type: Literal["tag"] = "tag"
    begin: str
    content: "Format"
    end: str | Markers


class _Repeated(_Strict):
    tags: Tags
    at_least_one: bool = False
    stop_after_first: bool = False


class TriggeredTags(_Repeated):
    type: Literal["triggered_tags"]
    triggers: Annotated[list[Marker], Field(min_length=1, max_length=128)]
    excludes: list[Marker] = Field(default=[])


class TagsWithSeparator(_Repeated):
    type: Literal["tags_with_separator"]
    separator: str


Format = Annotated[
    ConstString | JsonSchema | Regex | AnyText | Combined | Tag | TriggeredTags | TagsWithSeparator,
    Field(discriminator="type"),
]


class StructuralTag(_Strict):
    type: Literal["structural_tag"] = "structural_tag"
    format: Format


def newer(tag: dict[str, Any]) -> dict[str, Any]:
    """Return a structural tag in XGrammar's format, if it has the older one."""
    structures = tag.get("structures")
    if not isinstance(structures, list):
        return tag
    tags = [_newer_tag(structure) if isinstance(structure, dict) else structure for structure in structures]
    rest = {name: value for name, value in tag.items() if name not in ("type", "structures")}
    return {"format": rest | {"type": "triggered_tags", "tags": tags}}


def _newer_tag(structure: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in structure.items() if name != "schema"}
    return rest | {"content": {"type": "json_schema", "json_schema": structure.get("schema")}}
