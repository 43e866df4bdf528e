"""Contenders of a benchmark take turns, and each answers as it does alone."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from bench.bandwidth import ReadBandwidth
from bench.measurements import Totals
from bench.prompts import Text, encode, read_prompts
from bench.targets import PolicyTarget, Prompt, run_in_turns
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams
from tests.support.cores import load
from tests.support.timed import TickingClock

SAMPLING = SamplingParams(max_tokens=12, temperature=0.0)
A_ROUND = 1e-9  # seconds: every turn ends after its first round


def written(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("streams", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_targets_take_turns_and_answer_as_alone(tmp_path: Path, streams: int) -> None:
    model = load()
    path = written(tmp_path / "prompts.jsonl", {"prompt": "Hello"}, {"prompt": "What is 12 + 31?", "domain": "sums"})
    prompts = [encode(model, text) for text in read_prompts(path)]
    assert [prompt.domain for prompt in prompts] == ["", "sums"]
    names = ("none", "layerskip", "knapspec")
    order: list[str] = []

    class Recorded(PolicyTarget):
        def rounds(self, *args: Any) -> Generator[float, None, list[tuple[int, ...]]]:
            rounds = super().rounds(*args)
            while True:
                order.append(self.name)
                try:
                    spent = next(rounds)
                except StopIteration as done:
                    return done.value
                yield spent

    together = [Recorded(name, model.core(EngineConfig(), own_cache=True), SAMPLING) for name in names]
    answers = run_in_turns(together, prompts, streams, first=1, turn=A_ROUND)
    assert order[:6] == ["layerskip", "knapspec", "none"] * 2
    alone = [PolicyTarget(name, model.core(EngineConfig()), SAMPLING).run(prompts, streams) for name in names]
    assert answers == alone
    for target in together:
        (batch,) = target.stats.batches
        assert batch == target.stats.total
        assert batch.tokens == sum(map(len, alone[0]))
        assert len(target.stats.first_token) == len(prompts)
        assert all(0 < seconds <= batch.seconds for seconds in target.stats.first_token)


@pytest.mark.slow
def test_targets_that_share_a_cache_answer_one_after_the_other() -> None:
    model = load()
    prompts = [encode(model, Text("Tell me a story about a fox."))]
    alone = PolicyTarget("none", model.core(EngineConfig()), SAMPLING).run(prompts, 1)
    sharing = [PolicyTarget(name, model.core(EngineConfig()), SAMPLING) for name in ("none", "layerskip")]
    assert run_in_turns(sharing, prompts, turn=A_ROUND) == [alone, alone]


@pytest.mark.slow
def test_a_context_is_read_once_and_hit_by_every_prompt() -> None:
    """Its reading is in no figure, and of the prompts themselves nothing is hit, not even if they recur."""
    model = load(max_model_len=256)
    context = tuple(range(256, 256 + 8 * model.size.block_size))
    prompts = [Prompt("", tuple(range(start, start + 40))) for start in (300, 400, 300)]
    core = model.core(EngineConfig())
    target = PolicyTarget("none", core, SAMPLING, context)
    answers = [target.run([prompt], 1)[0] for prompt in prompts]
    counters = core.scheduler
    assert counters.prefix_hits == len(context) * (2 * len(prompts) - 1), "all look-ups but the first"
    assert counters.prefix_queries - counters.prefix_hits == len(context) + len(prompts) * (1 + 40)
    assert target.stats.total.tokens == sum(map(len, answers))
    assert len(target.stats.first_token) == len(target.stats.batches) == len(prompts)
    whole = [Prompt("", (*context, *prompt.tokens)) for prompt in prompts]
    assert answers == PolicyTarget("none", model.core(EngineConfig()), SAMPLING).run(whole, 1)


def test_prompts_are_picked_evenly(tmp_path: Path) -> None:
    path = written(tmp_path / "prompts.jsonl", *({"prompt": str(i)} for i in range(10)))
    assert [text.prompt for text in read_prompts(path)] == [str(i) for i in range(10)]
    assert [text.prompt for text in read_prompts(path, 3)] == ["0", "3", "6"]
    assert len(read_prompts(path, 50)) == 10
    picked = [int(text.prompt) for text in read_prompts(path, 7)]
    assert picked == [0, 1, 2, 4, 5, 7, 8], "prompts are spread over the file, though seven does not divide ten"


@pytest.mark.parametrize("line", ["[]", "3", "{}", '{"text": "a"}', "{"])
def test_a_line_that_is_no_prompt_is_refused_by_file(tmp_path: Path, line: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "a"}\n' + line, "utf-8")
    with pytest.raises(ConfigError, match=r"prompts\.jsonl"):
        read_prompts(path)


@pytest.mark.slow
def test_a_prompt_without_room_is_refused() -> None:
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


@pytest.mark.parametrize("large", [True, False])
def test_bandwidth_is_that_of_the_weights_where_they_are_large(large: bool) -> None:
    weights = [torch.ones(1 << 20, dtype=torch.bfloat16) for _ in range(6 if large else 1)]  # 2 MiB each
    decoder = SimpleNamespace(device=torch.device("cpu"), weights=SimpleNamespace(matrices=weights, nbytes=2 << 20))
    model = SimpleNamespace(decoder=decoder, clock=TickingClock(1.0), key=SimpleNamespace(threads=2))
    bandwidth = ReadBandwidth(cast(LoadedModel, model), size=4 << 20)
    read, owned = ({piece.data_ptr() for piece in pieces} for pieces in (bandwidth.pieces, weights))
    assert read == {weights[0].data_ptr(), weights[3].data_ptr()} if large else not read & owned
    bandwidth.observe()
    plain = Totals(rounds=1, decode_seconds=1.0)
    model.spec, model.backend = load().spec, SimpleNamespace(cache_dtype=torch.bfloat16)
    assert bandwidth.share(plain) == {"read": 2 << 20, "bandwidth": 4 << 20, "share": 0.5}


def test_a_gpu_times_its_reads_between_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads a byte in a nanosecond; the host waits for the last event alone."""
    done: list[str] = []
    time = [0.0]  # of the GPU, in milliseconds

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = time[0]

        def synchronize(self) -> None:
            done.append("waited")

        def elapsed_time(self, end: Event) -> float:
            return end.at - self.at

    def read(piece: torch.Tensor) -> None:
        time[0] += piece.nbytes / 1e6

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.Tensor, "sum", read)
    model: Any = SimpleNamespace(
        decoder=SimpleNamespace(device=torch.device("meta"), weights=SimpleNamespace(nbytes=8))
    )
    bandwidth = ReadBandwidth(model)
    bandwidth.observe()
    model.spec, model.backend = load().spec, SimpleNamespace(cache_dtype=torch.bfloat16)
    assert bandwidth.share(Totals(rounds=1, decode_seconds=1.0))["bandwidth"] == pytest.approx(1e9)
    assert done == ["waited"]
    assert time[0] > 8 * 2**30 / 1e6, "launches hide behind nothing smaller"
