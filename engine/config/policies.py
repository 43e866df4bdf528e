"""Settings of the draft policies. Flags, variables and files add the policy's name to those of the fields."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config.fields import AMOUNT, COUNT, SHARE, check, setting
from engine.errors import ConfigError

TUNED_POLICIES = ("self-sd", "knn-ssd")  # which need layer sets of `knapserve tune`
DRAFT_POLICIES = ("knapspec", "fixed", "layerskip", *TUNED_POLICIES, "none")
MENUS = ("auto", "skip", "low-bit")  # values of `knapspec_menu`


@dataclass(frozen=True)
class KnapSpecConfig:
    """Settings of the draft policy knapspec. Flags, variables and files add the prefix `knapspec_` to the names."""

    menu: str = setting(
        "auto",
        "policy knapspec: cheaper variants of a sublayer for drafts. skip: leave it out, as in the paper. low-bit: run "
        "its copy in fewer bits, perhaps with attention to the first and last tokens only. auto: both, if possible",
        choices=MENUS,
    )
    interval: int = setting(64, "policy knapspec: minimum rounds between two searches of a request (T)", limits=COUNT)
    redecide: int = setting(8, "policy knapspec: minimum rounds between two decisions among known plans", limits=COUNT)
    rows: int = setting(8, "policy knapspec: last verified tokens that a search evaluates plans on (r)", limits=COUNT)
    memory: int = setting(
        2000, "policy knapspec: horizon in tokens over which observations of a plan are forgotten", limits=COUNT
    )
    gamma: int = setting(10, "policy knapspec: maximum tokens drafted per round (D)", limits=AMOUNT)
    tau: float = setting(
        0.5,
        "policy knapspec: minimum mean cosine similarity of a search state; states below are pruned",
        limits=(-1, 1),
    )
    max_skip: float = setting(
        0.8, "policy knapspec: maximum share of the sublayers' time that a plan skips (paper: 0.5)", limits=SHARE
    )
    min_skip: float = setting(
        0.0,
        "policy knapspec: minimum share of the sublayers' time that a plan skips; above 0, drafting never stops (for "
        "comparisons)",
        limits=SHARE,
    )
    resolution: int = setting(
        8, "policy knapspec: weight of the cheaper kind of sublayer in the knapsack, in ticks", limits=COUNT
    )
    beam: int = setting(6, "policy knapspec: maximum states per sublayer in a search; 0: unlimited", limits=AMOUNT)
    protect: tuple[int, ...] = setting(
        (),
        "policy knapspec: layers that plans never skip, such as 0,-1",
        parse=lambda text: tuple(int(part) for part in text.split(",")),
    )
    budget: float = setting(0.005, "policy knapspec: maximum share of time spent on searches", limits=SHARE)

    def __post_init__(self) -> None:
        check(self, prefix="knapspec_")
        if self.min_skip > self.max_skip:
            raise ConfigError("--knapspec-min-skip must not be above --knapspec-max-skip")


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
        check(self, prefix="fixed_")
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
    gamma: int = setting(4, "policy layerskip: maximum tokens drafted per round", limits=AMOUNT)

    def __post_init__(self) -> None:
        check(self, prefix="layerskip_")


@dataclass(frozen=True)
class SelfSDConfig:
    """Settings of the draft policy self-sd. Flags, variables and files add the prefix `self_sd_` to the names.

    γ and the confidence are those of Draft & Verify's evaluation (Zhang et al. 2024, `evaluate_sum.ipynb` of its code).
    """

    sets: str = setting(
        "auto",
        "policy self-sd: layer sets: a file made by `knapserve tune --policy self-sd`, auto (those of this model, if any) "
        "or none",
    )
    gamma: int = setting(12, "policy self-sd: maximum tokens drafted per round", limits=AMOUNT)
    confidence: float = setting(0.6, "policy self-sd: minimum top-1 probability to continue a draft", limits=SHARE)

    def __post_init__(self) -> None:
        check(self, prefix="self_sd_")


@dataclass(frozen=True)
class KnnSSDConfig:
    """Settings of the draft policy knn-ssd. Flags, variables and files add the prefix `knn_ssd_` to the names.

    It drafts as Self-SD does (KNN-SSD, section 4.2), so γ and the confidence have the same defaults.
    """

    sets: str = setting(
        "auto",
        "policy knn-ssd: layer sets: a file made by `knapserve tune --policy knn-ssd`, auto (those of this model, if any) "
        "or none",
    )
    gamma: int = setting(12, "policy knn-ssd: maximum tokens drafted per round", limits=AMOUNT)
    confidence: float = setting(0.6, "policy knn-ssd: minimum top-1 probability to continue a draft", limits=SHARE)

    def __post_init__(self) -> None:
        check(self, prefix="knn_ssd_")
