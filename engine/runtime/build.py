"""Build a running engine from the settings: load a model, then make cores that serve it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from engine.checkpoints.default import NAME as DEFAULT_NAME
from engine.checkpoints.source import open_source
from engine.clock import Clock, SystemClock
from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.core.rounds import StepRunner
from engine.core.scheduler import Scheduler
from engine.draft.base import PolicyContext
from engine.draft.costs import CostModel
from engine.kv.pages import PageManager
from engine.logs import progress_bar
from engine.model.backend import Backend
from engine.runtime import prior as priors
from engine.runtime.loading import choices
from engine.runtime.loading.memory import add_draft_copy, cache_size, check_weights_fit, context_length
from engine.runtime.loading.warmup import warm_up
from engine.runtime.machine import hardware, usable_cores
from engine.runtime.measure import Measurement, find_or_measure
from engine.runtime.runner import Runner
from engine.sampling.sample import Sampler
from engine.types import EngineInfo
from profiles import store
from profiles.schema import LatencyProfile

log = logging.getLogger("knapserve.engine")

_PROMPT_SECONDS = 1.0  # longest time for the prompt rows of one round


class LoadedModel:
    """A checkpoint on its device, with cache and latency profile. Several cores may share it, one round at a time."""

    def __init__(
        self,
        config: EngineConfig,
        clock: Clock | None = None,
        *,
        dtype: torch.dtype | None = None,
        profile: LatencyProfile | None = None,
        backend: Backend | None = None,
    ) -> None:
        """Load the model. `dtype`, `profile` and `backend` override the settings, for tests.

        Sets torch's process-wide options. Raises ConfigError, ModelError, ProfileMismatchError.
        """
        self.clock = clock or SystemClock()
        device = choices.choose_device(config.device)
        log.info("loading %s", config.model or f"the default model, {DEFAULT_NAME}")
        self.source = open_source(config.model, defaults=config.generation_config == "auto")
        self.spec, self.tokenizer = self.source.spec, self.source.tokenizer
        self.tokenizer.restrict(self.spec.vocab)
        kernels = choices.choose_kernels(config.kernels, device)
        dtype = dtype or choices.choose_dtype(config.dtype, bf16=choices.fast_bf16(self.spec, device, kernels))
        threads = choices.choose_threads(config.threads, self.spec, dtype, device, usable_cores())
        choices.configure_torch(config, self.spec, dtype, device, threads)
        self.length = context_length(config, self.spec)
        backend = backend or choices.choose_backend(self.spec, device, dtype, threads, kernels, config.kernels)
        self.backend = backend
        packing = self.source.packing if backend.packing is not None else ""
        check_weights_fit(self.source.packed_bytes if packing else self.spec.parameters * dtype.itemsize, device)
        weights = self.source.load(dtype, device, backend, progress_bar("loading weights"))
        self.draft_bits = add_draft_copy(config, self.spec, weights, backend.packing)
        self.decoder = backend.decoder(self.spec, dtype, weights, Sampler(backend.kernels))
        self.size = cache_size(config, self.spec, self.length, backend, device)
        if self.size.length < self.length:
            log.warning(
                "contexts are limited to %d of the model's %d tokens: --kv-cache-memory has no room for more",
                *(self.size.length, self.length),
            )
            self.length = self.size.length
        self.attention = backend.attention(self.spec, self.size)
        self.key = choices.profile_key(
            self.spec,
            hardware=hardware(device),
            threads=threads,
            dtype=dtype,
            packing=packing,
            backend=backend.name,
            draft_bits=self.draft_bits,
        )
        if profile is None:
            measurement = Measurement(self.decoder, self.attention, self.clock)
            self.profile, self.profile_source = find_or_measure(config, self.key, measurement)
        else:
            self.profile, self.profile_source = profile, "given"

    def warm_up(self) -> None:
        """Run passes before the first request, so that kernels are compiled and libraries loaded by then."""
        shapes = self.backend.warms_up_shapes
        warm_up(self.decoder, self.attention, self.size, self.length, self.clock, shapes=shapes)

    def tuned_path(self, config: EngineConfig, kind: str = "prior") -> Path:
        """Return the file in which `knapserve tune` stores this model's plans, or layer sets: `kind` is a policy."""
        return priors.path_of(config.profile_dir or store.default_directory(), self.key, self.source.fingerprint, kind)

    def prior(self, config: EngineConfig) -> priors.Prior | None:
        """Return the plans to start with: named, measured here, or the checkpoint's own. Raises TunedFileError."""
        return priors.find_prior(config, self.source, self.tuned_path(config), self.draft_bits)

    def core(
        self,
        config: EngineConfig,
        *,
        own_cache: bool = False,
        overlaps: bool | None = None,
        costs: CostModel | None = None,
        wrap_runner: Callable[[Runner], StepRunner] = lambda runner: runner,
    ) -> EngineCore:
        """Make a core with its own scheduler, policies and acceptance counts.

        With `own_cache`, it may have requests in flight while other cores do. On a GPU, all cores share one cache: only
        a CPU has room for more, as a cache there takes memory only once it is written. `costs`: instead of the
        profile's. `wrap_runner`: for those who watch the runner. Raises ConfigError, TunedFileError.
        """
        own_cache &= self.decoder.device.type == "cpu"
        attention = self.backend.attention(self.spec, self.size) if own_cache else self.attention
        runner = wrap_runner(Runner(self.decoder, attention, self.clock, overlaps=overlaps))
        costs = costs or CostModel(self.spec, self.profile)
        scheduler = self._scheduler(config, costs, reserve_next_row=runner.overlaps)
        prior = self.prior(config)
        policies = PolicyContext(
            self.spec,
            config,
            costs,
            self.clock,
            plans=prior.plans if prior else {},
            fingerprint=self.source.fingerprint,
            tuned_path=partial(self.tuned_path, config),
        )
        kernels = self.backend.kernels
        return EngineCore(self._info(config), self.tokenizer, scheduler, runner, policies, self.clock, kernels)

    def _scheduler(self, config: EngineConfig, costs: CostModel, *, reserve_next_row: bool) -> Scheduler:
        sequences = self._sequences(config)
        rows = config.max_num_batched_tokens or max(_rows_within(costs, _PROMPT_SECONDS, 1), sequences)

        def prompt_rows(context: int, others_decode: bool) -> int:
            """Limit a round's prompt rows: requests that decode in it, or arrive during it, do not wait long for them.

            A pass of few rows reads all weights for little, so a round may take a few plain ones. With two, a prompt
            alone is read 6–9 % slower than in rounds of a second; with four, at most 2 % (`knapserve bench prefill
            --max-num-batched-tokens`, SmolLM2-135M to Qwen2.5-Coder-1.5B).
            """
            if not others_decode and config.max_num_batched_tokens:
                return config.max_num_batched_tokens
            plain = costs.verify_pass(1, [context])
            return _rows_within(costs, max(config.prefill_stall, (2 if others_decode else 4) * plain), context)

        return Scheduler(
            PageManager(self.size.slabs, self.size.blocks_per_slab, self.size.block_size, self.size.capacity),
            self.clock,
            max_num_seqs=sequences,
            max_num_batched_tokens=rows,
            prompt_rows=prompt_rows,
            eos_token_ids=self.source.eos_token_ids,
            reserve_next_row=reserve_next_row,
        )

    def _info(self, config: EngineConfig) -> EngineInfo:
        return EngineInfo(
            model=self.source.name,
            max_model_len=self.length,
            max_num_seqs=self._sequences(config),
            vocab_size=self.spec.vocab,
            eos_token_ids=self.source.eos_token_ids,
            device=str(self.decoder.device),
            dtype=self.key.dtype,
            default_policy=config.draft_policy,
            profile_file=self.profile_source,
            profile_hardware=self.key.hardware,
            sampling_defaults=self.source.sampling_defaults,
            tool_format=self.tokenizer.tool_format,
            max_queued=config.max_queued,
            thinks=self.tokenizer.thinks,
        )

    def _sequences(self, config: EngineConfig) -> int:
        return min(config.max_num_seqs, self.size.slabs)


def _rows_within(costs: CostModel, seconds: float, context: int) -> int:
    """Return the most rows (16, 32 … 2048) of a verify pass within so many seconds."""
    rows = 16
    while rows < 2048 and costs.verify_pass(2 * rows, [context]) <= seconds:
        rows *= 2
    return rows
