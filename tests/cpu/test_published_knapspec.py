"""`knapsack` chooses what a naive reading of the paper chooses, state by state and in torch alone."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AutoModelForCausalLM

from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.draft.base import PolicyContext
from engine.plans import SKIP, TARGET
from engine.types import GenerateRequest
from papers.knapsack import PublishedKnapSpec, SearchState, best_length, weights
from papers.settings import KnapsackConfig
from tests.support.cores import GREEDY, ManualClock, load, made_up_profile, tiny_model

PROMPT = tuple(range(5, 45))
D, TAU = 10, 0.5


class Paper:
    """KnapSpec over a Llama of transformers: the decoder mappings f⁽ⁱ⁾ of section 2, and algorithms 1 and 2."""

    def __init__(self, model: Any, tokens: Sequence[int], positions: Sequence[int]) -> None:
        """`positions`: of the rows of X, among `tokens`."""
        self.model, self.layers = model, model.model.layers
        every = torch.arange(len(tokens))
        cos, sin = model.model.rotary_emb(torch.zeros(1, 1, dtype=torch.float64), every[None])
        self.rotation = cos[0].double(), sin[0].double()
        self.positions = torch.tensor(positions)
        states = [model.model.embed_tokens(torch.tensor(tokens))]
        self.past: list[Tensor] = []  # the full model's states before each attention, at all positions
        for i in range(2 * len(self.layers)):
            self.past.append(states[-1])
            states.append(self.mapped(i, states[-1], every))
        self.x = [state[self.positions] for state in states]  # X⁽⁰⁾ … X⁽²ᴸ⁾ [r, hidden]

    def mapped(self, i: int, h: Tensor, at: Tensor) -> Tensor:
        """f⁽ⁱ⁺¹⁾: a row sees the target's K/V before it, and its own."""
        layer = self.layers[i // 2]
        if i % 2:
            return h + layer.mlp(layer.post_attention_layernorm(h))
        attention, width = layer.self_attn, layer.self_attn.head_dim

        def heads(projection: Any, x: Tensor, where: Tensor | None) -> Tensor:
            found = projection(layer.input_layernorm(x)).unflatten(-1, (-1, width))  # [rows, heads, width]
            if where is None:
                return found
            cos, sin = (part[where][:, None] for part in self.rotation)
            first, second = found.chunk(2, -1)
            return found * cos + torch.cat([-second, first], -1) * sin

        queries, groups = heads(attention.q_proj, h, at), attention.num_key_value_groups
        own_keys, own_values = heads(attention.k_proj, h, at), heads(attention.v_proj, h, None)
        before = self.past[i]
        keys, values = heads(attention.k_proj, before, torch.arange(len(before))), heads(attention.v_proj, before, None)
        rows = []
        for row, position in enumerate(at.tolist()):
            k = torch.cat([keys[:position], own_keys[row : row + 1]]).repeat_interleave(groups, 1)
            v = torch.cat([values[:position], own_values[row : row + 1]]).repeat_interleave(groups, 1)
            scores = torch.einsum("hd,nhd->hn", queries[row], k) / math.sqrt(width)
            rows.append(torch.einsum("hn,nhd->hd", scores.softmax(-1), v).flatten())
        return h + attention.o_proj(torch.stack(rows))

    def select(self, t_attn: float, t_mlp: float, width: int = 1) -> tuple[tuple[int, ...], int, float]:
        """Return S*, γ* and α̂: algorithm 1 without its nesting of the skip, and algorithm 2.

        `width`: sublayers that are skipped together.
        """
        count, times = len(self.layers), [t_attn, t_mlp] if width == 1 else [t_attn + t_mlp]
        w = [round(t / min(times)) for t in times] * count
        budget = sum(w) // 2
        g: dict[int, tuple[Tensor, tuple[int, ...]]] = {0: (self.x[0], ())}
        for i, weight in enumerate(w):
            best: dict[int, tuple[float, Tensor, tuple[int, ...]]] = {}
            for runs in (True, False):  # ties execute
                for j, (h, chosen) in g.items():
                    after = h
                    for sublayer in range(i * width, (i + 1) * width) if runs else ():
                        after = self.mapped(sublayer, after, self.positions)
                    saved = j if runs else j + weight
                    similar = float(F.cosine_similarity(after, self.x[(i + 1) * width], dim=-1).mean())
                    if similar > max(TAU, best[saved][0] if saved in best else -1) and saved <= budget:
                        best[saved] = similar, after, (*chosen, *[TARGET if runs else SKIP] * width)
            g = {j: (h, chosen) for j, (_, h, chosen) in best.items()}
        found: tuple[float, tuple[int, ...], int, float] = (0.0, (), 0, 0.0)
        for k in sorted(g):
            h, chosen = g[k]
            alpha = float((self.tokens(h) == self.tokens(self.x[-1])).double().mean())
            draft = sum(t for t, runs in zip([t_attn, t_mlp] * count, chosen, strict=True) if runs)
            for gamma in range(1, D + 1):
                expected = gamma + 1 if alpha == 1 else (1 - alpha ** (gamma + 1)) / (1 - alpha)
                tpt = expected / (gamma * draft + count * (t_attn + t_mlp))
                if tpt > found[0] * (1 + 1e-12):
                    found = tpt, chosen, gamma, alpha
        return found[1:]

    def tokens(self, h: Tensor) -> Tensor:
        found: Tensor = self.model.lm_head(self.model.model.norm(h)).argmax(-1)
        return found


class Search(NamedTuple):
    """What a search saw."""

    steps: int  # of the engine before it
    tokens: tuple[int, ...]
    positions: tuple[int, ...]  # of its rows
    context: int
    state: SearchState  # after it


def searches(core: EngineCore, *requests: GenerateRequest) -> Iterator[Search]:
    """Run requests to their ends, and stop after each search."""
    for request in requests:
        core.add(request)
    steps = 0
    while not core.scheduler.idle:
        due = []
        for request in core.scheduler.running:
            state = request.view.state
            if state.left <= 0:
                positions = tuple(position for rows in state.rows for position in rows.positions)
                due.append(Search(steps, tuple(request.view.tokens), positions, request.computed, state))
        core.step()
        steps += 1
        yield from due


def request(name: str = "a", **changes: Any) -> GenerateRequest:
    return GenerateRequest(name, PROMPT, replace(GREEDY, ignore_eos=True, **changes), "knapsack")


DAILY = (1, 15)  # plans that skip, and one that changes


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[] if seed in DAILY else pytest.mark.nightly) for seed in range(20)]
)
@pytest.mark.parametrize("items", ["sublayers", "layers"])
def test_plan_and_length_equal_the_naive_reading(seed: int, items: str, tmp_path: Path) -> None:
    shape = {"num_hidden_layers": 2 + seed % 4, "intermediate_size": (64, 96, 160)[seed % 3]}
    reference = tiny_model(tmp_path, seed=seed, scale=0.5 + 0.1 * (seed % 5), drafts=True, **shape).double()
    profile = made_up_profile()
    profile = replace(profile, mlp_at=tuple(tuple(t * (1 + seed % 5 * 0.7) for t in each) for each in profile.mlp_at))
    core = load(torch.float64, profile, model=tmp_path).core(EngineConfig(policies=(KnapsackConfig(items=items),)))
    for found in islice(searches(core, request(max_tokens=120)), 2):
        t_attn, t_mlp = core.costs.sublayers(found.context)[:2]
        with torch.inference_mode():
            plan, gamma, alpha = Paper(reference, found.tokens, found.positions).select(
                t_attn, t_mlp, width=1 if items == "sublayers" else 2
            )
        choice = found.state.choice
        assert choice is not None
        assert (choice.variants[:-1], choice.gamma) == (plan, gamma)
        assert choice.acceptance == pytest.approx(alpha)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.skipif("KNAPSERVE_REAL_MODEL" not in os.environ, reason="KNAPSERVE_REAL_MODEL names no checkpoint")
