"""Weights in the safetensors files of a checkpoint. Names and shapes are checked before any tensor is read."""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.architecture.spec import naming, read_json
from engine.errors import ModelError
from engine.quantised.config import Quantisation
from engine.quantised.packed import PackedRows, dequantise
from engine.quantised.tensors import shapes_match

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"
_DTYPES = ("F64", "F32", "F16", "BF16")
# Ignored: RoPE frequencies of old checkpoints, and the head of tied ones.
_INVERSE_FREQUENCIES = "rotary_emb.inv_freq"
# Scales of attention in FP8 and of its cache, as quantisers name them.
_CACHE_SCALE = re.compile(r"\.self_attn\.([\w.]+\.)?(q|k|v|kv|kv_cache|prob|prob_output|output)_(scale|zero_point)$")
log = logging.getLogger("knapserve.engine")


class SafetensorsWeights:
    """`CheckpointWeights` of safetensors files. Raises ModelError for missing, damaged and unexpected tensors."""

    interleaved = False

    def __init__(
        self, directory: Path, expected: dict[str, tuple[int, ...]], quantisation: Quantisation | None = None
    ) -> None:
        self._directory = directory
        self._files: dict[str, Path] = {}
        self._expected, self._quantisation = expected, quantisation or Quantisation("none", ())
        plain, stored, optional = set[str](), dict[str, tuple[int, ...]](), set[str]()
        for name, shape in expected.items():
            parts = self._quantisation.expected(name, shape)
            if parts is None:
                plain.add(name)
            else:
                optional |= (self._quantisation.expected(name, shape, required=False) or {}).keys()
            stored |= {name: shape} if parts is None else parts
        unused = 0
        for name, path, shape, dtype in _headers(directory):
            if _CACHE_SCALE.search(name):
                unused += 1
                continue
            if (name == "lm_head.weight" and name not in stored) or name.endswith(_INVERSE_FREQUENCIES):
                continue
            if name in self._files:
                raise ModelError(f"{directory} has {name} twice: in {self._files[name].name} and in {path.name}")
            self._files[name] = path
            fits = shape == expected[name] if name in plain else shapes_match(shape, stored.get(name, shape))
            if not fits:
                raise ModelError(f"{name} in {path.name} is {list(shape)}, not {list(stored[name])}")
            if name in plain and dtype not in _DTYPES:
                unsupported = f"{name} in {path.name} is {dtype}, and config.json has no quantization_config"
                raise ModelError(f"{unsupported}; supported: {', '.join(_DTYPES)}")
        if unused:
            log.warning("%d scales of an FP8 K/V cache are not used: the cache keeps 16 or 32 bits", unused)
        for kind, names in (
            ("lacks", sorted(set(stored) - set(self._files))),
            ("has unexpected", sorted(set(self._files) - set(stored) - optional)),
        ):
            if names:
                raise ModelError(f"{directory} {kind} {len(names)} tensors, first {names[0]}")

    def packed_rows(self, name: str) -> PackedRows | None:
        """Return a quantised matrix, or None if it is not quantised."""
        shape = self._expected[name]
        if self._quantisation.expected(name, shape) is None:
            return None
        biased = name.removesuffix("weight") + "bias" in self._expected
        out, inputs = shape
        with naming(self._directory):
            return self._quantisation.read(name, (out, inputs), self._tensor, self._files.__contains__, biased=biased)

    def release(self, name: str) -> None:
        """Do nothing: the file is mapped for each tensor separately."""

    def mapped(self, name: str) -> Tensor:
        """Return the floats of a tensor. Those of a mapped file do not count as memory of this process."""
        packed = self.packed_rows(name)
        return self._tensor(name) if packed is None else dequantise(packed)

    def _tensor(self, name: str) -> Tensor:
        path = self._files[name]
        try:
            with safe_open(path, framework="pt") as file:
                tensor: Tensor = file.get_tensor(name)
        except (SafetensorError, OSError, RuntimeError) as error:
            raise ModelError(f"cannot read {name} from {path}: {error}") from None
        return tensor


def _headers(directory: Path) -> Iterator[tuple[str, Path, tuple[int, ...], str]]:
    for path in _find_files(directory):
        if not os.path.isfile(path):  # also where the system refuses the name
            raise ModelError(f"{directory} has no {path.name}{_hint_on_other_formats(directory)}")
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - not a mapping
                    piece = file.get_slice(name)
                    yield name, path, tuple(piece.get_shape()), str(piece.get_dtype())
        except (SafetensorError, OSError, RuntimeError) as error:
            raise ModelError(f"cannot read {path}: {error}; is the download complete?") from None


def _find_files(directory: Path) -> list[Path]:
    index = directory / _INDEX
    if not index.exists():
        return [directory / _SINGLE]
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict):
        raise ModelError(f"{index}: weight_map must be an object with the file of each tensor")
    names = {str(name) for name in places.values()}
    strange = sorted(name for name in names if Path(name).name != name or not name.endswith(".safetensors"))
    if strange or not names:
        raise ModelError(f"{index} names {strange[0] if strange else 'no file'}, which is not a safetensors file")
    return sorted(directory / name for name in names)


def _hint_on_other_formats(directory: Path) -> str:
    """Return the end of an error message if the directory has another format of weights."""
    others = {
        "gguf": "a GGUF file (give --model its path)",
        "bin": "PyTorch's .bin files",
        "pth": "PyTorch's .pth files",
    }
    found = [what for ending, what in others.items() if any(directory.glob(f"*.{ending}"))]
    return f", only {found[0]}; supported: safetensors files" if found else ""
