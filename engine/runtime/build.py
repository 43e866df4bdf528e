"""From settings to a running engine: device, dtype, weights, cache, profile, policies."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from engine.architecture.spec import LOW_BIT, ModelSpec
from engine.backends.native.backend import widens_bf16
from engine.checkpoints import synthetic
from engine.checkpoints.default import NAME as DEFAULT_NAME
from engine.checkpoints.source import SyntheticSource, open_source
from engine.clock import Clock, SystemClock
from engine.config import EngineConfig
from engine.core.engine import EngineCore
from engine.core.policies import POLICIES
from engine.core.scheduler import Scheduler
from engine.draft.base import PolicyContext
from engine.draft.costs import CostModel
from engine.draft.knapsack import skipping, solve
from engine.errors import ConfigError, PriorError, ProfileMismatchError
from engine.kv.blocks import BlockManager, CacheSize
from engine.kv.cache import bytes_per_token
from engine.kv.pages import PageManager
from engine.model import low_bit
from engine.model.attention import Segment
from engine.model.backend import Backend
from engine.model.linear import LinearFactory
from engine.runtime import prior as priors
from engine.runtime.backends import choose_backend
from engine.runtime.machine import free_memory, hardware, native_bf16, usable_cores
from engine.runtime.measure import Measurement
from engine.runtime.prior import Prior
from engine.runtime.runner import Runner
from engine.sampling.sample import sample
from engine.types import EngineInfo, SamplingParams
from profiles import store
from profiles.schema import LatencyProfile, ProfileError, ProfileKey

log = logging.getLogger("knapserve.engine")

_SHIPPED_PRIOR = "prior.json"  # in a checkpoint's directory
_SMALL_LAYER = 8 << 20  # bytes
_THREAD_SHARE = 128 << 10  # bytes of a layer that are worth a thread
_WARM_LAYOUT = (64, 16)  # sequences and rows of each, over pages
_WARM_SECONDS = (0.5, 20.0)  # at most, to warm up: on a CPU, over pages
_WARM_TIMES = (1, 3)  # of each shape: over pages, the third time a pass is recorded
_SEARCHED = (4, 6)  # rows and beam of the search that warms up
_LONG_ROUND = 1.0  # seconds that reading a prompt may take at a time
_PAGES_PER_SEQUENCE = 2  # times what all requests can hold: the rest is for prefixes
DTYPES = {name: getattr(torch, name) for name in ("bfloat16", "float16", "float32", "float64")}


class LoadedModel:
    """A checkpoint on its device, with cache and latency profile: what several cores may share, one round at a time.

    `dtype`, `profile` and `backend` override the settings: float64, made-up times and other devices are for tests.
    """

    def __init__(
        self,
        config: EngineConfig,
        clock: Clock | None = None,
        *,
        dtype: torch.dtype | None = None,
        profile: LatencyProfile | None = None,
        backend: Backend | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        device = _device(config.device)
        _check_policy(config.draft_policy)
        log.info("loading %s", config.model or f"the default model, {DEFAULT_NAME}")
        self.source = open_source(config.model, defaults=config.generation_config == "auto")
        self.spec, self.tokenizer = self.source.spec, self.source.tokenizer
        dtype = dtype or _dtype(config, self.spec, device)
        threads = 1  # that launches passes, elsewhere
        if device.type == "cpu":
            threads, tiny = _threads(config, self.spec, dtype)
            torch.set_num_threads(1 if tiny else threads)
        self.length = _context(config, self.spec)
        backend = backend or choose_backend(self.spec, device, dtype, threads, config.kernels)
        self.backend = backend
        packing = self.source.packing if backend.packs else ""
        _check_memory(self.source.packed_bytes if packing else self.spec.parameters * dtype.itemsize, device)
        self.decoder = self.source.decoder(dtype, device, backend, progress_bar("loading weights"))
        self.draft_bits = self._copy(config)
        self.size = _cache_size(config, self.spec, self.length, backend, device)
        if self.size.length < self.length:
            log.warning(
                "contexts are limited to %d of the model's %d tokens, which is what --kv-cache-memory %s has room for",
                *(self.size.length, self.length, config.kv_cache_memory),
            )
            self.length = self.size.length
        self.attention = backend.attention(self.spec, self.size)
        self.dtype = "-".join(filter(None, (str(dtype).removeprefix("torch."), packing)))
        self.key = ProfileKey(
            hardware=hardware(device),
            threads=threads,
            shape=self.spec.shape_key,
            dtype=f"{self.dtype}-int{self.draft_bits}" if self.draft_bits else self.dtype,
            backend=backend.name,
        )
        self.profile, self.profile_source = profile, "given"
        if self.profile is None:
            measurement = Measurement(self.decoder, self.attention, self.clock)
            self.profile, self.profile_source = _profile(config, self.key, measurement)
        if isinstance(self.source, SyntheticSource):
            self._calibrate(self.source, backend.linear)

    def _copy(self, config: EngineConfig) -> int:
        """Give the decoder a copy of its weights in fewer bits, for drafts; how many bits, 0 for none.

        Raises ConfigError where `--draft-bits` names a copy that cannot be had.
        """
        if config.draft_bits == "none":
            return 0
        named = config.draft_bits != "auto"
        bits = int(config.draft_bits) if named else low_bit.USUAL_BITS
        need, limit = low_bit.copy_bytes(self.spec, bits), config.draft_memory
        if isinstance(limit, float):
            limit = int(limit * free_memory(self.decoder.device))
        if need > limit:
            reason = f"a copy of the weights takes {need / 1e6:.0f} MB, --draft-memory allows {limit / 1e6:.0f}"
        elif low_bit.add_copy(self.decoder, self.backend.linear, bits, progress_bar("copying weights in fewer bits")):
            log.info("drafts run a copy of the weights in %d bits: %.0f MB more", bits, need / 1e6)
            return bits
        else:
            reason = "the weights have few bits already, or no kernel here reads fewer"
        if named:
            raise ConfigError(f"--draft-bits {bits}: {reason}")
        log.info("drafts run no copy in fewer bits: %s", reason)
        return 0

    def _calibrate(self, source: SyntheticSource, linear: LinearFactory) -> None:
        """Make half of a synthetic model, by its measured time, as good a drafter as its name asks."""
        assert self.profile is not None
        prices = CostModel(self.spec, self.profile).sublayers(0, 1, None)
        plan = source.model.calibration_plan(prices)
        share = synthetic.calibrate(source.model, self.decoder, self.attention, linear, plan)
        if self.draft_bits:  # whose head is a copy of what there was before
            low_bit.add_copy(self.decoder, linear, self.draft_bits, lambda share: None)
        log.info("synthetic weights, calibrated: half of the time skipped draws the same token at %.0f %%", 100 * share)

    @torch.inference_mode()
    def warm_up(self) -> None:
        """One pass of every shape that decoding uses, so that kernels are made before the first request waits for them.

        Ends early after a while; a single pass where kernels are there already.
        """
        end = self.clock.now() + _WARM_SECONDS[self.backend.paged]
        for segments in self._usual_passes():
            rows = sum(segment.rows for segment in segments)
            for _ in range(_WARM_TIMES[self.backend.paged]):
                x = self.decoder.run(self.decoder.embed([0] * rows), self.attention.prepare(segments))
                sample(self.decoder.head(x), [SamplingParams(temperature=0.0)] * rows, range(rows), confidence=True)
            if self.clock.now() > end:
                return
        if self.backend.paged:
            self._search()

    def _search(self) -> None:
        """A search such as policy knapspec makes, over nothing: libraries load kernels at their first use."""
        rows = [Segment(0, 0, min(_SEARCHED[0], self.length))]
        states: list[torch.Tensor] = []
        self.decoder.run(self.decoder.embed([0] * rows[0].rows), self.attention.prepare(rows), states)
        positions = range(rows[0].rows)

        def run(index: int, x: torch.Tensor, variant: int) -> torch.Tensor:
            batch = self.attention.candidates(0, positions, len(x))
            return self.decoder.sublayer(index, x.flatten(0, 1), batch, variant).view_as(x)

        sublayers = self.spec.sublayers
        menus = skipping((1,) * sublayers)
        found = solve(torch.stack(states), menus, run, capacity=sublayers, beam=_SEARCHED[1])
        final = torch.stack([candidate.state for candidate in found]).flatten(0, 1)
        sample(
            self.decoder.head(final), [SamplingParams(temperature=0.0)] * len(final), range(len(final)), confidence=True
        )

    def _usual_passes(self) -> Iterator[list[Segment]]:
        """Passes of the shapes for which kernels are made one by one; elsewhere just one."""
        if self.backend.paged:  # sequences and rows of each, to the next power of two
            for sequences in _powers(min(_WARM_LAYOUT[0], self.size.slabs)):
                for width in _powers(min(_WARM_LAYOUT[1], self.length)):
                    yield [Segment(slab, 0, width) for slab in range(sequences)]
        else:
            yield [Segment(0, 0, 1)]

    def prior_path(self, config: EngineConfig) -> Path:
        """Where `tune` puts this model's plans."""
        return priors.path_of(config.profile_dir or store.default_directory(), self.key, self.source.fingerprint)

    def prior(self, config: EngineConfig) -> Prior | None:
        """The plans that were named, else those measured here, else the checkpoint's own. Raises PriorError."""
        if config.prior == "none":
            return None
        named = config.prior != "auto"
        paths = [Path(config.prior).expanduser()] if named else [self.prior_path(config)]
        if not named and not isinstance(self.source, SyntheticSource):
            paths.append(self.source.directory / _SHIPPED_PRIOR)
        for path in paths:
            if not named and not _there(path):
                continue
            found = priors.load(path)
            reason = self._refused(found, config)
            if reason is None:
                log.info("prior plans loaded: %s", path)
                return found
            if named:
                raise PriorError(f"prior plans {path} {reason}")
            log.warning("prior plans %s are not used: they %s", path, reason)
        return None

    def _refused(self, prior: Prior, config: EngineConfig) -> str | None:
        """Why plans are not this model's, or not of this menu."""
        if prior.model != self.source.fingerprint or len(next(iter(prior.plans))) != len(self.spec.whole):
            return f"are of another model than {self.source.name}"
        copies = any(max(variants) >= LOW_BIT for variants in prior.plans)
        if copies and (not self.draft_bits or config.knapspec.menu == "skip"):
            return "run a copy in fewer bits, which --draft-bits or --knapspec-menu rules out"
        return None

    def core(
        self,
        config: EngineConfig,
        *,
        own_cache: bool = False,
        overlaps: bool | None = None,
        costs: CostModel | None = None,
    ) -> EngineCore:
        """A core of its own: scheduler, bookkeeping, policies and what they learn.

        With a cache of its own too it may answer while other cores do. Only a CPU has room for that, where a cache is
        address space until it is written; elsewhere all share one. `costs` take the place of the profile's.
        """
        _check_policy(config.draft_policy)
        assert self.profile is not None
        sequences = min(config.max_num_seqs, self.size.slabs)
        costs = costs or CostModel(self.spec, self.profile)
        rows = config.max_num_batched_tokens or max(costs.rows_within(_LONG_ROUND, 1), sequences)

        def prompt_rows(context: int, shared: bool) -> int:
            if not shared:
                return config.max_num_batched_tokens or costs.rows_within(_LONG_ROUND, context)
            # Where a plain round takes longer than the stall allowed, one that reads a prompt may take twice as long.
            return costs.rows_within(max(config.prefill_stall, 2 * costs.verify_pass(1, [context])), context)

        own_cache &= self.decoder.device.type == "cpu"
        attention = self.backend.attention(self.spec, self.size) if own_cache else self.attention
        runner = Runner(self.decoder, attention, self.clock, overlaps=overlaps)
        blocks = PageManager if self.backend.paged else BlockManager
        scheduler = Scheduler(
            blocks(self.size.slabs, self.size.blocks_per_slab, self.size.block_size, self.size.capacity),
            self.clock,
            max_num_seqs=sequences,
            max_num_batched_tokens=rows,
            prompt_rows=prompt_rows,
            eos_token_ids=self.source.eos_token_ids,
            ahead=runner.overlaps,
        )
        info = EngineInfo(
            model=self.source.name,
            max_model_len=self.length,
            max_num_seqs=sequences,
            vocab_size=self.spec.vocab,
            eos_token_ids=self.source.eos_token_ids,
            device=str(self.decoder.device),
            dtype=self.dtype,
            default_policy=config.draft_policy,
            policies=tuple(POLICIES),
            profile_file=self.profile_source,
            profile_hardware=self.key.hardware,
            sampling_defaults=self.source.sampling_defaults,
            tool_format=self.tokenizer.tool_format,
            max_queued=config.max_queued,
            thinks=self.tokenizer.thinks,
        )
        prior = self.prior(config)
        policies = PolicyContext(self.spec, config, costs, self.clock, prior.plans if prior else {})
        return EngineCore(info, self.tokenizer, scheduler, runner, policies, self.clock)


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # somebody else's home
        return False


