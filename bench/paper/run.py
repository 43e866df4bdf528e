"""`knapserve bench paper NAME`: the experiments of the papers, each in one command.

DIR/NAME.json has the raw figures, DIR/NAME.md the table, DIR/NAME.png the figure.
"""

import argparse
import platform
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.compare.contenders import Contender, contenders
from bench.compare.measure import measure_cell, warm_up
from bench.compare.memory import measure_memory
from bench.compare.record import GREEDY, Record, open_record
from bench.compare.report import NO_PICTURES
from bench.compare.run import Options, machine_facts, measure_cells, settings_of
from bench.compare.workloads import Sizes, Workload, make_workloads
from bench.datasets import DATASETS, read_dataset
from bench.files import check_writable, write
from bench.paper.experiments import EXPERIMENTS, MIXES, Experiment, Lines
from bench.paper.figures import counts, draw
from bench.prompts import Text, evenly, natural, numbers, positive, read_prompts
from bench.results import aligned
from engine.config.engine import EngineConfig
from engine.config.fields import COUNT
from engine.core.policies import POLICIES
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from papers.layer_sets import TUNED_POLICIES

_KIT = Path(__file__).parents[1] / "prompts.jsonl"
_SHORTEST = 256  # tokens of the first context
_FEW = 32  # tokens of an answer that warms up, or whose memory counts
_MEMORY_PROMPTS = 2


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
    check_writable(args.out / f"{name}.json", "--out")
    model = LoadedModel(config)
    policies, note = args.policies or experiment.policies, experiment.note
    if name == "ood":
        policies, groups, note = _outside(args, model, config, groups)
    entries = contenders(policies or ",".join(model.core(config).info.policies), POLICIES, config)
    context_text = ""
    if experiment.column == "context":
        contexts = contexts or tuple(_SHORTEST << i for i in range(32) if _SHORTEST << i < model.length)
        if args.dataset:
            context_text = "\n\n".join(text.prompt for own in groups.values() for text in own)
    if args.limit:  # mixed streams use two of each at least
        groups = {domain: evenly(own, max(args.limit, 2)) for domain, own in groups.items()}
    texts = [text for own in groups.values() for text in own]
    lengths = {
        domain: args.max_tokens or (DATASETS[domain].max_tokens if args.dataset else experiment.max_tokens)
        for domain in groups
    }
    sizes = Sizes(args.limit, max(lengths.values()), MIXES if experiment.column == "mixed" else (), contexts, 1)
    options = Options((experiment.column,), sizes, texts, context_text)
    settings = settings_of(model, config, entries, options) | {"experiment": name}
    if min(lengths.values()) < sizes.max_tokens:
        settings["max_tokens"] = lengths
    record = open_record(args.out, settings, args.restart, f"{name}.json")
    versions = [f"{package} {metadata.version(package)}" for package in ("knapserve", "torch", "numpy")]
    record.machine = machine_facts(model, config) | {
        "prompts": ", ".join(args.dataset) or "the kit's own, which stand in for the papers' datasets",
        "versions": ", ".join([*versions, f"Python {platform.python_version()}"]),
        "command": shlex.join(["knapserve", *sys.argv[1:]]),
    }
    make = partial(make_workloads, model, config, skip_long=args.contexts is None)
    _measure(record, model, entries, _cells(make, options, groups, lengths))
    for entry in entries[len(record.memory) :] if experiment.memory else ():
        measured = measure_memory(entry, evenly(texts, _MEMORY_PROMPTS), min(sizes.max_tokens, _FEW))
        record.memory.append(measured)
        record.save()
    record.save()
    _report(record, name, experiment, note, args.out)
    return 0


def _check_policies(policies: str, name: str, config: EngineConfig) -> None:
    """Raise ConfigError for policies that the experiment cannot compare."""
    if ":" in EXPERIMENTS[name].policies:
        raise ConfigError(f"--policies: {name} compares settings of knapsack; leave the flag out")
    entries = contenders(policies, POLICIES, config)
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
    for text in () if groups else read_prompts(_KIT):
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


def _cells(
    make: Callable[..., list[Workload]], options: Options, groups: dict[str, list[Text]], lengths: dict[str, int]
) -> list[tuple[Workload, Sizes]]:
    """Return the workloads with their sizes: domains differ by the length of answers. Raises ConfigError."""
    columns, sizes, texts, context_text = options
    if columns != ("domains",):
        found = make(texts, columns, sizes, context_text)
        if not found:
            raise ConfigError("no context fits the model beside a prompt and its answer; give shorter --contexts")
        return [(workload, sizes) for workload in found]
    sizes_of = {domain: sizes._replace(max_tokens=length) for domain, length in lengths.items()}
    made = {domain: make(own, columns, sizes_of[domain], "") for domain, own in groups.items()}
    return [(workload, sizes_of[domain]) for domain, own in made.items() for workload in own]


def _measure(
    record: Record, model: LoadedModel, entries: Sequence[Contender], cells: Sequence[tuple[Workload, Sizes]]
) -> None:
    """Measure the cells that the record lacks, greedily, with progress on a terminal."""
    sizes_of = {workload.name: sizes for workload, sizes in cells}
    first, sizes = cells[0]
    if any(record.find(workload.column, workload.name, GREEDY.name) is None for workload, _ in cells):
        model.warm_up()
        warm_up(model, entries, first, sizes._replace(max_tokens=min(sizes.max_tokens, _FEW)))
    measure_cells(
        record,
        [(workload, GREEDY) for workload, _ in cells],
        lambda workload, how: measure_cell(model, entries, workload, how, sizes_of[workload.name], counts),
        show=sys.stderr.isatty(),
    )


def _report(record: Record, name: str, experiment: Experiment, note: str, directory: Path) -> None:
    """Print the table, and write it and the figure."""
    lines, title = experiment.table(record), f"{experiment.title[0].upper()}{experiment.title[1:]}"
    facts = [[fact, str(value)] for fact, value in record.machine.items()]
    shown = ["\n".join(f"{fact}: {value}" for fact, value in facts), aligned(lines), note]
    print("\n\n".join(filter(None, shown)) + "\n")
    parts = [f"# {title}", _markdown([["", ""], *facts]), _markdown(lines), note]
    if (png := draw(record, title, experiment.panels)) is None:
        print(NO_PICTURES)
    else:
        write(directory / f"{name}.png", png)
        parts.append(f"![{title}]({name}.png)")
    write(directory / f"{name}.md", "\n\n".join(filter(None, parts)) + "\n")
    print(f"written: {', '.join(str(path) for path in sorted(directory.glob(f'{name}.*')))}")


def _markdown(lines: Lines) -> str:
    """Format lines of cells as a Markdown table; the first line has the titles."""
    rows = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    rows.insert(1, ["---", *["--:"] * (len(lines[0]) - 1)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
