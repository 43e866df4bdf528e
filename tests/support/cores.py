"""Cores over the prepared fixture and over tiny random checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedConfig

from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.core.policies import policy_kinds
from engine.draft.base import BatchView, RequestView, RoundOutcome
from engine.draft.fixed import uniform_variants
from engine.host.process import EngineProcess
from engine.kernels.library import kernel_library
from engine.kv.cache import Cache
from engine.model.attention import Segment
from engine.model.backend import Backend
from engine.model.decoder import Draws
from engine.plans import Variants
from engine.runtime.build import LoadedModel
from engine.step import Plan, StepOutput
from engine.types import GenerateRequest, RequestRound, SamplingParams, TokenEvent
from papers import layer_sets
from papers.layer_sets import LayerSets
from papers.settings import KnnSSDConfig, SelfSDConfig
from profiles.schema import LatencyProfile, ProfileKey
from profiles.store import write_atomically
from tests.support import CONFIG, PREPARED
from tests.support.timed import Delegate, TimedModel

GREEDY = SamplingParams(max_tokens=64, temperature=0.0)
SAMPLED = SamplingParams(max_tokens=64, temperature=0.7, top_p=0.9)


class ManualClock:
    """A clock that a test sets, and that counts readings."""

    def __init__(self) -> None:
        self.time = 0.0
        self.readings = 0

    def now(self) -> float:
        self.readings += 1
        return self.time


class Learning:
    """Count the rounds that a policy has observed at each proposal and at the start of each round.

    All requests of the core must use this policy: it then observes every round once.
    """

    def __init__(self, policy: str) -> None:
        self.ran: list[StepOutput] = []
        self.observed = 0  # rounds
        self.proposed: list[int] = []  # rounds run before each proposal
        self.unobserved: list[tuple[int, int]] = []  # at each round's start: rounds run, and those not yet observed
        self._policy = policy

    @property
    def done(self) -> bool:
        return self.observed == len(self.ran)

    def core(self, make: Callable[..., EngineCore], *args: Any, **options: Any) -> EngineCore:
        """Call `make`, such as `LoadedModel.core`, for a core whose policy and runner are watched."""
        kind: Any = policy_kinds()[self._policy]
        learning = self

        class WatchedPolicy(kind):  # type: ignore[misc]
            def propose(self, batch: BatchView[Any]) -> Sequence[Plan]:
                learning.proposed.append(len(learning.ran))
                assert learning.done
                return super().propose(batch)  # type: ignore[no-any-return]

            def observe(self, views: Sequence[RequestView[Any]], round: RoundOutcome) -> None:
                learning.observed += 1
                super().observe(views, round)

        class WatchedRunner(Delegate):
            def run(self, *args: Any, **named: Any) -> StepOutput:
                learning.unobserved.append((len(learning.ran), len(learning.ran) - learning.observed))
                learning.ran.append(self.inner.run(*args, **named))
                return learning.ran[-1]

        with patch.dict(policy_kinds(), {self._policy: WatchedPolicy}):
            core = make(*args, wrap_runner=WatchedRunner, **options)
            core.policy(self._policy)  # policies are made at their first use
        return core


def made_up_profile(head: float = 1e-4, verify_slope: float = 0.02, low_bit: float | None = None) -> LatencyProfile:
    """Plausible prices for a small model, so that tests neither measure nor depend on the machine.

    `low_bit`: the price of a copy in fewer bits, as a share of the model's own; None: there is no copy.
    """
    rows = (1, 2, 4, 8, 16, 32)

    def grows(base: float) -> tuple[tuple[float, ...], ...]:
        own = tuple(base * (1 + verify_slope * (r - 1)) for r in rows)
        return (own,) if low_bit is None else (own, tuple(low_bit * seconds for seconds in own))

    key = ProfileKey("made up", 1, "any", "any", "any", 0)
    scan = ((1e-4,) * len(rows),)
    return LatencyProfile(key, rows, (1000,), 5e-5, grows(1.5e-4), grows(1.4e-4), grows(head), scan, 1.0, 0.0, 0.0)


def load(
    dtype: torch.dtype | None = None,
    profile: LatencyProfile | None = None,
    backend: Backend | None = None,
    **settings: Any,
) -> LoadedModel:
    """Load the prepared fixture, or `model`, with a made-up profile, which also says how long its rounds take.

    It gets one thread unless `threads` says otherwise, since tests run beside each other.
    """
    settings.setdefault("threads", 1)
    settings["model"] = str(settings.get("model", PREPARED))
    return TimedModel(EngineConfig(**settings), dtype=dtype, profile=profile or made_up_profile(), backend=backend)


def exact(**settings: Any) -> LoadedModel:
    """The prepared fixture in arithmetic in which a row's logits do not depend on other rows.

    The native kernels in bfloat16 take a tenth of the time of float64.
    """
    if kernel_library() is None:
        return load(torch.float64, **settings)
    return load(torch.bfloat16, kernels="native", **settings)


def with_layer_sets(model: LoadedModel, config: EngineConfig, directory: Path) -> EngineConfig:
    """Return the settings with layer sets, in files, for the policies that need them. Any prompt matches a domain."""
    half, third = (uniform_variants(model.spec.layers, ratio) for ratio in (0.5, 0.34))
    axis = np.eye(1, model.spec.hidden)
    single = LayerSets("self-sd", model.source.fingerprint, {"": half})
    matched = LayerSets("knn-ssd", model.source.fingerprint, {"a": half, "b": third}, {"a": axis, "b": -axis})
    for found in (single, matched):
        write_atomically(layer_sets.to_json(found), directory / found.policy)
    own = (SelfSDConfig(str(directory / "self-sd")), KnnSSDConfig(str(directory / "knn-ssd")))
    return replace(config, policies=(*own, *config.policies))


VOCABULARY = int(CONFIG["vocab_size"])


def tiny_model(
    directory: Path,
    family: type[PreTrainedConfig] = LlamaConfig,
    seed: int = 0,
    scale: float = 1.0,
    drafts: bool = False,
    **changes: Any,
) -> Any:
    """Write a random checkpoint with the prepared fixture's tokenizer. Returns the reference model.

    Weights are large enough for greedy text to vary. With `drafts` layers matter less than the embedding, so that parts
    of the model draft some tokens.
    """
    settings: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 256,
        "eos_token_id": 0,
        "bos_token_id": None,
        "pad_token_id": 0,
        "tie_word_embeddings": False,
    }
    torch.manual_seed(seed)
    model: Any = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
        family(**(settings | changes))
    ).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(
                torch.randn_like(parameter) * 0.1 + 1 if "norm" in name else torch.randn_like(parameter) * 0.15 * scale
            )
        if drafts:
            model.get_input_embeddings().weight.mul_(8)
            model.base_model.norm.weight.mul_(4)
    model.tie_weights()
    model.save_pretrained(directory)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(PREPARED / name, directory / name)
    return model


def chat_ids(core: EngineCore | EngineProcess, text: str) -> tuple[int, ...]:
    rendered = core.tokenizer.render_chat([{"role": "user", "content": text}])
    return tuple(core.tokenizer.encode(rendered, add_special_tokens=False))


def copy_context(cache: Cache, source: int, target: int, tokens: int) -> None:
    """Copy the K/V of the first `tokens` positions of one slab to another, in whole blocks."""
    pages = cache.tables[[source, target], : -(-tokens // cache.block_size)].long()
    for layer in cache.layers:
        layer[pages[1]] = layer[pages[0]]


def logits_of(model: LoadedModel, segments: Sequence[Segment], tokens: Sequence[int], *plans: Variants) -> torch.Tensor:
    """Run a step over rows of these tokens; return the logits after each of them [rows, vocab]."""
    draws = Draws(range(len(tokens)), [GREEDY] * len(tokens), range(len(tokens)))
    batch = model.attention.prepare(segments)
    return model.decoder.step(tokens, batch, plans or (model.spec.whole,), draws).logits.clone()


def answer(
    core: EngineCore,
    prompts: Sequence[tuple[int, ...]],
    sampling: SamplingParams = GREEDY,
    policies: Sequence[str | None] = (None,),
    *,
    concurrency: int = 1,
    seeds: Sequence[int] | None = None,
    rounds: list[RequestRound] | None = None,
) -> list[tuple[int, ...]]:
    """Tokens of every prompt, `concurrency` at a time; prompt i runs under policies[i % len] with seed i.

    `rounds` receives each request's part in each round.
    """
    said: dict[str, list[int]] = {}
    todo = list(enumerate(prompts))
    live = 0
    while todo or live:
        while todo and live < concurrency:
            index, prompt = todo.pop(0)
            seed = seeds[index] if seeds else index
            core.add(GenerateRequest(str(index), prompt, replace(sampling, seed=seed), policies[index % len(policies)]))
            live += 1
        report = core.step()
        if rounds is not None:
            rounds += report.rounds
        for event in report.events:
            assert isinstance(event, TokenEvent)
            said.setdefault(event.request_id, []).extend(event.token_ids)
            live -= event.finish_reason is not None
    core.scheduler.blocks.check_integrity()
    assert core.scheduler.blocks.usage == 0
    return [tuple(said[str(index)]) for index in range(len(prompts))]
