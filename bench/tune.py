"""`knapserve tune`: search offline, on sample prompts, for the initial draft plans of servers.

This module has the search of policy knapspec; `bench.tuning` has those of the other policies.
"""

import argparse
import json
import math
import random
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench import tuning
from bench.files import write
from bench.prompts import TUNING_PROMPTS, Text, add_prompt_arguments, encode, positive, read_prompts
from bench.results import Row, summarise, table
from bench.targets import PolicyTarget, Prompt, run_in_turns, warm_up
from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.draft.knapspec import KnapSpec
from engine.errors import ConfigError, TunedFileError
from engine.logs import progress_bar
from engine.runtime.build import LoadedModel
from engine.runtime.prior import Prior
from engine.types import SamplingParams

_MIN_PROMPTS = 4
_MAX_TOKENS = 128
_NEW = "with new plans"
_SAVED_TOKENS = 12.0  # tested tokens from which a plan is worth saving


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `tune`."""
    add_prompt_arguments(parser)
    parser.set_defaults(prompts=TUNING_PROMPTS, max_tokens=None)
    parser.add_argument("--temperature", type=float, default=0.0, help="temperature; 0: greedy (default: 0)")
    parser.add_argument(
        "--policy", choices=("knapspec", "knn-ssd", "self-sd", "layerskip"), default="knapspec",
        help="policy to tune: initial plans of knapspec, with half of the prompts to compare them on; the layer sets "
        f"of another policy, or the exit and length of layerskip, with answers of {tuning.MAX_TOKENS} tokens "
        "(default: knapspec)",
    )  # fmt: skip
    parser.add_argument(
        "--iterations", type=positive, default=50,
        help="policies self-sd and knn-ssd: candidates for each layer set (default: 50; the papers: 1000)",
    )  # fmt: skip
    parser.add_argument(
        "--samples", type=positive, default=8,
        help="all policies but knapspec: prompts to measure a candidate on, at most (default: 8, as in the papers)",
    )  # fmt: skip


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Tune a policy and save the result; print a table, then JSON. Raises ConfigError."""
    return _run(args, config) if args.policy == "knapspec" else tuning.run(args, config)


def _run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Search for plans of knapspec, save and compare them."""
    texts = read_prompts(args.prompts, args.limit)
    if len(texts) < _MIN_PROMPTS:
        raise ConfigError(f"{args.prompts} has {len(texts)} prompts; tuning requires at least {_MIN_PROMPTS}")
    tuned, others = split(texts)
    bare = replace(config, prior="none")
    model = LoadedModel(bare)
    model.warm_up()
    sampling = SamplingParams(max_tokens=args.max_tokens or _MAX_TOKENS, temperature=args.temperature)
    prompts = [encode(model, text) for text in tuned]
    path = model.tuned_path(config)
    current = _current_prior(model, config)
    kept = "the current plans are kept" if current is not None else "none are saved"
    prior = search(model, thorough_search(bare), sampling, prompts)
    if prior is None:
        print(f"No plan is faster than plain decoding here: {kept}.")
        print(json.dumps({"plans": 0}))
        return 0
    candidates = {_NEW: prior} if current is None else {_NEW: prior, "with current plans": current}
    targets = [
        PolicyTarget(name, model.core(bare, own_cache=True), sampling, name=name) for name in ("none", "knapspec")
    ]
    with tempfile.TemporaryDirectory() as scratch:
        for name, plans in candidates.items():
            file = Path(scratch) / name
            write(file, plans.to_json())
            core = model.core(replace(config, prior=str(file)), own_cache=True)
            targets.append(PolicyTarget("knapspec", core, sampling, name=name))
    rows = _compare(targets, [encode(model, text) for text in others])
    print(f"{len(prior.plans)} plans found on {len(tuned)} prompts; compared on the other {len(others)}:")
    print(table(rows))
    fastest = max(rows, key=lambda row: row["tokens_per_second"])["policy"]
    if fastest == _NEW:
        write(path, prior.to_json())
        print(f"saved: {path}")
    else:
        print(f"{fastest} is at least as fast as the new plans: {kept}.")
    found = {"plans": len(prior.plans), "saved": fastest == _NEW, "fastest": fastest}
    print(json.dumps(found | {"path": str(path), "rows": rows}))
    return 0


def split(texts: Sequence[Text]) -> tuple[list[Text], list[Text]]:
    """Deal out prompts to search on and to compare on, shuffled: files are ordered by subject."""
    tuned, others = list(texts[0::2]), list(texts[1::2])
    random.Random(1).shuffle(tuned)
    random.Random(0).shuffle(others)
    return tuned, others


def _current_prior(model: LoadedModel, config: EngineConfig) -> Prior | None:
    """Return the plans in use, or None. Damaged ones count as None, unless --prior names them."""
    try:
        return model.prior(config)
    except TunedFileError as error:
        if config.prior != "auto":
            raise
        print(f"{error}; the plans will be replaced")
        return None


def thorough_search(config: EngineConfig) -> EngineConfig:
    """Return settings for frequent, finer searches."""
    return replace(config, knapspec=replace(config.knapspec, budget=1.0, interval=16, rows=32, beam=16))


def without_forgetting(core: EngineCore) -> KnapSpec:
    """Return the core's policy, whose observations do not fade from now on."""
    policy = core.policy("knapspec")
    assert isinstance(policy, KnapSpec)
    policy.estimator.horizon = math.inf
    return policy


def search(
    model: LoadedModel, config: EngineConfig, sampling: SamplingParams, prompts: Sequence[Prompt]
) -> Prior | None:
    """Run knapspec on the prompts. Returns the plans that it has learnt, or None."""
    core = model.core(config)
    policy = without_forgetting(core)
    target = PolicyTarget("knapspec", core, sampling)
    show = progress_bar("searching for plans")
    for number, prompt in enumerate(prompts, 1):
        target.run([prompt], 1)
        show(number / len(prompts))
    learnt = {plan: counts for plan, counts in policy.estimator.counts.items() if counts.sum() >= _SAVED_TOKENS}
    return Prior(model.source.fingerprint, learnt) if learnt else None


def _compare(targets: Sequence[PolicyTarget], prompts: Sequence[Prompt]) -> list[Row]:
    """Let targets answer the prompts in turns. Returns a row of each."""
    warm_up(targets[:1], prompts[:1])
    for number, prompt in enumerate(prompts):
        run_in_turns(targets, [prompt], first=number % len(targets))
    plain = targets[0].stats.total
    return [summarise(target.name, target.stats.total, plain) for target in targets]
