"""What a start measures, and which profile it finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.checkpoints.shapes import shape
from engine.config.engine import EngineConfig
from engine.draft.costs import CostModel
from engine.errors import ProfileMismatchError
from engine.plans import LOW_BIT
from engine.runtime.build import LoadedModel
from engine.runtime.measure import QUICK, THOROUGH, Design, Grid, Measurement, find_or_measure, thorough_grid
from profiles import store
from profiles.fit import price
from profiles.schema import LatencyProfile
from tests.support.cores import load, made_up_profile
from tests.support.timed import ProfiledGpu, ProfiledModel, TickingClock, slower


@pytest.mark.parametrize("length", [40, 200, 512, 1024, 8192])
@pytest.mark.parametrize(
    "grid",
    [*QUICK.values(), *THOROUGH.values(), Grid((1, 4), (64, 8000), (32, 512)), Grid((1,), (8000,), (512,))],
)
def test_no_pass_goes_beyond_the_context(grid: Grid, length: int) -> None:
    within = grid.within(length)
    assert within.rows
    assert len(within.contexts) >= 2
    assert max(within.contexts) + max(within.rows) <= length
    for rows in within.wide:  # at the first context, and at this one
        assert within.contexts[within.far] + rows <= length


@pytest.mark.parametrize(("length", "far"), [(4096, 2), (8192, 2), (40960, 3)])
def test_a_gpu_times_wide_passes_at_the_longest_context_with_room_for_them(length: int, far: int) -> None:
    grid = thorough_grid("cuda", length).within(length)
    assert (grid.wide, grid.far) == (THOROUGH["cuda"].wide, far)


@pytest.mark.parametrize(("seconds", "repetitions"), [(0.02, 3), (1.0, 1)])
def test_a_slow_machine_is_measured_less_often(tiny: Path, seconds: float, repetitions: int) -> None:
    """By a clock: all passes take `seconds`. Three repetitions are made of usual ones, one of those that take long."""
    model = load(model=tiny, max_model_len=128)
    shares: list[float] = []
    Measurement(model.decoder, model.attention, TickingClock(seconds)).run(model.key, progress=shares.append)
    assert shares[-1] == 1.0
    assert len(shares) - 1 == repetitions


SHIPPED = [profile for path in sorted(store.SHIPPED.glob("*.json")) for profile in store.load(path)]
MACHINES = ("AMD EPYC 25 17 2 cores", "AMD EPYC 26 2 2 cores")  # Zen 4 and Zen 5
CPUS = [
    profile.without_copy()
    for profile in SHIPPED
    if profile.key.hardware in MACHINES and profile.key.shape == shape("qwen2.5-0.5b").shape_key
]
GPUS = [profile for profile in SHIPPED if profile.key.hardware == "NVIDIA H200"]
each_gpu = pytest.mark.parametrize("truth", GPUS, ids=lambda profile: profile.key.shape)
each_cpu = pytest.mark.parametrize("truth", CPUS, ids=lambda profile: profile.key.hardware)


@each_cpu
@pytest.mark.parametrize("copy", [False, True])
def test_a_start_measures_scans_of_long_contexts(truth: LatencyProfile, copy: bool) -> None:
    """On a machine that is as a thorough profile says, for a model of 0.5B parameters and 32,768 tokens.

    With K/V written at a GB/s, the measurement leaves some of the ten seconds of a start to loading.
    """
    model = ProfiledModel(slower(truth, 1.0, copy=copy))
    found = model.measurement().run(truth.key)
    assert found.contexts[-1] > 32_000
    for rows in (1, 2, 4, 8):
        for context in (8192, 16384, 32768):
            assert found.scan(context, rows) == pytest.approx(truth.scan(context, rows), rel=0.2)
    assert model.time < 8


@each_cpu
def test_a_start_that_measures_the_copy_alone_finds_its_costs(truth: LatencyProfile) -> None:
    """The machine takes 1.3 times as long as at the thorough measurement."""
    model = ProfiledModel(slower(truth, 1.3, copy=True))
    key = replace(truth.key, draft_bits=4)
    found, factor = model.measurement().complete(key, truth)
    assert factor == pytest.approx(1.3)
    assert found.without_copy() == replace(truth, drafting=found.drafting, worst=found.worst)
    assert found.drafting == pytest.approx(1.0, abs=0.02)
    for rows in (1, 4, 16):
        assert found.mlp(rows, 2) == pytest.approx(0.4 * truth.mlp(rows))
        assert found.projection(rows, 2) == pytest.approx(0.4 * truth.projection(rows), rel=0.2)
        assert found.head(rows, 2) == pytest.approx(0.4 * truth.head(rows), rel=0.01)
        copy = Design(rows, 64, (LOW_BIT,) * len(model.spec.whole)).observe(model.spec, model.variants, 0.0)
        assert price(found, copy) == pytest.approx(model.price(copy) / 1.3, rel=0.02)
    assert model.time < 5


@each_gpu
@pytest.mark.parametrize("copy", [False, True])
def test_a_start_on_a_gpu_prices_prompts_and_the_steps_of_layouts(
    truth: LatencyProfile, copy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that is as a thorough profile says: more than sixteen rows take five times as long as sixteen."""
    model = ProfiledGpu(slower(truth, 1.0, copy=copy), monkeypatch)
    found, known = (CostModel(model.spec, profile) for profile in (model.measurement().run(truth.key), truth))
    for rows in (64, 128, 256, 512, 1024):
        assert found.verify_pass(rows, [64]) == pytest.approx(known.verify_pass(rows, [64]), rel=0.25)
    for rows in range(1, 17):
        for context in (64, 1024, 32768):
            assert found.verify_pass(rows, [context]) == pytest.approx(known.verify_pass(rows, [context]), rel=0.02)


