"""CLaSp (Chen et al., 2025): skip the layers whose absence changes the last verified token's states least.

A dynamic programme over whole layers finds M of them (CLaSp, eq. 2 and algorithm 1). g(i, j) is the best state after i
layers of which j are skipped:

    g(i, j) = f_i(g(i−1, j)) or g(i−1, j−1), whichever has the larger cosine with h_i

where f_i is layer i and h_i the full model's state. That is the table of `engine.model.knapsack` with layers in place
of sublayers, and a weight of one for each. Its back-pointers replace the paper's comparison of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.draft.base import CandidatePass, DraftPolicy, Outcome, PolicyContext, RequestView
from engine.plans import SKIP, TARGET, Variants
from engine.step import Plan, References
from papers.settings import ClaspConfig

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(slots=True)
class SkipState:
    """What the policy keeps of one request."""

    variants: Variants | None = None  # in use
    left: int = 0  # tokens until the layers are chosen again
    references: References | None = None  # the last verified row, if the layers are to be chosen


class InContextSkip(DraftPolicy[SkipState]):
    """Draft without the layers that the programme chose, up to an unsure token; choose again after some tokens."""

    name = ClaspConfig.name
    state_type = SkipState

    def __init__(self, context: PolicyContext) -> None:
        self._config, self._layers = context.config.of(ClaspConfig), context.spec.layers
        self._skips = round(self._config.skip_ratio * self._layers)
        self._confidence = context.config.draft_confidence
        self._plain = Plan(context.spec.whole, gamma=0)

    def plan(self, view: RequestView[SkipState]) -> Plan:
        state = view.state
        if state.references is not None:
            references, state.references = state.references, None
            layers = self._choose(view.candidates(references.positions), references)
            if layers is not None:
                state.variants, state.left = layers, self._config.interval
        if state.variants is None:
            return self._plain
        return Plan(state.variants, self._config.gamma, self._confidence)

    def _choose(self, passes: CandidatePass, references: References) -> Variants | None:
        def run(layer: int, states: Tensor) -> Tensor:
            return passes.run(states, [layer_plan(layer, self._layers)] * len(states))

        chosen = skip_layers(references.states[::2], self._skips, run)
        return None if chosen is None else (*(variant for each in chosen for variant in (each, each)), TARGET)

    def rows_to_record(self, view: RequestView[SkipState]) -> int:
        return int(view.state.left <= 0)

    def learn(self, view: RequestView[SkipState], outcome: Outcome) -> None:
        view.state.left -= outcome.emitted
        view.state.references = outcome.references

    def suspend(self, view: RequestView[SkipState]) -> None:
        view.state.references = None


def skip_layers(references: Tensor, skips: int, run: Callable[[int, Tensor], Tensor]) -> tuple[int, ...] | None:
    """Choose `skips` layers to skip: -> TARGET or SKIP for each layer, or None if states are not finite.

    `references` [L+1, rows, hidden]: the full model's states before the first layer and after each. `run` takes states
    [states, rows, hidden] through a layer.
    """
    from engine.model.knapsack import Knapsack, skipping

    table = Knapsack(references, skipping([1] * (len(references) - 1)), capacity=skips)
    while not table.done:
        table.advance(lambda layer, states, _: run(layer, states))
    return next((found.variants for found in table.candidates() if found.saved == skips), None)


def layer_plan(layer: int, layers: int) -> Variants:
    """Return the plan that runs one layer only."""
    return (SKIP, SKIP) * layer + (TARGET, TARGET) + (SKIP, SKIP) * (layers - 1 - layer) + (TARGET,)
