"""Settings of the draft policies. Flags, variables and files add a prefix to the names, as each class says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from engine.config.fields import AMOUNT, COUNT, SHARE, PolicySettings, setting
from engine.errors import ConfigError
from engine.plans import parse_plan

BASELINES = "settings of the baseline policies"  # a group of the help


@cache
def added_policies() -> dict[str, type[PolicySettings]]:
    """Return the settings of the policies that installed packages add, by policy: `papers` has those of papers."""
    return {point.name: point.load() for point in entry_points(group="knapserve.policies")}


def draft_policies() -> tuple[str, ...]:
    """Return the names of all draft policies."""
    return ("knapspec", "fixed", "lookup", *added_policies(), "none")


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
        try:
            parse_plan(self.plan or "1")
        except ValueError as error:
            raise ConfigError(f"--fixed-plan {self.plan}: {error}") from None


@dataclass(frozen=True)
class PromptLookupConfig:
    """Settings of the draft policy lookup. Flags, variables and files add the prefix `prompt_lookup_` to the names."""

    gamma: int = setting(
        10,  # num_pred_tokens of the published code
        "policy lookup: maximum tokens copied per round",
        limits=(0, 15),  # engine.draft.lookup.MAX_COPIED
    )
