"""Pieces of an answer, and which tokens they have."""

from __future__ import annotations

from engine.types import TokenEvent, TokenLogprobs
from server.answer.calls import make_parser
from server.answer.pieces import Answers, ReplyFormat


def test_a_piece_has_the_log_probabilities_of_the_tokens_since_the_last_one() -> None:
    format = ReplyFormat([1], opens=False, parser=lambda: make_parser("hermes", reasoning=False, thinking=False))
    texts = ("a", "<tool", "_x", " y", "<t")
    scored = tuple(TokenLogprobs(token, -1.0) for token in range(len(texts)))
    event = TokenEvent("r", "".join(texts), tuple(range(len(texts))), logprobs=scored, pieces=texts)
    pieces = Answers(format).step(0, event)
    found = [(piece.delta.content, [entry.token_id for entry in piece.logprobs]) for piece in pieces]
    assert found == [("a", [0]), ("<tool_x", [1, 2]), (" y", [3]), ("", [4])]
