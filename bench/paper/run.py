"""`knapserve bench paper NAME`: the experiments of the papers, each in one command.

DIR/NAME.json has the raw figures, DIR/NAME.md the table, DIR/NAME.png the figure.
"""

import argparse
import platform
import shlex
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.cells import compare
from bench.contenders import contenders
from bench.datasets import DATASETS, read_dataset
from bench.files import check_writable, write
from bench.paper.experiments import EXPERIMENTS, MIXES, Experiment
from bench.plots import NO_PICTURES, available, diagrams, heat_map
from bench.prompts import PROMPTS, Text, evenly, natural, numbers, positive, read_prompts
from bench.record import GREEDY, Record
from bench.results import Lines, aligned, facts_text
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
        "--out", type=Path, metavar="DIR", required=True,
        help="write NAME.json, NAME.md and NAME.png to this directory; the same command goes on after an interruption",
    )  # fmt: skip
    parser.add_argument(
        "--dataset", action="append", default=[], metavar="NAME=FILE",
        help="JSON lines of a dataset, with the fields that it has on the Hugging Face hub; repeatable (default: the "
        f"kit's 24 prompts). Known: {', '.join(DATASETS)}",
    )  # fmt: skip
    parser.add_argument("--policies", default="", metavar="NAME,NAME…", help="draft policies (default: by experiment)")
    parser.add_argument("--limit", type=natural, default=3, help="prompts of each dataset; 0: all (default: 3)")
    parser.add_argument("--max-tokens", type=positive, help="maximum tokens per answer (default: by dataset)")
    parser.add_argument(
        "--contexts", metavar="N,N…",
        help="experiment context: tokens of text before each prompt (default: 256, 512, … up to the model's limit)",
    )  # fmt: skip
    parser.add_argument("--restart", action="store_true", help="discard earlier results of the experiment in --out")


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Measure what `--out` does not have yet, write the three files, and print the table. Raises ConfigError."""
    name, experiment = args.experiment, EXPERIMENTS[args.experiment]
    if args.policies:
        _check_policies(args.policies, name, config)
    if args.contexts is not None and experiment.column != "context":
        raise ConfigError(f"--contexts is of experiment context, not of {name}")
    contexts = () if args.contexts is None else numbers("--contexts", args.contexts, int, COUNT)
    groups = _prompts(args.dataset)
    if experiment.column == "mixed" and len(groups) < 2:
        raise ConfigError(f"{name} needs prompts of two datasets at least; repeat --dataset")
    path = args.out / f"{name}.json"
    check_writable(path, "--out")
    model = LoadedModel(config)
    policies, note = args.policies or experiment.policies, experiment.note
    if name == "ood":
        policies, groups, note = _outside(args, model, config, groups)
    if experiment.column == "context":
        contexts = contexts or tuple(_SHORTEST << i for i in range(32) if _SHORTEST << i < model.length)
    chosen = _selection(args, experiment, groups, contexts)
    record = compare(
        model,
        config,
        policies,
        chosen,
        path,
        temperatures=(GREEDY,),
        skip_long=args.contexts is None,
        restart=args.restart,
        show=sys.stderr.isatty(),
        experiment=name,
    )
    versions = [f"{package} {metadata.version(package)}" for package in ("knapserve", "torch", "numpy")]
    record.machine |= {
        "prompts": ", ".join(args.dataset) or "the kit's own, which stand in for the papers' datasets",
        "versions": ", ".join([*versions, f"Python {platform.python_version()}"]),
        "command": shlex.join(["knapserve", *sys.argv[1:]]),
    }
    record.save()
    _report(record, name, experiment, note, args.out)
    return 0


def _check_policies(policies: str, name: str, config: EngineConfig) -> None:
    """Raise ConfigError for policies that the experiment cannot compare."""
    if ":" in EXPERIMENTS[name].policies:
        raise ConfigError(f"--policies: {name} compares settings of knapsack; leave the flag out")
    entries = contenders(policies, config)
    if len(entries) == 1:
        raise ConfigError("--policies: name a policy to compare with none")
    if name == "ood" and (others := [each.name for each in entries[1:] if each.policy not in TUNED_POLICIES]):
        raise ConfigError(f"--policies: {others[0]} has no layer sets; ood compares {', '.join(TUNED_POLICIES)}")


def _prompts(datasets: Sequence[str]) -> dict[str, list[Text]]:
    """Read the prompts of `--dataset`, or else the kit's, by domain. Raises ConfigError."""
    groups: dict[str, list[Text]] = {}
    for each in datasets:
        name, equals, file = each.partition("=")
        if not equals or not file:
            raise ConfigError(f"--dataset must be NAME=FILE, not {each}")
        if name in groups:
            raise ConfigError(f"--dataset {name} is given twice")
        try:
            groups[name] = read_dataset(name, Path(file).expanduser())
        except ConfigError as error:
            raise ConfigError(f"--dataset: {error}") from None
    for text in () if groups else read_prompts(PROMPTS):
        groups.setdefault(text.domain, []).append(text)
    return groups


