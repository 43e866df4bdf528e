"""GGUF files give the logits of transformers and the tokens of the original tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig, PreTrainedConfig, Qwen2Config, Qwen3Config

from engine.checkpoints import hub
from engine.checkpoints.gguf_source import GgufSource
from engine.checkpoints.source import open_source
from engine.errors import ModelError
from engine.kernels.library import compiler
from engine.model.attention import Segment
from engine.model.backend import Backend
from engine.text.tokenizer import Tokenizer
from tests.support import PREPARED
from tests.support.cores import load, tiny_model
from tests.support.gguf_files import PIECES, byte_level, fields_of, floats, sentence_piece, small, tensors_of, write

TOKENS = torch.randint(0, 3000, (40,), generator=torch.Generator().manual_seed(1)).tolist()
KQUANTS = {"attn_v": "Q6_K", "ffn_down": "Q6_K", "ffn_gate": "Q5_K", "ffn_up": "Q5_K", "attn_output": "Q3_K"}
MODELS: dict[str, tuple[type[PreTrainedConfig], dict[str, Any], dict[str, str]]] = {
    "llama": (LlamaConfig, {"tie_word_embeddings": True}, {"token_embd": "Q8_0", "attn_v": "Q5_1", "": "Q4_0"}),
    "qwen2": (Qwen2Config, {}, {"token_embd": "F16", "output.": "Q6_K", **KQUANTS, "": "Q4_K"}),
    "qwen3": (Qwen3Config, {"head_dim": 32}, {"token_embd": "BF16", "attn_k": "F16", "ffn_up": "F32", "": "Q8_0"}),
}


def made(directory: Path, kind: str, extra: dict[str, Any] | None = None, **changes: Any) -> tuple[Path, Any]:
    """Write a file. Returns its path, and transformers' model of the same weights."""
    family, own, types = MODELS[kind]
    settings = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "head_dim": 64}
    model = tiny_model(directory / "plain", family, scale=0.5, **settings | own | changes)
    config = model.config
    if not hasattr(config, "head_dim"):
        config.head_dim = 64
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads} if kind == "llama" else {}
    fields = fields_of(config, kind) | byte_level() | (extra or {})
    return write(directory / f"{kind}.gguf", fields, tensors_of(model, types, heads), kind), model


@torch.inference_mode()
def logits(path: Path, dtype: torch.dtype, kernels: str, backend: Backend | None = None) -> Tensor:
    model = load(dtype, model=path, kernels=kernels, backend=backend)
    x = model.decoder.run(model.decoder.embed(TOKENS), model.attention.prepare([Segment(0, 0, len(TOKENS))]))
    return model.decoder.head(x)


@torch.inference_mode()
def expected(model: Any) -> Tensor:
    return model(torch.tensor([TOKENS])).logits[0]


