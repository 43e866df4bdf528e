"""The embedded model's tokenizer: byte-level BPE trained on its corpus; digits stay single, any text can be encoded."""

from __future__ import annotations

from collections.abc import Iterator

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from engine.embedded.conversation import END, SPECIAL_TOKENS, TOOL_CALL_TOKENS


def train_tokenizer(texts: Iterator[str], vocabulary: int) -> Tokenizer:
    """A tokenizer of exactly `vocabulary` entries; id 0 ends a turn."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(TOOL_CALL_TOKENS),
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    # Tool calls are text to whoever reads the answer: one token each, but not special.
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in TOOL_CALL_TOKENS])
    if tokenizer.get_vocab_size() != vocabulary:
        raise ValueError(f"the corpus gives {tokenizer.get_vocab_size()} tokens, not {vocabulary}")
    return tokenizer


def tokenizer_config() -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": END,
        "additional_special_tokens": list(SPECIAL_TOKENS[1:]),
        "clean_up_tokenization_spaces": False,
    }