@pytest.mark.parametrize("context", [250, 1000, 3000])
def test_plan_and_length_equal_the_naive_reading_on_a_real_checkpoint(context: int) -> None:
    """In float64, at the first search after a real text of so many tokens."""
    directory = os.environ["KNAPSERVE_REAL_MODEL"]
    core = load(torch.float64, model=directory, max_model_len=4096, draft_bits="none").core(EngineConfig())
    text = (Path(__file__).parents[2] / "docs" / "method.md").read_text("utf-8")
    prompt = tuple(core.tokenizer.encode(text)[:context])
    found = next(searches(core, GenerateRequest("a", prompt, replace(GREEDY, ignore_eos=True), "knapsack")))
    reference = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float64)
    with torch.inference_mode():
        plan, gamma, alpha = Paper(reference, found.tokens, found.positions).select(
            *core.costs.sublayers(found.context)[:2]
        )
    choice = found.state.choice
    assert choice is not None
    print(f"\n{context}: {plan.count(SKIP)} of {len(plan)} skipped, length {gamma}, acceptance {alpha:.3f}")
    assert (choice.variants[:-1], choice.gamma) == (plan, gamma)
    assert choice.acceptance == pytest.approx(alpha)


def test_each_request_searches_after_six_steps_and_then_every_t(tiny: Path) -> None:
    """As in the authors' code: the prompt is step 0, and rows of the five steps before a search are its references."""
    core = load(torch.float64, model=tiny).core(EngineConfig(policies=(KnapsackConfig(interval=20),)))
    found = list(searches(core, request("a", max_tokens=200), request("b", max_tokens=200, seed=1, temperature=0.8)))
    for begun, state in enumerate((found[0].state, found[1].state)):  # prompts are read one after the other
        own = [search for search in found if search.state is state]
        assert len(own) > 3
        assert [search.steps for search in own] == [7 + begun + 20 * i for i in range(len(own))]
        for search in own:
            context = len(search.tokens) - 1
            assert search.positions == tuple(range(context - len(search.positions), context))
            assert len(search.positions) >= 5


