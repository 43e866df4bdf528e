"""One call of the native library gives the tokens of its passes one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from engine.config.engine import EngineConfig
from engine.config.policies import KnapSpecConfig
from engine.kernels.library import compiler
from engine.model.attention import Segment
from engine.model.decoder import OneCallDecoder, VerifyPass
from engine.runtime.build import LoadedModel
from engine.sampling.logits import LogitsProcessor
from engine.types import GenerateRequest, SamplingParams
from tests.support.cores import GREEDY, SAMPLED, answer, chat_ids, load

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C++ compiler")

JSON = '{"grammars": [{"json_schema": {"type": "object"}}]}'
EDITED = {
    "penalties": replace(GREEDY, presence_penalty=0.4, repetition_penalty=1.2),
    "bias": replace(SAMPLED, logit_bias=((5, 8.0), (300, -100.0)), min_tokens=12),
    "grammar": replace(GREEDY, grammar=JSON),
    "grammar, sampled": replace(SAMPLED, grammar=JSON),
    "grammar, sampled from all": SamplingParams(48, 1.0, seed=4, grammar=JSON),
    "grammar and bias": replace(GREEDY, grammar=JSON, logit_bias=((5, 8.0),)),
}


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load(torch.bfloat16, kernels="native")


@pytest.fixture(scope="module")
def ids(model: LoadedModel, prompts: Sequence[str]) -> list[tuple[int, ...]]:
    core = model.core(EngineConfig())
    return [chat_ids(core, text) for text in prompts[::50]]


def checked(kind: str, policy: str) -> bool:
    """Whether `make test` runs the case: each kind under layerskip, and one of each other policy."""
    return policy == "layerskip" or (kind, policy) in (("greedy", "none"), ("grammar, sampled", "knapspec"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        pytest.param(kind, policy, marks=[] if checked(kind, policy) else pytest.mark.nightly)
        for kind in ("greedy", "sampled", *EDITED)
        for policy in ("none", "layerskip", "knapspec")
    ],
)
def test_one_call_and_its_parts_give_the_same_tokens(
    model: LoadedModel, ids: list[tuple[int, ...]], kind: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = {"greedy": GREEDY, "sampled": SAMPLED, **EDITED}[kind]
    config = EngineConfig(draft_confidence=0.3, knapspec=KnapSpecConfig(interval=8))
    at_once = answer(model.core(config), ids, sampling, [policy], concurrency=2)
    monkeypatch.setattr("engine.model.passes.OneCallDecoder", ())  # which no decoder is then
    assert answer(model.core(config), ids, sampling, [policy], concurrency=2) == at_once


def test_a_verify_pass_in_one_call_gives_the_same_residual_streams(model: LoadedModel) -> None:
    attention, decoder = model.core(EngineConfig()).runner.attention, model.decoder
    tokens, segments = [5, 6, 7, 8], [Segment(0, 0, 3), Segment(1, 0, 1)]
    assert isinstance(decoder, OneCallDecoder)
    found = decoder.verify(attention, VerifyPass(segments, tokens, [2, 3], [GREEDY] * 2, record=True))
    states: list[torch.Tensor] = []
    x = decoder.run(decoder.embed(tokens), attention.prepare(segments), states)
    assert found.states is not None
    assert torch.equal(torch.stack(found.states), torch.stack(states))
    assert found.tokens == decoder.head(x)[2:].argmax(-1).tolist()


@pytest.mark.parametrize("policy", ["none", "layerskip"])
def test_an_error_in_an_edit_is_an_error_of_the_round(
    model: LoadedModel, ids: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """The callback from the native code does not swallow it."""
    core = model.core(EngineConfig())
    core.add(GenerateRequest("a", ids[0], SamplingParams(logit_bias=((5, 1.0),), max_tokens=8), policy))
    core.step()

    def broken(*_: object, **__: object) -> None:
        raise ArithmeticError("broken")

    monkeypatch.setattr(LogitsProcessor, "edit", broken)
    with pytest.raises(ArithmeticError, match="broken"):
        core.step()
