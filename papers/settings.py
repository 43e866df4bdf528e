"""Settings of the papers' draft policies. Each class is an entry point of the group `knapserve.policies`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.config.fields import AMOUNT, COUNT, SHARE, PolicySettings, setting


@dataclass(frozen=True)
class KnapsackConfig(PolicySettings):
    name = "knapsack"
    policy = "papers.knapsack:PublishedKnapSpec"

    # Defaults: KnapSpec, sections 3.4, 3.5 and 5.
    interval: int = setting(
        0,
        "policy knapsack: steps between two searches of a request (T); 0: 64, or 128 from 10B parameters on",
        limits=AMOUNT,
    )
    tau: float = setting(
        0.5,
        "policy knapsack: minimum mean cosine similarity of a search state; states below are pruned",
        limits=(-1, 1),
    )
    gamma: int = setting(10, "policy knapsack: maximum tokens drafted per round (D)", limits=COUNT)
    confidence: float = setting(0.7, "policy knapsack: minimum top-1 probability to continue a draft", limits=SHARE)
    resolution: int = setting(
        1,
        "policy knapsack: weight of the cheaper kind of sublayer, in ticks; 1: as in the paper",
        limits=COUNT,
    )
    items: str = setting(
        "sublayers",
        "policy knapsack: items of the knapsack: attention and MLP on their own, as in the paper (sublayers), or whole "
        "layers, for comparisons (layers)",
        choices=("sublayers", "layers"),
    )


@dataclass(frozen=True)
class LayerSkipConfig(PolicySettings):
    name = "layerskip"
    policy = "papers.layerskip:EarlyExit"

    exit: int = setting(0, "policy layerskip: number of layers that drafts run; 0: a quarter of them", limits=AMOUNT)
    gamma: int = setting(
        4, "policy layerskip: maximum tokens drafted per round; 12 if the length is adaptive", limits=AMOUNT
    )
    length: str = setting(
        "static",
        "policy layerskip: draft length. static: --layerskip-gamma tokens, or up to an unsure one. finite-state: one "
        "token more after a full accept, one less after a rejection. adaptive: up to a token below a threshold that is "
        "steered to --layerskip-target",
        choices=("static", "finite-state", "adaptive"),
    )
    target: float = setting(
        0.9,  # Draft & Verify: α in the authors' code
        "policy layerskip: accepted share of drafted tokens that the length adaptive steers to",
        limits=SHARE,
    )


@dataclass(frozen=True)
class SwiftConfig(PolicySettings):
    """Defaults are those of SWIFT's appendix B.2, unless the text beside them names another source."""

    name = "swift"
    policy = "papers.swift:Swift"

    # For 13B, the smallest model of the main results; also the default of the authors' code.
    skip_ratio: float = setting(
        0.45,
        "policy swift: share of the sublayers between first and last layer that drafts skip at first",
        limits=SHARE,
    )
    window: int = setting(
        32, "policy swift: first tokens of an answer, by which sets of layers are scored", limits=COUNT
    )
    interval: int = setting(
        25, "policy swift: every so many steps, Bayesian optimisation suggests the set; otherwise chance", limits=COUNT
    )
    max_steps: int = setting(1000, "policy swift: maximum steps of the search (S)", limits=COUNT)
    patience: int = setting(
        300,
        "policy swift: steps without a better set after which the search ends; also the rounds between two checks of "
        "--swift-min-acceptance",
        limits=COUNT,
    )
    max_matchness: float = setting(
        0.95, "policy swift: share of tokens predicted by the best set at which the search ends", limits=SHARE
    )
    min_acceptance: float = setting(  # appendix C.2, footnote
        0.7, "policy swift: accepted share of draft tokens below which fewer sublayers are skipped", limits=SHARE
    )
    gamma: int = setting(25, "policy swift: maximum tokens drafted per round", limits=AMOUNT)
    confidence: float = setting(  # `swift_draft` of the authors' code
        0.8, "policy swift: minimum top-1 probability to continue a draft", limits=SHARE
    )


@dataclass(frozen=True)
class DelConfig(PolicySettings):
    name = "del"
    policy = "papers.dynamic_exit:DynamicExit"

    # Defaults: DEL, appendix B.2.
    gamma: int = setting(18, "policy del: maximum tokens drafted per round (d_max)", limits=AMOUNT)
    decay: float = setting(0.95, "policy del: weight of a round in the statistics, over the next one's", limits=SHARE)
    rows: int = setting(32, "policy del: last prompt tokens that the statistics begin with", limits=COUNT)