def _outside(
    args: argparse.Namespace, model: LoadedModel, config: EngineConfig, groups: dict[str, list[Text]]
) -> tuple[str, dict[str, list[Text]], str]:
    """Return policies with layer sets, prompts of domains that these were not tuned on, and a note about them.

    Raises ConfigError without layer sets, or without such prompts.
    """
    core = model.core(config)
    sets: dict[str, Any] = {name: core.policy(name) for name in TUNED_POLICIES if name in core.info.policies}
    missing = {name: why for name, why in core.info.unavailable_policies if name in TUNED_POLICIES}
    if not sets:
        raise ConfigError(f"ood needs layer sets: {'; '.join(f'{name}: {why}' for name, why in missing.items())}")
    tuned = list(sets["knn-ssd"].layer_sets.sets) if "knn-ssd" in sets else []
    outside = {domain: own for domain, own in groups.items() if domain not in tuned}
    if not outside:
        raise ConfigError(f"layer sets were tuned on all domains of these prompts ({', '.join(tuned)}); give --dataset")
    parts = [f"Layer sets of knn-ssd were tuned on {', '.join(tuned)}."] if tuned else []
    if "self-sd" in sets:
        parts.append("The file of self-sd does not name its domains: they may include those measured here.")
    parts += [f"{policy} is not measured: {why}." for policy, why in missing.items()]
    return args.policies or ",".join(sets), outside, " ".join(parts)


def _selection(
    args: argparse.Namespace, experiment: Experiment, groups: dict[str, list[Text]], contexts: tuple[int, ...]
) -> Selection:
    """Return what to measure: answers of a dataset are as long as its paper says, unless `--max-tokens` does."""
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
        columns=(experiment.column, *(["memory"] if experiment.memory else [])),
        texts=[text for own in groups.values() for text in own],
        limit=args.limit,
        max_tokens=max(lengths.values()),
        mixes=MIXES if experiment.column == "mixed" else (),
        contexts=contexts,
        context_text=context_text,
        lengths=lengths,
    )


def _report(record: Record, name: str, experiment: Experiment, note: str, directory: Path) -> None:
    """Print the table, and write it and the figure."""
    lines, title = experiment.table(record), f"{experiment.title[0].upper()}{experiment.title[1:]}"
    facts = [[fact, str(value)] for fact, value in record.machine.items()]
    print("\n\n".join(filter(None, [facts_text(record.machine), aligned(lines), note])) + "\n")
    parts = [f"# {title}", _markdown([["", ""], *facts]), _markdown(lines), note]
    if not available():
        print(NO_PICTURES)
    elif (png := _figure(record, title, experiment)) is not None:
        write(directory / f"{name}.png", png)
        parts.append(f"![{title}]({name}.png)")
    write(directory / f"{name}.md", "\n\n".join(filter(None, parts)) + "\n")
    print(f"written: {', '.join(str(path) for path in sorted(directory.glob(f'{name}.*')))}")


def _figure(record: Record, title: str, experiment: Experiment) -> bytes | None:
    """Return a PNG of the experiment's panels, or of speed-ups as a heat map."""
    if experiment.panels is None:
        return heat_map(record, "Speed-up of decoding over none", "decode_speedup")
    return diagrams(record, title, experiment.panels(record))


def _markdown(lines: Lines) -> str:
    """Format lines of cells as a Markdown table; the first line has the titles."""
    rows = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    rows.insert(1, ["---", *["--:"] * (len(lines[0]) - 1)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
