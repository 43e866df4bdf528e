"""Datasets of the papers: JSON lines with the fields that each has on the Hugging Face hub, read as prompts.

Shots and answer lengths are those of SWIFT's and DEL's appendices B.1, KNN-SSD's section 5.1 and KnapSpec's section 5.
None states the lengths for MBPP, MATH, long documents and the two benchmarks; those are ours, and so are the words
around the fields, since the papers do not print their prompts. DEL draws its examples from the training split; here the
first lines of the file are the examples, and are not asked.
"""

import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.files import kind_of, read_objects
from bench.prompts import Text
from engine.errors import ConfigError

_LONG = 48_000  # characters of a document, about 12,000 tokens: KnapSpec's figure 2 has 12K to 13K
_OPENING = 2  # sentences of a story that a prompt gives away


class Dataset(NamedTuple):
    """How the lines of a dataset become prompts.

    Forms name fields in braces: `{a|b}` is the first of two that the line has, `{a.b}` field b of a. After a colon:
    `letters` numbers a list A, B, …; `first` takes its first item; `long` cuts a document, `opening` a story after two
    sentences; `optional` allows empty text. Other lists are joined by line breaks.
    """

    source: str  # its name on the hub (Spec-Bench: on GitHub); other copies may have the fields after a `|`
    form: str  # the form of a question
    max_tokens: int  # tokens of an answer, at most
    shots: int = 0  # examples before each question
    answer: str = ""  # the form of an example's answer


_SUMMARY = "{field:long}\n\nSummarise this text.\nSummary:"
_TRANSLATION = "Translate German to English.\nGerman: {translation.de}\nEnglish:"
_CHOICE = "Question: {question}\nOptions:\n{options}\nAnswer, with the reasons:"

DATASETS: dict[str, Dataset] = {
    "cnn-dm": Dataset("abisee/cnn_dailymail", "Article: {article}\nSummary:", 64, 1, "{highlights}"),
    "xsum": Dataset("EdinburghNLP/xsum", "Article: {document}\nSummary in one sentence:", 512),
    "gsm8k": Dataset("openai/gsm8k", "Question: {question}\nAnswer:", 64, 5, "{answer}"),
    "humaneval": Dataset("openai/openai_humaneval", "{prompt}", 512),
    "mbpp": Dataset("google-research-datasets/mbpp", "{text|prompt}\nIt must pass these tests:\n{test_list}\n", 512),
    "wmt14": Dataset("wmt/wmt14, de-en", _TRANSLATION, 512),
    "wmt16": Dataset("wmt/wmt16, de-en", _TRANSLATION, 64, 5, "{translation.en}"),
    "aqua": Dataset("deepmind/aqua_rat", _CHOICE, 512, 5, "{rationale}"),
    "mmlu-pro": Dataset("TIGER-Lab/MMLU-Pro", _CHOICE.replace("{options}", "{options:letters}"), 4096),
    "aime": Dataset("HuggingFaceH4/aime_2024", "{problem|Problem}\nReason first, then give the answer.", 32768),
    "govreport": Dataset("ccdv/govreport-summarization", _SUMMARY.replace("field", "report|document"), 1024),
    "pg19": Dataset("deepmind/pg19", _SUMMARY.replace("field", "text"), 1024),
    "booksum": Dataset("kmfoda/booksum", _SUMMARY.replace("field", "chapter|text"), 1024),
    "tinystories": Dataset("roneneldan/TinyStories", "Beginning: {text:opening}\nWhole story:", 128, 1, "{text}"),
    # KNN-SSD has Spider2, whose lines lack the query.
    "spider": Dataset("xlangai/spider", "Database: {db_id}\nQuestion: {question}\nSQL:", 64, 3, "{query}"),
    "alpaca": Dataset("tatsu-lab/alpaca", "{instruction}\n{input:optional}", 512),
    "math": Dataset("HuggingFaceH4/MATH-500", "Problem: {problem}\nSolution:", 512),
    "spec-bench": Dataset("hemingkx/Spec-Bench", "{turns:first}", 1024),
    "speed-bench": Dataset("nvidia/SPEED-Bench", "{turns:first}", 1024),
}


def read_dataset(name: str, path: Path) -> list[Text]:
    """Read all prompts of a file; their domain is the dataset's name.

    Raises ConfigError, in one line with file, line and field, for a file of another form.
    """
    if name not in DATASETS:
        raise ConfigError(f"unknown dataset {name!r}; known: {', '.join(DATASETS)}")
    form, fill = DATASETS[name], _Form().vformat
    examples: list[str] = []
    texts: list[Text] = []
    for number, fields in read_objects(path):
        try:
            question = fill(form.form, (), fields).rstrip(" ")
            if len(examples) < form.shots:
                examples.append(f"{question} {fill(form.answer, (), fields)}".rstrip(" "))
            else:
                texts.append(Text("\n\n".join([*examples, question]), name))
        except _FieldError as error:
            raise ConfigError(f"{path}, line {number}: {error}, which {name} needs") from None
    if not texts:
        needed = f"{len(examples)} lines; {name} needs {form.shots} examples and a question" if examples else "no lines"
        raise ConfigError(f"{path} has {needed}")
    return texts


class _FieldError(Exception):
    """A line lacks a field, or has another type there."""


class _Form(string.Formatter):
    """Puts the fields of a line into a form. Raises _FieldError."""

    def get_field(self, names: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        """Return the first of the named fields that a line has."""
        for name in names.split("|"):
            value: Any = kwargs
            for part in name.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            if value is not None:
                return (names, value), names
        raise _FieldError(f"no field {_quoted(names)}")

    def format_field(self, value: Any, how: str) -> str:
        """Return a field as text, in the shape that the form asks for."""
        names, content = value
        listed = how in ("letters", "first")
        items: Sequence[Any] = content if isinstance(content, list) else [content]
        if not all(isinstance(item, str) for item in items) or (listed and items is not content):
            wanted = "a list of texts" if listed else "text"
            raise _FieldError(f"field {_quoted(names)} is {kind_of(content)}, not {wanted}")
        if how == "first":
            items = items[:1]
        elif how == "letters":
            items = [f"{letter}. {item}" for letter, item in zip(string.ascii_uppercase, items, strict=False)]
        text = "\n".join(items)
        if not text.strip() and how != "optional":
            raise _FieldError(f"field {_quoted(names)} is empty")
        if how == "long":
            return text[:_LONG]
        if how == "opening":
            return ". ".join(text.strip().split(". ")[:_OPENING]).removesuffix(".") + "."
        return text


def _quoted(names: str) -> str:
    return " or ".join(f'"{name}"' for name in names.split("|"))
