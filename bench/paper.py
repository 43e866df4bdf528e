"""`knapserve bench paper NAME`: the experiments of the papers, each in one command."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.cells import compare
from bench.contenders import contenders
from bench.datasets import DATASETS, read_dataset
from bench.experiments import EXPERIMENTS, MIXES, Experiment
from bench.files import check_writable
from bench.prompts import PROMPTS, Text, evenly, natural, numbers, positive, read_prompts
from bench.record import GREEDY
from bench.report import facts_text
from bench.workloads import SAMPLES, Selection
from engine.config.engine import EngineConfig
from engine.config.fields import COUNT
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from papers.layer_sets import TUNED_POLICIES

_SHORTEST = 256  # tokens of the first context


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench paper`."""
    parser.add_argument(
        "experiment", choices=tuple(EXPERIMENTS), metavar="NAME",
        help="experiment: " + "; ".join(f"{name}: {each.title}" for name, each in EXPERIMENTS.items()),
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="FILE",
        help="write the figures to this file, as JSON; the same command goes on where it was interrupted",
    )  # fmt: skip
    parser.add_argument(
        "--dataset", action="append", default=[], metavar="NAME=FILE",
        help="JSON lines of a dataset, with the fields that it has on the Hugging Face hub; repeatable "
        f"(default: the kit's 24 prompts). Known: {', '.join(DATASETS)}",
    )  # fmt: skip
    parser.add_argument("--policies", default="", metavar="NAME,NAME…", help="policies (default: by experiment)")
    parser.add_argument("--limit", type=natural, default=3, help="prompts of each dataset; 0: all (default: 3)")
    parser.add_argument("--max-tokens", type=positive, help="maximum tokens per answer (default: by dataset)")
    parser.add_argument(
        "--contexts", metavar="N,N…",
        help="experiment context: tokens of text before each prompt (default: 256, 512, … as far as they fit)",
    )  # fmt: skip


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Measure what `--out` does not have yet, and print the table. Raises ConfigError."""
    name, experiment = args.experiment, EXPERIMENTS[args.experiment]
    if args.policies:
        contenders(args.policies, config)
    if args.contexts is not None and experiment.column != "context":
        raise ConfigError(f"--contexts is of experiment context, not of {name}")
    contexts = () if args.contexts is None else numbers("--contexts", args.contexts, int, COUNT)
    groups = _prompts(args.dataset)
    if args.out is not None:
        check_writable(args.out, "--out")
    model = LoadedModel(config)
    policies, note = args.policies or experiment.policies, experiment.note
    if name == "ood":
        available, groups, note = _outside(model, config, groups)
        policies = policies or available
    if experiment.column == "context":
        contexts = contexts or tuple(_SHORTEST << i for i in range(32) if _SHORTEST << i < model.length)
    chosen = _selection(args, experiment, groups, contexts)
    prompts = ", ".join(args.dataset) or "the kit's own, which stand in for the papers' datasets"
    more = {"experiment": name, "prompts": prompts}
    record = compare(model, config, policies, chosen, args.out, temperatures=(GREEDY,), **more)
    title = f"{experiment.title[0].upper()}{experiment.title[1:]}"
    parts = [title, f"{facts_text(record)}\nprompts: {prompts}", experiment.table(record), note]
    print("\n\n".join(filter(None, parts)))
    return 0


def _prompts(datasets: Sequence[str]) -> dict[str, list[Text]]:
    """Read the prompts of `--dataset`, or else the kit's, by domain. Raises ConfigError."""
    groups: dict[str, list[Text]] = {}
    for each in datasets:
        name, equals, file = each.partition("=")
        if not equals or not file:
            raise ConfigError(f"--dataset must be NAME=FILE, not {each}")
        if name in groups:
            raise ConfigError(f"--dataset {name} is given twice")
        groups[name] = read_dataset(name, Path(file).expanduser())
    for text in () if groups else read_prompts(PROMPTS):
        groups.setdefault(text.domain, []).append(text)
    return groups


def _outside(
    model: LoadedModel, config: EngineConfig, groups: dict[str, list[Text]]
) -> tuple[str, dict[str, list[Text]], str]:
    """Return the policies with layer sets, the prompts of domains not tuned on, and a note.

    The file of self-sd does not name its domains. Raises ConfigError without layer sets, or without
    such prompts.
    """
    core = model.core(config)
    sets: dict[str, Any] = {name: core.policy(name) for name in TUNED_POLICIES if name in core.info.policies}
    if not sets:
        reasons = (f"{name}: {why}" for name, why in core.info.unavailable_policies if name in TUNED_POLICIES)
        raise ConfigError(f"ood needs layer sets: {'; '.join(reasons)}")
    tuned = list(sets["knn-ssd"].layer_sets.sets) if "knn-ssd" in sets else []
    outside = {domain: own for domain, own in groups.items() if domain not in tuned}
    if not outside:
        domains = ", ".join(tuned)
        raise ConfigError(f"layer sets were tuned on all domains of these prompts ({domains}); give --dataset")
    return ",".join(sets), outside, f"Layer sets of knn-ssd were tuned on {', '.join(tuned)}." if tuned else ""


def _selection(
    args: argparse.Namespace, experiment: Experiment, groups: dict[str, list[Text]], contexts: tuple[int, ...]
) -> Selection:
    """Return what to measure. Without `--max-tokens`, answers are as long as the papers say."""
    context_text = ""
    if experiment.column == "context" and args.dataset:
        context_text = "\n\n".join(text.prompt for own in groups.values() for text in own)
    if args.limit:
        groups = {domain: evenly(own, max(args.limit, SAMPLES)) for domain, own in groups.items()}
    lengths = {
        domain: args.max_tokens or (DATASETS[domain].max_tokens if args.dataset else experiment.max_tokens)
        for domain in groups
    }
    return Selection(
        columns=(experiment.column,),
        texts=[text for own in groups.values() for text in own],
        limit=args.limit,
        max_tokens=max(lengths.values()),
        mixes=MIXES if experiment.column == "mixed" else (),
        contexts=contexts,
        context_text=context_text,
        lengths=lengths,
    )
