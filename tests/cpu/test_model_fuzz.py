"""A model file is a stranger's program: whatever it says, it loads or is refused in one line, in bounded time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as BackendTokenizer

from engine.checkpoints.gguf_source import GgufSource
from engine.checkpoints.safetensors_weights import SafetensorsWeights
from engine.checkpoints.source import open_source
from engine.errors import ModelError, RequestError, RequestFailedError
from engine.model.weights import expected_tensors
from engine.quantised.config import parse_quantisation
from engine.text.detokenize import Detokenizer
from engine.text.tokenizer import Tokenizer
from server.apis.logprobs import TokenTexts
from tests.support import PREPARED, REPOSITORY
from tests.support.fake import FakeEngine
from tests.support.gguf_files import small, write
from tests.support.harness import TEXT, TEXT_PATH, ask
from tests.support.tiny_models import Files, checkpoints

KEY = "tokenizer.ggml."


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", [100, pytest.param(4000, marks=pytest.mark.nightly)])
def test_a_damaged_model_loads_or_is_refused_in_one_line(count: int) -> None:
    command = [sys.executable, "-m", "tests.support.model_fuzz", "--count", str(count)]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    found = {kind: int(number) for number, kind in re.findall(r"^ *(\d+) (\w+)$", run.stdout, re.M)}
    assert sum(found.values()) == count
    assert min(found["loads"], found["refused"]) > count / 10


def damaged(directory: Path, model: str, file: str, change: Callable[[Any], object]) -> Path:
    """Write a checkpoint with one JSON file changed."""
    files: Files = dict(checkpoints()[model])
    value = json.loads(files[file])
    change(value)
    files[file] = json.dumps(value).encode()
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return directory


def refusal(directory: Path) -> str:
    with pytest.raises(ModelError) as caught:
        _opened(directory)
    return str(caught.value)


def _opened(directory: Path) -> None:
    spec = open_source(str(directory), defaults=True).spec
    SafetensorsWeights(directory, expected_tensors(spec))


def test_a_json_file_may_take_some_memory_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged(tmp_path, "llama", "config.json", lambda config: config)
    monkeypatch.setattr("engine.architecture.spec._MOST_JSON_BYTES", 100)
    assert refusal(tmp_path).endswith("config.json: it has more than 100 bytes")


@pytest.mark.parametrize("text", ["\ud800", "x\ud800y"])
def test_text_that_is_not_unicode_is_refused_by_the_name_of_its_file(text: str, tmp_path: Path) -> None:
    damaged(tmp_path, "llama", "tokenizer_config.json", lambda config: config.update(eos_token=text))
    assert "tokenizer_config.json" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["y" * 5000, "y\0", "\x1b[2J\ny"])
def test_an_index_may_name_any_file_and_is_refused_in_one_short_line(name: str, tmp_path: Path) -> None:
    damaged(
        tmp_path,
        "mistral",
        "model.safetensors.index.json",
        lambda index: index["weight_map"].update(x=f"{name}.safetensors"),
    )
    message = refusal(tmp_path)
    assert len(message) < 700
    assert message.isprintable()
    assert tmp_path.name in message


def test_an_expression_of_a_quantisation_has_a_limit_on_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.quantised.config._MATCH_SECONDS", 0.01)
    settings = {"quant_method": "gptq", "bits": 4, "group_size": 64, "dynamic": {"-:(?:.|..)+(?<=x)$": {}}}
    quantisation = parse_quantisation({"quantization_config": settings})
    assert quantisation is not None
    with pytest.raises(ModelError, match=r"the expression re:.* of quantization_config takes too long"):
        quantisation.scheme("model.layers.0.self_attn.q_proj.weight")


# ---- GGUF


def gguf(directory: Path, **tokenizer: Any) -> Path:
    fields, tensors = small()
    fields |= {KEY + key: value for key, value in tokenizer.items()}
    return write(directory / "x.gguf", fields, tensors)


def pieces(*last: str) -> dict[str, Any]:
    """A vocabulary of SentencePiece that ends with these tokens."""
    tokens = ["<unk>", *(f"<0x{i:02X}>" for i in range(256)), *last]
    return {"model": "llama", "tokens": tokens, "scores": [0.0] * len(tokens), "token_type": None, "merges": None}


@pytest.mark.parametrize("begin", ["<s> x", "$A", "a:1", "<s> $A", "", " "])
def test_a_beginning_token_may_have_any_text(begin: str, tmp_path: Path) -> None:
    tokens = [*small()[0][KEY + "tokens"], begin]
    path = gguf(tmp_path, tokens=tokens, bos_token_id=258, add_bos_token=True, token_type=None)
    assert GgufSource(path, "x").tokenizer.encode("a")[0] == 258


@pytest.mark.parametrize(
    "last", [("ab" * 2_000_000,), tuple("a" * length for length in range(1, 100))], ids=["one", "many"]
)
def test_a_vocabulary_whose_merges_explode_is_refused_by_name(
    last: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The halves of a token of n characters have n² characters; n tokens may form n² pairs."""
    monkeypatch.setattr("engine.checkpoints.gguf_tokenizer._MOST_MERGES", 1000)
    with pytest.raises(ModelError, match=r"x\.gguf: tokenizer\.ggml\.tokens is larger than SentencePiece makes it"):
        GgufSource(gguf(tmp_path, **pieces(*last)), "x")


