"""SWIFT: search for the sublayers to skip while requests decode, by the tokens that they generated.

Xia et al., "SWIFT: On-the-Fly Self-Speculative Decoding for LLM Inference Acceleration", ICLR 2025. "The authors' code"
is github.com/hemingkx/SWIFT. One search serves all requests, and goes on from one to the next:

  - a request first accumulates context: a window of generated tokens (section 4.1.1);
  - from then on, each round scores one more set of sublayers on that window (section 4.1.2);
  - the best set drafts until a token of low confidence (section 4.2), during the search and after it.

The matchness of a set depends on the text. It is compared with that of another set on the same window only: the best
set of earlier requests is scored again on the window of each new one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.draft.base import BatchView, DraftPolicy, PolicyContext, RequestView, RoundOutcome
from engine.plans import SKIP, TARGET, Variants
from engine.step import Plan
from papers.layer_sets import require_extra
from papers.settings import SwiftConfig

if TYPE_CHECKING:
    from papers.bayesian import Point

# The ratio went from 0.5 to 0.4 for Llama-3-70B (appendix C.2, footnote), in one step as far as the paper says.
_RATIO_STEP = 0.1
# Scores that a suggestion takes into account. It takes 0.3 s with 128 scores in 44 to 56 dimensions, 0.5 s with 256,
# 1.7 s with 512 and 8 s with 1000 (Zen 3, one thread), and all requests wait for it.
_SCORES = 128
_SEED = 1  # the seed of the random sets (the authors' code has this one for its Bayesian optimisation)


class Candidate(NamedTuple):
    """A set of sublayers to skip, as a plan and as a point of the Bayesian optimisation."""

    plan: Variants
    point: Point  # [2L-4], near 1 for sublayers to skip


class LayerSearch:
    """Random search with Bayesian optimisation at intervals, over sets of one size (SWIFT, eq. 2).

    The first and the last layer are never skipped. The number of skipped sublayers is a fixed share of all others.
    """

    def __init__(self, config: SwiftConfig, layers: int) -> None:
        self._config, self._layers = config, layers
        self._inner = max(2 * layers - 4, 0)  # sublayers of all layers but the first and the last
        self._random = np.random.default_rng(_SEED)
        self.begin(config.skip_ratio)

    def begin(self, ratio: float) -> None:
        """Begin anew, from the uniform set, with a share of the inner sublayers to skip."""
        self.ratio, self.skips = ratio, int(ratio * self._inner)
        self.initial = self.best = self._plan(uniform_set(self._layers, self.skips))
        self.steps = self._improved = 0  # steps so far, and when the best set changed
        self.done = self.skips == 0
        self._scores: deque[tuple[Point, float]] = deque(maxlen=_SCORES)

    def lower(self) -> None:
        """Begin anew with a lower ratio, unless nothing would be skipped."""
        ratio = round(self.ratio - _RATIO_STEP, 2)
        if int(ratio * self._inner) > 0:
            self.begin(ratio)

    def propose(self) -> Candidate:
        """Return the set to score in the next step.

        A suggested point stands for the set of its largest coordinates, as in the authors' code.
        """
        if (self.steps + 1) % self._config.interval == 0 and self._scores:
            from papers.bayesian import suggest

            point = suggest(self._scores, self._inner, self.steps)
            chosen = np.argsort(-point, kind="stable")[: self.skips]
        else:
            chosen = self._random.choice(self._inner, self.skips, replace=False)
            point = np.zeros(self._inner)
            point[chosen] = 1.0
        return Candidate(self._plan([2 + int(index) for index in chosen]), point)

    def learn(self, candidate: Candidate, matchness: Mapping[Variants, float]) -> None:
        """Take in the matchness of a candidate, of the best set and of the initial set, all on the same window."""
        config, score = self._config, matchness[candidate.plan]
        # Relative to the initial set, scores on windows of different difficulty can serve one Gaussian process.
        self._scores.append((candidate.point, score - matchness[self.initial]))
        self.steps += 1
        if score > matchness[self.best]:
            self.best, self._improved = candidate.plan, self.steps
        unchanged = self.steps - self._improved
        self.done = (
            matchness[self.best] >= config.max_matchness
            or unchanged >= config.patience
            or self.steps >= config.max_steps
        )

    def _plan(self, skipped: Sequence[int]) -> Variants:
        return (*(SKIP if index in skipped else TARGET for index in range(2 * self._layers)), TARGET)


@dataclass(slots=True)
class RequestState:
    """What the policy keeps of one request."""

    matchness: dict[Variants, float] = field(default_factory=dict)  # matchness by set, on the request's own window


class Swift(DraftPolicy[RequestState]):
    """SWIFT, as published: it drafts even where that is slower."""

    name = SwiftConfig.name
    state_type = RequestState

    def __init__(self, context: PolicyContext) -> None:
        require_extra("its search")
        self._config = context.config.of(SwiftConfig)
        self.search = LayerSearch(self._config, context.spec.layers)
        # Rounds with drafts, and their drafted and accepted tokens, since acceptance was last judged.
        self._rounds = self._drafted = self._accepted = 0

    def propose(self, batch: BatchView[RequestState]) -> Sequence[Plan]:
        """Score one candidate, on the window of the oldest request that has one; return the best set for all.

        The paper has one request, and one candidate in each of its steps. Here a round is a step. Candidates for more
        requests would take a pass each, as each reads another request's K/V, and all requests would wait for them.
        """
        search = self.search
        if not search.done:
            view = next((view for view in batch.views if self._has_window(view)), None)
            if view is not None:
                before = search.best
                self._step(view)
                for each in batch.views:
                    each.reselected = "kept" if search.best == before else "changed"
        gamma = self._config.gamma if search.skips else 0  # without layers to skip, a draft is the whole model
        plan = Plan(search.best, gamma, self._config.confidence)
        return [plan] * len(batch.views)

    def can_reuse_plans(self) -> bool:
        return self.search.done

    def observe(self, views: Sequence[RequestView[RequestState]], round: RoundOutcome) -> None:
        self._drafted += sum(outcome.drafted for outcome in round.outcomes)
        self._accepted += sum(outcome.accepted for outcome in round.outcomes)
        self._rounds += any(outcome.drafted for outcome in round.outcomes)
        if self._rounds == self._config.patience:
            self._judge_acceptance()

    def _has_window(self, view: RequestView[RequestState]) -> bool:
        """Whether the window is full of generated tokens (context accumulation, section 4.1.1)."""
        return len(view.tokens) - view.prompt_tokens >= self._config.window

    def _step(self, view: RequestView[RequestState]) -> None:
        """Score one candidate; with it the best set and the initial one, if they have no score on this window."""
        search, matchness = self.search, view.state.matchness
        candidate = search.propose()
        new = [plan for plan in dict.fromkeys((candidate.plan, search.best, search.initial)) if plan not in matchness]
        if new:
            matchness.update(zip(new, self._measure(view, new), strict=True))
        search.learn(candidate, matchness)

    def _measure(self, view: RequestView[RequestState], plans: Sequence[Variants]) -> list[float]:
        """Return each plan's matchness on the first tokens that a request generated (SWIFT, eq. 3 and 4).

        One pass of all plans predicts every token of the window from the tokens before, over the target's K/V. Plans of
        a sampled request draw with the noise of the target's own draws, as drafts do; without noise, the draw is the
        argmax.
        """
        first, size = view.prompt_tokens, self._config.window
        passes = view.candidates(range(first - 1, first - 1 + size))
        rows = passes.embed(view.tokens[first - 1 : first - 1 + size])
        drawn, _ = passes.draws(passes.run(rows.expand(len(plans), *rows.shape), plans), plans)
        generated = view.tokens[first : first + size]
        return [sum(a == b for a, b in zip(tokens, generated, strict=True)) / size for tokens in drawn]

    def _judge_acceptance(self) -> None:
        """Lower the ratio if too few draft tokens were accepted since the last call (appendix C.2, footnote).

        The paper does not say how long acceptance has to stay low. Here it does for as many rounds as the search may go
        on without a better set, which is the paper's one measure of patience.
        """
        drafted, accepted = self._drafted, self._accepted
        self._rounds = self._drafted = self._accepted = 0
        if accepted < self._config.min_acceptance * drafted:
            self.search.lower()


def uniform_set(layers: int, count: int) -> list[int]:
    """Return `count` sublayers, whole layers if it is even, at even distances between the first and the last layer.

    Half of them are those of every other layer, from the second: the initial set of the authors' code.
    """
    skipped = -(-count // 2)  # layers
    return [2 * (1 + i * (layers - 2) // skipped) + part for i in range(skipped) for part in (0, 1)][:count]
