"""The sources of models: checkpoints, GGUF files and synthetic shapes."""

import hashlib
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import torch

from engine.architecture.spec import load_spec, naming, read_generation_config, read_json
from engine.checkpoints import shapes, synthetic
from engine.checkpoints.generation import sampling_defaults
from engine.checkpoints.hub import SAMPLE, SYNTHETIC, display_name, resolve
from engine.checkpoints.safetensors_weights import SafetensorsWeights
from engine.errors import ConfigError
from engine.model.backend import Backend
from engine.model.decoder import ModelWeights
from engine.model.weights import Progress, expected_tensors, load_weights
from engine.quantised.config import parse_quantisation
from engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from engine.checkpoints.gguf_source import GgufSource

# A model before its weights are loaded. All have the public members of `CheckpointSource`.
Source: TypeAlias = "CheckpointSource | SyntheticSource | GgufSource"


class CheckpointSource:
    """A Hugging Face checkpoint. Raises ModelError for missing files and unsupported models.

    `packing` names the formats of packed matrices ("" for floats); `packed_bytes` is their size as published.
    """

    gguf_path: Path | None = None  # None: not a GGUF file

    def __init__(self, directory: Path, name: str, *, defaults: bool) -> None:
        """`defaults`: use the sampling parameters of generation_config.json."""
        self.directory = directory
        self.name = name
        self.spec = load_spec(directory)
        with naming(directory / "config.json"):
            self._quantisation = parse_quantisation(read_json(directory / "config.json"))
        self.packing = "" if self._quantisation is None else self._quantisation.label
        self.sampling_defaults = sampling_defaults(directory) if defaults else ()
        self.tokenizer = Tokenizer.from_directory(directory)
        # Only the tokenizer's config names the end-of-turn token of many fine-tuned models, or only the chat template.
        ends = {*self.spec.eos_token_ids, *self.tokenizer.end_ids}
        if read_generation_config(directory).get("eos_token_id") is None:
            ends |= self.tokenizer.turn_end_ids
        self.eos_token_ids = tuple(sorted(i for i in ends if i < self.spec.vocab))

    @property
    def packed_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.directory.glob("*.safetensors"))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the configuration and samples of the weights, which identifies the model."""
        digest = hashlib.sha256((self.directory / "config.json").read_bytes())
        for path in sorted(self.directory.glob("*.safetensors")):
            with path.open("rb") as file:
                digest.update(f"{path.name} {path.stat().st_size}".encode())
                digest.update(file.read(SAMPLE))
                file.seek(-min(SAMPLE, path.stat().st_size), os.SEEK_END)
                digest.update(file.read())
        return digest.hexdigest()

    def load(self, dtype: torch.dtype, device: torch.device, backend: Backend, progress: Progress) -> ModelWeights:
        """Load the weights."""
        weights = SafetensorsWeights(self.directory, expected_tensors(self.spec), self._quantisation)
        return load_weights(weights, self.spec, dtype, device, backend, progress)


class SyntheticSource:
    """Random weights in a real shape (`engine.checkpoints.synthetic`)."""

    sampling_defaults: tuple[tuple[str, float], ...] = ()
    eos_token_ids: tuple[int, ...] = ()
    gguf_path: Path | None = None

    def __init__(self, model: str) -> None:
        self.model = shapes.parse(model)
        self.name = model
        self.spec = self.model.spec
        self.packing = self.model.quant
        self.packed_bytes = self.spec.parameters
        self.tokenizer = Tokenizer(shapes.tokenizer(self.spec.vocab))

    @property
    def directory(self) -> Path:
        raise ConfigError(f"{self.name} has no files")

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()

    def load(self, dtype: torch.dtype, device: torch.device, backend: Backend, progress: Progress) -> ModelWeights:
        weights = synthetic.RandomWeights(self.model, dtype, device)
        return load_weights(weights, weights.spec, dtype, device, backend, progress)


def open_source(model: str | None, *, defaults: bool) -> Source:
    """Open the model that `--model` names, or the default model. Raises ConfigError, ModelError."""
    from engine.checkpoints.gguf_source import GgufSource

    if model is not None and model.startswith(SYNTHETIC):
        return SyntheticSource(model)
    path = resolve(model)
    kind = GgufSource if path.suffix == ".gguf" else CheckpointSource
    return kind(path, display_name(model), defaults=defaults)
