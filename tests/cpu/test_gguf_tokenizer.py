"""The tokenizer in a GGUF file: ends of turns, equal texts, tokens around texts, tokens without rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoints.gguf_source import GgufSource
from engine.checkpoints.source import open_source
from engine.config.engine import EngineConfig
from engine.text.detokenize import Detokenizer
from engine.text.tokenizer import ENDS, MARKED_ENDS
from tests.support import PREPARED
from tests.support.cores import load
from tests.support.gguf_files import byte_level, sentence_piece, small, write

KEY = "tokenizer.ggml."


def with_tokens(*texts: str, types: int | tuple[int, ...] = 1, **fields: Any) -> dict[str, Any]:
    """Metadata of the prepared fixture's tokenizer with more tokens, from id 3072."""
    own = byte_level()
    own[KEY + "tokens"] = own[KEY + "tokens"] + list(texts)
    own[KEY + "token_type"] = own[KEY + "token_type"] + (
        [types] * len(texts) if isinstance(types, int) else list(types)
    )
    return own | {KEY + key: value for key, value in fields.items()}


def source_with(path: Path, fields: dict[str, Any], rows: int | None = None) -> GgufSource:
    own, tensors = small()
    rows = len(fields[KEY + "tokens"]) if rows is None else rows
    tensors["token_embd.weight"] = np.zeros((rows, 8), np.float32), "F32"
    return GgufSource(write(path / "x.gguf", own | fields, tensors), "x")


@pytest.mark.parametrize("type", [1, 3, 4])
@pytest.mark.parametrize("text", sorted(MARKED_ENDS - {"<|end|>"}))
def test_the_end_of_a_turn_is_known_by_its_text(text: str, type: int, tmp_path: Path) -> None:
    """It ends answers and is a special token, whatever its type."""
    source = source_with(tmp_path, with_tokens(text, types=type))
    assert source.eos_token_ids == (0, 3072)
    assert source.tokenizer.encode(f"a{text}b")[1] == 3072
    assert source.tokenizer.is_special(text)


@pytest.mark.parametrize("text", sorted(ENDS - MARKED_ENDS))
def test_a_text_that_may_be_ordinary_ends_answers_only_as_a_control_token(text: str, tmp_path: Path) -> None:
    assert source_with(tmp_path, with_tokens(text, types=3)).eos_token_ids == (0, 3072)
    assert source_with(tmp_path, with_tokens(text, types=1)).eos_token_ids == (0,)


def test_all_ends_that_the_metadata_name_count(tmp_path: Path) -> None:
    named = {
        f"{name}_token_id": i + 10 for i, name in enumerate(("eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"))
    }
    source = source_with(tmp_path, with_tokens("<|im_end|>", "<|im_end|>", **named))
    assert source.eos_token_ids == (0, *range(10, 16), 3072, 3073)


def test_a_folder_without_end_tokens_ends_with_the_turn_that_its_template_writes(tmp_path: Path) -> None:
    shutil.copytree(PREPARED, tmp_path, dirs_exist_ok=True)
    config = json.loads((PREPARED / "config.json").read_text("utf-8")) | {"eos_token_id": 9}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer_config.json").write_text("{}")
    (tmp_path / "generation_config.json").unlink()
    assert open_source(str(tmp_path), defaults=True).eos_token_ids == (0, 9)
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}")
    assert open_source(str(tmp_path), defaults=True).eos_token_ids == (9,)


def test_equal_texts_at_two_ids_decode_alike(tmp_path: Path) -> None:
    texts = ("Ġthe", "<|end|>", "Ġthe", "<tool_call>", "<0x41>")
    source = source_with(tmp_path, with_tokens(*texts, types=(1, 3, 1, 1, 1)), rows=3076)
    tokens, tokenizer = byte_level()[KEY + "tokens"], source.tokenizer
    for i, text in zip((3072, 3073, 3074, 3075), texts, strict=False):
        first = tokens.index(text)
        assert tokenizer.decode([i]) == tokenizer.decode([first]) != ""
        assert tokenizer.token_bytes(i) == tokenizer.token_bytes(first)
        assert Detokenizer(tokenizer.backend, ()).push(i) == Detokenizer(tokenizer.backend, ()).push(first)
        assert tokenizer.encode(tokenizer.decode([i])) == [first]
    assert source.eos_token_ids == (0, 3073)
    assert tokenizer.decode([3072, 3074, 282]) == " the the the"


