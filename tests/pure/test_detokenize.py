"""Text as it comes, after the prompt's: tokenizers of both kinds that checkpoints have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from engine.detokenize import Detokenizer

WORDS = ["▁The", "▁is", "▁Paris", ".", "▁", "s", "▁fox"]


@pytest.fixture(scope="module")
def sentencepiece() -> Tokenizer:
    """Words begin with a space, a text's first one without; bytes stand for what is in no word."""
    entries = ["<unk>", *WORDS, *(f"<0x{byte:02X}>" for byte in range(256))]
    made = Tokenizer(models.BPE({text: i for i, text in enumerate(entries)}, [], unk_token="<unk>", byte_fallback=True))
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return made


def said(backend: Tokenizer, prompt: list[int], tokens: list[int]) -> str:
    detokenizer = Detokenizer(backend, (), prompt)
    return "".join(map(detokenizer.push, tokens)) + detokenizer.finish()


def test_the_first_words_space_is_kept_after_a_prompt(sentencepiece: Tokenizer) -> None:
    assert said(sentencepiece, [1, 2], [3, 4]) == " Paris."
    assert said(sentencepiece, [], [3, 4]) == "Paris."


def test_a_prompt_that_ends_within_a_character_is_not_repeated(sentencepiece: Tokenizer) -> None:
    first, *rest = (8 + byte for byte in "你".encode())
    assert "The" not in said(sentencepiece, [1, first], [*rest, 3])


@given(data=st.data())
def test_prompt_and_text_are_the_whole(sentencepiece: Tokenizer, data: st.DataObject) -> None:
    """Of whole words: what comes after a prompt is what decoding both at once adds to it."""
    words = st.lists(st.integers(1, len(WORDS)), min_size=1, max_size=12)
    prompt, tokens = data.draw(words), data.draw(words)
    whole = sentencepiece.decode(prompt + tokens)
    before = sentencepiece.decode(prompt)
    if before.strip():
        assert before + said(sentencepiece, prompt, tokens) == whole


def test_bytes_that_change_what_stood_before_them(sentencepiece: Tokenizer) -> None:
    """Byte tokens are decoded a run at a time: an unfinished character spoils the run that it follows."""
    ids = [sentencepiece.token_to_id(f"<0x{byte:02X}>") for byte in (*"你".encode(), 0xE4)]
    detokenizer = Detokenizer(sentencepiece, ())
    text = (
        "".join(detokenizer.push(token) for token in [*ids, sentencepiece.token_to_id("▁fox")]) + detokenizer.finish()
    )
    assert text.startswith("你")
    assert text.endswith("fox")
    assert "\ufffd" in text
