"""Convert the tokenizer in a GGUF file's metadata to one of the `tokenizers` library."""

from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as BackendTokenizer

from engine.checkpoints.gguf_file import GgufFile
from engine.errors import ModelError
from engine.text.tokenizer import ENDS, MARKED_ENDS, REPEATED, Tokenizer, library_errors

_KEY = "tokenizer.ggml."
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4  # token types
_END_NAMES = ("eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep")
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3, _QWEN2 = _CONTRACTIONS + r"|\p{N}{1,3}" + _REST, _CONTRACTIONS + r"|\p{N}" + _REST
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Pre-tokenizer name in the file → regular expression that splits text before BPE; None: that of GPT-2.
_PATTERNS: dict[str, str | None] = {
    **dict.fromkeys(("gpt-2", "gpt2"), None),
    **dict.fromkeys(("smollm", "starcoder", "refact", "codeshell"), "digits"),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "dbrx", "smaug-bpe", "falcon3"), _LLAMA3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez"), _QWEN2),
    "tekken": _TEKKEN,
}
# Pairs take time and memory. SentencePiece's tokens have at most 16 characters by default, and few pairs each.
_LONGEST_PIECE, _MOST_MERGES = 256, 1_000_000
_IGNORE_MERGES = (_LLAMA3, _TEKKEN)  # words in the vocabulary are not split; texts start with BOS


def read_tokenizer(gguf: GgufFile) -> Tokenizer:
    """Read vocabulary, special tokens and chat templates. Raises ModelError."""
    kind, tokens = gguf.field(_KEY + "model", str, ""), gguf.listed(_KEY + "tokens", str)
    if not tokens:
        raise ModelError(f"{gguf.path} has no tokenizer: {_KEY}tokens is missing")
    types = _types(gguf, tokens)
    names = _distinct(tokens, types)
    if kind == "gpt2":
        backend, begins = _byte_level(gguf, names)
    elif kind == "llama":
        backend, begins = _sentence_piece(gguf, names), True
    else:
        raise ModelError(f"{gguf.path}: tokenizer {kind or '(none)'} is not supported; supported: gpt2, llama")
    if names is not tokens:
        backend.decoder = decoders.Sequence([decoders.Replace(Regex(REPEATED + r"\d+"), ""), backend.decoder])
    marked = [
        AddedToken(name, special=type != _USER_DEFINED, normalized=False)
        for name, type in zip(names, types, strict=True)
        if type in (_CONTROL, _USER_DEFINED) or (type == _UNKNOWN and kind == "gpt2")
    ]
    backend.add_tokens(marked)
    ids = {name: _token_id(gguf, name, len(tokens)) for name in ("bos", "eos", "unknown", "padding")}
    added = {"bos": gguf.field(_KEY + "add_bos_token", bool, begins), "eos": gguf.field(_KEY + "add_eos_token", bool)}
    around = {name: token for name, token in ids.items() if added.get(name) and token is not None}
    if around:
        backend.post_processor = processors.TemplateProcessing(
            single=[name for name in ("bos", "$A", "eos") if name == "$A" or name in around],
            special_tokens=[{"id": name, "ids": [i], "tokens": [tokens[i]]} for name, i in around.items()],
        )
    special = {f"{name[:3]}_token": tokens[i] for name, i in ids.items() if i is not None}
    return Tokenizer(backend, _templates(gguf), special)


def end_ids(gguf: GgufFile) -> tuple[int, ...]:
    """Return the ids of the tokens that end an answer: those that the metadata name, and those known by their text."""
    tokens = gguf.listed(_KEY + "tokens", str)
    named = {_token_id(gguf, name, len(tokens)) for name in _END_NAMES}
    known = {i for i, type in enumerate(_types(gguf, tokens)) if type == _CONTROL and tokens[i] in ENDS}
    return tuple(sorted(token for token in named | known if token is not None))


def _types(gguf: GgufFile, tokens: list[str]) -> list[int]:
    """Return the types of all tokens. Ends of turns are control tokens, whatever the file says."""
    types = gguf.listed(_KEY + "token_type", int) + [_NORMAL] * len(tokens)
    return [_CONTROL if token in MARKED_ENDS else type for token, type in zip(tokens, types, strict=False)]


