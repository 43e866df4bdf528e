"""A checkpoint that answers every prompt with one text, by real passes over constructed weights.

Sublayers add nothing, the embedding encodes a token's position in the text, and the head finds the next one.
"""

from __future__ import annotations

import shutil
from collections.abc import Set
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from tests.support import CONFIG, PREPARED


def recite(directory: Path, text: str, size: int = 3) -> Path:
    """Write a checkpoint that recites `text` in tokens of about `size` characters, and then ends.

    Tokens are longer where shorter ones would repeat. Tokenizer and chat template are the prepared fixture's.
    """
    tokenizer = Tokenizer.from_file(str(PREPARED / "tokenizer.json"))
    pieces = _pieces(text, size, tokenizer.get_vocab().keys())
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in pieces])
    ids = [tokenizer.token_to_id(piece) for piece in pieces]
    vocabulary = -(-tokenizer.get_vocab_size() // 64) * 64
    hidden = -(-(len(pieces) + 1) // 64) * 64
    end = CONFIG["eos_token_id"]
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=64,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=1024,
        eos_token_id=end,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        embedding, head = model.model.embed_tokens.weight.zero_(), model.lm_head.weight.zero_()
        embedding[:, 0] = 1  # whatever comes before the text
        for place, token in enumerate([*ids, end]):
            head[token, place] = 4
            embedding[token] = 0
            embedding[token, (place + 1) % hidden] = 1
    model.save_pretrained(directory)
    tokenizer.save(str(directory / "tokenizer.json"))
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(PREPARED / name, directory / name)
    return directory


def _pieces(text: str, size: int, known: Set[str]) -> list[str]:
    """`text` cut into pieces that differ from each other and from the known ones."""
    pieces: list[str] = []
    while text:
        length = size
        while length < len(text) and (text[:length] in pieces or text[:length] in known):
            length += 1
        pieces.append(text[:length])
        text = text[length:]
    if pieces[-1] in pieces[:-1] or pieces[-1] in known:
        rest = pieces.pop()
        pieces[-1] += rest
    return pieces
