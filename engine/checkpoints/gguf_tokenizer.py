"""Convert the tokenizer in a GGUF file's metadata to one of the `tokenizers` library."""

from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as BackendTokenizer

from engine.checkpoints.gguf_file import GgufFile
from engine.errors import ModelError
from engine.text.tokenizer import Tokenizer

_KEY = "tokenizer.ggml."
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # token types
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
_IGNORE_MERGES = (_LLAMA3, _TEKKEN)  # words in the vocabulary are not split; texts start with BOS


def read_tokenizer(gguf: GgufFile) -> Tokenizer:
    """Read vocabulary, special tokens and chat templates. Raises ModelError."""
    kind, tokens = gguf.field(_KEY + "model", str, ""), gguf.listed(_KEY + "tokens", str)
    if not tokens:
        raise ModelError(f"{gguf.path} has no tokenizer: {_KEY}tokens is missing")
    if kind == "gpt2":
        backend, begins = _byte_level(gguf, tokens)
    elif kind == "llama":
        backend, begins = _sentence_piece(gguf, tokens), True
    else:
        raise ModelError(f"{gguf.path}: tokenizer {kind or '(none)'} is not supported; supported: gpt2, llama")
    types = gguf.listed(_KEY + "token_type", int) or [1] * len(tokens)
    added = [
        AddedToken(token, special=type != _USER_DEFINED, normalized=False)
        for token, type in zip(tokens, types, strict=False)
        if type in (_CONTROL, _USER_DEFINED) or (type == _UNKNOWN and kind == "gpt2")
    ]
    backend.add_tokens(added)
    special = {
        f"{name}_token": tokens[token]
        for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
        if (token := _token_id(gguf, key, len(tokens))) is not None
    }
    if gguf.field(_KEY + "add_bos_token", bool, begins) and "bos_token" in special:
        begin = special["bos_token"]
        backend.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A", pair=f"{begin} $A {begin} $B", special_tokens=[(begin, tokens.index(begin))]
        )
    return Tokenizer(backend, _templates(gguf), special)


def end_ids(gguf: GgufFile) -> tuple[int, ...]:
    """Return the ids of the tokens that end an answer."""
    count = len(gguf.listed(_KEY + "tokens", str))
    ids = {_token_id(gguf, key, count) for key in ("eos", "eot", "eom")}
    return tuple(sorted(token for token in ids if token is not None))


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
    merges = []
    for token, score in zip(tokens, scores, strict=True):
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
    try:
        return models.BPE(vocabulary, merges, **options)
    except Exception as error:  # the library raises bare Exception
        raise ModelError(f"{gguf.path}: the tokenizer's merges do not match its tokens ({error})") from None
