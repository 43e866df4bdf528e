"""The anchors of KNN-SSD: last hidden vectors of the prompts that represent their domains best."""

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from bench.targets import PolicyTarget, Prompt
from engine.config.engine import EngineConfig
from engine.draft.baselines.knn_ssd import last_hidden
from engine.draft.baselines.layer_sets import unit
from engine.runtime.build import LoadedModel
from engine.runtime.runner import Runner
from engine.step import StepOutput, StepPlan
from engine.types import SamplingParams

ANCHORS = 10  # anchors of each domain (KNN-SSD, appendix C.1)
# The least similarity is rounded down to these parts, as a vector that is computed again may differ in the last bits.
_PARTS = 10_000


class _RecordingRunner(Runner):
    """A runner that keeps the last hidden vector of each prompt that it reads."""

    def __init__(self, runner: Runner, model: LoadedModel) -> None:
        super().__init__(runner.decoder, runner.attention, model.clock, overlaps=False)
        self.vectors: list[np.ndarray] = []

    def run(
        self, plan: StepPlan, on_wait: Callable[[], None] | None = None, *, overlap_next: bool = False
    ) -> StepOutput:
        for work in plan.work:
            work.rows_to_record = int(work.reads_prompt and work.draws_token)
        out = super().run(plan, on_wait, overlap_next=overlap_next)
        self.vectors += [last_hidden(o.references) for o in out.outputs if o.references is not None]
        return out


def last_hidden_vectors(model: LoadedModel, config: EngineConfig, prompts: Sequence[Prompt]) -> np.ndarray:
    """Return the last hidden vector of each prompt, as policy knn-ssd sees it, scaled to length one: [prompts, hidden].

    Raises ConfigError for a prompt that does not fit into the context.
    """
    runners: list[_RecordingRunner] = []

    def watched(runner: Runner) -> Runner:
        runners.append(_RecordingRunner(runner, model))
        return runners[-1]

    target = PolicyTarget("none", model.core(config, wrap_runner=watched), SamplingParams(max_tokens=1))
    for prompt in prompts:  # one at a time: the order of vectors is that of prompts
        target.run([prompt], 1)
    return unit(np.stack(runners[0].vectors))


def representatives(vectors: np.ndarray, count: int, seed: int) -> list[int]:
    """Return the numbers of the `count` vectors that represent all unit vectors [n, hidden] best; all, if they are few.

    They are the vectors nearest to the centroids of K-means, by cosine (KNN-SSD, eq. 2, with a centroid for each
    representative as in appendix C.1).
    """
    if len(vectors) <= count:
        return list(range(len(vectors)))
    from sklearn.cluster import KMeans  # takes a second to import

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal vectors leave clusters empty
        means = KMeans(count, n_init=10, random_state=seed).fit(vectors)
    similarities = vectors @ unit(means.cluster_centers_).T
    members = [np.flatnonzero(means.labels_ == cluster) for cluster in range(count)]
    return sorted(int(own[similarities[own, cluster].argmax()]) for cluster, own in enumerate(members) if own.size)


def choose_anchors(domains: Sequence[str], vectors: np.ndarray, seed: int) -> dict[str, list[int]]:
    """Return which of the prompts are the anchors of each domain.

    Prompt i is of `domains[i]`, and has the unit vector `vectors[i]`: [prompts, hidden].
    """
    chosen: dict[str, list[int]] = {}
    for domain in dict.fromkeys(domains):
        own = [i for i, other in enumerate(domains) if other == domain]
        chosen[domain] = [own[i] for i in representatives(vectors[own], ANCHORS, seed)]
    return chosen


def least_similarity(vectors: np.ndarray, anchors: Sequence[int]) -> float:
    """Return the cosine to the nearest anchor that a prompt needs in order to match.

    It is the lowest of the tuning prompts' own, where an anchor does not count for itself (leave-one-out): a new prompt
    may be as far from the anchors as the most remote of these. `vectors`: unit vectors [prompts, hidden]; `anchors`: of
    these prompts, two or more.
    """
    similarities = vectors @ vectors[list(anchors)].T
    similarities[list(anchors), range(len(anchors))] = -1.0
    return math.floor(float(similarities.max(axis=1).min()) * _PARTS) / _PARTS
