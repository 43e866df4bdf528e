"""`knapserve bench decode`: policies side by side in one run, interleaved prompt by prompt."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from engine.build import DTYPES, EMBEDDED, LoadedModel
from engine.clock import SystemClock
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.draft.base import policy_names
from engine.draft.tpt import expected_tokens
from engine.errors import ConfigError, EngineDeadError
from engine.model.synthetic import PREFIX
from engine.types import ErrorEvent, GenerateRequest, RoundReport, SamplingParams


@dataclass(slots=True)
class Tally:
    """What one contender did, summed over prompts. Seconds and tokens."""

    tokens: int = 0
    seconds: float = 0.0
    per_prompt: list[float] = field(default_factory=list)  # seconds, in the order of the prompts
    decode_seconds: float = 0.0  # rounds without prompt rows
    decode_tokens: int = 0
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    search_seconds: float = 0.0
    other_seconds: float = 0.0
    draft_passes: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    tested: int = 0
    skipped_attention: int = 0
    skipped_mlp: int = 0

    def round(self, report: RoundReport) -> None:
        """Count one round."""
        self.search_seconds += report.search_seconds
        self.other_seconds += report.other_seconds
        emitted = sum(r.emitted for r in report.rounds)
        if report.prompt_tokens == 0 and report.rounds:
            spent = report.draft_seconds + report.verify_seconds + report.search_seconds + report.other_seconds
            self.decode_seconds += spent
            self.decode_tokens += emitted
            self.draft_seconds += report.draft_seconds
            self.verify_seconds += report.verify_seconds
            self.draft_passes += max(r.draft_passes for r in report.rounds)
            self.rounds += 1
        for r in report.rounds:
            self.drafted += r.drafted
            self.accepted += r.accepted
            self.tested += r.accepted + (r.accepted < r.drafted)
            self.skipped_attention += r.skipped_attention * r.draft_passes
            self.skipped_mlp += r.skipped_mlp * r.draft_passes


class Contender(Protocol):
    """Something that answers prompts."""

    name: str
    tally: Tally

    def run(self, prompts: Sequence[tuple[int, ...]], streams: int) -> list[tuple[int, ...]]:
        """Answer these prompts, `streams` at a time; the tokens of each."""
        ...


class PolicyContender:
    """A draft policy on a core of its own, so that what one learns does not help another."""

    def __init__(self, name: str, core: EngineCore, sampling: SamplingParams, context: tuple[int, ...] = ()) -> None:
        """Every prompt comes after `context`, whose keys and values are made up rather than read."""
        self._context = context
        self.name = name
        self.core = core
        self.tally = Tally()
        self._sampling = sampling
        self._clock = SystemClock()

    def run(self, prompts: Sequence[tuple[int, ...]], streams: int) -> list[tuple[int, ...]]:
        core, tally = self.core, self.tally
        core.scheduler.blocks.clear()  # every contender reads the prompt itself
        if self._context:
            core.imagine(self._context)
        said: dict[str, list[int]] = {}
        started = self._clock.now()
        todo = deque(enumerate(prompts))
        live = 0
        while todo or live:
            while todo and live < streams:
                index, prompt = todo.popleft()
                core.add(
                    GenerateRequest(str(index), self._context + prompt, replace(self._sampling, seed=index), self.name)
                )
                live += 1
            report = core.step()
            tally.round(report)
            for event in report.events:
                if isinstance(event, ErrorEvent):
                    raise EngineDeadError(event.message)
                said.setdefault(event.request_id, []).extend(event.token_ids)
                live -= event.finish_reason is not None
        seconds = self._clock.now() - started
        tally.seconds += seconds
        tally.per_prompt.append(seconds)
        tally.tokens += sum(len(tokens) for tokens in said.values())
        return [tuple(said[str(index)]) for index in range(len(prompts))]


class HuggingFaceContender:
    """transformers' `generate` with its default settings and cache, same dtype and threads; greedy, one at a time."""

    name = "hf-generate"

    def __init__(self, directory: Path, dtype: str, sampling: SamplingParams) -> None:
        from transformers import AutoModelForCausalLM

        if not sampling.greedy:
            raise ConfigError("--hf compares greedy decoding only: use --temperature 0")
        self.tally = Tally()
        self._model: Any = AutoModelForCausalLM.from_pretrained(directory, dtype=DTYPES[dtype])
        self._sampling = sampling
        self._clock = SystemClock()

    @torch.inference_mode()
    def run(self, prompts: Sequence[tuple[int, ...]], streams: int) -> list[tuple[int, ...]]:
        out: list[tuple[int, ...]] = []
        options: dict[str, Any] = {"max_new_tokens": self._sampling.max_tokens, "do_sample": False}
        if self._sampling.ignore_eos:
            options["eos_token_id"] = None
        started = self._clock.now()
        for prompt in prompts:
            ids = torch.tensor([prompt])
            tokens = self._model.generate(ids, attention_mask=torch.ones_like(ids), **options)
            out.append(tuple(tokens[0, len(prompt) :].tolist()))
        seconds = self._clock.now() - started
        self.tally.seconds += seconds
        self.tally.per_prompt.append(seconds)
        self.tally.tokens += sum(len(tokens) for tokens in out)
        return out


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
    parser.add_argument("--hf", action="store_true", help="also run transformers' generate, in the same run")


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
    if args.hf and context:
        raise ConfigError("--hf cannot start from an imagined context: leave out --context")
    if args.hf:
        contenders.append(HuggingFaceContender(model.source.directory, model.key.dtype, sampling))
    prompts = [encode(model, text) for text in texts] * args.repeat
    for contender in contenders[:1] + contenders[len(names) :]:  # warm up without teaching a policy anything
        contender.run(prompts[:1], 1)
        contender.tally = Tally()
    size = args.concurrency * (1 if args.concurrency == 1 else 4)  # enough for the batch to stay full most of the time
    batches = [prompts[i : i + size] for i in range(0, len(prompts), size)]
    differing = 0
    for number, batch in enumerate(batches):
        turn = number % len(contenders)
        answers = {c.name: c.run(batch, args.concurrency) for c in contenders[turn:] + contenders[:turn]}
        differing += sum(answers[name] != answers["none"] for name in names)
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
    result = {
        "machine": key.hardware,
        "model": model.source.name,
        "context": len(context),
        "threads": key.threads,
        "dtype": key.dtype,
        "prompts": len(prompts),
        "concurrency": args.concurrency,
        "answers_that_differ_from_none": differing,
        "rows": rows,
    }
    print(json.dumps(result))
    return 0


def encode(model: LoadedModel, text: str) -> tuple[int, ...]:
    """A prompt as a chat's only message, or bare where the model has no template."""
    if not model.tokenizer.has_chat_template:
        return tuple(model.tokenizer.encode(text))
    chat = model.tokenizer.render_chat([{"role": "user", "content": text}])
    return tuple(model.tokenizer.encode(chat, add_special_tokens=False))
