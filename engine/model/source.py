"""Where a model comes from: files on disk or on the hub, or a shape to be made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch

from engine.errors import ConfigError
from engine.model import synthetic
from engine.model.decoder import Decoder
from engine.model.generation import sampling_defaults
from engine.model.hub import display_name, resolve
from engine.model.linear import LinearFactory
from engine.model.spec import ModelSpec, load_spec
from engine.model.weights import load_decoder
from engine.tokenizer import Tokenizer

Progress = Callable[[float], None]


class Source(Protocol):
    """What is known of a model before its weights are read."""

    name: str
    spec: ModelSpec
    tokenizer: Tokenizer
    sampling_defaults: tuple[tuple[str, float], ...]

    @property
    def directory(self) -> Path:
        """Of its files. Raises ConfigError if it has none."""
        ...

    def decoder(self, dtype: torch.dtype, device: torch.device, linear: LinearFactory, progress: Progress) -> Decoder:
        """Read or make the weights."""
        ...


class CheckpointSource:
    """A Hugging Face checkpoint. Raises ModelError for what is missing or not supported."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self.name = name
        self.spec = load_spec(directory)
        self.sampling_defaults = sampling_defaults(directory)
        self.tokenizer = Tokenizer.from_directory(directory)

    def decoder(self, dtype: torch.dtype, device: torch.device, linear: LinearFactory, progress: Progress) -> Decoder:
        return load_decoder(self.directory, self.spec, dtype, device, linear, progress)


class SyntheticSource:
    """Random weights of a real shape (`engine.model.synthetic`); they still need `calibrate`."""

    sampling_defaults: tuple[tuple[str, float], ...] = ()

    def __init__(self, model: str) -> None:
        self.made = synthetic.parse(model)
        self.name = model
        self.spec = self.made.spec
        self.tokenizer = Tokenizer(synthetic.tokenizer(self.spec.vocab))

    @property
    def directory(self) -> Path:
        raise ConfigError(f"{self.name} has no files")

    def decoder(self, dtype: torch.dtype, device: torch.device, linear: LinearFactory, progress: Progress) -> Decoder:
        return synthetic.build(self.made, dtype, device, linear, progress)


def open_source(model: str | None, embedded: Path) -> Source:
    """The model that `--model` names; without one, the one in the directory `embedded`."""
    if model is None:
        return CheckpointSource(embedded, "knapserve-embedded")
    if model.startswith(synthetic.PREFIX):
        return SyntheticSource(model)
    return CheckpointSource(resolve(model), display_name(model))