def _powers(most: int) -> Iterator[int]:
    """1, 2, 4 … below `most`, and `most`, which others are filled up to."""
    return (min(1 << i, most) for i in range((most - 1).bit_length() + 1))


def _check_memory(weights: int, device: torch.device) -> None:
    """Better an error now than being killed halfway through the weights, of so many bytes."""
    need, free = int(1.1 * weights), free_memory(device)
    if need > free:
        raise ConfigError(
            f"the weights take {need / 2**30:.1f} GiB, but {free / 2**30:.1f} GiB are free on {device}; "
            "free some, or choose a smaller --dtype or model"
        )


def _check_policy(name: str) -> None:
    if name not in POLICIES:
        raise ConfigError(f"unknown draft policy '{name}'; known: {', '.join(POLICIES)}")


def _device(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: this machine or this build of torch has no CUDA device")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def _dtype(config: EngineConfig, spec: ModelSpec, device: torch.device) -> torch.dtype:
    name = config.dtype
    if name == "auto":
        bf16 = device.type == "cuda" or native_bf16() or (config.kernels != "torch" and widens_bf16(spec))
        name = "bfloat16" if bf16 else "float32"
    dtype: torch.dtype = DTYPES[name]
    return dtype


def _threads(config: EngineConfig, spec: ModelSpec, dtype: torch.dtype) -> tuple[int, bool]:
    """Threads of a CPU, no more than a layer keeps busy; and whether torch's own operations are better off with one.

    Those of tiny models are: torch's threads wait for each other at every operation, whoever has their cores.
    """
    layer = spec.layer_parameters * dtype.itemsize
    useful = max(1, min(usable_cores(), layer // _THREAD_SHARE))
    return config.threads or useful, not config.threads and layer < _SMALL_LAYER


def _context(config: EngineConfig, spec: ModelSpec) -> int:
    if config.max_model_len is not None and config.max_model_len > spec.max_positions:
        raise ConfigError(
            f"--max-model-len {config.max_model_len} is beyond the {spec.max_positions} positions of the model"
        )
    return config.max_model_len or spec.max_positions


def _cache_size(
    config: EngineConfig, spec: ModelSpec, length: int, backend: Backend, device: torch.device
) -> CacheSize:
    """Slabs and blocks that `--kv-cache-memory` pays for. On a CPU slabs are address space, paid for when written."""
    block_bytes = bytes_per_token(spec, backend.cache_dtype) * config.block_size
    blocks_per_slab = -(-length // config.block_size)
    budget = config.kv_cache_memory
    if isinstance(budget, float):
        budget = int(budget * free_memory(device))
    capacity = budget // block_bytes
    if capacity < blocks_per_slab and (config.max_model_len is not None or capacity < 2):
        raise ConfigError(
            f"--kv-cache-memory {config.kv_cache_memory} is {budget} bytes, but one context of {length} tokens takes "
            f"{blocks_per_slab * block_bytes}; raise it or lower --max-model-len"
        )
    if capacity < blocks_per_slab:
        blocks_per_slab = capacity
        length = blocks_per_slab * config.block_size
    if backend.paged:
        slabs = config.max_num_seqs
        capacity = min(capacity, _PAGES_PER_SEQUENCE * slabs * blocks_per_slab)
    else:
        slabs = 2 * config.max_num_seqs
        capacity = min(capacity, slabs * blocks_per_slab)
    return CacheSize(slabs, blocks_per_slab, config.block_size, capacity, length)


def _profile(config: EngineConfig, key: ProfileKey, measurement: Measurement) -> tuple[LatencyProfile, str]:
    """Named → must match; else found by key; else measured now, in a few seconds, and saved."""
    try:
        if config.profile is not None:
            profile = store.load(config.profile)
            if profile.key != key:
                raise ProfileMismatchError(
                    f"profile {config.profile} is for {profile.key.slug}, this machine and model are {key.slug}"
                )
            log.info("latency profile loaded, as named: %s", config.profile)
            return profile, str(config.profile)
        found = store.find(key, config.profile_dir)
        if found is not None:
            log.info("latency profile loaded: %s", found[1])
            return found[0], str(found[1])
    except ProfileError as error:
        raise ProfileMismatchError(str(error)) from None
    log.info("no latency profile of this machine and model: measuring for some seconds")
    profile = measurement.run(key, progress=progress_bar("measuring this machine"))
    if profile.residual > 0.15:
        log.warning("the latency profile fits badly: median error %.0f %%", 100 * profile.residual)
    try:
        path = store.save(profile, config.profile_dir or store.default_directory())
        log.info("latency profile measured and saved: %s", path)
        return profile, str(path)
    except OSError as error:
        log.warning("cannot save the latency profile: %s", error)
        return profile, "measured, not saved"


def progress_bar(title: str) -> Callable[[float], None]:
    """Shown on a terminal, and only if it takes longer than half a second."""
    from tqdm import tqdm

    bar = tqdm(total=100, desc=title, unit="%", leave=False, delay=0.5, disable=not sys.stderr.isatty())

    def show(share: float) -> None:
        bar.update(round(100 * share) - bar.n)
        if share >= 1:
            bar.close()

    return show