def test_before_its_first_search_the_whole_model_drafts(tiny: Path) -> None:
    core = load(torch.float64, model=tiny).core(EngineConfig())
    core.add(request(max_tokens=20))
    core.step()
    core.step()
    plan = core.scheduler.running[0].plan
    assert plan is not None
    assert (plan.variants, plan.gamma, plan.min_confidence) == (core.costs.spec.whole, D, 0.7)


def test_large_models_search_half_as_often(tiny: Path) -> None:
    model = load(torch.float64, model=tiny)
    context = PolicyContext(model.spec, EngineConfig(), model.core(EngineConfig()).costs, ManualClock())
    assert PublishedKnapSpec(context).interval == 64
    assert PublishedKnapSpec(replace(context, spec=replace(model.spec, intermediate=10**10))).interval == 128
    config = EngineConfig(policies=(KnapsackConfig(interval=7),))
    assert PublishedKnapSpec(replace(context, config=config)).interval == 7


def test_a_preempted_request_gathers_its_rows_anew(tiny: Path) -> None:
    core = load(torch.float64, model=tiny).core(EngineConfig())
    core.add(request())
    for _ in range(6):
        core.step()
    view = core.scheduler.running[0].view
    assert (view.state.left, len(view.state.rows)) == (1, 4)
    core.policy("knapsack").suspend(view)
    assert next(searches(core)).steps == 6
    assert view.state.left == 63


def test_unlike_states_leave_the_whole_model(tiny: Path) -> None:
    """With τ = 1 every candidate is pruned, but for the model itself."""
    core = load(torch.float64, model=tiny).core(EngineConfig(policies=(KnapsackConfig(tau=1.0),)))
    found = next(searches(core, request()))
    assert found.state.choice is not None
    assert found.state.choice.variants == core.costs.spec.whole


@pytest.mark.parametrize(("seconds", "resolution", "ticks"), [
    ([1.0, 1.0], 1, [1, 1]),
    ([1.0, 1.4], 1, [1, 1]),
    ([1.6, 1.0], 1, [2, 1]),
    ([1.0, 1.4], 8, [8, 11]),
])  # fmt: skip
def test_weights_are_rounded_multiples_of_the_cheaper_time(
    seconds: list[float], resolution: int, ticks: list[int]
) -> None:
    assert weights(seconds, resolution) == ticks


def test_the_best_length_is_that_of_the_formula() -> None:
    for alpha in (0.0, 0.3, 0.9, 1.0):
        for draft in (0.1, 0.5, 1.0):
            gamma, acceptance, tpt = best_length(alpha, draft, 1.0, D)
            every = [sum(alpha**i for i in range(g + 1)) / (g * draft + 1.0) for g in range(1, D + 1)]
            assert acceptance == alpha
            assert tpt == pytest.approx(max(every))
            assert every[gamma - 1] == pytest.approx(tpt)
