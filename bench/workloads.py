"""Workloads of benchmarks: domains, mixed streams of domains, and long contexts."""

import random
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from bench.prompts import Text, context_tokens, encode, evenly
from bench.targets import PolicyTarget, Prompt
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

T = TypeVar("T")

WORKLOADS = ("domains", "mixed", "context")
_TASKS = 5  # domains of a mixed stream, as in section 5.1 of KNN-SSD
SAMPLES = 2  # fewest samples of each domain in a mixed stream: with one, all mix ratios are alike


class Selection(NamedTuple):
    """What to measure, and how much of it: the checked flags."""

    columns: tuple[str, ...]  # some of WORKLOADS
    texts: list[Text]
    limit: int  # prompts of each domain, and prompts after each context; 0: all
    max_tokens: int  # tokens of an answer, at most
    mixes: tuple[float, ...] = ()  # mix ratios r
    contexts: tuple[int, ...] = ()  # tokens before each prompt
    repeat: int = 1  # measurements of each workload, all of them by fresh policies
    context_text: str = ""  # see `context_tokens`
    lengths: Mapping[str, int] = {}  # `max_tokens` of the domains that have their own


class Workload(NamedTuple):
    """A stream of prompts, which every policy begins without any knowledge."""

    column: str  # one of WORKLOADS
    name: str
    prompts: tuple[Prompt, ...]
    max_tokens: int  # tokens of an answer, at most
    value: float | None = None  # the mix ratio, or the tokens of the context
    prefix: tuple[int, ...] = ()  # tokens before every prompt, in whole blocks


def mixed_stream(tasks: Sequence[Sequence[T]], ratio: float, seed: int = 0) -> list[T]:
    """Order the samples of several tasks as a stream of mix ratio r (KNN-SSD, eq. 8).

    After a sample of task k, the next one is of task k with probability 1 − r, and of each of the
    other N − 1 tasks with probability r / (N − 1). Every sample occurs once, and a task without
    further samples no longer counts: r = 0 goes task by task. At r = 1 neighbours are of different
    tasks if there is such an order: moves avoid the tasks after which there would be none.
    """
    chance = random.Random(seed)
    left = [deque(task) for task in tasks]
    stream: list[T] = []
    current: int | None = None
    while any(left):
        others = [task for task, samples in enumerate(left) if samples and task != current]
        stays = current is not None and left[current] and chance.random() >= ratio
        if others and not stays:
            current = chance.choice([task for task in others if _can_alternate(left, task)] or others)
        assert current is not None
        stream.append(left[current].popleft())
    return stream


def _can_alternate(left: Sequence[deque[T]], task: int) -> bool:
    """Whether the samples after one of `task` have an order without neighbours of one task."""
    counts = [len(samples) - (index == task) for index, samples in enumerate(left)]
    return counts[task] <= sum(counts) // 2 and max(counts) <= (sum(counts) + 1) // 2


def make_workloads(model: LoadedModel, config: EngineConfig, chosen: Selection) -> list[Workload]:
    """Make the workloads of the columns, without the contexts for which the model has no room.

    Raises ConfigError for prompts without room, for a mixed stream of one domain, and if no context
    has room.
    """
    prompts = [encode(model, text) for text in chosen.texts]
    domains: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        domains.setdefault(prompt.domain or "(none)", []).append(prompt)
    limit, most = chosen.limit or len(prompts), chosen.max_tokens
    tasks = [evenly(own, max(limit, SAMPLES)) for own in evenly(list(domains.values()), _TASKS)]
    if "mixed" in chosen.columns and len(tasks) < 2:
        raise ConfigError("mixed streams need prompts of at least two domains")
    made = [
        Workload("domains", domain, tuple(evenly(own, limit)), chosen.lengths.get(domain, most))
        for domain, own in domains.items()
    ]
    made += [Workload("mixed", f"r = {r:g}", tuple(mixed_stream(tasks, r)), most, r) for r in chosen.mixes]
    for length in chosen.contexts:
        prefix = context_tokens(model, length, chosen.context_text)
        made.append(Workload("context", f"{length:,} tokens", tuple(evenly(prompts, limit)), most, length, prefix))
    core = model.core(config)
    kept: list[Workload] = []
    for workload in made:
        if workload.column not in chosen.columns:
            continue
        try:
            sampling = SamplingParams(max_tokens=workload.max_tokens)
            PolicyTarget("none", core, sampling, workload.prefix).check(workload.prompts)
            kept.append(workload)
        except ConfigError as error:
            if not workload.prefix:
                raise ConfigError(f"{workload.column}, {workload.name}: {error}") from None
            print(f"the context of {workload.name} is left out: {error}", file=sys.stderr)
    if "context" in chosen.columns and not any(workload.prefix for workload in kept):
        raise ConfigError("no context fits the model beside a prompt and its answer; give shorter --contexts")
    return kept
