"""`knapserve tune`: an offline search on sample prompts for the plans that a server begins with."""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.contenders import PolicyContender, Prompt, Tally, answer_in_turns
from bench.prompts import Text, add_prompt_arguments, encode, read_prompts
from bench.results import summarise, table
from engine.config import EngineConfig
from engine.draft.knapspec import KnapSpec
from engine.errors import ConfigError, PriorError
from engine.runtime import prior as priors
from engine.runtime.build import LoadedModel, progress_bar
from engine.runtime.prior import Prior
from engine.types import SamplingParams

_FEWEST_PROMPTS = 4
_EVERYTHING = 1 << 30  # tested tokens
_FOUND = "with new plans"
_BEFORE = "with those before"  # plans that are in use already


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_prompt_arguments(parser, "tuning.jsonl", "; as they are to be served: every other one checks the result")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (0)")


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Search, save, compare with and without; a table, and JSON as the last line. Raises ConfigError."""
    texts = read_prompts(args.prompts, args.limit)
    if len(texts) < _FEWEST_PROMPTS:
        raise ConfigError(f"{args.prompts} has {len(texts)} prompts; tuning takes at least {_FEWEST_PROMPTS}")
    tuned, others = split(texts)
    bare = replace(config, prior="none")
    model = LoadedModel(bare)
    model.warm_up()
    sampling = SamplingParams(max_tokens=args.max_tokens, temperature=args.temperature)
    prompts = [encode(model, text) for text in tuned]
    path = model.prior_path(config)
    before = _before(model, config)
    prior = search(model, unhurried(bare), sampling, prompts)
    if prior is None:
        kept = "those that there are stay" if before is not None else "none are saved"
        print(f"Nothing was worth drafting with here: no plans were found, {kept}.")
        print(json.dumps({"plans": 0}))
        return 0
    found = {_FOUND: prior} if before is None else {_FOUND: prior, _BEFORE: before}
    if before is None:
        _save(prior, path)  # should the comparison be interrupted
    contenders = [
        PolicyContender(name, model.core(bare, own_cache=True), sampling, name=name) for name in ("none", "knapspec")
    ]
    with tempfile.TemporaryDirectory() as scratch:
        for name, plans in found.items():
            contenders.append(_beginning_with(plans, Path(scratch) / name, name, model, config, sampling))
    rows = _compare(contenders, [encode(model, text) for text in others], model.spec.layers)
    best = max(contenders[2:], key=lambda c: c.tally.tokens / c.tally.seconds)
    _save(found[best.name], path)
    print(f"{len(prior.plans)} plans, found on {len(tuned)} prompts; on the {len(others)} others:")
    print(table(rows))
    print(f"saved: {path} ({best.name})")
    print(json.dumps({"plans": len(found[best.name].plans), "saved": best.name, "path": str(path), "rows": rows}))
    return 0


def split(texts: Sequence[Text]) -> tuple[list[Text], list[Text]]:
    """Deal out prompts to search on and prompts to compare on, each in random order: files are in that of subjects."""
    tuned, others = list(texts[0::2]), list(texts[1::2])
    random.Random(1).shuffle(tuned)
    random.Random(0).shuffle(others)
    return tuned, others


def _beginning_with(
    prior: Prior, file: Path, name: str, model: LoadedModel, config: EngineConfig, sampling: SamplingParams
) -> PolicyContender:
    """One that begins with these plans, which are saved in `file`."""
    _save(prior, file)
    core = model.core(replace(config, prior=str(file)), own_cache=True)
    return PolicyContender("knapspec", core, sampling, name=name)


def _before(model: LoadedModel, config: EngineConfig) -> Prior | None:
    """The plans that there are. Damaged ones are to be replaced, unless they were named."""
    try:
        return model.prior(config)
    except PriorError as error:
        if config.prior != "auto":
            raise
        print(f"{error}: they are replaced")
        return None


def _save(prior: Prior, path: Path) -> None:
    try:
        priors.save(prior, path)
    except OSError as error:
        raise ConfigError(f"cannot save the plans: {error}") from None


def unhurried(config: EngineConfig) -> EngineConfig:
    """Searches that have all the time they want: after every few rounds, finer, over more rows. What is known of a plan
    in the end is what all prompts saw of it, not the last few."""
    return replace(
        config,
        knapspec_budget=1.0,
        knapspec_interval=16,
        knapspec_rows=32,
        knapspec_beam=16,
        knapspec_memory=_EVERYTHING,
    )


def search(
    model: LoadedModel, config: EngineConfig, sampling: SamplingParams, prompts: Sequence[Prompt]
) -> Prior | None:
    """What knapspec knows after these prompts."""
    core = model.core(config)
    contender = PolicyContender("knapspec", core, sampling)
    show = progress_bar("searching for plans")
    for number, prompt in enumerate(prompts, 1):
        contender.run([prompt], 1)
        show(number / len(prompts))
    policy = core.policy("knapspec")
    assert isinstance(policy, KnapSpec)
    learnt = policy.learnt()
    return Prior(model.source.fingerprint, learnt) if learnt else None


def _compare(contenders: Sequence[PolicyContender], prompts: Sequence[Prompt], layers: int) -> list[dict[str, object]]:
    """All answer all prompts, in turns."""
    contenders[0].run(prompts[:1], 1)
    contenders[0].tally = Tally()
    for number, prompt in enumerate(prompts):
        answer_in_turns(contenders, [prompt], first=number % len(contenders))
    return [summarise(c, contenders[0].tally, layers) for c in contenders]
