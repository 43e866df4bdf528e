"""The first thing a visitor sees: what the page offers to ask is answered rightly by the embedded model."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from support import GREEDY, answer, chat_ids, exact

from engine.config import EngineConfig
from engine.embedded.corpus.python_sandbox import run

PAGE = Path(__file__).parents[2] / "server" / "page.html"


def test_what_the_page_offers_to_ask_is_answered_rightly() -> None:
    buttons = re.search(r'class="examples">(.*?)</div>', PAGE.read_text("utf-8"), re.DOTALL)
    assert buttons is not None
    questions = re.findall(r"<button[^>]*>([^<]+)</button>", buttons[1])
    model = exact()
    core = model.core(EngineConfig())
    said = [
        model.tokenizer.decode(tokens)
        for tokens in answer(core, [chat_ids(core, q) for q in questions], replace(GREEDY, max_tokens=128))
    ]
    told, summed, written = said
    assert "part of the model drafts" in told
    assert "29 apples" in summed
    source = written.removeprefix("```python\n").partition("\n```")[0]
    name = re.findall(r"def (\w+)", source)[0]
    assert run(source, name, [[[1, 2, 3]], [[]]]) == [6, 0]
