"""KNN-SSD: the prompt's domain, found by its last hidden vector, chooses one of the layer sets searched offline.

`knapserve tune --policy knn-ssd` searches for a set for each domain, and for the anchors that represent the domain. The
last hidden vector is the residual stream after the last layer, before the final norm, at the prompt's last token. The
paper does not say whether its vector has passed the norm.

Beyond the paper, a prompt that is far from all anchors may be decoded plainly (`--knn-ssd-fallback`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engine.draft.base import DraftPolicy, Outcome, PolicyContext, RequestView
from engine.step import Plan, References
from papers.layer_sets import Anchors, find
from papers.settings import KnnSSDConfig


@dataclass(slots=True)
class RequestState:
    """The plan of one request, for all of its rounds; None until its prompt has been read."""

    plan: Plan | None = None


class KnnSSD(DraftPolicy[RequestState]):
    """Draft with the layer set of the nearest anchor's domain (KNN-SSD, section 4.2)."""

    name = KnnSSDConfig.name
    state_type = RequestState

    def __init__(self, context: PolicyContext) -> None:
        config = context.config.of(KnnSSDConfig)
        self.layer_sets = layer_sets = find(context, self.name, config.sets)
        self._plain = Plan(context.spec.whole, gamma=0)
        self._plans = {
            domain: Plan(variants, config.gamma, config.confidence) for domain, variants in layer_sets.sets.items()
        }
        self._anchors = Anchors(layer_sets.anchors)
        self._least_similarity = layer_sets.least_similarity if config.fallback == "plain" else -math.inf

    def plan(self, view: RequestView[RequestState]) -> Plan:
        return view.state.plan or self._plain

    def can_reuse_plans(self) -> bool:
        return True  # a request that decodes has its plan since the end of its prompt

    def rows_to_record(self, view: RequestView[RequestState]) -> int:
        return int(view.state.plan is None)

    def learn(self, view: RequestView[RequestState], outcome: Outcome) -> None:
        if view.state.plan is None and outcome.references is not None:
            view.state.plan = self._match(last_hidden(outcome.references))

    def _match(self, vector: np.ndarray) -> Plan:
        domain, similarity = self._anchors.nearest(vector)
        return self._plans[domain] if similarity >= self._least_similarity else self._plain


def last_hidden(references: References) -> np.ndarray:
    """Return X^(2L) of the last recorded row, in float64: [hidden]."""
    return np.array(references.states[-1, -1].tolist())
