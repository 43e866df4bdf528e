"""`knapserve bench prefill`: measure prompt processing, beside llama.cpp and transformers in the same run."""

import argparse
import json
import statistics
from collections.abc import Sequence
from typing import Any

from bench.peers.hugging_face import add_hugging_face_argument, hugging_face
from bench.peers.llama_cpp import add_llama_cpp_argument, llama_cpp
from bench.prompts import Text, add_prompts_argument, positive, read_prompts
from bench.results import aligned
from bench.targets import BenchTarget, PolicyTarget, Prompt
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench prefill`."""
    add_prompts_argument(parser)
    parser.add_argument(
        "--tokens", type=positive, default=1500, help="tokens per prompt, joined from --prompts (default: 1500)"
    )
    parser.add_argument("--repeat", type=positive, default=5, help="number of prompts, all different (default: 5)")
    add_hugging_face_argument(parser)
    add_llama_cpp_argument(parser)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Run the benchmark; print a table, and JSON as the last line. Raises ConfigError."""
    texts = read_prompts(args.prompts)
    model = LoadedModel(config)
    model.warm_up()
    prompts = [_prompt(model, texts, args.tokens, number) for number in range(args.repeat + 1)]
    sampling = SamplingParams(max_tokens=1, temperature=0.0, ignore_eos=True)
    targets: list[BenchTarget] = [PolicyTarget("none", model.core(config), sampling)]
    targets += hugging_face(args.hf, model, sampling)
    targets += llama_cpp(args.llama_cpp, model, sampling, prompts, 1)
    for number, prompt in enumerate(prompts):
        turn = number % len(targets)
        for target in targets[turn:] + targets[:turn]:
            target.run([prompt], 1)
    rows = _rows(targets, args.tokens)
    key = model.key
    print(
        f"{key.machine}, {key.dtype}; {key.shape}; prompts of {args.tokens} tokens, plus the first token of the answer"
    )
    cells = [["", "tok/s", "best", "engine speed-up"]]
    for row in rows:
        cells.append([row["name"], *(f"{row[key]:.1f}" for key in ("tokens_per_second", "best"))])
        cells[-1].append(f"{row['engine_is']:.2f} ×" if "engine_is" in row else "")
    print(aligned(cells))
    model_figures = {"model": model.source.name, "machine": key.hardware, "threads": key.threads, "dtype": key.dtype}
    print(json.dumps(model_figures | {"tokens": args.tokens, "repeat": args.repeat, "rows": rows}))
    return 0


def _prompt(model: LoadedModel, texts: Sequence[Text], length: int, number: int) -> Prompt:
    """Join texts to a prompt of `length` tokens. Each `number` starts with another text."""
    turn = number % len(texts)
    text = f"{number}. " + "\n\n".join(text.prompt for text in [*texts[turn:], *texts[:turn]])
    tokens = model.tokenizer.encode(text)
    if not tokens:
        raise ConfigError("--prompts: all prompts are empty")
    return Prompt(text, tuple((tokens * -(-length // len(tokens)))[:length]))


def _rows(targets: Sequence[BenchTarget], tokens: int) -> list[dict[str, Any]]:
    """Return medians over all prompts but the first, the warm-up. The engine is the first target."""
    seconds = [[batch.seconds for batch in target.stats.batches[1:]] for target in targets]
    rows: list[dict[str, Any]] = []
    for target, own in zip(targets, seconds, strict=True):
        rates = [tokens / spent for spent in own]
        rows.append({"name": target.name, "tokens_per_second": statistics.median(rates), "best": max(rates)})
        if own is not seconds[0]:
            rows[-1]["engine_is"] = statistics.median(b / a for a, b in zip(seconds[0], own, strict=True))
    return rows
