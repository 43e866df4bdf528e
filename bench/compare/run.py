"""`knapserve bench compare`: compare all draft policies on one checkpoint, workload by workload, in turns."""

import argparse
import hashlib
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import engine
import papers
from bench.compare.contenders import Contender, contenders
from bench.compare.measure import measure_cell, warm_up
from bench.compare.memory import measure_memory
from bench.compare.plots import draw
from bench.compare.record import TEMPERATURES, Cell, Record, Temperature, open_record
from bench.compare.report import NO_PICTURES, as_html, as_text
from bench.compare.workloads import WORKLOADS, Sizes, Workload, make_workloads
from bench.files import check_writable, write
from bench.prompts import Text, add_prompts_argument, evenly, natural, numbers, positive, read_prompts
from engine.checkpoints.hub import SYNTHETIC
from engine.config.engine import EngineConfig
from engine.config.fields import COUNT, SHARE, flag
from engine.core.policies import POLICIES
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from papers.layer_sets import to_json

# About ten minutes and one minute for four policies of a model of 135M parameters on two cores.
_FULL = Sizes(limit=3, max_tokens=48, mixes=(0.0, 0.3, 0.7, 1.0), contexts=(256, 1024, 4096, 16384), repeat=1)
_QUICK = Sizes(limit=1, max_tokens=16, mixes=(0.0, 1.0), contexts=(256, 1024), repeat=1)
_COLUMNS = (*WORKLOADS, "memory")
_MEMORY_PROMPTS = 2
_REPORT = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench compare`."""
    add_prompts_argument(parser)
    parser.add_argument(
        "--policies", default="", metavar="NAME,NAME…",
        help="draft policies, perhaps with settings of their own: layerskip:length=adaptive; none always runs "
        "(default: all of the model)",
    )  # fmt: skip
    parser.add_argument(
        "--columns", default="", metavar="NAME,NAME…",
        help="what to measure: domains (of the prompts), mixed (streams of domains), context (lengths), memory (of "
        "each policy alone); default: all, without memory if --quick",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=natural,
        help="prompts of each domain, in mixed streams at least 2, and after each context; 0: all (default: 3; "
        "--quick: 1)",
    )  # fmt: skip
    parser.add_argument("--max-tokens", type=positive, help="maximum tokens per answer (default: 48; --quick: 16)")
    parser.add_argument(
        "--mixes", metavar="R,R…",
        help="mix ratios of streams: the probability that the next prompt is of another domain (default: 0,0.3,0.7,1; "
        "--quick: 0,1)",
    )  # fmt: skip
    parser.add_argument(
        "--contexts", metavar="N,N…",
        help="context lengths: tokens of --context-text before each prompt (default: those of 256,1024,4096,16384 that "
        "fit the model; --quick: 256,1024)",
    )  # fmt: skip
    parser.add_argument(
        "--context-text", type=Path, metavar="FILE",
        help="text that contexts consist of (default: Python's own reference, as `help()` shows it)",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", type=positive, default=1,
        help="measurements of each cell, all of which begin without knowledge; of each prompt, the median counts "
        "(default: 1)",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="measure less: a tenth of the tokens")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    parser.add_argument(
        "--out", type=Path, metavar="DIR",
        help="write report.html, results.json and pictures to this directory; the same command goes on where it was "
        "interrupted",
    )  # fmt: skip
    parser.add_argument("--restart", action="store_true", help="discard earlier results in --out")


class Options(NamedTuple):
    """The checked flags."""

    columns: tuple[str, ...]
    sizes: Sizes
    texts: list[Text]
    context_text: str


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Measure what `--out` does not have yet, write the report, and print its tables. Raises ConfigError."""
    options = _options(args)
    if args.policies:
        contenders(args.policies, POLICIES, config)
    if args.json is not None:
        check_writable(args.json, "--json")
    if args.out is not None:
        check_writable(args.out / _REPORT, "--out")
    record = _measure(args, config, options)
    if "memory" in options.columns:
        texts = evenly(options.texts, _MEMORY_PROMPTS)
        for entry in contenders(",".join(record.policies), POLICIES, config)[len(record.memory) :]:
            print(f"memory of {entry.name}", file=sys.stderr)
            record.memory.append(measure_memory(entry, texts, options.sizes.max_tokens))
            record.save()
    if args.json is not None:
        write(args.json, record.as_json())
    print(as_text(record))
    if args.out is not None:
        _write_report(record, args.out)
    return 0


def _options(args: argparse.Namespace) -> Options:
    """Check the flags that need no model. Raises ConfigError."""
    columns = tuple(args.columns.split(",")) if args.columns else WORKLOADS if args.quick else _COLUMNS
    if unknown := [column for column in columns if column not in _COLUMNS]:
        raise ConfigError(f"--columns: unknown: {', '.join(unknown)}; available: {', '.join(_COLUMNS)}")
    base = _QUICK if args.quick else _FULL
    sizes = Sizes(
        base.limit if args.limit is None else args.limit,
        args.max_tokens or base.max_tokens,
        base.mixes if args.mixes is None else numbers("--mixes", args.mixes, float, SHARE),
        base.contexts if args.contexts is None else numbers("--contexts", args.contexts, int, COUNT),
        args.repeat,
    )
    return Options(columns, sizes, read_prompts(args.prompts), _context_text(args.context_text))


def _context_text(path: Path | None) -> str:
    """Read the text for contexts; "" without a file. Raises ConfigError."""
    if path is None:
        return ""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--context-text: cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if not text.strip():
        raise ConfigError(f"--context-text: {path} is empty")
    return text


def _measure(args: argparse.Namespace, config: EngineConfig, options: Options) -> Record:
    """Load the model and measure all cells that are not there yet."""
    model = LoadedModel(config)
    entries = contenders(args.policies or ",".join(model.core(config).info.policies), POLICIES, config)
    columns, sizes, texts, context_text = options
    record = open_record(args.out, settings_of(model, config, entries, options), args.restart)
    record.machine = machine_facts(model, config)
    workloads = make_workloads(model, config, texts, columns, sizes, context_text, skip_long=args.contexts is None)
    model.warm_up()
    if workloads:
        warm_up(model, entries, workloads[0], sizes)

    def measure(workload: Workload, temperature: Temperature) -> Cell:
        return measure_cell(model, entries, workload, temperature, sizes)

    measure_cells(record, [(workload, t) for t in TEMPERATURES for workload in workloads], measure)
    return record


def measure_cells(
    record: Record,
    cells: Sequence[tuple[Workload, Temperature]],
    measure: Callable[[Workload, Temperature], Cell],
    show: bool = True,
) -> None:
    """Measure the cells that the record lacks, save each one, and `show` on stderr how long the others may take."""
    todo = [(w, t) for w, t in cells if record.find(w.column, w.name, t.name) is None]
    if show and len(todo) < len(cells):
        print(f"{len(cells) - len(todo)} of {len(cells)} cells are measured already", file=sys.stderr)
    prompts = [len(workload.prompts) for workload, _ in todo]
    started = time.monotonic()
    for number, (workload, temperature) in enumerate(todo, 1):
        record.cells.append(measure(workload, temperature))
        record.save()
        if not show:
            continue
        left = (time.monotonic() - started) / sum(prompts[:number]) * sum(prompts[number:])
        print(
            f"[{number}/{len(todo)}] {workload.column}, {workload.name}, {temperature.name}; "
            f"about {left / 60:.1f} minutes left",
            file=sys.stderr,
        )


def settings_of(
    model: LoadedModel, config: EngineConfig, entries: Sequence[Contender], options: Options
) -> dict[str, Any]:
    """Return all that cells depend on, by name. Results of other settings must not stand beside each other."""
    prompts = hashlib.sha256(repr(options.texts).encode()).hexdigest()
    prior = model.prior(config)
    return {
        "engine": _digest(Path(engine.__path__[0]), Path(papers.__path__[0]))[:16],
        "model": f"{model.source.name} {model.source.fingerprint[:16]}",
        "machine": model.key.slug,
        "policies": [each.name for each in entries],
        "columns": options.columns,
        "prompts": prompts[:16],
        "context_text": hashlib.sha256(options.context_text.encode()).hexdigest()[:16],
        "layer_sets": _layer_sets(model, entries),
        "prior_plans": hashlib.sha256(prior.to_json().encode()).hexdigest()[:16] if prior else "none",
        **options.sizes._asdict(),
        **_flags(config),
    }


def _layer_sets(model: LoadedModel, entries: Sequence[Contender]) -> dict[str, str]:
    """Return digests of layer sets, by contender that has some. Raises UnknownPolicyError for one that has none."""
    found = {}
    for name, policy, config in entries:
        sets = getattr(model.core(config).policy(policy), "layer_sets", None)
        if sets is not None:
            found[name] = hashlib.sha256(to_json(sets).encode()).hexdigest()[:16]
    return found


def _digest(*packages: Path) -> str:
    """Return a digest of the packages' files: figures of two versions must not stand beside each other."""
    files = sorted(
        path for package in packages for path in package.rglob("*") if path.suffix in {".py", ".h", ".c", ".cpp", ".cu"}
    )
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _flags(config: object, prefix: str = "") -> dict[str, str]:
    """Return settings as text, by flag, nested ones too."""
    assert is_dataclass(config)
    found: dict[str, str] = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name == "policies":
            for each in value:
                found |= _flags(each, each.prefix())
        elif is_dataclass(value):
            found |= _flags(value, f"{field.name}_")
        else:
            found[flag(prefix + field.name)] = str(value)
    return found


def machine_facts(model: LoadedModel, config: EngineConfig) -> dict[str, Any]:
    """Return facts about model and machine, for the reader."""
    prior = model.prior(config)
    synthetic = " (SYNTHETIC weights: real shape, random text)" if model.source.name.startswith(SYNTHETIC) else ""
    return {
        "model": model.source.name + synthetic,
        "shape": model.key.shape,
        "weights": f"{model.key.dtype}, {model.decoder.weight_bytes / 1e6:,.0f} MB",
        "copy in fewer bits": f"{model.draft_bits} bits, loaded for all policies" if model.draft_bits else "none",
        "plans from an offline search": f"{len(prior.plans)}, with which knapspec begins" if prior else "none",
        "machine": f"{platform.machine()} {model.key.machine}; {model.key.threads} used",
    }


def _write_report(record: Record, directory: Path) -> None:
    pictures = draw(record)
    for picture in pictures:
        write(directory / f"{picture.name}.png", picture.png)
    write(directory / _REPORT, as_html(record, pictures))
    if not pictures:
        print(NO_PICTURES)
    print(f"report: {directory / _REPORT}")
