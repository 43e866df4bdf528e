"""`knapserve bench decode`: policies side by side in one run, interleaved prompt by prompt."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.bandwidth import ReadBandwidth, bytes_to_read
from engine.build import DTYPES, EMBEDDED, LoadedModel
from engine.config import EngineConfig
from engine.contenders import (
    HUGGING_FACE,
    Contender,
    HuggingFaceContender,
    PolicyContender,
    Prompt,
    Tally,
    UrlContender,
    load_hugging_face,
)
from engine.draft.base import policy_names
from engine.draft.tpt import expected_tokens
from engine.errors import ConfigError
from engine.model.source import SyntheticSource
from engine.model.synthetic import PREFIX
from engine.types import SamplingParams


def summarise(contender: Contender, plain: Tally, layers: int) -> dict[str, Any]:
    """One row of the table; `plain` is policy none's tally in the same run."""
    tally = contender.tally
    row: dict[str, Any] = {
        "policy": contender.name,
        "tokens_per_second": tally.tokens / tally.seconds,
        "speedup": (tally.tokens / tally.seconds) / (plain.tokens / plain.seconds),
        "speedup_median": statistics.median(p / t for p, t in zip(plain.per_prompt, tally.per_prompt, strict=True)),
    }
    if not tally.rounds:
        return row
    seconds = tally.decode_seconds
    row |= {
        "acceptance_length": tally.decode_tokens / tally.rounds,
        "search_share": tally.search_seconds / seconds,
        "other_us_per_token": 1e6 * tally.other_seconds / max(tally.tokens, 1),
    }
    if tally.drafted:
        pass_seconds = plain.verify_seconds / plain.rounds
        alpha = tally.accepted / tally.tested
        gamma = tally.draft_passes / tally.rounds
        f = tally.draft_seconds / tally.draft_passes / pass_seconds
        v = tally.verify_seconds / tally.rounds / pass_seconds
        ceiling = expected_tokens(alpha, gamma) / (gamma * f + v)
        decode = (tally.decode_tokens / seconds) / (plain.decode_tokens / plain.decode_seconds)
        row |= {
            "decode_speedup": decode,
            "alpha": alpha,
            "draft_acceptance_rate": tally.accepted / tally.drafted,
            "drafted_per_round": gamma,
            "f": f,
            "v": v,
            "ceiling": ceiling,
            "share_of_ceiling": decode / ceiling,
            "skipped_attention": tally.skipped_attention / tally.drafted / layers,
            "skipped_mlp": tally.skipped_mlp / tally.drafted / layers,
        }
    return row


