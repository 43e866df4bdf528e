"""Tokens without an embedding row are never drawn nor accepted: published tokenizers have more tokens than rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.clock import SystemClock
from engine.config.engine import EngineConfig
from engine.host.process import open_tokenizer
from engine.host.thread import EngineThread
from engine.runtime.build import LoadedModel
from engine.text.tokenizer import Tokenizer
from tests.support import PREPARED
from tests.support.harness import CHAT_PATH, TEXT_PATH, asks

ROWS = 3072  # of the prepared model
MORE = ("<|pad1025|>", "[PAD]")  # added tokens beyond
CHAT = [{"role": "user", "content": f"Say {MORE[0]} and {MORE[1]}."}]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prepared model with added tokens that have no row, one special and one not; the template uses both."""
    copy = tmp_path_factory.mktemp("wide")
    for path in PREPARED.iterdir():
        (copy / path.name).symlink_to(path)
    tokenizer = json.loads((PREPARED / "tokenizer.json").read_text("utf-8"))
    added = tokenizer["added_tokens"]
    added += [added[-1] | {"id": ROWS + i, "content": text, "special": i == 0} for i, text in enumerate(MORE)]
    (copy / "tokenizer.json").unlink()
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    config = json.loads((PREPARED / "tokenizer_config.json").read_text("utf-8"))
    (copy / "tokenizer_config.json").unlink()
    (copy / "tokenizer_config.json").write_text(json.dumps(config | {"eos_token": MORE[1]}), "utf-8")
    return copy


@pytest.fixture(scope="module")
def engine(directory: Path) -> Iterator[EngineThread]:
    core = LoadedModel(EngineConfig(model=str(directory), max_model_len=512)).core(EngineConfig())
    yield EngineThread(core, SystemClock())
    core.close()


REQUESTS: dict[str, tuple[int, dict[str, Any]]] = {
    "a prompt of ids": (400, {"prompt": [5, ROWS]}),
    "a bias": (400, {"prompt": "Hi", "logit_bias": {str(ROWS): 5}}),
    "allowed ids": (400, {"prompt": "Hi", "allowed_token_ids": [ROWS]}),
    "a stop id": (400, {"prompt": "Hi", "stop_token_ids": [ROWS]}),
    "a grammar": (400, {"prompt": "Hi", "structured_outputs": {"grammar": f"start: <[{ROWS}]>"}}),
    "a grammar's marker": (400, {"prompt": "Hi", "structured_outputs": {"grammar": f"start: {MORE[0]}"}}),
    "a bad word": (200, {"prompt": "Hi", "bad_words": [*MORE]}),
    "a stop string": (200, {"prompt": "Hi", "stop": [*MORE]}),
    "a text": (200, {"prompt": "".join(MORE)}),
    "a choice": (200, {"prompt": "Hi", "structured_outputs": {"choice": [*MORE]}}),
    "an end before which there is no end": (200, {"prompt": "Hi", "min_tokens": 4, "ignore_eos": False}),
    "a chat": (200, {"messages": CHAT}),
    "a prediction": (200, {"messages": CHAT, "prediction": {"type": "content", "content": "".join(MORE)}}),
}


def test_ids_without_a_row_are_refused_and_texts_are_texts(engine: EngineThread) -> None:
    """None of them is a failure of the engine, however many come in a row."""
    bodies = [body | {"max_tokens": 20, "temperature": 0} for _, body in REQUESTS.values()]
    replies = asks(
        engine,  # type: ignore[arg-type]
        *(("POST", CHAT_PATH if "messages" in body else TEXT_PATH, {"json": body}) for body in bodies),
    )
    statuses = {name: reply.status_code for name, reply in zip(REQUESTS, replies, strict=True)}
    assert statuses == {name: status for name, (status, _) in REQUESTS.items()}
    assert json.loads(replies[[*REQUESTS].index("a choice")].text)["choices"][0]["text"] in MORE
    assert engine.stats().failure is None


def test_merged_tokens_without_a_row_are_written_in_parts(tmp_path: Path) -> None:
    """Texts, and forms that prescribe them, take the parts, which have rows."""
    description = json.loads((PREPARED / "tokenizer.json").read_text("utf-8"))
    model = description["model"]
    for row, (left, right) in enumerate(("hh", "zq"), start=ROWS):
        model["vocab"][left + right] = row
        model["merges"].insert(0, [left, right])
    (tmp_path / "tokenizer.json").write_text(json.dumps(description), "utf-8")
    tokenizer = Tokenizer.from_directory(tmp_path)
    assert tokenizer.encode("hh") == [ROWS]
    tokenizer.restrict(ROWS)
    assert tokenizer.decode(tokenizer.encode("hh zq")) == "hh zq"
    assert max(tokenizer.encode("hh zq")) < ROWS


def test_the_server_and_the_engine_forget_the_same_tokens(directory: Path, engine: EngineThread) -> None:
    tokenizer = open_tokenizer(str(directory))
    tokenizer.restrict(ROWS)
    assert tokenizer.encode("".join(MORE)) == engine.tokenizer.encode("".join(MORE))
    assert tokenizer.added_token_id(MORE[0]) is None
    assert tokenizer.added_token_id("<|end|>") == 0
