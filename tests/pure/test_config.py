"""Settings of the engine that cannot be honoured are refused by name."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.engine import EngineConfig
from engine.config.fields import flag, parse_memory
from engine.config.policies import FixedConfig, added_policies, draft_policies
from engine.core.policies import policy_kinds
from engine.errors import ConfigError
from server.settings import Setting, Settings, settings_of
from tests.support.examples import examples

LIMITED = [setting for setting in settings_of(EngineConfig) if setting.spec.metadata["limits"]]


def config(**settings: Any) -> EngineConfig:
    """Make the engine's settings from names as flags spell them: `knapspec_…` are those of the policy."""
    return Settings({name: ("a test", value) for name, value in settings.items()}).build(EngineConfig)


@pytest.mark.parametrize("setting", LIMITED, ids=[setting.name for setting in LIMITED])
def test_a_value_beyond_a_limit_is_refused_by_flag_and_the_limit_itself_is_accepted(setting: Setting) -> None:
    low, high = setting.spec.metadata["limits"]
    step = 1 if setting.item_type is int else 0.01
    beyond = [low - step, high + step] if high < math.inf else [low - step]
    for value in beyond:
        with pytest.raises(ConfigError, match=f"{flag(setting.name)} must be"):
            config(**{setting.name: value})
    for value in {low, high} - {math.inf}:
        config(**{setting.name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("draft_confidence", math.nan)] + [("prefill_stall", x) for x in (0, -0.1, math.nan)]
)
def test_a_share_is_a_number_and_a_stall_some_time(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=flag(name)):
        EngineConfig(**{name: value})


def test_every_running_request_needs_a_row() -> None:
    config(max_num_seqs=8, max_num_batched_tokens=8)
    with pytest.raises(ConfigError, match="--max-num-batched-tokens"):
        config(max_num_seqs=9, max_num_batched_tokens=8)


def test_the_default_policy_is_one_of_the_registered_ones() -> None:
    assert {*draft_policies()} == {*policy_kinds()}
    with pytest.raises(ConfigError, match=f"--draft-policy must be one of {', '.join(draft_policies())}, not x"):
        EngineConfig(draft_policy="x")
    with pytest.raises(ConfigError, match=r"pip install 'knapserve\[papers\]'"):
        EngineConfig(draft_policy="x")


def test_settings_of_policies_that_packages_add_carry_the_name_of_their_entry_point() -> None:
    added, kinds = added_policies(), policy_kinds()
    assert {name: kind.name for name, kind in added.items()} == {name: name for name in added}
    assert {kinds[name].name for name in added} == {*added}  # type: ignore[attr-defined]
    assert "swift" in added


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


WORDS = "% . GiB much 4x 1,5GiB 0.4.1 nan inf infGiB --4 0x10"


@pytest.mark.parametrize("text", ["", " ", "4 gigs", "4GiB 2", *WORDS.split()])
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
