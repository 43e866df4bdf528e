"""What a benchmark compares takes turns, and answers as it does alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import targets
from bench.prompts import Text, encode, read_prompts
from bench.targets import PolicyTarget, Prompt, run_in_turns
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.types import SamplingParams
from tests.support.cores import load

SAMPLING = SamplingParams(max_tokens=12, temperature=0.0)


def written(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


@pytest.mark.parametrize("streams", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_targets_take_turns_and_answer_as_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: int) -> None:
    monkeypatch.setattr(targets, "_TURN", 1e-9)  # a round each
    model = load()
    path = written(tmp_path / "prompts.jsonl", {"prompt": "Hello"}, {"prompt": "What is 12 + 31?", "domain": "sums"})
    prompts = [encode(model, text) for text in read_prompts(path)]
    assert [prompt.domain for prompt in prompts] == ["", "sums"]
    names = ("none", "layerskip", "knapspec")
    together = [PolicyTarget(name, model.core(EngineConfig(), own_cache=True), SAMPLING) for name in names]
    order: list[str] = []
    for target in together:
        advance = target.core.advance
        monkeypatch.setattr(
            *(target.core, "advance"),
            lambda tell, name=target.name, advance=advance: [order.append(name), advance(tell)][1],
        )
    answers = run_in_turns(together, prompts, streams, first=1)
    assert order[:6] == ["layerskip", "knapspec", "none"] * 2
    alone = [PolicyTarget(name, model.core(EngineConfig()), SAMPLING).run(prompts, streams) for name in names]
    assert answers == alone
    for target in together:
        ((tokens, seconds, *_),) = target.stats.batches
        assert target.stats.seconds == seconds > 0
        assert tokens == target.stats.tokens
        assert target.stats.tokens == sum(map(len, alone[0]))
        assert len(target.stats.first_token) == len(prompts)
        assert all(0 < seconds <= target.stats.seconds for seconds in target.stats.first_token)


def test_those_that_share_a_cache_answer_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_TURN", 1e-9)
    model = load()
    prompts = [encode(model, Text("Tell me a story about a fox."))]
    alone = PolicyTarget("none", model.core(EngineConfig()), SAMPLING).run(prompts, 1)
    sharing = [PolicyTarget(name, model.core(EngineConfig()), SAMPLING) for name in ("none", "layerskip")]
    assert run_in_turns(sharing, prompts) == [alone, alone]


def test_prompts_are_picked_evenly(tmp_path: Path) -> None:
    path = written(tmp_path / "prompts.jsonl", *({"prompt": str(i)} for i in range(10)))
    assert [text.prompt for text in read_prompts(path)] == [str(i) for i in range(10)]
    assert [text.prompt for text in read_prompts(path, 3)] == ["0", "3", "6"]
    assert len(read_prompts(path, 50)) == 10
    picked = [int(text.prompt) for text in read_prompts(path, 7)]
    assert picked == [0, 1, 2, 4, 5, 7, 8], "to the end, though seven does not divide ten"


@pytest.mark.parametrize("line", ["[]", "3", "{}", '{"text": "a"}', "{"])
def test_a_line_that_is_no_prompt_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "a"}\n' + line, "utf-8")
    with pytest.raises(ConfigError, match=r"prompts\.jsonl"):
        read_prompts(path)


def test_a_prompt_without_room_is_an_error_and_not_an_endless_run() -> None:
    model = load(max_model_len=256)
    room = model.length - (SAMPLING.max_tokens or 0)
    for context, prompt, fits in ((0, room, True), (0, room + 1, False), (room, 1, False)):
        target = PolicyTarget("none", model.core(EngineConfig()), SAMPLING, context=(1,) * context)
        prompts = [Prompt("", (1,)), Prompt("", (1,) * prompt)]
        if fits:
            assert len(target.run(prompts, 1)) == 2
        else:
            with pytest.raises(ConfigError, match="context"):
                target.run(prompts, 1)
