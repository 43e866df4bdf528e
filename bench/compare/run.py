"""`knapserve bench compare`: compare all draft policies on one checkpoint, workload by workload, in turns."""

import argparse
from pathlib import Path

from bench.cells import compare
from bench.compare.report import as_html, as_text, draw
from bench.contenders import contenders
from bench.files import check_writable, read, write
from bench.plots import NO_PICTURES
from bench.prompts import add_prompts_argument, natural, numbers, positive, read_prompts
from bench.record import Record
from bench.workloads import WORKLOADS, Selection
from engine.config.engine import EngineConfig
from engine.config.fields import COUNT, SHARE
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel

# About ten minutes and one minute for four policies of a model of 135M parameters on two cores.
_FULL = Selection((), [], limit=3, max_tokens=48, mixes=(0.0, 0.3, 0.7, 1.0), contexts=(256, 1024, 4096, 16384))
_QUICK = Selection((), [], limit=1, max_tokens=16, mixes=(0.0, 1.0), contexts=(256, 1024))
_COLUMNS = (*WORKLOADS, "memory")
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


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Measure what `--out` does not have yet, write the report, and print its tables. Raises ConfigError."""
    chosen = _selection(args)
    if args.policies:
        contenders(args.policies, config)
    if args.json is not None:
        check_writable(args.json, "--json")
    if args.out is not None:
        check_writable(args.out / _REPORT, "--out")
    path, skip_long = args.out and args.out / "results.json", args.contexts is None
    record = compare(
        LoadedModel(config), config, args.policies, chosen, path, skip_long=skip_long, restart=args.restart
    )
    if args.json is not None:
        write(args.json, record.as_json())
    print(as_text(record))
    if args.out is not None:
        _write_report(record, args.out)
    return 0


def _selection(args: argparse.Namespace) -> Selection:
    """Check the flags that need no model. Raises ConfigError."""
    columns = tuple(args.columns.split(",")) if args.columns else WORKLOADS if args.quick else _COLUMNS
    if unknown := [column for column in columns if column not in _COLUMNS]:
        raise ConfigError(f"--columns: unknown: {', '.join(unknown)}; available: {', '.join(_COLUMNS)}")
    base = _QUICK if args.quick else _FULL
    return Selection(
        columns=columns,
        texts=read_prompts(args.prompts),
        limit=base.limit if args.limit is None else args.limit,
        max_tokens=args.max_tokens or base.max_tokens,
        mixes=base.mixes if args.mixes is None else numbers("--mixes", args.mixes, float, SHARE),
        contexts=base.contexts if args.contexts is None else numbers("--contexts", args.contexts, int, COUNT),
        repeat=args.repeat,
        context_text=_context_text(args.context_text),
    )


def _context_text(path: Path | None) -> str:
    """Read the text for contexts; "" without a file. Raises ConfigError."""
    if path is None:
        return ""
    try:
        text = read(path)
    except ConfigError as error:
        raise ConfigError(f"--context-text: {error}") from None
    if not text.strip():
        raise ConfigError(f"--context-text: {path} is empty")
    return text


def _write_report(record: Record, directory: Path) -> None:
    pictures = draw(record)
    for picture in pictures:
        write(directory / f"{picture.name}.png", picture.png)
    write(directory / _REPORT, as_html(record, pictures))
    if not pictures:
        print(NO_PICTURES)
    print(f"report: {directory / _REPORT}")