def _distinct(tokens: list[str], types: list[int]) -> list[str]:
    """Append a mark to all but one of the tokens of equal text, since the library's vocabularies map texts to ids.

    Texts are encoded to that one: the first that is an added token, or else the first.
    """
    if len(set(tokens)) == len(tokens):
        return tokens
    chosen: dict[str, int] = {}
    for i in sorted(range(len(tokens)), key=lambda i: types[i] not in (_CONTROL, _USER_DEFINED)):
        chosen.setdefault(tokens[i], i)
    return [token if chosen[token] == i else f"{token}{REPEATED}{i}" for i, token in enumerate(tokens)]


def _token_id(gguf: GgufFile, name: str, count: int) -> int | None:
    token = gguf.field(f"{_KEY}{name}_token_id", int)
    if token is not None and not 0 <= token < count:
        raise ModelError(f"{gguf.path.name}: {_KEY}{name}_token_id is {token}; it must be at least 0 and below {count}")
    return None if token is None else int(token)


def _templates(gguf: GgufFile) -> dict[str, str]:
    templates = {"default": gguf.field("tokenizer.chat_template", str)}
    for name in gguf.listed("tokenizer.chat_templates", str):
        templates[name] = gguf.field(f"tokenizer.chat_template.{name}", str)
    return {name: template for name, template in templates.items() if template}


def _byte_level(gguf: GgufFile, tokens: list[str]) -> tuple[BackendTokenizer, bool]:
    """Build byte-level BPE. Also returns whether texts start with BOS by default."""
    named = gguf.field(_KEY + "pre", str, "gpt-2")
    if named not in _PATTERNS:
        raise ModelError(f"{gguf.path}: pre-tokenizer {named} is not supported; supported: {', '.join(_PATTERNS)}")
    pattern = _PATTERNS[named]
    merges = [merge.partition(" ")[::2] for merge in gguf.listed(_KEY + "merges", str)]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    backend = BackendTokenizer(_bpe(gguf, vocabulary, merges, ignore_merges=pattern in _IGNORE_MERGES))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern in (None, "digits"))
    before: list[Any] = []
    if pattern == "digits":
        before = [pre_tokenizers.Digits(individual_digits=True)]
    elif pattern is not None:
        before = [pre_tokenizers.Split(Regex(pattern), "isolated")]
    backend.pre_tokenizer = pre_tokenizers.Sequence([*before, level])
    backend.decoder = decoders.ByteLevel()
    return backend, pattern in _IGNORE_MERGES


def _sentence_piece(gguf: GgufFile, tokens: list[str]) -> BackendTokenizer:
    """Build SentencePiece's BPE: pairs that form a token are merged in decreasing order of its score."""
    scores = gguf.listed(_KEY + "scores", float)
    if len(scores) != len(tokens):
        raise ModelError(f"{gguf.path}: {_KEY}scores must have one score per token")
    vocabulary = {token: i for i, token in enumerate(tokens)}
    merges: list[tuple[float, int, int, tuple[str, str]]] = []
    for token, score in zip(tokens, scores, strict=True):
        if len(token) > _LONGEST_PIECE or len(merges) > _MOST_MERGES:
            limits = f"{_LONGEST_PIECE} characters a token, and {_MOST_MERGES:,} pairs of tokens that form another"
            raise ModelError(f"{gguf.path}: {_KEY}tokens is larger than SentencePiece makes it; at most {limits}")
        splits = ((token[:i], token[i:]) for i in range(1, len(token)))
        known = [pair for pair in splits if pair[0] in vocabulary and pair[1] in vocabulary]
        merges += [(-score, vocabulary[left], vocabulary[right], (left, right)) for left, right in known]
    unknown = _token_id(gguf, "unknown", len(tokens))
    pairs, name = [pair for *_, pair in sorted(merges)], tokens[unknown or 0]
    backend = BackendTokenizer(_bpe(gguf, vocabulary, pairs, unk_token=name, fuse_unk=True, byte_fallback=True))
    space = [normalizers.Prepend("▁")] if gguf.field(_KEY + "add_space_prefix", bool, True) else []
    backend.normalizer = normalizers.Sequence([*space, normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    backend.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if space else steps)
    return backend


def _bpe(gguf: GgufFile, vocabulary: dict[str, int], merges: list[tuple[str, str]], **options: Any) -> models.BPE:
    with library_errors(ModelError, f"{gguf.path}: {_KEY}merges do not match {_KEY}tokens"):
        return models.BPE(vocabulary, merges, **options)