_COLUMNS = (
    ("policy", "policy", "{}"),
    ("tok/s", "tokens_per_second", "{:.1f}"),
    ("speed-up", "speedup", "{:.2f}"),
    ("median", "speedup_median", "{:.2f}"),
    ("decode", "decode_speedup", "{:.2f}"),
    ("of ceiling", "share_of_ceiling", "{:.0%}"),
    ("α", "alpha", "{:.3f}"),
    ("accepted", "draft_acceptance_rate", "{:.3f}"),
    ("γ", "drafted_per_round", "{:.2f}"),
    ("length", "acceptance_length", "{:.2f}"),
    ("f", "f", "{:.2f}"),
    ("v", "v", "{:.2f}"),
    ("skip attn", "skipped_attention", "{:.0%}"),
    ("skip mlp", "skipped_mlp", "{:.0%}"),
    ("search", "search_share", "{:.1%}"),
    ("other µs/tok", "other_us_per_token", "{:.0f}"),
)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as aligned text; what a contender has no figure for stays empty."""
    cells = [[title for title, _, _ in _COLUMNS]]
    for row in rows:
        cells.append([form.format(row[key]) if key in row else "" for _, key, form in _COLUMNS])
    widths = [max(len(line[i]) for line in cells) for i in range(len(_COLUMNS))]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in cells)


def read_prompts(path: Path) -> list[str]:
    """JSON lines with a "prompt" each. Raises ConfigError."""
    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        prompts = [str(line["prompt"]) for line in lines]
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f'{path}: every line must be a JSON object with a "prompt" ({error!r})') from None
    if not prompts:
        raise ConfigError(f"{path} holds no prompts")
    return prompts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `bench decode` besides the engine's own."""
    parser.add_argument(
        "--prompts", type=Path, default=EMBEDDED / "prompts.jsonl", help="JSON lines with a prompt each"
    )
    parser.add_argument(
        "--policies", default="none,fixed,layerskip,knapspec", help="comma-separated; none is always run"
    )
    parser.add_argument("--limit", type=int, default=0, help="use only this many prompts, evenly picked; 0: all")
    parser.add_argument("--repeat", type=int, default=1, help="go through the prompts this many times")
    parser.add_argument("--concurrency", type=int, default=1, help="prompts answered at a time")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument(
        "--context", type=int, default=0, help="tokens imagined before each prompt, to time long contexts (made-up K/V)"
    )
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--ignore-eos", action="store_true", help="always generate --max-tokens tokens")
    parser.add_argument(
        "--hf", nargs="?", const="plain", default="", metavar="KINDS",
        help=f"also run transformers' generate, in the same run; comma-separated: {', '.join(HUGGING_FACE)} (plain)",
    )  # fmt: skip
    parser.add_argument(
        "--url", action="append", default=[], help="also ask this server with OpenAI's API, in the same run; repeatable"
    )


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Run, print the table and, as the last line, JSON."""
    names = list(dict.fromkeys(["none", *args.policies.split(",")]))
    unknown = sorted(set(names) - set(policy_names()))
    if unknown:
        raise ConfigError(f"unknown policies {', '.join(unknown)}; known: {', '.join(policy_names())}")
    sampling = SamplingParams(max_tokens=args.max_tokens, temperature=args.temperature, ignore_eos=args.ignore_eos)
    texts = read_prompts(args.prompts)
    if args.limit:
        texts = texts[:: max(len(texts) // args.limit, 1)][: args.limit]
    model = LoadedModel(config)
    context = tuple(i % model.spec.vocab for i in range(args.context - args.context % config.block_size))
    contenders: list[Contender] = [PolicyContender(name, model.core(config), sampling, context) for name in names]
    contenders += _others(args, config, model, sampling)
    prompts = [encode(model, text) for text in texts] * args.repeat
    for contender in contenders[:1] + contenders[len(names) :]:  # warm up without teaching a policy anything
        contender.run(prompts[:1], 1)
        contender.tally = Tally()
    size = args.concurrency * (1 if args.concurrency == 1 else 4)  # enough for the batch to stay full most of the time
    batches = [prompts[i : i + size] for i in range(0, len(prompts), size)]
    bandwidth = ReadBandwidth(model.decoder.device, model.clock)
    differing = 0
    for number, batch in enumerate(batches):
        turn = number % len(contenders)
        answers = {c.name: c.run(batch, args.concurrency) for c in contenders[turn:] + contenders[:turn]}
        plain = answers["none"] or []
        differing += sum(a != b for name in names for a, b in zip(answers[name] or [], plain, strict=True))
        bandwidth.observe()
    rows = [summarise(c, contenders[0].tally, model.spec.layers) for c in contenders]
    key = model.key
    print(f"{platform.machine()} {key.hardware}, {key.threads} threads, {key.dtype}; {key.shape}")
    if model.source.name.startswith(PREFIX):
        print("SYNTHETIC weights: a real shape, random text")
    after = f" after {len(context)} imagined tokens" if context else ""
    print(
        f"{len(prompts)} prompts{after}, {args.concurrency} at a time, ≤ {args.max_tokens} tokens, "
        "interleaved in one run"
    )
    print(table(rows))
    reading = _reading(contenders[0].tally, model, bandwidth.median)
    if reading:
        print(
            f"plain decoding reads {reading['read'] / 1e9:.1f} GB/s (weights and live cache, once a round), "
            f"{reading['share']:.0%} of the {reading['bandwidth'] / 1e9:.1f} GB/s that memory gives; small models stay "
            "in the CPU's caches"
        )
    if args.concurrency > 1 and args.hf:
        print("transformers' generate answers one prompt at a time")
    if args.url:
        print("servers may keep prefixes of earlier runs in their caches; here every contender reads its prompts")
    result = {
        "machine": key.hardware,
        "model": model.source.name,
        "context": len(context),
        "threads": key.threads,
        "dtype": key.dtype,
        "prompts": len(prompts),
        "concurrency": args.concurrency,
        "answers_that_differ_from_none": differing,
        "bandwidth": reading,
        "rows": rows,
    }
    print(json.dumps(result))
    return 0


def _others(
    args: argparse.Namespace, config: EngineConfig, model: LoadedModel, sampling: SamplingParams
) -> list[Contender]:
    """Contenders that are not this engine. Raises ConfigError."""
    kinds = [kind for kind in args.hf.split(",") if kind]
    if wrong := sorted(set(kinds) - set(HUGGING_FACE)):
        raise ConfigError(f"--hf knows {', '.join(HUGGING_FACE)}, not {', '.join(wrong)}")
    if args.context and (kinds or args.url):
        raise ConfigError("others cannot start from an imagined context: leave out --context")
    others: list[Contender] = [UrlContender(url, sampling) for url in args.url]
    if isinstance(model.source, SyntheticSource) and kinds not in ([], ["plain"]):
        raise ConfigError("a synthetic model's acceptance says nothing about transformers': use --hf plain")
    if kinds:
        theirs = load_hugging_face(model.source, model.key.dtype, sampling)
        exit_layer = config.layerskip_exit or max(model.spec.layers // 4, 1)
        others += [HuggingFaceContender(kind, theirs, sampling, exit_layer) for kind in dict.fromkeys(kinds)]
    return others


def _reading(plain: Tally, model: LoadedModel, bandwidth: float) -> dict[str, float]:
    """Bytes per second that plain decoding had to read, and what share of `bandwidth` that is; empty if it was idle."""
    if not plain.rounds:
        return {}
    step = bytes_to_read(model.spec, DTYPES[model.key.dtype], model.backend.cache_dtype, 0)
    one = bytes_to_read(model.spec, DTYPES[model.key.dtype], model.backend.cache_dtype, 1) - step
    read = (plain.rounds * step + plain.context * one) / plain.decode_seconds
    return {"read": read, "bandwidth": bandwidth, "share": read / bandwidth}


def encode(model: LoadedModel, text: str) -> Prompt:
    """A prompt as a chat's only message, or bare where the model has no template."""
    if not model.tokenizer.has_chat_template:
        return Prompt(text, tuple(model.tokenizer.encode(text)))
    chat = model.tokenizer.render_chat([{"role": "user", "content": text}])
    return Prompt(text, tuple(model.tokenizer.encode(chat, add_special_tokens=False)))
