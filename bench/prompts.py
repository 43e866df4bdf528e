"""The prompts that benches, `tune` and simulations answer, and the flags that say which."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from bench.targets import Prompt
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel

T = TypeVar("T")


class Text(NamedTuple):
    """What a user says, and what kind of thing that is."""

    prompt: str
    domain: str = ""


def add_prompts_argument(parser: argparse.ArgumentParser, file: str = "prompts.jsonl", note: str = "") -> None:
    """Flag: which prompts."""
    parser.add_argument(
        "--prompts", type=Path, default=Path(__file__).with_name(file), metavar="FILE",
        help='JSON lines like {"prompt": "…", "domain": "…"}; "domain" may be left out (24 of our own)' + note,
    )  # fmt: skip


def add_prompt_arguments(parser: argparse.ArgumentParser, file: str = "prompts.jsonl", note: str = "") -> None:
    """Flags: which prompts, and how they are answered."""
    add_prompts_argument(parser, file, note)
    parser.add_argument("--limit", type=natural, default=0, help="use only this many prompts, evenly picked; 0: all")
    parser.add_argument("--max-tokens", type=positive, default=128, help="of an answer (128)")


def natural(text: str) -> int:
    """An argument of argparse: 0, 1, 2 …"""
    if (number := int(text)) < 0:
        raise ValueError(text)
    return number


def positive(text: str) -> int:
    """An argument of argparse: 1, 2, 3 …"""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def read_prompts(path: Path, limit: int = 0) -> list[Text]:
    """JSON lines with a "prompt" each, perhaps a "domain"; at most `limit`, evenly picked. Raises ConfigError."""
    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        prompts = [Text(str(line["prompt"]), str(line.get("domain", ""))) for line in lines]
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f'{path}: every line must be a JSON object with a "prompt" ({error!r})') from None
    if not prompts:
        raise ConfigError(f"{path} holds no prompts")
    return evenly(prompts, limit) if limit else prompts


def evenly(items: Sequence[T], count: int) -> list[T]:
    """So many of them, or all, the first included, at equal distances."""
    count = min(count, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def encode(model: LoadedModel, text: Text) -> Prompt:
    """A prompt as a chat's only message, or bare where the model has no template."""
    if not model.tokenizer.has_chat_template:
        return Prompt(text.prompt, tuple(model.tokenizer.encode(text.prompt)), text.domain)
    chat = model.tokenizer.render_chat([{"role": "user", "content": text.prompt}])
    return Prompt(text.prompt, tuple(model.tokenizer.encode(chat, add_special_tokens=False)), text.domain)
