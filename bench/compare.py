"""`knapserve bench compare`: compare all draft policies, workload by workload, in turns."""

import argparse
from pathlib import Path

from bench.cells import compare
from bench.contenders import contenders
from bench.files import check_writable
from bench.prompts import add_prompts_argument, natural, numbers, positive, read_prompts
from bench.report import comparison
from bench.workloads import WORKLOADS, Selection
from engine.config.engine import EngineConfig
from engine.config.fields import COUNT, SHARE
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench compare`."""
    add_prompts_argument(parser)
    parser.add_argument(
        "--policies", default="", metavar="NAME,NAME…",
        help="draft policies, perhaps with settings of their own: layerskip:length=adaptive; none always runs "
        "(default: all of the model)",
    )  # fmt: skip
    parser.add_argument(
        "--columns", default=",".join(WORKLOADS), metavar="NAME,NAME…",
        help="what to measure: domains of the prompts, mixed streams of domains, lengths of context "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=natural, default=3,
        help="prompts of each domain, in mixed streams at least 2, and after each context; 0: all (default: 3)",
    )  # fmt: skip
    parser.add_argument("--max-tokens", type=positive, default=48, help="maximum tokens per answer (default: 48)")
    parser.add_argument(
        "--mixes", default="0,0.3,0.7,1", metavar="R,R…",
        help="mix ratios of streams: the probability that the next prompt is of another domain "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--contexts", default="256,1024,4096,16384", metavar="N,N…",
        help="context lengths, as far as they fit the model: tokens of Python's own reference before each prompt "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", type=positive, default=1,
        help="measurements of each workload, all of which begin without knowledge; figures are of their sums "
        "(default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="FILE",
        help="write the figures to this file, as JSON; the same command goes on where it was interrupted",
    )  # fmt: skip


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Measure what `--out` does not have yet, and print the tables. Raises ConfigError."""
    columns = tuple(args.columns.split(","))
    if unknown := [column for column in columns if column not in WORKLOADS]:
        raise ConfigError(f"--columns: unknown: {', '.join(unknown)}; available: {', '.join(WORKLOADS)}")
    chosen = Selection(
        columns=columns,
        texts=read_prompts(args.prompts),
        limit=args.limit,
        max_tokens=args.max_tokens,
        mixes=numbers("--mixes", args.mixes, float, SHARE),
        contexts=numbers("--contexts", args.contexts, int, COUNT),
        repeat=args.repeat,
    )
    if args.policies:
        contenders(args.policies, config)
    if args.out is not None:
        check_writable(args.out, "--out")
    print(comparison(compare(LoadedModel(config), config, args.policies, chosen, args.out)))
    return 0
