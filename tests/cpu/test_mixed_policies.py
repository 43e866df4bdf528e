"""Requests of all policies in one batch: nothing crashes or leaks, and every answer is that of plain decoding."""

from __future__ import annotations

import gc
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.core.policies import policy_kinds
from engine.core.request import Request
from engine.kv.cache import bytes_per_token
from engine.runtime.build import LoadedModel
from engine.types import GenerateRequest, TokenEvent
from tests.support.cores import GREEDY, SAMPLED, chat_ids, exact, with_layer_sets

STREAMS = 16
KINDS = (GREEDY, SAMPLED, replace(SAMPLED, presence_penalty=0.5))


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    """A model whose cache holds a third of what sixteen requests need."""
    model = exact(max_model_len=256)
    return exact(max_model_len=256, kv_cache_memory=800 * bytes_per_token(model.spec, model.backend.cache_dtype))


def requests(core: EngineCore, prompts: Sequence[str], count: int, chance: random.Random) -> list[GenerateRequest]:
    """Make requests of random lengths, sampling parameters and beginnings, all of policy none."""
    made = []
    for number in range(count):
        text = chance.choice(prompts)[: chance.randint(1, 200)]
        sampling = replace(chance.choice(KINDS), seed=number, max_tokens=chance.randint(1, 48))
        made.append(GenerateRequest(str(number), chat_ids(core, text), sampling, "none"))
    return made


def serve(
    core: EngineCore, todo: Sequence[GenerateRequest], cancelled: frozenset[str] = frozenset()
) -> dict[str, list[int]]:
    """Answer requests, `STREAMS` at a time, and those `cancelled` only up to their first tokens. Returns all tokens."""
    waiting, live = [*reversed(todo)], set[str]()
    said: dict[str, list[int]] = {request.id: [] for request in todo}
    while waiting or live:
        while waiting and len(live) < STREAMS:
            live.add(waiting[-1].id)
            core.add(waiting.pop())
        for event in core.step().events:
            assert isinstance(event, TokenEvent)
            if event.request_id not in live:
                continue  # drawn before the request was cancelled
            said[event.request_id].extend(event.token_ids)
            if event.finish_reason is not None:
                live.remove(event.request_id)
            elif event.request_id in cancelled:
                core.cancel(event.request_id)
                live.remove(event.request_id)
    return said


@pytest.mark.parametrize(
    "count", [80, pytest.param(2000, marks=[pytest.mark.nightly, pytest.mark.timeout(900)])], ids=["some", "2000"]
)
def test_mixed_requests_answer_as_without_drafts_and_leave_nothing_behind(
    model: LoadedModel, prompts: Sequence[str], count: int, tmp_path: Path
) -> None:
    """A twentieth of the requests is cancelled; the cache is so small that others are preempted."""
    chance = random.Random(count)
    core = model.core(with_layer_sets(model, EngineConfig(max_num_seqs=STREAMS), tmp_path))
    plain = requests(core, prompts, count, chance)
    want = serve(core, plain)
    policies = core.info.policies
    assert {*policies} == {*policy_kinds()}
    mixed = [replace(request, draft_policy=policies[i % len(policies)]) for i, request in enumerate(plain)]
    cancelled = frozenset(request.id for request in chance.sample(mixed, count // 20))
    got = serve(core, mixed, cancelled)
    assert {name: text for name, text in got.items() if name not in cancelled} == {
        name: text for name, text in want.items() if name not in cancelled
    }
    core.scheduler.blocks.check_integrity()
    assert core.scheduler.blocks.usage == 0
    assert core.scheduler.preemptions > 0
    del plain, mixed
    gc.collect()
    kept = sum(isinstance(each, Request) for each in gc.get_objects())
    assert kept <= STREAMS, "at most the requests of the last round"
