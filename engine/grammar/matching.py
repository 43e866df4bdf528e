"""Follow a grammar token by token, by llguidance. Drafted tokens are matched ahead and rolled back if rejected."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from tokenizers import Tokenizer

from engine.grammar.gbnf import to_lark
from engine.grammar.protocol import Answer, Vocabulary

_MARKS = re.compile(r"^([ \t]*)\?!(?=[a-z_])", re.MULTILINE)  # a Lark rule's `?!`; llguidance knows `!?` only
# Parts of errors that show the grammar instead of the schema: positions, excerpts, definitions, expressions, states.
_POSITION = re.compile(r"^(?:at )?(\d+)\(\d+\): (?:failed to compile JSON schema: )?")
_INTERNAL = re.compile(
    r"\n\s*\d+ \| |\s+while processing |: json-schema:|:\s+\((?:And|SearchRegex|Regex) |\s*<(?:state|backtrace)>"
    r"|; following special tokens are available"
)
_LIMITS = LLParserLimits(max_items_in_row=20_000, step_max_items=200_000, initial_lexer_fuel=5_000_000)


class _Wrapped:
    """A vocabulary as llguidance's `TokenizerWrapper` expects it."""

    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokens = vocabulary.tokens
        self.special_token_ids = vocabulary.special_ids
        self.eos_token_id = vocabulary.end_ids[0] if vocabulary.end_ids else None
        self._tokenizer = _plain(Tokenizer.from_str(vocabulary.tokenizer))

    def __call__(self, text: bytes) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text.decode(), add_special_tokens=False).ids
        return ids


def _plain(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer without the added tokens: a text that spells one is still a text."""
    plain = Tokenizer(tokenizer.model)
    for part in ("normalizer", "pre_tokenizer"):
        if (value := getattr(tokenizer, part)) is not None:
            setattr(plain, part, value)
    return plain


def prepare(vocabulary: Vocabulary) -> LLTokenizer:
    """Index a vocabulary for grammars. Takes a second for 150,000 tokens."""
    wrapped = TokenizerWrapper(_Wrapped(vocabulary))
    tokens = LLTokenizer(wrapped, n_vocab=len(vocabulary.tokens), eos_token=vocabulary.end_ids or None)
    build(tokens, "start: /(?s:.*)/")  # the first grammar in Lark takes 5 ms longer than the others
    return tokens


def build(tokens: LLTokenizer, grammar: str) -> LLMatcher:
    """Compile a grammar in llguidance's formats, or in GBNF. Raises ValueError if it is invalid or too complex."""
    grammar = _MARKS.sub(r"\1!?", to_lark(grammar.removeprefix("\ufeff")))
    matcher = LLMatcher(tokens, grammar, log_level=0, limits=_LIMITS)
    if not matcher.is_error():
        matcher.compute_bitmask()  # this is the expensive part; copies share its result
    if matcher.is_error():
        error = matcher.get_error()
        reason = " ".join(_POSITION.sub("", _INTERNAL.split(error, maxsplit=1)[0]).split())
        if reason.startswith("panic"):
            reason = "it makes the compiler fail"
        elif reason == "lexer error" and (position := _POSITION.match(error)):
            line = "".join(grammar.split("\n")[int(position[1]) - 1 :][:1])
            reason = f"line {position[1]} is not valid Lark: {line!r:.80}"
        elif reason == "NoExtensionBias":
            reason = "no text matches it"
        elif "too big (limit" in reason:  # the lexer of the whole grammar, or the grammar itself
            reason = "its schemas and expressions are too complex together"
        raise ValueError(reason.replace("params not", "templates of rules are not"))
    return matcher


class Matcher:
    """One answer's position in its grammar."""

    def __init__(self, origin: LLMatcher) -> None:
        """Start from `origin`, a matcher at its start, which stays there."""
        self._matcher = origin.deep_copy()
        self._origin = origin
        self._consumed: list[int] = []  # tokens of the answer so far

    def answer(self, emitted: int, kept: int, tokens: Sequence[int], *, mask: bool) -> Answer:
        """Roll back to `kept` consumed tokens, and consume `tokens` up to the first that is not allowed.

        `emitted`: how many of the consumed tokens are emitted; the others are drafted, and may be rolled back.
        """
        if kept < len(self._consumed):
            self._matcher.rollback(len(self._consumed) - kept)
            del self._consumed[kept:]
        for token in tokens:
            if self._matcher.is_stopped() or self._matcher.try_consume_tokens([token]) == 0:
                break
            self._consumed.append(token)
        complete = len(self._consumed) == kept + len(tokens)
        bits = self._matcher.compute_bitmask() if mask and complete else b""
        if self._matcher.is_error():
            self._recover(emitted)
            bits = b""
        return Answer(len(self._consumed), self._matcher.is_stopped(), bits)

    def _recover(self, emitted: int) -> None:
        """Return to the emitted tokens after a drafted token put the matcher into an error, which it cannot leave.

        Such a draft counts only if it is accepted; then the same error ends the answer.
        """
        del self._consumed[emitted:]
        self._matcher = self._origin.deep_copy()
        self._matcher.try_consume_tokens(self._consumed)