def test_a_list_may_take_some_memory_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values take many times the bytes that they have in the file."""
    path = gguf(tmp_path)
    monkeypatch.setattr("engine.checkpoints.gguf_file._MOST_VALUES", 257)
    with pytest.raises(ModelError, match=r"x\.gguf has a list of 258 values in its metadata; at most 257"):
        GgufSource(path, "x")


def test_metadata_that_are_not_utf8_load_with_replacement_characters(tmp_path: Path) -> None:
    path = gguf(tmp_path, eos_token_id=None)
    path.write_bytes(path.read_bytes().replace(b"<end>", b"<\xff\xfed>"))
    tokenizer = GgufSource(path, "x").tokenizer
    assert tokenizer.encode(tokenizer.decode([0])) == [0]


# ---- the library of tokenizers


def failing(expression: str = "((a+)+)+$") -> BackendTokenizer:
    backend = BackendTokenizer(models.BPE({"a": 0, "b": 1, "<0xZZ>": 2, "<0x+1>": 3}, []))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(expression), "isolated")
    return backend


@pytest.mark.slow
@pytest.mark.parametrize("path", [TEXT_PATH, "/tokenize"])
def test_a_tokenizer_that_panics_gets_a_reply_in_our_format(path: str) -> None:
    engine = FakeEngine()
    vars(engine)["tokenizer"] = Tokenizer(failing())
    reply = ask(engine, "POST", path, json=TEXT | {"prompt": "a" * 40 + "b"})
    assert reply.status_code == 400
    assert "tokenizer fails at this text" in reply.json()["error"]["message"]
    assert reply.headers["x-request-id"]


def test_a_tokenizer_file_at_which_the_library_panics_is_refused_by_name(tmp_path: Path) -> None:
    damaged(tmp_path, "llama", "tokenizer.json", lambda made: made["model"].update(continuing_subword_prefix="x" * 9))
    assert "tokenizer.json" in refusal(tmp_path)


def test_a_decoder_that_panics_fails_its_answer_only() -> None:
    backend = failing("a")
    backend.decoder = decoders.Strip("a", 0, 5)
    tokenizer = Tokenizer(backend)
    with pytest.raises(RequestError, match="tokenizer cannot decode"):
        tokenizer.decode([0])
    with pytest.raises(RequestFailedError, match="tokenizer cannot decode"):
        Detokenizer(backend, (), [0]).push(0)


def test_names_that_only_look_like_bytes_are_text() -> None:
    texts = TokenTexts(Tokenizer(failing()))
    assert (texts.text(2), texts.text(3)) == ("<0xZZ>", "<0x+1>")


LONGER = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 200}
GROWING: dict[str, dict[str, Any]] = {
    "normalizer": {"type": "Sequence", "normalizers": [LONGER, LONGER]},
    "decoder": {"type": "Sequence", "decoders": [LONGER, LONGER]},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "x", "type_id": 0}}] * 5000,
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"x": {"id": "x", "ids": [1] * 5000, "tokens": ["a"] * 5000}},
    },
}


@pytest.mark.parametrize("part", GROWING)
def test_a_tokenizer_that_makes_texts_long_is_refused(tmp_path: Path, part: str) -> None:
    description = json.loads((PREPARED / "tokenizer.json").read_text("utf-8"))
    (tmp_path / "tokenizer.json").write_text(json.dumps(description | {part: GROWING[part]}), "utf-8")
    with pytest.raises(ModelError, match=f"tokenizer.json: the {part} could make a text"):
        Tokenizer.from_directory(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.gguf"])
def test_a_pipe_among_the_files_is_refused(tmp_path: Path, name: str) -> None:
    """Reading one would wait without end."""
    os.mkfifo(tmp_path / name)
    for model in (tmp_path, tmp_path / name):
        with pytest.raises(ModelError, match=f"{name} is neither a file nor a directory"):
            open_source(str(model), defaults=True)
