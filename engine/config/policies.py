"""Settings of the draft policies. Flags, variables and files add a prefix to the names, as each class says."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.config.fields import AMOUNT, COUNT, SHARE, setting
from engine.errors import ConfigError

BASELINES = "settings of the baseline policies"  # a group of the help
TUNED_POLICIES = ("knn-ssd", "self-sd")  # the policies that need layer sets of `knapserve tune`
DRAFT_POLICIES = (
    *("knapspec", "knapsack", "fixed", "layerskip", "swift", "del", "clasp", "asd", "knn-ssd", "self-sd"),
    *("lookup", "lookahead", "jacobi", "none"),
)
DRAFT_LENGTHS = ("static", "finite-state", "adaptive")  # values of `layerskip_length`


@dataclass(frozen=True)
class KnapSpecConfig:
    """Settings of the draft policy knapspec. Flags, variables and files add the prefix `knapspec_` to the names."""

    menu: str = setting(
        "auto",
        "policy knapspec: cheaper variants of a sublayer for drafts. skip: leave it out, as in the paper. low-bit: run "
        "its copy in fewer bits, perhaps with attention to the first and last tokens only. auto: both, if possible",
        choices=("auto", "skip", "low-bit"),
    )
    interval: int = setting(64, "policy knapspec: minimum rounds between two searches of a request (T)", limits=COUNT)
    rows: int = setting(6, "policy knapspec: last verified tokens that a search evaluates plans on (r)", limits=COUNT)
    gamma: int = setting(10, "policy knapspec: maximum tokens drafted per round (D)", limits=AMOUNT)
    tau: float = setting(
        0.5,
        "policy knapspec: minimum mean cosine similarity of a search state; states below are pruned",
        limits=(-1, 1),
    )
    beam: int = setting(4, "policy knapspec: maximum states per sublayer in a search; 0: unlimited", limits=AMOUNT)
    budget: float = setting(
        0.015, "policy knapspec: maximum share of a request's time spent on searches; 0: none", limits=SHARE
    )


@dataclass(frozen=True)
class KnapsackConfig:
    """Settings of the draft policy knapsack. Flags, variables and files add the prefix `knapsack_` to the names."""

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
class FixedConfig:
    """Settings of the draft policy fixed. Flags, variables and files add the prefix `fixed_` to the names."""

    skip_ratio: float = setting(0.5, "policy fixed: share of the sublayers to skip", limits=SHARE)
    plan: str = setting(
        "",
        "policy fixed: plan to use instead of a share: one digit per sublayer (attention, MLP, …) and for the head, "
        "or one digit for all. 0: skip; 1: run; 2: run the copy in fewer bits; 3: run that copy, with attention to the "
        "first and last tokens only",
    )
    gamma: int = setting(4, "policy fixed: maximum tokens drafted per round", limits=AMOUNT)

    def __post_init__(self) -> None:
        plan = self.plan
        if set(plan) - set("0123"):
            raise ConfigError(f"--fixed-plan must consist of the digits 0 to 3, not {plan}")
        if plan.endswith("0"):
            raise ConfigError(f"--fixed-plan must not end with 0, as drafts need the head; it is {plan}")
        if plan.endswith("3") or "3" in plan[1::2]:
            raise ConfigError(f"--fixed-plan has a 3, a window of the cache, where there is no attention: {plan}")


@dataclass(frozen=True)
class LayerSkipConfig:
    """Settings of the draft policy layerskip. Flags, variables and files add the prefix `layerskip_` to the names."""

    exit: int = setting(0, "policy layerskip: number of layers that drafts run; 0: a quarter of them", limits=AMOUNT)
    gamma: int = setting(
        4, "policy layerskip: maximum tokens drafted per round; 12 if the length is adaptive", limits=AMOUNT
    )
    length: str = setting(
        "static",
        "policy layerskip: draft length. static: --layerskip-gamma tokens, or up to an unsure one. finite-state: one "
        "token more after a full accept, one less after a rejection. adaptive: up to a token below a threshold that is "
        "steered to --layerskip-target",
        choices=DRAFT_LENGTHS,
    )
    target: float = setting(
        0.9,  # Draft & Verify: α in the authors' code
        "policy layerskip: accepted share of drafted tokens that the length adaptive steers to",
        limits=SHARE,
    )


@dataclass(frozen=True)
class SelfSDConfig:
    """Settings of the draft policy self-sd. Flags, variables and files add the prefix `self_sd_` to the names.

    γ and the confidence are those of Draft & Verify's evaluation (Zhang et al. 2024, `evaluate_sum.ipynb` of its code).
    """

    sets: str = setting(
        "auto",
        "policy self-sd: layer sets: a file made by `knapserve tune --policy self-sd`, auto (those of this model, if "
        "any) or none",
    )
    gamma: int = setting(12, "policy self-sd: maximum tokens drafted per round", limits=AMOUNT)
    confidence: float = setting(0.6, "policy self-sd: minimum top-1 probability to continue a draft", limits=SHARE)


@dataclass(frozen=True)
class KnnSSDConfig:
    """Settings of the draft policy knn-ssd. Flags, variables and files add the prefix `knn_ssd_` to the names.

    It drafts as Self-SD does (KNN-SSD, section 4.2), so γ and the confidence have the same defaults.
    """

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
class SwiftConfig:
    """Settings of the draft policy swift. Flags, variables and files add the prefix `swift_` to the names.

    Defaults are those of SWIFT's appendix B.2, unless the text beside them names another source.
    """

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
class DelConfig:
    """Settings of the draft policy del. Flags, variables and files add the prefix `del_` to the names."""

    # Defaults: DEL, appendix B.2.
    gamma: int = setting(18, "policy del: maximum tokens drafted per round (d_max)", limits=AMOUNT)
    decay: float = setting(0.95, "policy del: weight of a round in the statistics, over the next one's", limits=SHARE)
    rows: int = setting(32, "policy del: last prompt tokens that the statistics begin with", limits=COUNT)


@dataclass(frozen=True)
class ClaspConfig:
    """Settings of the draft policy clasp. Flags, variables and files add the prefix `clasp_` to the names."""

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
class ASDConfig:
    """Settings of the draft policy asd. Flags, variables and files add the prefix `asd_` to the names."""

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
class PromptLookupConfig:
    """Settings of the draft policy lookup. Flags, variables and files add the prefix `prompt_lookup_` to the names."""

    gamma: int = setting(
        10,  # num_pred_tokens of the published code
        "policy lookup: maximum tokens copied per round",
        limits=(0, 15),  # engine.draft.lookup.MAX_COPIED
    )


@dataclass(frozen=True)
class LookaheadConfig:
    """Settings of the draft policy lookahead. Flags, variables and files add the prefix `lookahead_` to the names."""

    # Defaults: Lookahead decoding's for models of 7B.
    window: int = setting(15, "policy lookahead: columns of the window (W)", limits=(2, math.inf))
    ngram: int = setting(5, "policy lookahead: tokens of an n-gram (N)", limits=(2, math.inf))
    guesses: int = setting(15, "policy lookahead: maximum n-grams verified per round (G)", limits=COUNT)


@dataclass(frozen=True)
class JacobiConfig:
    """Settings of the draft policy jacobi. Flags, variables and files add the prefix `jacobi_` to the names."""

    block: int = setting(
        3,  # `gs_jaco_blocks` of the authors' code
        "policy jacobi: tokens that are solved together (b)",
        limits=COUNT,
    )