@each_gpu
@pytest.mark.parametrize("copy", [False, True])
def test_drafts_on_a_gpu_are_timed_as_they_run(
    truth: LatencyProfile, copy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pass by pass, the next one started before the last one's token is read. Recordings do not count."""
    model = ProfiledGpu(slower(truth, 1.0, copy=copy), monkeypatch, drafting=0.75)
    assert model.measurement().run(truth.key).drafting == pytest.approx(0.75, rel=0.02)


@each_gpu
def test_a_start_on_a_gpu_that_measures_the_copy_alone_times_its_drafts(
    truth: LatencyProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ProfiledGpu(slower(truth, 1.0, copy=True), monkeypatch, drafting=0.75)
    found, factor = model.measurement().complete(replace(truth.key, draft_bits=4), truth)
    assert (found.drafting, factor) == pytest.approx((0.75, 1.0), rel=0.02)


@pytest.fixture
def measurement() -> tuple[LoadedModel, Measurement]:
    """Of the prepared fixture with a copy in four bits; all passes take equally long by its clock."""
    model = load(torch.bfloat16, draft_bits="4", max_model_len=256)
    return model, Measurement(model.decoder, model.attention, TickingClock(0.01))


def test_a_profile_without_the_copy_serves_a_start_with_one(
    measurement: tuple[LoadedModel, Measurement], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The start measures the copy and saves both; the next one finds them. The log names file and entry."""
    model, measures = measurement
    own = replace(made_up_profile(), key=replace(model.key, draft_bits=0))
    path, config = store.save(own, tmp_path), EngineConfig(profile_dir=tmp_path)
    with caplog.at_level("INFO", "knapserve.engine"):
        profile, source = find_or_measure(config, model.key, measures)
    assert source == str(path)
    assert f"{path}, entry {own.key.slug}" in caplog.text
    assert "4-bit copy measured" in caplog.text
    assert profile.key == model.key
    assert profile.variants == 2
    assert profile.without_copy().projection_at == own.projection_at
    assert (profile.fixed, profile.scan_at, profile.rows) == (own.fixed, own.scan_at, own.rows)
    assert {each.key.draft_bits for each in store.load(path)} == {0, 4}
    assert find_or_measure(config, model.key, measures) == (profile, source)


def test_a_profile_with_a_copy_serves_a_start_without_one(
    measurement: tuple[LoadedModel, Measurement], tmp_path: Path
) -> None:
    model, measures = measurement
    both = replace(made_up_profile(low_bit=0.3), key=model.key)
    path, key = store.save(both, tmp_path), replace(model.key, draft_bits=0)
    profile, source = find_or_measure(EngineConfig(profile_dir=tmp_path), key, measures)
    assert (profile, source) == (both.without_copy(), str(path))
    assert profile.key == key


def test_a_profile_that_is_named_must_have_an_entry_for_the_start(
    measurement: tuple[LoadedModel, Measurement], tmp_path: Path
) -> None:
    model, measures = measurement
    profile = replace(made_up_profile(), key=replace(model.key, threads=7))
    path = store.save(profile, tmp_path)
    with pytest.raises(ProfileMismatchError, match=profile.key.slug):
        find_or_measure(EngineConfig(profile=path), model.key, measures)
    store.save(replace(profile, key=model.key), tmp_path)
    assert find_or_measure(EngineConfig(profile=path), model.key, measures)[0].key == model.key