def test_equal_pieces_at_two_ids_decode_alike(tmp_path: Path) -> None:
    fields = sentence_piece(ab=-1)
    more = ["ab", "<0x41>", "▁a"]
    fields[KEY + "tokens"] = fields[KEY + "tokens"] + more
    fields[KEY + "scores"] = fields[KEY + "scores"] + [-100.0] * 3
    fields[KEY + "token_type"] = fields[KEY + "token_type"] + [1, 6, 1]
    tokenizer, count = source_with(tmp_path, fields).tokenizer, len(fields[KEY + "tokens"])
    for i, text in zip(range(count - 3, count), more, strict=True):
        first = fields[KEY + "tokens"].index(text)
        assert tokenizer.decode([4, i]) == tokenizer.decode([4, first])
        assert tokenizer.token_bytes(i) == tokenizer.token_bytes(first) != b""


def test_a_text_is_encoded_to_its_first_added_token_or_else_to_its_first_token(tmp_path: Path) -> None:
    fields = with_tokens("<|new|>", "<|new|>", types=3)
    assert source_with(tmp_path, fields).tokenizer.encode("<|new|>") == [3072]
    fields[KEY + "token_type"][-2] = 1
    assert source_with(tmp_path, fields).tokenizer.encode("<|new|>") == [3073]
    assert source_with(tmp_path, with_tokens("Ġthe")).tokenizer.encode(" the") == [282]


def test_tokens_around_texts_are_those_that_the_metadata_name(tmp_path: Path) -> None:
    """Also where several ids have the text, or the text consists of several words."""
    fields = with_tokens("two words", "two words", types=3, bos_token_id=3073, eos_token_id=3072)
    for begins, ends in ((True, True), (True, False), (False, True), (False, False)):
        named = {KEY + "add_bos_token": begins, KEY + "add_eos_token": ends}
        tokens = source_with(tmp_path, fields | named).tokenizer.encode("a")
        assert tokens[:1] == ([3073] if begins else tokens[:1])
        assert tokens[-1:] == ([3072] if ends else tokens[-1:])
        assert len(tokens) == 1 + begins + ends


@pytest.mark.parametrize("rows", [3000, 3072, 3100])
def test_a_vocabulary_of_another_size_than_the_embedding_loads(rows: int, tmp_path: Path) -> None:
    fields = byte_level() | {KEY + "eot_token_id": 3071}
    path = source_with(tmp_path, fields, rows)
    assert path.eos_token_ids == ((0, 3071) if rows > 3071 else (0,))
    model = load(torch.float32, model=tmp_path / "x.gguf", kernels="torch")
    assert model.spec.vocab == rows
    assert all(i < rows for i in model.core(EngineConfig()).info.eos_token_ids)


@pytest.mark.parametrize("rows", [3000, 3100])
def test_a_folder_with_another_number_of_tokens_than_rows_loads(rows: int, tmp_path: Path) -> None:
    shutil.copytree(PREPARED, tmp_path, dirs_exist_ok=True)
    config = json.loads((PREPARED / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"vocab_size": rows, "eos_token_id": [0, 3071]}))
    (tmp_path / "generation_config.json").unlink()
    tensors = load_file(tmp_path / "model.safetensors")
    table = tensors["model.embed_tokens.weight"]
    save_file(
        tensors | {"model.embed_tokens.weight": table.repeat(2, 1)[:rows].clone()}, tmp_path / "model.safetensors"
    )
    model = load(torch.float32, model=tmp_path, kernels="torch")
    assert model.spec.vocab == rows
    assert model.core(EngineConfig()).info.eos_token_ids == ((0, 3071) if rows > 3071 else (0,))
