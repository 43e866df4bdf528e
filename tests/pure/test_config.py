"""Settings of the engine that cannot be honoured are refused by name."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.engine import EngineConfig
from engine.config.fields import parse_memory
from engine.config.policies import ADDED, DRAFT_POLICIES, FixedConfig, KnapSpecConfig, PromptLookupConfig
from engine.core.policies import POLICIES
from engine.errors import ConfigError
from tests.support.examples import examples

COUNTS = (
    "max_num_seqs",
    "block_size",
    "knapspec_interval",
    "knapspec_rows",
    "knapsack_gamma",
    "knapsack_resolution",
    "del_rows",
    "clasp_interval",
    "jacobi_block",
    "lookahead_guesses",
    "asd_rows",
    "asd_interval",
    "swift_window",
    "swift_interval",
    "swift_max_steps",
    "swift_patience",
)
AMOUNTS = (
    "threads",
    "max_queued",
    "fixed_gamma",
    "layerskip_exit",
    "layerskip_gamma",
    "del_gamma",
    "clasp_gamma",
    "knn_ssd_gamma",
    "self_sd_gamma",
    "prompt_lookup_gamma",
    "swift_gamma",
    "knapspec_gamma",
    "knapspec_beam",
    "knapsack_interval",
)
SHARES = (
    "fixed_skip_ratio",
    "draft_confidence",
    "layerskip_target",
    "del_decay",
    "clasp_skip_ratio",
    "asd_confidence",
    "asd_target",
    "knapsack_confidence",
    "knn_ssd_confidence",
    "self_sd_confidence",
    "knapspec_budget",
    "swift_skip_ratio",
    "swift_max_matchness",
    "swift_min_acceptance",
    "swift_confidence",
)


NESTED = {"knapspec": KnapSpecConfig, "fixed": FixedConfig, "prompt_lookup": PromptLookupConfig}
OTHERS = {kind.prefix().rstrip("_"): kind for kind in ADDED.values()}


def config(**settings: Any) -> EngineConfig:
    """Make the engine's settings from names as flags spell them: `knapspec_…` are those of the policy."""
    policies: dict[str, Any] = {}
    for policy, kind in (NESTED | OTHERS).items():
        own = {name: settings.pop(name) for name in list(settings) if name.startswith(policy + "_")}
        policies[policy] = kind(**{name.removeprefix(policy + "_"): value for name, value in own.items()})
    others = tuple(policies.pop(policy) for policy in OTHERS)
    return EngineConfig(**policies, policies=others, **settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in COUNTS for value in (0, -1)),
        *((name, -1) for name in AMOUNTS),
        *((name, value) for name in SHARES for value in (-0.01, 1.01, math.nan)),
        *(("knapspec_tau", value) for value in (-1.01, 1.01, math.nan)),
        ("threads", 1025),
        *(("max_model_len", value) for value in (1, 0, -5)),
        *(("max_num_batched_tokens", value) for value in (0, -1)),
        *(("prefill_stall", value) for value in (0, -0.1, math.nan)),
    ],
)
def test_impossible_values_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match="--" + name.replace("_", "-")):
        config(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_num_seqs", 1),
        *((name, 1) for name in COUNTS),
        *((name, 0) for name in AMOUNTS),
        *((name, value) for name in SHARES for value in (0, 1)),
        *(("knapspec_tau", value) for value in (-1, 1)),
        *(("max_model_len", value) for value in (2, None)),
    ],
)
def test_values_at_the_ends_of_their_ranges_are_accepted(name: str, value: float) -> None:
    made = config(**{name: value})
    policy = next((policy for policy in (*NESTED, *OTHERS) if name.startswith(policy + "_")), "")
    owner: Any = made
    if policy in OTHERS:
        owner = made.of(OTHERS[policy])
    elif policy:
        owner = getattr(made, policy)
    assert getattr(owner, name.removeprefix(f"{policy}_")) == value


def test_every_running_request_needs_a_row() -> None:
    config(max_num_seqs=8, max_num_batched_tokens=8)
    with pytest.raises(ConfigError, match="--max-num-batched-tokens"):
        config(max_num_seqs=9, max_num_batched_tokens=8)


def test_the_default_policy_is_one_of_the_registered_ones() -> None:
    assert set(DRAFT_POLICIES) == set(POLICIES)
    with pytest.raises(ConfigError, match=f"--draft-policy must be one of {', '.join(DRAFT_POLICIES)}, not x"):
        EngineConfig(draft_policy="x")
    with pytest.raises(ConfigError, match=r"pip install 'knapserve\[papers\]'"):
        EngineConfig(draft_policy="x")


def test_settings_of_policies_that_packages_add_carry_the_name_of_their_entry_point() -> None:
    assert {name: kind.name for name, kind in ADDED.items()} == {name: name for name in ADDED}
    assert {POLICIES[name].name for name in ADDED} == {*ADDED}  # type: ignore[attr-defined]
    assert "swift" in ADDED


@pytest.mark.parametrize("plan", ["", "1", "2", "00001", "322", "32322"])
def test_fixed_plans_skip_no_head_and_have_windows_in_attention_only(plan: str) -> None:
    assert FixedConfig(plan=plan).plan == plan


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ("121x1", "digits"),
        ("4", "digits"),
        ("0", "end with 0"),
        ("110", "end with 0"),
        *((p, "no attention") for p in ("3", "232", "113")),
    ],
)
def test_fixed_plans_that_no_model_can_run_are_refused(plan: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"--fixed-plan .*{reason}"):
        FixedConfig(plan=plan)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1000000", 1_000_000),
        ("512b", 512),
        ("3kB", 3_000),
        ("3KiB", 3_072),
        ("512MB", 512_000_000),
        ("3MiB", 3_145_728),
        ("1.5 GiB", 1_610_612_736),
        ("4gib", 4 * 2**30),
        (" 2 GB ", 2_000_000_000),
        ("0.4", 0.4),
        (".5", 0.5),
        ("1.0", 1.0),
        ("40%", 0.4),
        ("100%", 1.0),
        ("12.5 %", 0.125),
    ],
)
def test_amounts_of_memory_are_sizes_or_shares(text: str, value: float) -> None:
    parsed = parse_memory(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("text", ["0.0", "1.5", "0%", "101%", "-1%", "nan%", "inf%"])
def test_shares_of_memory_outside_0_to_1_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="share"):
        parse_memory(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "%",
        "GiB",
        "much",
        "4 gigs",
        "4x",
        "1,5GiB",
        "0.4.1",
        "4GiB 2",
        "nan",
        "inf",
        "infGiB",
        "--4",
        "0x10",
    ],
)
def test_text_that_is_no_amount_of_memory_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="neither a size"):
        parse_memory(text)


@pytest.mark.parametrize("text", ["0", "0GiB", "-1", "-4GiB", "-0.5", "1e999", "1e999GiB", "0.4b"])
def test_sizes_of_memory_that_are_not_positive_and_finite_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_memory(text)


@examples(300)
@given(st.text("019.-+e%_ kKmMgGiIbB", max_size=8) | st.text(max_size=6))
def test_any_text_is_a_valid_amount_of_memory_or_a_config_error(text: str) -> None:
    try:
        parsed = parse_memory(text)
    except ConfigError:
        return
    assert (isinstance(parsed, int) and parsed > 0) or (isinstance(parsed, float) and 0 < parsed <= 1)
