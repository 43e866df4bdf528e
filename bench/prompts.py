"""The prompts of benchmarks, `knapserve tune` and simulations, and their flags."""

import argparse
import math
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple, TypeVar

from bench.files import read_objects
from bench.targets import Prompt
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel

PROMPTS = Path(__file__).with_name("prompts.jsonl")
TUNING_PROMPTS = Path(__file__).with_name("tuning.jsonl")
_CHARACTERS = 16  # characters of text for each token of a context: more than any tokenizer needs
T = TypeVar("T")
N = TypeVar("N", int, float)


class Text(NamedTuple):
    """A user's message and its domain."""

    prompt: str
    domain: str = ""


def add_prompts_argument(parser: argparse.ArgumentParser) -> None:
    """Add the flag `--prompts`."""
    parser.add_argument(
        "--prompts", type=Path, default=PROMPTS, metavar="FILE",
        help='JSON lines {"prompt": "…", "domain": "…"}; "domain" is optional (default: 24 prompts)',
    )  # fmt: skip


def add_prompt_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that select prompts and limit answers."""
    add_prompts_argument(parser)
    parser.add_argument(
        "--limit", type=natural, default=0, help="number of prompts to use, picked evenly; 0: all (default: 0)"
    )
    parser.add_argument("--max-tokens", type=positive, default=128, help="maximum tokens per answer (default: 128)")


def natural(text: str) -> int:
    """Parse an integer that is not negative, for argparse."""
    if (number := int(text)) < 0:
        raise ValueError(text)
    return number


def positive(text: str) -> int:
    """Parse a positive integer, for argparse."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def numbers(flag: str, text: str, kind: Callable[[str], N], limits: tuple[float, float]) -> tuple[N, ...]:
    """Parse the comma-separated numbers of a flag. Raises ConfigError outside the limits."""
    low, high = limits
    try:
        found = tuple(dict.fromkeys(map(kind, text.split(","))))
    except ValueError:
        found = ()
    if not found or not all(low <= number <= high for number in found):
        allowed = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise ConfigError(f"{flag} must be numbers with commas between them, each {allowed}, not {text}")
    return found


def read_prompts(path: Path, limit: int = 0) -> list[Text]:
    """Read prompts from JSON lines: `limit` of them, picked evenly; 0: all. Raises ConfigError."""
    prompts: list[Text] = []
    for number, line in read_objects(path):
        if "prompt" not in line:
            raise ConfigError(f'{path}, line {number}: each line must be a JSON object with a "prompt"')
        prompts.append(Text(str(line["prompt"]), str(line.get("domain", ""))))
    if not prompts:
        raise ConfigError(f"{path} contains no prompts")
    return evenly(prompts, limit) if limit else prompts


def context_tokens(model: LoadedModel, length: int, text: str = "") -> tuple[int, ...]:
    """Repeat a text, by default Python's own reference, up to `length` tokens in whole blocks."""
    text = text or "\n\n".join(text for _, text in sorted(topics.items()))
    tokens = model.tokenizer.encode(text[: _CHARACTERS * length], add_special_tokens=False)
    return tuple(islice(cycle(tokens), length - length % model.size.block_size))


def evenly(items: Sequence[T], count: int) -> list[T]:
    """Pick `count` items at equal distances, starting with the first."""
    count = min(count, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def encode(model: LoadedModel, text: Text) -> Prompt:
    """Render a text as a chat, or as it is for a model without a chat template."""
    if not model.tokenizer.has_chat_template:
        return Prompt(text.prompt, tuple(model.tokenizer.encode(text.prompt)), text.domain)
    chat = model.tokenizer.render_chat([{"role": "user", "content": text.prompt}])
    return Prompt(text.prompt, tuple(model.tokenizer.encode(chat, add_special_tokens=False)), text.domain)