def error(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_logits_of_a_gguf_file_equal_transformers(kind: str, tmp_path: Path) -> None:
    path, model = made(tmp_path, kind)
    wanted = expected(model)
    plain = logits(path, torch.float32, "torch")
    torch.testing.assert_close(plain, wanted, rtol=1e-4, atol=1e-4 * float(wanted.std()))
    if compiler() is not None:
        packed = logits(path, torch.bfloat16, "native")
        assert error(packed, wanted) < 0.03  # as bf16 costs: small models' inputs have fifteen bits


def test_matrices_stay_packed(tmp_path: Path) -> None:
    path, _ = made(tmp_path, "llama")
    source = open_source(str(path), defaults=True)
    assert (source.name, source.packing, source.spec.dtype) == ("llama", "Q8_0+Q4_0+Q5_1", "float32")
    if compiler() is not None:
        model = load(torch.bfloat16, model=path, kernels="native")
        assert model.decoder.weights.nbytes < source.packed_bytes * 1.05
        assert model.key.dtype == "bfloat16-Q8_0+Q4_0+Q5_1"


# ---- RoPE


@pytest.mark.slow
def test_the_divisors_of_a_file_are_used_as_they_stand(tmp_path: Path) -> None:
    """They follow no formula: transformers gets frequencies that are divided by them."""
    path, model = made(tmp_path, "llama")
    divisors = torch.rand(32, generator=torch.Generator().manual_seed(1)) * 9 + 0.5
    before = expected(model)
    fields, tensors = fields_of(model.config, "llama") | byte_level(), tensors_of(model, {}, {"attn_q": 4, "attn_k": 2})
    write(path, fields, tensors | {"rope_freqs.weight": floats(divisors)})
    model.model.rotary_emb.inv_freq /= divisors
    wanted = expected(model)
    assert error(before, wanted) > 0.1
    torch.testing.assert_close(logits(path, torch.float32, "torch"), wanted, rtol=1e-4, atol=1e-4 * float(wanted.std()))
    if compiler() is not None:
        assert error(logits(path, torch.bfloat16, "native"), wanted) < 0.03


# ---- tokenizer

TEXTS = (
    "Hello, world!  3.14159 and 2026\n\n\tdef f(x):\n    return x+1",
    "Zürich, 東京 🙂 naïve — “quotes”",
    "<|user|>Hi<|end|>\n<|assistant|><tool_call>{}</tool_call>",
    "",
    " 1234567890 ab12cd",
)


def tokenizer_of(path: Path, fields: dict[str, Any]) -> Tokenizer:
    own, tensors = small()
    own = {key: value for key, value in own.items() if not key.startswith("tokenizer")}
    tensors["token_embd.weight"] = np.zeros((len(fields["tokenizer.ggml.tokens"]), 8), np.float32), "F32"
    return GgufSource(write(path / "x.gguf", own | fields, tensors), "x").tokenizer


def test_a_byte_level_tokenizer_equals_the_original(tmp_path: Path) -> None:
    found, wanted = tokenizer_of(tmp_path, byte_level()), Tokenizer.from_directory(PREPARED)
    for text in TEXTS:
        tokens = found.encode(text)
        assert tokens == wanted.encode(text)
        assert found.decode(tokens) == text
    for token in range(3072):
        assert found.token_bytes(token) == wanted.token_bytes(token)
        name = wanted.backend.id_to_token(token)
        assert (found.is_special(name), found.added_token_id(name)) == (
            wanted.is_special(name),
            wanted.added_token_id(name),
        )
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert found.render_chat(chat) == wanted.render_chat(chat)


@pytest.mark.parametrize(
    ("pre", "pieces"), [("smollm", "1 2 3 4"), ("gpt-2", "12 34"), ("qwen2", "1 2 3 4"), ("llama-bpe", "123 4")]
)
def test_digits_are_split_as_the_pre_tokenizer_says(pre: str, pieces: str, tmp_path: Path) -> None:
    fields = byte_level(pre)
    fields["tokenizer.ggml.tokens"][-5:-2] = ["12", "34", "123"]
    fields["tokenizer.ggml.merges"] = ["1 2", "3 4", "12 3"]
    tokens = tokenizer_of(tmp_path, fields).encode("1234", add_special_tokens=False)
    assert [fields["tokenizer.ggml.tokens"][token] for token in tokens] == pieces.split()


def test_special_tokens_are_read_from_the_metadata(tmp_path: Path) -> None:
    fields = byte_level("llama-bpe") | {"tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.eot_token_id": 3}
    own, tensors = small()
    tensors["token_embd.weight"] = np.zeros((3072, 8), np.float32), "F32"
    source = GgufSource(write(tmp_path / "x.gguf", own | fields, tensors), "x")
    assert source.eos_token_ids == (0, 3)
    assert source.tokenizer.encode("a")[0] == 2  # as Llama 3's do
    assert 2 not in source.tokenizer.encode("a", add_special_tokens=False)
    assert 2 not in tokenizer_of(tmp_path, fields | {"tokenizer.ggml.add_bos_token": False}).encode("a")


def test_pairs_of_the_highest_score_are_merged_first(tmp_path: Path) -> None:
    def pieces(text: str, **scores: float) -> list[str]:
        found = tokenizer_of(tmp_path, sentence_piece(**scores))
        tokens = found.encode(text)
        assert tokens[0] == 1
        assert found.decode(tokens[1:]) == text
        return [PIECES[token] for token in tokens[1:]]

    assert pieces("abc", ab=-1, bc=-2, abc=-3) == ["▁", "abc"]
    assert pieces("abc", bc=-1, ab=-2, abc=-3) == ["▁", "abc"]
    assert pieces("abc abc", bc=-1, **{"▁a": -2, "abc": -3}) == ["▁a", "bc", "▁a", "bc"]
    assert pieces("aé", **{"▁a": -1}) == ["▁a", "<0xC3>", "<0xA9>"]


# ---- where files are


def small_file(path: Path, **fields: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    own, tensors = small()
    return write(path, own | fields, tensors)


def test_a_file_and_the_directory_that_holds_it_name_the_same_model(tmp_path: Path) -> None:
    path = small_file(tmp_path / "some" / "a-Q4_0.gguf")
    (path.parent / "mmproj-a.gguf").touch()
    assert hub.resolve(str(path)) == hub.resolve(str(path.parent)) == path
    assert open_source(str(path), defaults=True).name == "a-Q4_0"
    small_file(tmp_path / "some" / "a-Q8_0.gguf")
    with pytest.raises(ModelError, match=r"several GGUF files: a-Q4_0\.gguf, a-Q8_0\.gguf"):
        hub.resolve(str(path.parent))


def test_a_hub_id_may_name_one_of_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, commit = tmp_path / "models--someone--tiny", "0123456789abcdef0123456789abcdef01234567"
    for name in ("tiny-Q4_0.gguf", "tiny-Q8_0.gguf", "tiny-IQ4_NL-00001-of-00002.gguf"):
        small_file(repository / "snapshots" / commit / name)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert hub.resolve("someone/tiny:q4_0").name == "tiny-Q4_0.gguf"
    assert open_source("someone/tiny:Q8_0", defaults=True).name == "someone/tiny:Q8_0"
    with pytest.raises(ModelError, match="no GGUF file whose name contains Q5_K_M"):
        hub.resolve("someone/tiny:Q5_K_M")
    with pytest.raises(ModelError, match=r"name a file: someone/tiny:Q4_K_M"):
        hub.resolve("someone/tiny")


def test_the_parts_of_a_split_file_are_read_together(tmp_path: Path) -> None:
    fields, tensors = small()
    names = [tmp_path / f"x-0000{i}-of-00002.gguf" for i in (1, 2)]
    split = {"split.count": 2, "split.tensors.count": len(tensors)}
    half = list(tensors.items())[5:]
    write(names[0], fields | split | {"split.no": 0}, dict(list(tensors.items())[:5]))
    write(names[1], split | {"split.no": 1}, dict(half))
    assert hub.resolve(str(tmp_path)) == names[0]
    for name in names:
        assert load(torch.float32, model=name, kernels="torch").spec.layers == 1
    write(names[1], split | {"split.no": 1}, dict(half) | {"output_norm.weight": tensors["output_norm.weight"]})
    with pytest.raises(ModelError, match=r"x-00002-of-00002\.gguf has the tensor output_norm\.weight a second time"):
        GgufSource(names[0], "x")
    names[1].unlink()
    with pytest.raises(ModelError, match=r"lacks x-00002-of-00002\.gguf: all 2 files"):
        GgufSource(names[0], "x")
