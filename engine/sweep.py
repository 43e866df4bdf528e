"""`knapserve bench sweep`: knapspec against the best of many fixed plans, on the same prompts in the same run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from engine.build import LoadedModel, progress_bar
from engine.config import EngineConfig
from engine.contenders import PolicyContender, Prompt, Tally, answer_in_turns
from engine.draft.base import Variants
from engine.draft.fixed import exit_variants, uniform_variants
from engine.prompts import add_prompt_arguments, encode, evenly, positive, read_prompts
from engine.tune import search, unhurried
from engine.types import SamplingParams

_GAMMAS = (2, 4, 8)
_CONFIDENCES = (0.0, 0.6)  # with and without a stop rule
_UNIFORM = (0.25, 0.5, 0.75)
_FINALISTS = 12  # that answer every prompt
_FIRST_PROMPTS = 10  # that all plans answer
_BATCH = 8  # plans compared at a time in the first round
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Fixed:
    """A plan that never changes, and where it comes from."""

    origin: str
    variants: Variants
    gamma: int
    confidence: float

    @property
    def name(self) -> str:
        stop = f", stop below {self.confidence}" if self.confidence else ""
        return f"{self.origin}, γ = {self.gamma}{stop}"

    def config(self, config: EngineConfig) -> EngineConfig:
        return replace(
            config,
            fixed_plan="".join(map(str, self.variants)),
            fixed_gamma=self.gamma,
            draft_confidence=self.confidence,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prompt_arguments(parser)
    parser.add_argument("--plans", type=positive, default=200, help="about how many fixed plans to compare with")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (0)")
    parser.add_argument("--seed", type=int, default=0, help="of the random plans")


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """A first round on few prompts, a final on all; a table, and JSON as the last line. Raises ConfigError."""
    texts = read_prompts(args.prompts, args.limit)
    model = LoadedModel(config)
    model.warm_up()
    prompts = [encode(model, text) for text in texts]
    sampling = SamplingParams(max_tokens=args.max_tokens, temperature=args.temperature)
    first = evenly(prompts, _FIRST_PROMPTS)
    found = search(model, unhurried(replace(config, prior="none")), sampling, first)
    plans = list(fixed_plans(model.spec.layers, list(found.plans) if found else [], args.plans, Random(args.seed)))
    finalists = _first_round(model, config, sampling, plans, first)
    contenders = [PolicyContender(name, model.core(config, own_cache=True), sampling) for name in ("none", "knapspec")]
    contenders += [_contender(model, config, sampling, plan) for plan in finalists]
    _answer(contenders, prompts, progress_bar("final"))
    rows = sorted((_row(c, contenders[0].tally) for c in contenders), key=lambda row: -row["speedup"])
    best = next(row for row in rows if row["plan"] not in ("none", "knapspec"))
    ours = next(row for row in rows if row["plan"] == "knapspec")
    print(
        f"{len(plans)} fixed plans on {len(first)} prompts, the best {len(finalists)} and knapspec on {len(prompts)}:"
    )
    for row in rows[:_SHOWN] + [row for row in rows[_SHOWN:] if row["plan"] in ("none", "knapspec")]:
        print(f"{row['speedup']:6.2f} ×  {row['tokens_per_second']:8.1f} tokens/s  {row['plan']}")
    share = ours["speedup"] / best["speedup"]
    print(f"knapspec reaches {share:.0%} of the best of them, which was picked by looking at the result")
    print(json.dumps({"plans": len(plans), "share_of_best": share, "rows": rows}))
    return 0


def fixed_plans(layers: int, found: Sequence[Variants], count: int, random: Random) -> Iterator[Fixed]:
    """About `count` plans: every early exit, uniform skips, what searches found, the rest random; each with every γ."""
    rules = [(gamma, confidence) for gamma in _GAMMAS for confidence in _CONFIDENCES]
    origins: dict[Variants, str] = {}
    for depth in range(1, layers):
        origins.setdefault(exit_variants(layers, depth), f"exit after layer {depth}")
    for ratio in _UNIFORM:
        whole = uniform_variants(layers, ratio)
        parts = {"layers": whole, "attention": _with(whole, mlp=1), "MLPs": _with(whole, attention=1)}
        for what, variants in parts.items():
            origins.setdefault(variants, f"{ratio:.0%} of the {what} skipped evenly")
    for variants in found:
        origins.setdefault(variants, "found by the knapsack: " + "".join(map(str, variants)))
    while len(origins) * len(rules) < count and len(origins) < 2 ** (2 * layers) - 1:
        share = random.uniform(0.2, 0.8)
        variants = tuple(int(random.random() > share) for _ in range(2 * layers))
        origins.setdefault(variants, "random: " + "".join(map(str, variants)))
    for variants, origin in origins.items():
        if 0 < sum(variants) < len(variants):
            for gamma, confidence in rules:
                yield Fixed(origin, variants, gamma, confidence)


def _with(variants: Variants, *, attention: int | None = None, mlp: int | None = None) -> Variants:
    """The same with all attention or all MLP sublayers run."""
    kinds = (attention, mlp)
    return tuple(v if kinds[i % 2] is None else kinds[i % 2] or 0 for i, v in enumerate(variants))


def _first_round(
    model: LoadedModel,
    config: EngineConfig,
    sampling: SamplingParams,
    plans: Sequence[Fixed],
    prompts: Sequence[Prompt],
) -> list[Fixed]:
    """The plans that gained most, each compared with plain decoding beside it."""
    gains: dict[Fixed, float] = {}
    show = progress_bar(f"{len(plans)} plans")
    for start in range(0, len(plans), _BATCH):
        batch = plans[start : start + _BATCH]
        contenders = [PolicyContender("none", model.core(config, own_cache=True), sampling)]
        contenders += [_contender(model, config, sampling, plan) for plan in batch]
        _answer(contenders, prompts, lambda _: None)
        for plan, contender in zip(batch, contenders[1:], strict=True):
            gains[plan] = _row(contender, contenders[0].tally)["speedup"]
        show(min(start + _BATCH, len(plans)) / len(plans))
    return sorted(gains, key=lambda plan: -gains[plan])[:_FINALISTS]


def _contender(model: LoadedModel, config: EngineConfig, sampling: SamplingParams, plan: Fixed) -> PolicyContender:
    return PolicyContender("fixed", model.core(plan.config(config), own_cache=True), sampling, name=plan.name)


def _answer(contenders: Sequence[PolicyContender], prompts: Sequence[Prompt], show: Callable[[float], None]) -> None:
    """All answer all prompts, in turns; the first of them warms up before."""
    contenders[0].run(prompts[:1], 1)
    contenders[0].tally = Tally()
    for number, prompt in enumerate(prompts, 1):
        answer_in_turns(contenders, [prompt], first=number % len(contenders))
        show(number / len(prompts))


def _row(contender: PolicyContender, plain: Tally) -> dict[str, Any]:
    tally = contender.tally
    rate = tally.tokens / tally.seconds
    return {
        "plan": contender.name,
        "tokens_per_second": rate,
        "speedup": rate * plain.seconds / plain.tokens,
        "alpha": tally.accepted / tally.tested if tally.tested else None,
    }
