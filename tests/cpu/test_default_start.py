"""A start with default settings on the hardware of a shipped latency profile finds it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.backends.cuda.backend import backend_name
from engine.checkpoints import shapes
from engine.config.engine import EngineConfig
from engine.model.low_bit import USUAL_BITS
from engine.runtime.loading import choices
from profiles import store
from profiles.schema import LatencyProfile, ProfileKey

SHIPPED = [profile for path in sorted(store.SHIPPED.glob("*.json")) for profile in store.load(path)]
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
