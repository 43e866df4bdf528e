"""llama.cpp as a target of benches, in this process, by the wheel `xllamacpp`."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.targets import Prompt, Tally
from engine.clock import SystemClock
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

# Seconds after an answer in which its threads poll for more, on the cores of whoever has the next turn: ours decoded
# SmolLM2 at 1.4 to 1.7 × llama.cpp's speed without a pause, at 2.0 × with this one.
_POLLING = 0.3


def add_llama_cpp_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--llama-cpp", nargs="?", const="", metavar="FILE.gguf",
        help="also run llama.cpp, in the same run, on this file (the model's own, where that is a GGUF file)",
    )  # fmt: skip


def llama_cpp(
    file: str | None, model: LoadedModel, sampling: SamplingParams, prompts: Sequence[Prompt], streams: int
) -> list[LlamaCppTarget]:
    """The target that `--llama-cpp` asks for, with room for so many of these prompts. Raises ConfigError."""
    if file is None:
        return []
    path = Path(file).expanduser() if file else getattr(model.source, "path", None)
    if path is None:
        raise ConfigError(f"--llama-cpp needs a file here, for {model.source.name} is not in GGUF: --llama-cpp FILE")
    if not path.is_file():
        raise ConfigError(f"--llama-cpp {path}: there is no such file")
    if not sampling.greedy:
        raise ConfigError("--llama-cpp compares greedy decoding only: use --temperature 0")
    if model.decoder.device.type != "cpu":
        raise ConfigError("--llama-cpp compares on a CPU: use --device cpu")
    longest = max(len(prompt.tokens) for prompt in prompts)
    return [LlamaCppTarget(path, sampling, model.key.threads, longest, streams)]


class LlamaCppTarget:
    """llama.cpp's own server, called without HTTP: the same tokens as prompts, no cache of prompts, greedy."""

    name = "llama.cpp"

    def __init__(self, path: Path, sampling: SamplingParams, threads: int, longest: int, streams: int) -> None:
        """With room for prompts of up to `longest` tokens. Raises ConfigError if the wheel or the model fails."""
        try:
            import xllamacpp
        except ImportError:
            raise ConfigError(
                "--llama-cpp needs xllamacpp: pip install -e '.[llamacpp]' in KnapServe's directory"
            ) from None
        self.tally = Tally()
        self._clock = SystemClock()
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.verbosity = 0
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.n_parallel = streams
        room = longest + (sampling.max_tokens or 0) + 8
        params.n_ctx = streams * -(-room // 256) * 256  # slots have equal shares of it
        params.fit_params = False  # to free memory: less than was asked for
        params.cache_prompt = params.cache_idle_slots = False
        params.cache_ram_mib = params.n_ctx_checkpoints = 0
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ConfigError(f"llama.cpp cannot load {path}: {error}") from None
        # Behind the best token alone nothing is left to sort or to draw among.
        self._body = {"max_tokens": sampling.max_tokens, "samplers": ["top_k"], "top_k": 1, "temperature": 0.0}
        self._body |= {"cache_prompt": False, "ignore_eos": sampling.ignore_eos}

    def run(self, prompts: Sequence[Prompt], streams: int) -> None:
        """Without the answers: their tokens are not told."""
        started = self._clock.now()
        with ThreadPoolExecutor(streams) as pool:
            timings = list(pool.map(self._answer, prompts))
        if streams == 1:  # several at a time share their seconds
            self.tally.decode_seconds += sum(t["predicted_ms"] for t in timings) / 1e3
            self.tally.decode_tokens += sum(t["predicted_n"] - 1 for t in timings)  # the first is the prompt's
        self.tally.answered(sum(t["predicted_n"] for t in timings), self._clock.now() - started)
        time.sleep(_POLLING)

    def _answer(self, prompt: Prompt) -> dict[str, Any]:
        """What the server timed. Raises ConfigError."""
        reply = self._server.handle_completions(self._body | {"prompt": list(prompt.tokens)})
        timings: dict[str, Any] | None = reply.get("timings")
        if timings is None or timings.get("prompt_n") != len(prompt.tokens):
            raise ConfigError(f"llama.cpp did not read the prompt as it is: {json.dumps(reply)[:300]}")
        return timings
