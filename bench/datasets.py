"""Datasets of the papers as prompts, from JSON lines with the fields of the Hugging Face hub.

Shots and answer lengths are those of SWIFT's and DEL's appendices B.1, KNN-SSD's section 5.1 and
KnapSpec's section 5. None states the lengths for MBPP, MATH, long documents and the two benchmarks;
those are ours. The words around the fields are ours too, since the papers do not print their
prompts. DEL draws its examples from the training split; here the first lines of the file are the
examples, and are not asked.
"""

import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.files import read_objects
from bench.prompts import Text
from engine.errors import ConfigError

_LONG = 48_000  # characters of a document, about 12,000 tokens: KnapSpec's figure 2 has 12K to 13K
_OPENING = 2  # sentences of a story that a prompt gives away


class Dataset(NamedTuple):
    """How the lines of a dataset become prompts.

    Forms name fields in braces: `{a|b}` is the first of two that the line has, `{a.b}` field b of a.
    Line breaks join the items of a list. The word after a colon says how to write a field: `letters`
    numbers the items of a list A, B, …; `first` takes its first item; `long` cuts a document, and
    `opening` a story after two sentences.
    """

    source: str  # name on the hub (Spec-Bench: on GitHub)
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
    "alpaca": Dataset("tatsu-lab/alpaca", "{instruction}\n{input}", 512),
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
    dataset, fill = DATASETS[name], _Form().vformat
    examples: list[str] = []
    texts: list[Text] = []
    for number, fields in read_objects(path):
        try:
            question = fill(dataset.form, (), fields).rstrip(" ")
            if len(examples) < dataset.shots:
                examples.append(f"{question} {fill(dataset.answer, (), fields)}".rstrip(" "))
            else:
                texts.append(Text("\n\n".join([*examples, question]), name))
        except LookupError as error:
            raise ConfigError(f"{path}, line {number}: {error.args[0]}, which {name} needs") from None
    if not texts:
        raise ConfigError(f"{path} has too few lines; {name} needs {dataset.shots} examples and a question")
    return texts


class _Form(string.Formatter):
    """Puts the fields of a line into a form. Raises LookupError for a field without text."""

    def get_field(self, names: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        """Return the first of the named fields that a line has, as a list of texts."""
        for name in names.split("|"):
            value: Any = kwargs
            for part in name.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            items = value if isinstance(value, list) else [value]
            if items and all(isinstance(item, str) for item in items):
                return items, names
        raise LookupError(f"no text in field {' or '.join(names.split('|'))}")

    def format_field(self, items: Sequence[str], how: str) -> str:
        """Return the texts of a field as one, in the shape that the form asks for."""
        if how == "first":
            items = items[:1]
        elif how == "letters":
            items = [f"{letter}. {item}" for letter, item in zip(string.ascii_uppercase, items, strict=False)]
        text = "\n".join(items)
        if how == "long":
            return text[:_LONG]
        if how == "opening":
            return ". ".join(text.strip().split(". ")[:_OPENING]).removesuffix(".") + "."
        return text
