"""`knapserve bench prefill`: measure prompt processing, beside llama.cpp and transformers."""

import argparse
import json
import statistics
from collections.abc import Sequence

from bench.peers import add_peer_arguments, peers
from bench.prompts import Text, add_prompts_argument, positive, read_prompts
from bench.results import Column, Row, table
from bench.targets import BenchTarget, PolicyTarget, Prompt, answer_in_order
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

_COLUMNS = (
    Column("", "name", "{}"),
    Column("tok/s", "tokens_per_second", "{:.1f}"),
    Column("engine speed-up", "engine_is", "{:.2f} ×"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench prefill`."""
    add_prompts_argument(parser)
    parser.add_argument(
        "--tokens", type=positive, default=1500, help="tokens per prompt, joined from --prompts (default: 1500)"
    )
    parser.add_argument("--repeat", type=positive, default=5, help="number of prompts, all different (default: 5)")
    add_peer_arguments(parser)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Run the benchmark; print a table, and JSON as the last line. Raises ConfigError."""
    texts = read_prompts(args.prompts)
    model = LoadedModel(config)
    model.warm_up()
    prompts = [_prompt(model, texts, args.tokens, number) for number in range(args.repeat + 1)]
    sampling = SamplingParams(max_tokens=1, temperature=0.0, ignore_eos=True)
    targets: list[BenchTarget] = [PolicyTarget("none", model.core(config), sampling)]
    targets += peers(args, model, sampling, prompts, 1)
    list(answer_in_order(targets, [[prompt] for prompt in prompts]))
    rows = [_row(target, targets[0], args.tokens) for target in targets]
    key = model.key
    print(f"{key.machine}, {key.dtype}; {key.shape}; prompts of {args.tokens} tokens, and one token of the answer")
    print(table(rows, _COLUMNS))
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


def _row(target: BenchTarget, engine: BenchTarget, tokens: int) -> Row:
    """Return medians over all prompts but the first, the warm-up."""
    rates = [tokens / batch.seconds for batch in target.stats.batches[1:]]
    row: Row = {"name": target.name, "tokens_per_second": statistics.median(rates)}
    if target is not engine:
        pairs = zip(engine.stats.batches[1:], target.stats.batches[1:], strict=True)
        row["engine_is"] = statistics.median(other.seconds / own.seconds for own, other in pairs)
    return row
