"""Text of tokens that arrive one by one after a prompt, for both kinds of tokenizers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from engine.text.detokenize import Detokenizer
from tests.support import PREPARED
from tests.support.examples import examples
from tests.support.stop_strings import cut_text

TOKENIZER = Tokenizer.from_file(str(PREPARED / "tokenizer.json"))
# Letters of one to four bytes, marks that join others, and the character that stands for bytes that are none.
LETTERS = "ab \n<|é߷你好か\u0301\u200d\ufe0f\ufffd👩👧🇨🇭😀𝔘"
WRITTEN = st.text(LETTERS, max_size=8)
BYTES = [token for token in range(TOKENIZER.get_vocab_size()) if TOKENIZER.decode([token]) == "\ufffd"]
PIECES = st.one_of(
    WRITTEN.map(lambda text: list(TOKENIZER.encode(text).ids)),
    st.lists(st.sampled_from(BYTES), max_size=4),
    st.integers(0, TOKENIZER.get_vocab_size() - 1).map(lambda token: [token]),
)
TOKENS = st.lists(PIECES, max_size=10).map(lambda pieces: [token for piece in pieces for token in piece])
WORDS = ["▁The", "▁is", "▁Paris", ".", "▁", "s", "▁fox"]


@pytest.fixture(scope="module")
def sentencepiece() -> Tokenizer:
    """A tokenizer whose words begin with a space, except at the start of a text; other text is bytes."""
    entries = ["<unk>", *WORDS, *(f"<0x{byte:02X}>" for byte in range(256))]
    made = Tokenizer(models.BPE({text: i for i, text in enumerate(entries)}, [], unk_token="<unk>", byte_fallback=True))
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return made


def said(backend: Tokenizer, prompt: list[int], tokens: list[int]) -> str:
    detokenizer = Detokenizer(backend, (), prompt)
    return "".join(map(detokenizer.push, tokens)) + detokenizer.finish()


def test_a_prompt_that_ends_within_a_character_is_not_repeated(sentencepiece: Tokenizer) -> None:
    first, *rest = (8 + byte for byte in "你".encode())
    assert "The" not in said(sentencepiece, [1, first], [*rest, 3])


@given(data=st.data())
def test_prompt_and_answer_decode_as_they_do_together(sentencepiece: Tokenizer, data: st.DataObject) -> None:
    """For whole words, the answer's text is what decoding both together adds to the prompt's."""
    words = st.lists(st.integers(1, len(WORDS)), max_size=12)
    prompt, tokens = data.draw(words), data.draw(words)
    before = sentencepiece.decode(prompt)
    if before.strip() or not prompt:
        assert before + said(sentencepiece, prompt, tokens) == sentencepiece.decode(prompt + tokens)


def test_an_unfinished_character_does_not_lose_the_one_before_it(sentencepiece: Tokenizer) -> None:
    """Runs of byte tokens are decoded together: an unfinished character spoils the run."""
    ids = [sentencepiece.token_to_id(f"<0x{byte:02X}>") for byte in (*"你".encode(), 0xE4)]
    text = said(sentencepiece, [], [*ids, sentencepiece.token_to_id("▁fox")])
    assert text.startswith("你")
    assert text.endswith("fox")
    assert "\ufffd" in text


# -- any tokens of the embedded model, byte-level ones -----------------------------------------------------------------


def stops_of(text: str) -> st.SearchStrategy[tuple[str, ...]]:
    """Stop strings, most of which are in the text."""
    places = st.tuples(st.integers(0, len(text)), st.integers(1, 6))
    inside = places.map(lambda place: text[place[0] : place[0] + place[1]])
    return st.lists(st.one_of(inside, inside, WRITTEN).filter(bool), max_size=4).map(tuple)


def deltas(detokenizer: Detokenizer, tokens: list[int]) -> Iterator[str]:
    """Yield the text that each token adds until a stop string, and the text that the end adds."""
    for token in tokens:
        yield detokenizer.push(token)
        if detokenizer.stopped:
            break
    yield detokenizer.finish()


@examples(400)
@given(TOKENS, st.booleans(), st.booleans(), st.data())
def test_deltas_are_the_whole_text_cut_at_the_first_stop_string(
    tokens: list[int], skip: bool, include: bool, data: st.DataObject
) -> None:
    whole = TOKENIZER.decode(tokens, skip_special_tokens=skip)
    stops = data.draw(stops_of(whole))
    ends = [where + len(stop) for stop in stops if (where := whole.find(stop)) >= 0]
    expected = whole[: min(ends, default=len(whole))] if include else cut_text(whole, stops)
    detokenizer = Detokenizer(TOKENIZER, stops, include_stop=include, skip_special_tokens=skip)
    shown = ""
    for delta in deltas(detokenizer, tokens):
        shown += delta
        assert expected.startswith(shown), "shown text is never taken back"
    assert shown == expected
    assert detokenizer.stopped == bool(ends)


@examples(300)
@given(TOKENS)
def test_text_is_shown_as_soon_as_its_characters_are_complete(tokens: list[int]) -> None:
    detokenizer, shown = Detokenizer(TOKENIZER, ()), ""
    for position, token in enumerate(tokens):
        shown += detokenizer.push(token)
        so_far = TOKENIZER.decode(tokens[: position + 1])
        assert shown == so_far if not so_far.endswith("\ufffd") else so_far.startswith(shown)


@examples(300)
@given(TOKENS, TOKENS)
def test_an_answer_repeats_no_part_of_the_prompt(prompt: list[int], tokens: list[int]) -> None:
    """Bytes that complete a character of the prompt make no character of the answer."""
    before = TOKENIZER.decode(prompt)
    alone = before.endswith("\ufffd")
    expected = TOKENIZER.decode(tokens) if alone else TOKENIZER.decode(prompt + tokens).removeprefix(before)
    assert "".join(deltas(Detokenizer(TOKENIZER, (), prompt), tokens)) == expected
