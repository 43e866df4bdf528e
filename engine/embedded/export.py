"""Writes a trained network as a Hugging Face checkpoint."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import save_file
from tokenizers import Tokenizer

from engine.embedded.bpe import tokenizer_config
from engine.embedded.conversation import END, SPECIAL_TOKENS, TEMPLATE

if TYPE_CHECKING:
    from engine.embedded.network import Network


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
