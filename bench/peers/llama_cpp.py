"""Benchmark target: llama.cpp in this process, through the package `xllamacpp`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.measurements import RunStats, Totals
from bench.targets import Prompt
from engine.clock import SystemClock
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

# After an answer, llama.cpp's threads poll for work for some seconds and slow down the next target:
# without this pause the engine decoded SmolLM2 at 1.4 to 1.7 times llama.cpp's speed, with it at 2.0.
_POLLING_SECONDS = 0.3


def llama_cpp(
    file: str | None, model: LoadedModel, sampling: SamplingParams, prompts: Sequence[Prompt], streams: int
) -> list[LlamaCppTarget]:
    """Return the target for `--llama-cpp`, with room for `streams` prompts. Raises ConfigError."""
    if file is None:
        return []
    path = Path(file).expanduser() if file else model.source.gguf_path
    if path is None:
        raise ConfigError(
            f"--llama-cpp requires a file, because {model.source.name} is not a GGUF file: --llama-cpp FILE.gguf"
        )
    if not path.is_file():
        raise ConfigError(f"--llama-cpp: {path} does not exist")
    if not sampling.greedy:
        raise ConfigError("--llama-cpp supports greedy decoding only; use --temperature 0")
    if model.decoder.device.type != "cpu":
        raise ConfigError("--llama-cpp runs on CPUs only; use --device cpu")
    longest = max(len(prompt.tokens) for prompt in prompts)
    return [LlamaCppTarget(path, sampling, model.key.threads, longest, streams)]


class LlamaCppTarget:
    """llama.cpp's server without HTTP: greedy, with the same prompt tokens and no prompt cache."""

    name = "llama.cpp"

    def __init__(self, path: Path, sampling: SamplingParams, threads: int, longest: int, streams: int) -> None:
        """`longest`: the most tokens of a prompt. Raises ConfigError if the model does not load."""
        try:
            import xllamacpp
        except ImportError:
            raise ConfigError(
                "--llama-cpp requires xllamacpp: run `pip install -e '.[llamacpp]'` in the repository"
            ) from None
        self.stats = RunStats()
        self._clock = SystemClock()
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.verbosity = 0
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.n_parallel = streams
        room = longest + (sampling.max_tokens or 0) + 8
        params.n_ctx = streams * -(-room // 256) * 256  # divided equally among the slots
        params.fit_params = False  # would reduce the context to fit free memory
        params.cache_prompt = params.cache_idle_slots = False
        params.cache_ram_mib = params.n_ctx_checkpoints = 0
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ConfigError(f"llama.cpp cannot load {path}: {error}") from None
        # With only the best token left, no time goes into sorting and sampling.
        self._body = {"max_tokens": sampling.max_tokens, "samplers": ["top_k"], "top_k": 1, "temperature": 0.0}
        self._body |= {"cache_prompt": False, "ignore_eos": sampling.ignore_eos}

    def run(self, prompts: Sequence[Prompt], streams: int) -> None:
        """Answer the prompts. Returns None, as llama.cpp does not return the tokens."""
        started = self._clock.now()
        with ThreadPoolExecutor(streams) as pool:
            timings = list(pool.map(self._answer, prompts))
        batch = Totals(tokens=sum(t["predicted_n"] for t in timings), seconds=self._clock.now() - started)
        if streams == 1:  # concurrent answers overlap in time
            batch.decode_seconds = sum(t["predicted_ms"] for t in timings) / 1e3
            # The first token belongs to the prompt.
            batch.decode_tokens = batch.tokens - len(timings)
        self.stats.batches.append(batch)
        time.sleep(_POLLING_SECONDS)

    def _answer(self, prompt: Prompt) -> dict[str, Any]:
        """Answer a prompt. Returns llama.cpp's timings. Raises ConfigError."""
        reply = self._server.handle_completions(self._body | {"prompt": list(prompt.tokens)})
        timings: dict[str, Any] | None = reply.get("timings")
        if timings is None or timings.get("prompt_n") != len(prompt.tokens):
            raise ConfigError(f"llama.cpp did not process all tokens of the prompt: {json.dumps(reply)[:300]}")
        return timings
