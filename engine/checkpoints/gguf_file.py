"""Read the metadata and tensor positions of GGUF files.

The reader of the `gguf` library makes numpy views of every string, which takes seconds for 150,000 tokens.
"""

import math
import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType

from engine.errors import ModelError
from engine.quantised.formats import GGUF_FORMATS

ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
_FLOATS = ("F32", "F16", "BF16", "F64")
READABLE_TYPES = (*_FLOATS, *GGUF_FORMATS)
_NUMBERS = {
    GGUFValueType.UINT8: "B", GGUFValueType.INT8: "b", GGUFValueType.UINT16: "H", GGUFValueType.INT16: "h",
    GGUFValueType.UINT32: "I", GGUFValueType.INT32: "i", GGUFValueType.FLOAT32: "f", GGUFValueType.BOOL: "?",
    GGUFValueType.UINT64: "Q", GGUFValueType.INT64: "q", GGUFValueType.FLOAT64: "d",
}  # fmt: skip
_VERSIONS = (2, 3)
_MAX_DIMENSIONS = 4
_MOST_VALUES = 2_000_000  # values of a list, at most: a token of the vocabulary takes some 340 bytes of memory
_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """A tensor in a mapped file. `shape` is in torch's order, outputs first."""

    name: str
    type: str
    shape: tuple[int, ...]
    memory: mmap.mmap  # the mapped file
    begin: int  # in bytes
    size: int

    @property
    def is_packed(self) -> bool:
        return self.type not in _FLOATS

    def release(self) -> None:
        """Return the tensor's memory pages to the system. Later reads load them again."""
        begin = -(-self.begin // mmap.PAGESIZE) * mmap.PAGESIZE
        length = (self.begin + self.size - begin) // mmap.PAGESIZE * mmap.PAGESIZE
        if length > 0 and hasattr(mmap, "MADV_DONTNEED"):
            self.memory.madvise(mmap.MADV_DONTNEED, begin, length)


class GgufFile:
    """Metadata `fields` and `tensors` by name, of one file or all shards. Raises ModelError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fields: dict[str, Any] = {}
        self.used = set[str]()  # fields that were read
        self.tensors: dict[str, GgufTensor] = {}
        for shard in _shards(path):
            fields, tensors = _HeaderReader(shard).read()
            self.fields = self.fields or fields
            for tensor in tensors:
                if tensor.name in self.tensors:
                    raise ModelError(f"{shard.name} has the tensor {tensor.name} a second time")
                self.tensors[tensor.name] = tensor

    def field(self, name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """Return a metadata value of type `kind`, or `default`. Raises ModelError."""
        self.used.add(name)
        value = self.fields.get(name, default)
        if value is not None and not isinstance(value, kind):
            raise ModelError(f"{self.path.name}: {name} is {value!r}; it must be {_type_names(kind)}")
        return value

    def listed(self, name: str, kind: type) -> list[Any]:
        """Return a metadata list of values of type `kind`, or []. Raises ModelError."""
        values: list[Any] = self.field(name, list, [])
        if values and not isinstance(values[0], kind):
            raise ModelError(f"{self.path.name}: {name} contains {values[0]!r}; values must be {_type_names(kind)}")
        return values


def _type_names(kind: type | tuple[type, ...]) -> str:
    return " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))


def _shards(path: Path) -> list[Path]:
    """Return all files of a split model, or the only file. Raises ModelError."""
    named = _SHARD.fullmatch(path.name)
    if named is None:
        return [path]
    count = int(named[3])
    paths = [path.with_name(f"{named[1]}-{i:05d}-of-{count:05d}.gguf") for i in range(1, count + 1)]
    missing = [shard.name for shard in paths if not shard.is_file()]
    if missing or not paths:
        raise ModelError(f"{path.parent} lacks {', '.join(missing[:3])}: all {count} files of a split model are needed")
    return paths


class _HeaderReader:
    def __init__(self, path: Path) -> None:
        self._path, self._position = path, 0
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except (OSError, ValueError) as error:  # an empty file is a ValueError
            raise ModelError(f"cannot read {path}: {error}") from None

    def read(self) -> tuple[dict[str, Any], list[GgufTensor]]:
        try:
            return self._read()
        except (struct.error, IndexError, OverflowError):
            raise self._error("ends within its header; is the download complete?") from None
        except ValueError as error:
            raise self._error(f"has a damaged header ({error})") from None

    def _read(self) -> tuple[dict[str, Any], list[GgufTensor]]:
        if self._data[:4] != b"GGUF":
            raise self._error("is not a GGUF file: it does not start with GGUF")
        self._position = 4
        version, tensors, fields = self._read_numbers("IQQ")
        if version not in _VERSIONS:
            raise self._error(f"is GGUF version {version}; supported: 2 and 3, little-endian")
        metadata = {self._read_string(): self._read_value(*self._read_numbers("I")) for _ in range(fields)}
        described = [self._read_tensor_info() for _ in range(tensors)]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise self._error(f"has general.alignment {alignment!r}; it must be a whole number of at least 1")
        begin = -(-self._position // alignment) * alignment
        return metadata, [self._make_tensor(*tensor, begin) for tensor in described]

    def _read_tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        name, (dimensions,) = self._read_string(), self._read_numbers("I")
        if dimensions > _MAX_DIMENSIONS:
            raise self._error(f"has {name} with {dimensions} dimensions; at most {_MAX_DIMENSIONS} are possible")
        *shape, kind, offset = self._read_numbers(f"{dimensions}QIQ")
        return name, tuple(reversed(shape)), kind, offset

    def _make_tensor(self, name: str, shape: tuple[int, ...], kind: int, offset: int, begin: int) -> GgufTensor:
        known = {member.value: member.name for member in GGMLQuantizationType}
        type = known.get(kind, f"type {kind}")
        if type not in READABLE_TYPES:
            raise self._error(f"has {name} in {type}, which is not supported; supported: {', '.join(READABLE_TYPES)}")
        block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[type]]
        weights = math.prod(shape)
        if not shape or shape[-1] % block or (type not in _FLOATS and len(shape) != 2):
            raise self._error(f"has {name} {list(shape)} in {type}, whose rows must be multiples of {block}")
        size = weights // block * block_bytes
        if begin + offset + size > len(self._data):
            raise self._error(f"ends within {name}; is the download complete?")
        return GgufTensor(name, type, shape, self._data, begin + offset, size)

    def _read_value(self, kind: int) -> Any:
        if kind == GGUFValueType.STRING:
            return self._read_string()
        if kind != GGUFValueType.ARRAY:
            return self._read_numbers(_NUMBERS[GGUFValueType(kind)])[0]
        kind, count = self._read_numbers("IQ")
        if _MOST_VALUES < count <= len(self._data):
            raise self._error(f"has a list of {count:,} values in its metadata; at most {_MOST_VALUES:,} are supported")
        if kind == GGUFValueType.STRING:
            return self._read_strings(count)
        if kind == GGUFValueType.ARRAY:
            raise self._error("has nested lists in its metadata, which are not supported")
        return list(self._read_numbers(f"{count}{_NUMBERS[GGUFValueType(kind)]}"))

    def _read_numbers(self, letters: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{letters}", self._data, self._position)
        self._position += struct.calcsize(f"<{letters}")
        return values

    def _read_string(self) -> str:
        return self._read_strings(1)[0]

    def _read_strings(self, count: int) -> list[str]:
        """Read strings. The loop is optimised: vocabularies have hundreds of thousands of strings."""
        data, at, length_at, strings = self._data, self._position, struct.Struct("<Q").unpack_from, list[str]()
        for _ in range(count):
            (length,) = length_at(data, at)
            at += 8 + length
            text = data[at - length : at]
            if len(text) != length:
                raise IndexError
            strings.append(text.decode("utf-8", "replace"))
        self._position = at
        return strings

    def _error(self, what: str) -> ModelError:
        return ModelError(f"{self._path} {what}")
