"""Writes a trained network as a Hugging Face checkpoint, and reads it to train it further."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from engine.embedded.bpe import tokenizer_config
from engine.embedded.conversation import END, SPECIAL_TOKENS, TEMPLATE
from engine.embedded.network import Network, Shape


def export(network: Network, tokenizer: Tokenizer, directory: Path) -> None:
    """config.json, generation_config.json, model.safetensors (bf16), tokenizer and chat template in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    end = SPECIAL_TOKENS.index(END)
    files: dict[str, object] = {
        "config.json": network.shape.config(end),
        "generation_config.json": {"do_sample": False, "eos_token_id": end, "pad_token_id": end},
        "tokenizer_config.json": tokenizer_config(),
    }
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", "utf-8")
    tokenizer.save(str(directory / "tokenizer.json"))
    shutil.copy(TEMPLATE, directory / "chat_template.jinja")
    # Servers map this file: it is replaced, never written over.
    partial = directory / "model.safetensors.partial"
    save_file(network.exported(), str(partial), metadata={"format": "pt"})
    partial.replace(directory / "model.safetensors")


def imported(directory: Path, shape: Shape) -> Network:
    """An exported checkpoint, grown to this shape where it has fewer layers or narrower MLPs.

    Raises ValueError where the shape is another in something else, or smaller.
    """
    config = json.loads((directory / "config.json").read_text("utf-8"))
    own = replace(shape, layers=config["num_hidden_layers"], intermediate=config["intermediate_size"])
    if own.layers > shape.layers or own.intermediate > shape.intermediate:
        raise ValueError(
            f"{directory} has {own.layers} layers and MLPs of {own.intermediate}: more than what it is for"
        )
    network = Network(own)
    network.read(load_file(directory / "model.safetensors"))
    return network.grown(shape.layers, shape.intermediate)
