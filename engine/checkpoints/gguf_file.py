"""GGUF files: metadata and where tensors lie. The container is read here, what it means with the `gguf` library.

The library's own reader makes numpy views of every string, which takes seconds for a vocabulary of 150,000 tokens.
"""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType

from engine.errors import ModelError
from engine.quantised.formats import GGUF_FORMATS

_FLOATS = ("F32", "F16", "BF16", "F64")
READ = (*_FLOATS, *GGUF_FORMATS)
_NUMBERS = {
    GGUFValueType.UINT8: "B", GGUFValueType.INT8: "b", GGUFValueType.UINT16: "H", GGUFValueType.INT16: "h",
    GGUFValueType.UINT32: "I", GGUFValueType.INT32: "i", GGUFValueType.FLOAT32: "f", GGUFValueType.BOOL: "?",
    GGUFValueType.UINT64: "Q", GGUFValueType.INT64: "q", GGUFValueType.FLOAT64: "d",
}  # fmt: skip
_VERSIONS = (2, 3)
_MOST_DIMENSIONS = 4
_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """`shape` in torch's order, the output first."""

    name: str
    type: str
    shape: tuple[int, ...]
    file: _Mapped
    begin: int  # in bytes
    size: int

    @property
    def is_packed(self) -> bool:
        return self.type not in _FLOATS

    def release(self) -> None:
        """Let the system have the memory back, which the file can be read into again."""
        begin = -(-self.begin // mmap.PAGESIZE) * mmap.PAGESIZE
        length = (self.begin + self.size - begin) // mmap.PAGESIZE * mmap.PAGESIZE
        if length > 0 and hasattr(mmap, "MADV_DONTNEED"):
            self.file.memory.madvise(mmap.MADV_DONTNEED, begin, length)


class Gguf:
    """Metadata `fields` and `tensors` by name, of one file or of all shards. Raises ModelError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fields: dict[str, Any] = {}
        self.tensors: dict[str, GgufTensor] = {}
        for shard in _shards(path):
            fields, tensors = _Header(shard).read()
            self.fields = self.fields or fields
            for tensor in tensors:
                if tensor.name in self.tensors:
                    raise ModelError(f"{shard.name} has the tensor {tensor.name} a second time")
                self.tensors[tensor.name] = tensor

    def field(self, name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """A value of the metadata, `default` where there is none."""
        value = self.fields.get(name, default)
        if value is not None and not isinstance(value, kind):
            raise ModelError(f"{self.path.name}: {name} is {value!r}, which makes no sense")
        return value

    def listed(self, name: str, kind: type) -> list[Any]:
        """A list of the metadata, which has one kind of value; [] where there is none."""
        values: list[Any] = self.field(name, list, [])
        if values and not isinstance(values[0], kind):
            raise ModelError(f"{self.path.name}: {name} has {values[0]!r}, which makes no sense")
        return values


def _shards(path: Path) -> list[Path]:
    """The file, or all of those that it is one of."""
    named = _SHARD.fullmatch(path.name)
    if named is None:
        return [path]
    count = int(named[3])
    paths = [path.with_name(f"{named[1]}-{i:05d}-of-{count:05d}.gguf") for i in range(1, count + 1)]
    missing = [shard.name for shard in paths if not shard.is_file()]
    if missing or not paths:
        raise ModelError(f"{path.parent} lacks {', '.join(missing[:3])}: all {count} files of a split model are needed")
    return paths


class _Mapped:
    """A file in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except (OSError, ValueError) as error:  # an empty file is a ValueError
            raise ModelError(f"cannot read {path}: {error}") from None


class _Header:
    """What comes before the tensors' data."""

    def __init__(self, path: Path) -> None:
        self._file = _Mapped(path)
        self._data = self._file.memory
        self._at = 0
        self._path = path

    def read(self) -> tuple[dict[str, Any], list[GgufTensor]]:
        try:
            return self._read()
        except (struct.error, IndexError, OverflowError):
            raise self._error("ends in the middle of its header: is the download complete?") from None
        except (UnicodeDecodeError, ValueError) as error:
            raise self._error(f"has a damaged header ({error})") from None

    def _read(self) -> tuple[dict[str, Any], list[GgufTensor]]:
        if self._data[:4] != b"GGUF":
            raise self._error("is not a GGUF file: it does not begin with GGUF")
        self._at = 4
        version, tensors, fields = self._number("I"), self._number("Q"), self._number("Q")
        if version not in _VERSIONS:
            raise self._error(f"is GGUF version {version}; read: 2 and 3, little-endian")
        metadata = {self._string(): self._value(GGUFValueType(self._number("I"))) for _ in range(fields)}
        described = [self._tensor() for _ in range(tensors)]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise self._error(f"says general.alignment {alignment!r}")
        begin = -(-self._at // alignment) * alignment
        return metadata, [self._placed(*tensor, begin) for tensor in described]

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name, dimensions = self._string(), self._number("I")
        if dimensions > _MOST_DIMENSIONS:
            raise self._error(f"has {name} of {dimensions} dimensions")
        shape = tuple(self._number("Q") for _ in range(dimensions))[::-1]
        return name, shape, self._number("I"), self._number("Q")

    def _placed(self, name: str, shape: tuple[int, ...], kind: int, offset: int, begin: int) -> GgufTensor:
        known = {member.value: member.name for member in GGMLQuantizationType}
        type = known.get(kind, f"type {kind}")
        if type not in READ:
            raise self._error(f"has {name} in {type}, which is not read; read: {', '.join(READ)}")
        block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[type]]
        weights = int(np.prod(shape, dtype=object))
        if not shape or shape[-1] % block or (type not in _FLOATS and len(shape) != 2):
            raise self._error(f"has {name} {list(shape)} in {type}, whose rows are blocks of {block}")
        size = weights // block * block_bytes
        if begin + offset + size > len(self._data):
            raise self._error(f"ends before {name} does: is the download complete?")
        return GgufTensor(name, type, shape, self._file, begin + offset, size)

    def _value(self, kind: GGUFValueType) -> Any:
        if kind == GGUFValueType.STRING:
            return self._string()
        if kind != GGUFValueType.ARRAY:
            return self._number(_NUMBERS[kind])
        kind, count = GGUFValueType(self._number("I")), self._number("Q")
        if kind == GGUFValueType.STRING:
            return self._strings(count)
        if kind == GGUFValueType.ARRAY:
            raise self._error("has lists of lists in its metadata")
        letter = _NUMBERS[kind]
        values = struct.unpack_from(f"<{count}{letter}", self._data, self._at)
        self._at += count * struct.calcsize(letter)
        return list(values)

    def _number(self, letter: str) -> Any:
        (value,) = struct.unpack_from(f"<{letter}", self._data, self._at)
        self._at += struct.calcsize(f"<{letter}")
        return value

    def _string(self) -> str:
        return self._strings(1)[0]

    def _strings(self, count: int) -> list[str]:
        """Vocabularies have hundreds of thousands: the one loop here that takes a while."""
        data, at, length_at, found = self._data, self._at, struct.Struct("<Q").unpack_from, list[str]()
        for _ in range(count):
            (length,) = length_at(data, at)
            at += 8 + length
            text = data[at - length : at]
            if len(text) != length:
                raise IndexError
            found.append(text.decode("utf-8", "surrogateescape"))
        self._at = at
        return found

    def _error(self, what: str) -> ModelError:
        return ModelError(f"{self._path} {what}")
