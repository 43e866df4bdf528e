"""Other programs that answer the same prompts, in turns with this engine."""

import argparse
from collections.abc import Sequence

from bench.peers.hugging_face import hugging_face
from bench.peers.llama_cpp import llama_cpp
from bench.targets import BenchTarget, Prompt
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams


def add_peer_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that run other programs too."""
    parser.add_argument("--hf", action="store_true", help="also run transformers' generate, in turns with the others")
    parser.add_argument(
        "--llama-cpp", nargs="?", const="", metavar="FILE.gguf",
        help="also run llama.cpp on this GGUF file, in turns with the others; without FILE: on that of --model",
    )  # fmt: skip


def peers(
    args: argparse.Namespace, model: LoadedModel, sampling: SamplingParams, prompts: Sequence[Prompt], streams: int
) -> list[BenchTarget]:
    """Return the programs of `--hf` and `--llama-cpp`, with room for `streams` of the prompts.

    Raises ConfigError.
    """
    return [*hugging_face(args.hf, model, sampling), *llama_cpp(args.llama_cpp, model, sampling, prompts, streams)]
