"""KnapSpec as published (Cha et al., 2026): the knapsack decides alone what drafts.

After every T steps of a request, a dynamic programme over its 2L sublayers (section 3.4) finds, for each weight that a
draft may skip, the sub-network whose last states have the largest cosine with the full model's. The references are the
rows of the last m = 5 steps. Each candidate's acceptance is its share of these rows at which it predicts the model's
own token (eq. 9); the candidate of the largest TPT (eq. 4), over draft lengths up to D, drafts for the next T steps.

Nothing here compares drafting with plain decoding, or learns from rounds. `engine.draft.knapspec` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.draft.base import CandidatePass, DraftPolicy, Outcome, PolicyContext, RequestView
from engine.plans import TARGET, Variants
from engine.step import Plan, References
from papers.clasp import layer_plan
from papers.settings import KnapsackConfig

if TYPE_CHECKING:
    from torch import Tensor

_STEPS = 5  # m: steps whose rows are the references (section 3.4)
_FIRST = 6  # steps before the first search, in the authors' code
_LARGE = 10e9  # parameters from which T is twice as long (section 5)


@dataclass(slots=True)
class SearchState:
    """What the policy keeps of one request."""

    left: int = _FIRST + 1  # steps until the next search; reading the prompt is the first
    rows: list[References] = field(default_factory=list)  # recorded rows of the last steps
    choice: Choice | None = None  # None until the first search: the whole model drafts


class Choice(NamedTuple):
    """A sub-network, and what the paper's formulas say of it."""

    variants: Variants
    gamma: int  # best length γ*: drafts end by confidence instead (section 3.5)
    acceptance: float  # α̂, eq. 9
    tpt: float  # tokens per second, eq. 4


class PublishedKnapSpec(DraftPolicy[SearchState]):
    """Draft with the sub-network that the last search of the request chose, up to an unsure token."""

    name = KnapsackConfig.name
    state_type = SearchState

    def __init__(self, context: PolicyContext) -> None:
        self._config, self._costs, self._spec = context.config.of(KnapsackConfig), context.costs, context.spec
        self.interval = self._config.interval or (64 if context.spec.parameters < _LARGE else 128)

    def plan(self, view: RequestView[SearchState]) -> Plan:
        state, config = view.state, self._config
        if state.left <= 0:
            before, state.left = state.choice, self.interval
            if state.rows:
                state.choice = self._search(view, state.rows)
                state.rows = []
                kept = before is not None and before.variants == state.choice.variants
                view.reselected = "kept" if kept else "changed"
                view.search_interval = self.interval
        if (choice := state.choice) is None:
            return Plan(self._spec.whole, config.gamma, config.confidence)
        return Plan(
            choice.variants,
            config.gamma,
            config.confidence,
            predicted_tpt=choice.tpt,
            predicted_acceptance=choice.acceptance,
            plain_tpt=1.0 / sum(self._costs.sublayers(view.context)),
        )

    def _search(self, view: RequestView[SearchState], rows: Sequence[References]) -> Choice:
        """Solve the knapsack at the request's context, over the rows of its last steps."""
        import torch

        config = self._config
        states = torch.cat([each.states for each in rows], dim=1)
        passes = view.candidates([position for each in rows for position in each.positions])
        seconds = self._costs.sublayers(view.context)
        return search(
            states,
            passes,
            seconds,
            self._spec.whole,
            config.gamma,
            tau=config.tau,
            resolution=config.resolution,
            whole_layers=config.items == "layers",
        )

    def rows_to_record(self, view: RequestView[SearchState]) -> int:
        return self._config.gamma + 1 if view.state.left <= _STEPS else 0

    def learn(self, view: RequestView[SearchState], outcome: Outcome) -> None:
        view.state.left -= outcome.emitted > 0
        if outcome.references is not None:
            view.state.rows.append(outcome.references)

    def suspend(self, view: RequestView[SearchState]) -> None:
        """Gather the rows of m steps again, as the cache under the old ones is lost."""
        view.state.rows, view.state.left = [], max(view.state.left, _STEPS + 1)


def weights(seconds: Sequence[float], resolution: int = 1) -> list[int]:
    """Return the integer weight of each sublayer, in ticks of the cheapest one's time ÷ `resolution` (section 3.4).

    `resolution` 1 is the paper's Δ. It prints both rounding and ⌊ ⌋; like the authors' code, this rounds.
    """
    unit = min(seconds) / resolution
    return [round(each / unit) for each in seconds]


def search(
    references: Tensor,
    passes: CandidatePass,
    seconds: Sequence[float],
    whole: Variants,
    most: int,
    *,
    tau: float = 0.5,
    resolution: int = 1,
    whole_layers: bool = False,
) -> Choice:
    """Solve the knapsack (algorithm 1) and return the candidate of the largest TPT, or the whole model without any.

    `references` [2L+1, rows, hidden]: the full model's states. `seconds`: t of each sublayer at this context. `most`:
    the longest draft, D. `whole_layers`: the items are layers, so that attention and MLP are skipped together.
    """
    from engine.model.knapsack import Knapsack, skipping

    width = 2 if whole_layers else 1  # sublayers of an item
    ticks = weights([sum(seconds[i : i + width]) for i in range(0, len(seconds), width)], resolution)
    table = Knapsack(references[::width], skipping(ticks), capacity=sum(ticks) // 2, tau=tau)  # skips at most K/2
    while not table.done:
        if whole_layers:
            table.advance(lambda layer, states, _: passes.run(states, [layer_plan(layer, len(ticks))] * len(states)))
        else:
            table.advance(passes.sublayer)
    states = {
        (*(variant for variant in found.variants for _ in range(width)), TARGET): found.state
        for found in table.candidates()
    }
    if not states:  # all were pruned, or are not numbers
        return Choice(whole, most, 1.0, 1.0 / sum(seconds))
    choices = [
        Choice(variants, *best_length(acceptance, draft_seconds(variants, seconds), sum(seconds), most))
        for variants, acceptance in agreements(states, references[-1], passes, whole).items()
    ]
    return max(choices, key=lambda choice: choice.tpt)


def agreements(
    states: Mapping[Variants, Tensor], final: Tensor, passes: CandidatePass, whole: Variants
) -> dict[Variants, float]:
    """Return α̂ of each candidate from its last states [rows, hidden]: eq. 9, against the full model's `final`."""
    import torch

    plans, stacked = (*states, whole), torch.stack([*states.values(), final])
    drawn = np.array(passes.draws(stacked, plans)[0])
    return dict(zip(states, (drawn == drawn[-1]).mean(axis=1).tolist(), strict=False))


def draft_seconds(variants: Variants, seconds: Sequence[float]) -> float:
    """Return t_draft(S) = n_attn(S)·t_attn + n_mlp(S)·t_mlp (section 3.2)."""
    return sum(each for variant, each in zip(variants, seconds, strict=False) if variant == TARGET)


def best_length(acceptance: float, draft: float, target: float, most: int) -> tuple[int, float, float]:
    """Return γ* in 1 … `most`, the shortest of equals, α̂, and TPT(S, γ*): eq. 4 with eq. 1.

    `draft` and `target` are seconds of a pass.
    """
    lengths = np.arange(1, most + 1)
    tokens = (acceptance ** np.arange(most + 1)).cumsum()[1:]  # Σ α^i for i = 0 … γ
    tpt = tokens / (lengths * draft + target)
    best = int((tpt > (1 - 1e-12) * tpt.max()).argmax())
    return int(lengths[best]), acceptance, float(tpt[best])