@dataclass(frozen=True)
class ClaspConfig(PolicySettings):
    name = "clasp"
    policy = "papers.clasp:InContextSkip"

    skip_ratio: float = setting(
        # KnapSpec's comparison: 8 of 36 layers, 8 of 32, 10 of 40 and 20 of 64. CLaSp, section 5.3.3: 0.4 to 0.6.
        0.25,
        "policy clasp: share of the layers to skip",
        limits=SHARE,
    )
    interval: int = setting(
        128,  # CLaSp, section 5.3.2: speed grows up to 128
        "policy clasp: tokens after which the skipped layers are chosen again",
        limits=COUNT,
    )
    gamma: int = setting(
        12,  # the maximum in Draft & Verify's code: CLaSp names none
        "policy clasp: maximum tokens drafted per round",
        limits=AMOUNT,
    )


@dataclass(frozen=True)
class ASDConfig(PolicySettings):
    name = "asd"
    policy = "papers.asd:AdaptiveDrop"

    similarity: float = setting(
        0.99,  # ours: a quarter of the attention of Qwen2.5-Coder-0.5B, half of that of SmolLM2-135M
        "policy asd: cosine similarity of its input and output above which attention is skipped",
        limits=(-1, 1),
    )
    rows: int = setting(
        32,  # ours: those with which DEL begins
        "policy asd: last verified tokens over which similarities are averaged, at most",
        limits=COUNT,
    )
    interval: int = setting(
        128,  # ours: that of CLaSp
        "policy asd: tokens after which the attention to skip is chosen again",
        limits=COUNT,
    )
    confidence: float = setting(
        0.6,  # Draft & Verify, as for self-sd
        "policy asd: minimum top-1 probability to continue a draft, at first",
        limits=SHARE,
    )
    target: float = setting(
        0.9,  # Draft & Verify: α in the authors' code
        "policy asd: accepted share of drafted tokens that the minimum probability is steered to",
        limits=SHARE,
    )


@dataclass(frozen=True)
class KnnSSDConfig(PolicySettings):
    """It drafts as Self-SD does (KNN-SSD, section 4.2), so γ and the confidence have the same defaults."""

    name = "knn-ssd"
    policy = "papers.knn_ssd:KnnSSD"

    sets: str = setting(
        "auto",
        "policy knn-ssd: layer sets: a file made by `knapserve tune --policy knn-ssd`, auto (those of this model, if "
        "any) or none",
    )
    gamma: int = setting(12, "policy knn-ssd: maximum tokens drafted per round", limits=AMOUNT)
    confidence: float = setting(0.6, "policy knn-ssd: minimum top-1 probability to continue a draft", limits=SHARE)
    fallback: str = setting(
        "none",
        "policy knn-ssd: a prompt that is far from all kinds drafts as the nearest one (none) or not at all (plain)",
        choices=("none", "plain"),
    )


@dataclass(frozen=True)
class SelfSDConfig(PolicySettings):
    """γ and the confidence are those of Draft & Verify's evaluation (`evaluate_sum.ipynb` of its code)."""

    name = "self-sd"
    policy = "papers.self_sd:SelfSD"

    sets: str = setting(
        "auto",
        "policy self-sd: layer sets: a file made by `knapserve tune --policy self-sd`, auto (those of this model, if "
        "any) or none",
    )
    gamma: int = setting(12, "policy self-sd: maximum tokens drafted per round", limits=AMOUNT)
    confidence: float = setting(0.6, "policy self-sd: minimum top-1 probability to continue a draft", limits=SHARE)


@dataclass(frozen=True)
class LookaheadConfig(PolicySettings):
    name = "lookahead"
    policy = "papers.lookahead:Lookahead"

    # Defaults: Lookahead decoding's for models of 7B.
    window: int = setting(15, "policy lookahead: tokens verified per round (W)", limits=(2, math.inf))
    ngram: int = setting(5, "policy lookahead: tokens of an n-gram (N)", limits=(2, math.inf))
    guesses: int = setting(15, "policy lookahead: maximum n-grams among them (G)", limits=COUNT)


@dataclass(frozen=True)
class JacobiConfig(PolicySettings):
    name = "jacobi"
    policy = "papers.jacobi:Jacobi"

    block: int = setting(
        3,  # `gs_jaco_blocks` of the authors' code
        "policy jacobi: tokens that are solved together (b)",
        limits=COUNT,
    )
