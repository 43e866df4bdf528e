"""Follow a grammar token by token, by llguidance. Drafted tokens are matched ahead and rolled back if rejected."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from tokenizers import Tokenizer

from engine.grammar.gbnf import to_lark
from engine.grammar.protocol import Vocabulary

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
    return LLTokenizer(wrapped, n_vocab=len(vocabulary.tokens), eos_token=vocabulary.end_ids or None)


def build(tokens: LLTokenizer, grammar: str) -> LLMatcher:
    """Compile a grammar in llguidance's formats, or in GBNF. Raises ValueError if it is invalid or too complex."""
    grammar = _MARKS.sub(r"\1!?", to_lark(grammar.removeprefix("\ufeff")))
    matcher = LLMatcher(tokens, grammar, log_level=0, limits=_LIMITS)
    if not matcher.is_error():
        matcher.compute_bitmask()  # the expensive part; copies share the result
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
        self.failed = False  # whether the grammar cannot be followed any further
        self._emitted: list[int] = []
        self._ahead: list[int] = []  # drafted tokens that the matcher has consumed
        self._masks: dict[int, bytes] = {}  # masks by the number of drafted tokens before

    @property
    def stopped(self) -> bool:
        """Whether no token may follow those emitted and those matched ahead."""
        return bool(self._matcher.is_stopped())

    @property
    def drafting(self) -> bool:
        """Whether drafted tokens are matched ahead."""
        return bool(self._ahead)

    def advance(self, tokens: Sequence[int]) -> None:
        """Consume these emitted tokens; drafted ones that differ are rolled back."""
        self._emitted += tokens
        if self._ahead[: len(tokens)] == list(tokens):
            del self._ahead[: len(tokens)]
            self._masks = {depth - len(tokens): bits for depth, bits in self._masks.items() if depth >= len(tokens)}
            return
        self._back_to(0)
        self._masks.clear()
        if self._matcher.try_consume_tokens(list(tokens)) < len(tokens) and not self._matcher.is_stopped():
            self.failed = True
        if self._matcher.is_error():
            self.failed = True

    def mask(self, drafted: Sequence[int]) -> bytes:
        """Return which tokens may follow these drafted ones, one bit per token.

        No bytes: all tokens may follow, because the draft breaks the grammar itself.
        """
        common = self._common(drafted)
        if common == len(drafted) in self._masks:
            return self._masks[common]
        return self._mask() if self._follow(drafted, common) else b""

    def take(self, token: int, drafted: Sequence[int]) -> tuple[bool, bool]:
        """Whether a token may follow these drafted ones, and whether it has been matched ahead.

        Any token may follow a draft that breaks the grammar itself. This allows every token that `mask` keeps. Where
        the grammar prescribes the text, it also allows other ways to split that text into tokens.
        """
        if self._ahead != drafted:
            common = self._common(drafted)
            if common == len(drafted) < len(self._ahead) and self._ahead[common] == token:
                return True, False
            if not self._follow(drafted, common):
                return True, False
        taken = self._take(token)
        return taken or self._ahead != drafted, taken

    def _common(self, drafted: Sequence[int]) -> int:
        """Count the leading tokens of these that are matched ahead already."""
        common = 0
        while common < min(len(drafted), len(self._ahead)) and drafted[common] == self._ahead[common]:
            common += 1
        return common

    def _follow(self, drafted: Sequence[int], common: int) -> bool:
        """Match exactly these ahead, of which `common` are already; False if one of them is not allowed."""
        self._back_to(common)
        return all(self._take(token) for token in drafted[common:])

    def _take(self, token: int) -> bool:
        """Match one more token ahead; False if it is not allowed or too complex, or if the answer is complete."""
        if self._matcher.is_stopped() or self._matcher.try_consume_tokens([token]) == 0:
            if self._matcher.is_error():
                self._recover()
            return False
        self._ahead.append(token)
        return True

    def _mask(self) -> bytes:
        depth = len(self._ahead)
        if depth not in self._masks:
            bits = self._matcher.compute_bitmask()
            if self._matcher.is_error():
                self._recover()
                return b""
            self._masks[depth] = bits
        return self._masks[depth]

    def _recover(self) -> None:
        """Return to the emitted tokens after a drafted token put the matcher into an error, which it cannot leave.

        Such a draft counts only if it is accepted; then `advance` meets the same error. Until then any token may
        follow.
        """
        self._matcher = self._origin.deep_copy()
        self._matcher.try_consume_tokens(self._emitted)
        self._ahead.clear()
        self._masks.clear()

    def _back_to(self, depth: int) -> None:
        if len(self._ahead) > depth:
            self._matcher.rollback(len(self._ahead) - depth)
            del self._ahead[depth:]
            for later in [d for d in self._masks if d > depth]:
                del self._masks[later]
