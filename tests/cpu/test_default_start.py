"""A start with default settings on the hardware of a shipped latency profile finds it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.backends.cuda.backend import backend_name
from engine.checkpoints import shapes
from engine.config.engine import EngineConfig
from engine.draft.costs import CostModel
from engine.model.low_bit import USUAL_BITS
from engine.runtime.loading import choices
from engine.runtime.measure import find_or_measure
from engine.step import StepOutput, StepPlan, Work
from engine.types import GenerateRequest
from profiles import store
from profiles.schema import LatencyProfile, ProfileKey
from tests.support.cores import GREEDY, load
from tests.support.timed import Delegate, ProfiledGpu, slower

SHIPPED = [profile for path in sorted(store.SHIPPED.glob("*.json")) for profile in store.load(path)]
GPUS = [profile for profile in SHIPPED if profile.key.hardware == "NVIDIA H200"]
each_gpu = pytest.mark.parametrize("profile", GPUS, ids=lambda profile: profile.key.shape)
HOPPER = (9, 0)  # compute capability


def default_key(of: ProfileKey) -> ProfileKey:
    """The key of a start on a profile's hardware, with weights of its shape and formats, chosen as `LoadedModel` does.

    A CPU has AVX2, the native kernels, and a core for each thread.
    """
    config = EngineConfig()
    spec = next(spec for spec in map(shapes.shape, shapes.SHAPES) if spec.shape_key == of.shape)
    _, _, packing = of.dtype.partition("-")
    if " cores" in of.hardware:
        dtype = choices.choose_dtype(config.dtype, bf16=True)
        threads = choices.choose_threads(config.threads, spec, dtype, torch.device("cpu"), of.threads)
        backend = choices.cpu_backend_name(spec, dtype, kernels=True)
    else:
        cuda = torch.device("cuda")
        dtype = choices.choose_dtype(config.dtype, bf16=choices.fast_bf16(spec, cuda, None))
        threads = choices.choose_threads(config.threads, spec, dtype, cuda, 1)
        backend = backend_name(dtype, HOPPER, triton=True)
    copies = not packing and backend in ("native", "paged-triton-rows")
    return choices.profile_key(
        spec,
        hardware=of.hardware,
        threads=threads,
        dtype=dtype,
        packing=packing,
        backend=backend,
        draft_bits=USUAL_BITS if copies and config.draft_bits == "auto" else 0,
    )


@pytest.mark.parametrize("profile", SHIPPED, ids=lambda profile: profile.key.slug)
def test_a_default_start_finds_the_shipped_profile(
    profile: LatencyProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may lack the copy of the weights for drafts, which a default start makes and then measures."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    key = default_key(profile.key)
    assert key.draft_bits or key.dtype != "bfloat16"
    found = store.find(key, None)
    assert found is not None
    assert found[0] in (profile, *(each for each in SHIPPED if each.key == key))


def layout(rows: int) -> int:
    """The rows of a request in the layout that runs so many."""
    return 1 << (rows - 1).bit_length()


@each_gpu
def test_a_default_start_on_a_gpu_reads_prompts_in_large_chunks(
    profile: LatencyProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shipped profile prices them; only the copy is measured. Scans of long contexts have a price too."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    key = default_key(profile.key)
    with monkeypatch.context() as patches:
        gpu = ProfiledGpu(slower(profile, 1.0, copy=True), patches)
        found, _ = find_or_measure(EngineConfig(), key, gpu.measurement())
    assert (found.key, found.mlp_at[0]) == (key, profile.mlp_at[0])
    assert found.mlp(1, 2) == pytest.approx(0.4 * profile.mlp(1), rel=0.02)
    costs = CostModel(gpu.spec, found)
    seen: list[Work] = []

    class Watched(Delegate):
        def run(self, plan: StepPlan, *args: Any) -> StepOutput:
            seen.extend(plan.work)
            return self.inner.run(plan, *args)  # type: ignore[no-any-return]

    model = load(max_model_len=2048)
    core = model.core(EngineConfig(device="cpu"), costs=costs, wrap_runner=Watched)
    core.add(GenerateRequest("a", tuple(range(5, 45)) * 50, GREEDY, "none"))
    core.step()
    assert len(seen[0].tokens) >= 512
    assert costs.verify_pass(512, [64]) < EngineConfig().prefill_stall < costs.verify_pass(512, [32768])


@each_gpu
def test_a_layout_has_one_price_however_many_of_its_rows_are_used(profile: LatencyProfile) -> None:
    """So γ = 8, nine rows, costs what sixteen rows cost, and γ = 7 costs less."""
    spec = next(spec for spec in map(shapes.shape, shapes.SHAPES) if spec.shape_key == profile.key.shape)
    costs = CostModel(spec, profile)
    for rows in range(1, 17):
        whole = costs.verify_pass(layout(rows), [32768])
        assert costs.verify_pass(rows, [32768]) == pytest.approx(whole, rel=0.03), rows
    assert costs.verify_pass(9, [32768]) > 1.1 * costs.verify_pass(8, [32768])


@each_gpu
@pytest.mark.parametrize("requests", [1, 2, 3, 4])
def test_the_scans_of_drafts_are_priced_by_the_layout_of_each_request(profile: LatencyProfile, requests: int) -> None:
    """Without the costs of weights, which depend on all rows."""
    free = ((0.0,) * len(profile.rows),)
    spec = next(spec for spec in map(shapes.shape, shapes.SHAPES) if spec.shape_key == profile.key.shape)
    costs = CostModel(spec, replace(profile, projection_at=free, mlp_at=free, head_at=free))
    contexts = [32768] * requests
    rows, seconds = costs.verify_curve(17 * requests, contexts)
    for width in range(1, 17):
        whole = costs.verify_pass(requests * layout(width), contexts)
        assert np.interp(requests * width, rows, seconds) == pytest.approx(whole, rel=0.1), width
