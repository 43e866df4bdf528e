"""The metadata of GGUF files that KnapServe does not read: a key that could change results is refused or logged."""

import logging

from engine.checkpoints.gguf_file import GgufFile
from engine.errors import ModelError

log = logging.getLogger("knapserve.engine")
# Values that turn a feature off → the keys of such features, which KnapServe lacks. `{}` is the architecture. The keys
# of () change no result of the supported architectures; nor do ids of tokens that nothing reads.
UNREAD: dict[tuple[int, ...], tuple[str, ...]] = {
    (0,): (
        "{}.attention.clamp_kqv", "{}.attention.max_alibi_bias", "{}.attention.temperature_scale",
        "{}.attn_logit_softcapping", "{}.expert_used_count", "{}.final_logit_softcapping", "{}.rope.dimension_sections",
        "{}.use_parallel_residual", "tokenizer.ggml.add_sep_token", "tokenizer.ggml.add_space_prefix",
        "tokenizer.ggml.precompiled_charsmap", "tokenizer.ggml.remove_extra_whitespaces",
    ),
    (0, 1): ("{}.logit_scale", "{}.residual_scale", "{}.embedding_scale", "{}.attention.output_scale",
             "{}.rope.scaling.alpha"),
    (1,): ("{}.attention.causal", "{}.rope.scaling.yarn_attn_factor", "tokenizer.ggml.escape_whitespaces"),
    (-1, 1): ("{}.rope.scaling.yarn_ext_factor",),
    (): (
        "{}.vocab_size", "{}.tensor_data_layout", "{}.pooling_type", "{}.attention.layer_norm_epsilon",
        "{}.rope.scaling.finetuned", "tokenizer.ggml.pre", "tokenizer.ggml.scores", "tokenizer.ggml.merges",
        "tokenizer.ggml.token_type_count", "tokenizer.ggml.added_tokens", "tokenizer.huggingface.json",
        "tokenizer.rwkv.world",
    ),
}  # fmt: skip


def check_unread(gguf: GgufFile, *, sampling: bool) -> None:
    """Check the keys of the architecture, the tokenizer and (if `sampling`) sampling that nothing has read so far.

    Raises ModelError for a feature that KnapServe lacks. Unknown keys are logged.
    """
    architecture = gguf.field("general.architecture", str)
    unread = {key: key.replace(f"{architecture}.", "{}.", 1) for key in sorted(gguf.fields.keys() - gguf.used)}
    for off, names in UNREAD.items():
        for key in [key for key, name in unread.items() if name in names]:
            del unread[key]
            value = gguf.fields[key]
            if off and any(item not in off for item in (value if isinstance(value, list) else [value])):
                only = " or ".join(map(str, off))
                raise ModelError(f"{gguf.path.name}: {key} is {str(value)[:60]}; only {only} is supported")
    kinds = ("{}.", "tokenizer.", "general.sampling.")[: 3 if sampling else 2]
    unknown = [key for key, name in unread.items() if name.startswith(kinds) and not name.endswith("_token_id")]
    if unknown:
        log.warning("%s: metadata without effect here: %s", gguf.path.name, ", ".join(unknown))
    if gguf.field("tokenizer.ggml.model", str) == "gpt2" and "tokenizer.ggml.pre" not in gguf.fields:
        log.warning("%s lacks tokenizer.ggml.pre: text is split as for GPT-2", gguf.path.name)
