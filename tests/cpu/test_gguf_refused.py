"""Damaged and unsupported GGUF files are refused by name."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.checkpoints.gguf_source import GgufSource
from engine.errors import ModelError
from tests.support.gguf_files import Tensors, random_blocks, small, write

KEY = "tokenizer.ggml."


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    fields, tensors = small()
    path = write(tmp_path_factory.mktemp("gguf") / "small.gguf", fields, tensors)
    assert GgufSource(path, "x").spec.layers == 1
    return path.read_bytes()


def refused(path: Path, content: bytes, says: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ModelError, match=says) as caught:
        GgufSource(path, "x")
    assert path.name in str(caught.value)


def header(version: int = 3, tensors: int = 0, fields: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, fields)


def test_a_file_that_is_not_whole_is_refused(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    refused(path, b"", "cannot read")
    refused(path, b"GGML" + whole[4:], "does not start with GGUF")
    refused(path, b"\x80\x02", "does not start with GGUF")
    refused(path, header(1), "version 1; supported: 2 and 3")
    refused(path, b"GGUF" + struct.pack(">I", 3) + whole[8:], "version 50331648; supported: 2 and 3, little-endian")
    for length in (4, 10, 30, 200, 3000):
        refused(path, whole[:length], "ends within its header; is the download complete")
    refused(path, whole[:-4], "ends within .*; is the download complete")


@pytest.mark.parametrize("count", [1 << 32, 1 << 60, (1 << 63) - 1, (1 << 64) - 1])
def test_counts_larger_than_the_file_are_refused(count: int, tmp_path: Path) -> None:
    path, key = tmp_path / "a.gguf", struct.pack("<Q", 1) + b"k"
    says = "ends within its header"
    refused(path, header(tensors=count), says)
    refused(path, header(fields=count), says)
    refused(path, header(fields=1) + struct.pack("<Q", count) + b"k", says)
    refused(path, header(fields=1) + key + struct.pack("<IQ", 8, count) + b"text", says)
    for kind in (0, 4, 7, 8, 12):  # lists of bytes, numbers, truths, strings, float64
        refused(path, header(fields=1) + key + struct.pack("<IIQ", 9, kind, count) + b"1234567", says)
    refused(path, header(fields=1) + key + struct.pack("<IIQ", 9, 9, count), "nested lists")
    shape = struct.pack("<IQQIQ", 2, count, count, 0, 0)
    refused(path, header(tensors=1) + key + shape, "ends within k")
    refused(path, header(tensors=1) + key + struct.pack("<IQIQ", 1, 4, 0, count), "k")


def changed(tmp_path: Path, says: str, changes: dict[str, Any], architecture: str = "llama", **tensors: Any) -> None:
    fields, own = small()
    own |= {name.replace("__", "."): tensor for name, tensor in tensors.items()}
    path = write(tmp_path / "changed.gguf", fields | changes, {k: v for k, v in own.items() if v}, architecture)
    refused(path, path.read_bytes(), says)


FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "no layers named": ({"llama.block_count": None}, "lacks.*num_hidden_layers"),
    "no heads named": ({"llama.attention.head_count": None}, "lacks llama.attention.head_count"),
    "text for a number": ({"llama.block_count": "many"}, "num_hidden_layers is 'many'; it must be a whole number"),
    "a list for a number": (
        {"llama.attention.head_count": [2, 2]},
        r"head_count is \[2, 2\]; it must be int or float or str",
    ),
    "a fraction of a layer": ({"llama.block_count": 1.5}, "num_hidden_layers is 1.5; it must be a whole number"),
    "not a number": ({"llama.rope.freq_base": float("nan")}, "rope_theta is nan; it must be above 1"),
    "experts": ({"llama.expert_count": 8}, "mixture-of-experts models are not supported"),
    "longrope": ({"llama.rope.scaling.type": "longrope"}, "longrope.*not supported"),
    "no tokens": ({KEY + "tokens": None}, "no tokenizer: tokenizer.ggml.tokens is missing"),
    "another tokenizer": ({KEY + "model": "rwkv"}, "tokenizer rwkv is not supported; supported: gpt2, llama"),
    "another pre-tokenizer": ({KEY + "pre": "chameleon"}, "pre-tokenizer chameleon is not supported; supported: gpt-2"),
    "merges of other tokens": ({KEY + "merges": ["a b", "x y"]}, "merges do not match"),
    "half a merge": ({KEY + "merges": ["ab"]}, "merges do not match"),
    "merges that are numbers": ({KEY + "merges": [1, 2]}, "tokenizer.ggml.merges"),
    "tokens that are numbers": ({KEY + "tokens": [1, 2]}, "tokenizer.ggml.tokens"),
    "types that are text": ({KEY + "token_type": ["a"]}, "tokenizer.ggml.token_type"),
    "scores that are text": ({KEY + "model": "llama", KEY + "scores": ["a"] * 258}, "tokenizer.ggml.scores"),
    "too few scores": ({KEY + "model": "llama", KEY + "scores": [0.5]}, "scores must have one score per token"),
    "an end beyond the tokens": (
        {KEY + "eos_token_id": 258},
        "eos_token_id is 258; it must be at least 0 and below 258",
    ),
    "an end that is text": ({KEY + "eos_token_id": "x"}, "eos_token_id is 'x'; it must be int"),
    "a template that is a number": ({"tokenizer.chat_template": 5}, "chat_template is 5; it must be str"),
    "no alignment": ({"general.alignment": "x"}, "general.alignment 'x'"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_metadata_that_does_not_fit_is_refused_by_name(name: str, tmp_path: Path) -> None:
    changes, says = FIELDS[name]
    changed(tmp_path, says, changes)


def test_an_unsupported_architecture_is_refused(tmp_path: Path) -> None:
    changed(tmp_path, "architecture gemma3 is not supported; supported: llama, qwen2, qwen3", {}, "gemma3")


def test_tensors_that_do_not_fit_are_refused_by_name(tmp_path: Path) -> None:
    def numbers(*shape: int, value: float = 1) -> tuple[np.ndarray[Any, Any], str]:
        return np.full(shape, value, np.float32), "F32"

    name = "blk.0.attn_q.weight"
    packed: Tensors = {"output_norm.weight": (random_blocks("Q4_K", 1, 256, 0)[0], "Q4_K")}
    table = np.zeros((8, 66), np.uint8), "IQ2_XXS"
    for says, tensors in (
        (f"lacks {name}", {name: None}),
        ("lacks token_embd.weight", {"token_embd.weight": None}),
        (rf"{name} in .* is \[8, 4\], not \[8, 8\]", {name: numbers(8, 4)}),
        ("1 unexpected tensors, first blk.0.attn_sinks.weight", {"blk.0.attn_sinks.weight": numbers(8)}),
        (f"{name} in IQ2_XXS, which is not supported; supported: F32", {name: table}),
        (r"output_norm.weight \[256\] in Q4_K", packed),
        ("RoPE scaling has the factor nan in rope_freqs.weight", {"rope_freqs.weight": numbers(2, value=np.nan)}),
        ("RoPE scaling has the factor 0.0 in rope_freqs.weight", {"rope_freqs.weight": numbers(2, value=0)}),
    ):
        changed(tmp_path, says, {}, **tensors)
