"""Read a model's tokenizer alone, for the server's process: without torch and without weights."""

from __future__ import annotations

from engine.checkpoints.default import find_default_model
from engine.checkpoints.gguf_file import GgufFile
from engine.checkpoints.gguf_tokenizer import read_tokenizer
from engine.checkpoints.hub import SYNTHETIC, resolve
from engine.text.tokenizer import Tokenizer


def open_tokenizer(model: str | None) -> Tokenizer:
    """Read the tokenizer of the model that `--model` names; None: the default model. Raises ConfigError, ModelError."""
    if model is not None and model.startswith(SYNTHETIC):
        from engine.checkpoints import synthetic  # imports torch, which only these models need here

        return Tokenizer(synthetic.tokenizer(synthetic.parse(model).spec.vocab))
    path = find_default_model() if model is None else resolve(model)
    return read_tokenizer(GgufFile(path)) if path.suffix == ".gguf" else Tokenizer.from_directory(path)
