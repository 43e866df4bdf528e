"""`bench.datasets`: lines of the papers' datasets become prompts, and other files one line that says why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.datasets import DATASETS, read_dataset
from engine.errors import ConfigError

# A line of each dataset, with the fields that it has on the hub.
LINES: dict[str, dict[str, Any]] = {
    "cnn-dm": {"article": "It rained.", "highlights": "Rain.", "id": "1"},
    "xsum": {"document": "It rained.", "summary": "Rain.", "id": "1"},
    "gsm8k": {"question": "1 + 1?", "answer": "2 #### 2"},
    "humaneval": {"task_id": "HumanEval/0", "prompt": "def one():\n", "canonical_solution": "    return 1\n"},
    "mbpp": {"task_id": 1, "text": "Write one().", "code": "", "test_list": ["assert one() == 1", "assert one()"]},
    "wmt14": {"translation": {"de": "Ja.", "en": "Yes."}},
    "wmt16": {"translation": {"de": "Ja.", "en": "Yes."}},
    "aqua": {"question": "1 + 1?", "options": ["A)1", "B)2"], "rationale": "One and one. B", "correct": "B"},
    "mmlu-pro": {"question": "1 + 1?", "options": ["1", "2"], "answer": "B", "category": "math"},
    "aime": {"problem": "1 + 1?", "answer": "2"},
    "govreport": {"report": "It rained.", "summary": "Rain."},
    "pg19": {"short_book_title": "Rain", "text": "It rained."},
    "booksum": {"chapter": "It rained.", "summary_text": "Rain."},
    "tinystories": {"text": "Tom ran. He fell. He cried."},
    "spider": {"db_id": "shop", "question": "How many?", "query": "SELECT count(*) FROM sale"},
    "alpaca": {"instruction": "Say yes.", "input": "", "output": "Yes."},
    "math": {"problem": "1 + 1?", "solution": "2", "subject": "Algebra"},
    "spec-bench": {"question_id": 1, "category": "qa", "turns": ["Who?", "Why?"]},
    "speed-bench": {"question_id": "1", "category": "qa", "turns": ["Who?"]},
}


def write(directory: Path, *lines: Any) -> Path:
    path = directory / "lines.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.mark.parametrize("name", DATASETS)
def test_each_dataset_makes_prompts_of_its_own_fields(name: str, tmp_path: Path) -> None:
    count = DATASETS[name].shots + 2
    texts = read_dataset(name, write(tmp_path, *[LINES[name]] * count))
    assert [text.domain for text in texts] == [name, name]
    assert "{" not in texts[0].prompt
    if "question" in LINES[name]:
        assert texts[0].prompt.count(LINES[name]["question"]) == DATASETS[name].shots + 1


def test_the_first_lines_are_examples_with_answers_and_are_not_asked(tmp_path: Path) -> None:
    lines = [{"article": f"Article {i}.", "highlights": f"Short {i}."} for i in range(3)]
    first, second = read_dataset("cnn-dm", write(tmp_path, *lines))
    assert first.prompt == "Article: Article 0.\nSummary: Short 0.\n\nArticle: Article 1.\nSummary:"
    assert second.prompt.endswith("Article: Article 2.\nSummary:")
    assert "Short 1" not in second.prompt


def test_shapes_of_fields(tmp_path: Path) -> None:
    def prompt(name: str, **fields: Any) -> str:
        lines = [LINES[name] | fields] * (DATASETS[name].shots + 1)
        return read_dataset(name, write(tmp_path, *lines))[0].prompt

    assert "Options:\nA. 1\nB. 2\n" in prompt("mmlu-pro")
    assert "Options:\nA)1\nB)2\n" in prompt("aqua")
    assert prompt("spec-bench") == "Who?"
    assert prompt("alpaca", input="Now.") == "Say yes.\nNow."
    assert prompt("tinystories").endswith("Beginning: Tom ran. He fell.\nWhole story:")
    assert "assert one() == 1\nassert one()" in prompt("mbpp")
    assert len(prompt("pg19", text="word " * 100_000)) < 48_100
    old = dict(LINES["aime"])
    path = write(tmp_path, {"Problem": old.pop("problem"), **old})
    assert read_dataset("aime", path)[0].prompt.startswith("1 + 1?")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("gsm8k", '{"question": "1?"}\n', "line 1: no text in field answer, which gsm8k needs"),
        ("aime", '{"answer": "1"}\n', "line 1: no text in field problem or Problem"),
        (
            "wmt14",
            '{"translation": {"de": "Ja."}}\n{"translation": "Ja."}\n',
            "no text in field translation.de",
        ),
        ("xsum", '{"document": "a"}\n\n{"document": 3}\n', "line 3: no text in field document"),
        ("spec-bench", '{"turns": []}\n', "line 1: no text in field turns"),
        ("xsum", '[{"document": "a"}]\n', "line 1 is not a JSON object; expected one on each line"),
        ("xsum", '{"document": "a"}\n{"document": ', "line 2 is not a JSON object"),
        ("xsum", "document,summary\n", "line 1 is not a JSON object"),
        ("xsum", "[" * 100_000, "line 1 is not a JSON object"),
        ("xsum", "", "has too few lines; xsum needs 0 examples and a question"),
        ("gsm8k", '{"question": "1?", "answer": "1"}\n' * 5, "too few lines; gsm8k needs 5 examples and a question"),
        ("squad", "", "unknown dataset 'squad'; known: cnn-dm, xsum, gsm8k"),
    ],
)
def test_files_of_another_form_get_one_line(name: str, content: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(content, "utf-8")
    with pytest.raises(ConfigError) as raised:
        read_dataset(name, path)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_files_that_cannot_be_read_get_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*absent\.jsonl: No such file"):
        read_dataset("xsum", tmp_path / "absent.jsonl")
    with pytest.raises(ConfigError, match=r"cannot read .*: Is a directory"):
        read_dataset("xsum", tmp_path)
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"it is not UTF-8"):
        read_dataset("xsum", path)
