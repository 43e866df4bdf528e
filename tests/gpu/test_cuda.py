"""The CUDA path has the properties of the CPU path. Skipped without a CUDA device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.config.engine import EngineConfig
from engine.model.attention import Segment
from engine.runtime.build import LoadedModel
from engine.runtime.overlap import PlainPass
from engine.step import Work
from engine.types import GenerateRequest, RoundReport, SamplingParams, TokenEvent
from tests.support import PREPARED
from tests.support.cores import GREEDY, SAMPLED, answer, chat_ids, load, logits_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@torch.inference_mode()
def test_logits_equal_those_of_the_cpu() -> None:
    tokens = torch.randint(0, 1024, (80,), generator=torch.Generator().manual_seed(0)).tolist()

    def logits(model: LoadedModel) -> torch.Tensor:
        parts = ((0, 50), (50, 1), (51, 5), (56, 24))
        out = [logits_of(model, [Segment(0, at, rows)], tokens[at : at + rows]).cpu() for at, rows in parts]
        return torch.cat(out)

    cpu, cuda = load(torch.float64, device="cpu"), load(torch.float64, device="cuda")
    assert (logits(cpu) - logits(cuda)).abs().max() < 1e-9


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_drafting_in_bf16_gives_the_tokens_of_plain_decoding(prompts: Sequence[str], sampling: SamplingParams) -> None:
    """Triton's kernels make a row's logits independent of the rows beside it."""
    model = load(torch.bfloat16, device="cuda")
    core = model.core(EngineConfig(device="cuda"))
    ids = [chat_ids(core, text) for text in prompts[::5]]
    plain = answer(core, ids, sampling, ["none"])
    for policy in ("fixed", "layerskip", "knapspec"):
        assert answer(model.core(EngineConfig(device="cuda")), ids, sampling, [policy]) == plain


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-8b", "qwen2.5-0.5b"])
@torch.inference_mode()
def test_a_row_is_bit_identical_in_any_pass(name: str) -> None:
    """Residual streams and logits of sixteen positions, in passes of one, five and sixteen rows."""
    model = LoadedModel(EngineConfig(model=f"synthetic:{name},layers=2", device="cuda", max_model_len=4096))
    tokens = torch.randint(0, 1000, (3016,), generator=torch.Generator().manual_seed(0)).tolist()

    def logits(*widths: int) -> torch.Tensor:
        out, start = [], 3000
        for width in widths:
            out.append(logits_of(model, [Segment(0, start, width)], tokens[start : start + width]))
            start += width
        return torch.cat(out)

    for start in range(0, 3000, 600):
        logits_of(model, [Segment(0, start, 600)], tokens[start : start + 600])
    single = logits(*(1,) * 16)
    assert single.isfinite().all()
    for widths in ((5, 5, 5, 1), (16,), (2, 3, 4, 7)):
        assert torch.equal(logits(*widths), single), widths


def test_a_model_in_bf16_measures_a_profile_and_answers(prompts: Sequence[str], tmp_path: Path) -> None:
    config = EngineConfig(model=str(PREPARED), device="cuda", dtype="bfloat16", profile_dir=tmp_path)
    model = LoadedModel(config)
    assert model.profile_source.startswith(str(tmp_path))
    core = model.core(config)
    ids = [chat_ids(core, text) for text in prompts[::25]]
    assert all(answer(core, ids, GREEDY, ["knapspec"], concurrency=4))


def test_reporting_a_round_during_the_next_changes_no_token(
    prompts: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []
    has = PlainPass.computes

    def having(self: PlainPass, work: Sequence[Work]) -> bool:
        taken.append(has(self, work))
        return taken[-1]

    monkeypatch.setattr(PlainPass, "computes", having)
    config = EngineConfig(device="cuda")
    model = load(torch.float64, device="cuda")
    core = model.core(config)
    assert core.runner.overlaps
    ids = [chat_ids(core, text) for text in prompts[::25]]
    said: dict[str, list[int]] = {}

    def tell(report: RoundReport) -> None:
        for event in report.events:
            assert isinstance(event, TokenEvent)
            said.setdefault(event.request_id, []).extend(event.token_ids)

    for i, prompt in enumerate(ids):
        core.add(GenerateRequest(str(i), prompt, replace(GREEDY, seed=i), "none"))
    while not core.scheduler.idle:
        core.run_round(tell)
    core.flush(tell)
    expected = answer(model.core(config), ids, GREEDY, ["none"], concurrency=len(ids))
    assert [tuple(said[str(i)]) for i in range(len(ids))] == expected
    assert taken.count(True) > 20
