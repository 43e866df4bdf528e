"""Damage tiny models in every field and start each of them, as the server does, in a process of its own.

`python -m tests.support.model_fuzz --count 20000 --seed 1` prints what was neither loaded nor refused in one line.
Case i of a seed is always the same: `--first I --count 1 --keep DIR` writes its files.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import resource
import select
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFValueType

from engine.checkpoints.gguf_metadata import UNREAD
from engine.config.engine import EngineConfig
from engine.errors import ConfigError, KnapServeError, RequestError
from engine.host.process import open_tokenizer
from engine.kernels.library import kernel_library
from engine.runtime.build import LoadedModel
from engine.types import GenerateRequest, SamplingParams
from server.apis.logprobs import TokenTexts
from tests.support.cores import made_up_profile
from tests.support.tiny_models import LETTERS, Files, Gguf, TensorInfo, checkpoints, ggufs, quantised_checkpoints

CPU_SECONDS = 10
WALL_SECONDS = 60  # for a case that waits instead of computing
_BATCH = 200  # cases of a process
_SHOWN = 3  # faults of a kind
SLACK = 1 << 30  # bytes of memory beside twice the files
_MESSAGE = 800  # characters of a line that a person reads

_HUGE = 10**399 + 7
_NUMBERS = (0, 1, -1, 2, 3, 31, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, -(2**63), _HUGE, -_HUGE, 10**4500)
_FLOATS = (0.5, 1e-320, 1e300, -0.0, float("inf"), float("-inf"), float("nan"))
_TEXTS = (
    "",
    "x" * 5000,
    "\ud800",
    "\0",
    "../x",
    "{{",
    "((a+)+)+$",
    "re:((a+)+)+$",
    "re:((.+)+)+!$",
    "re:(",
    "[",
    "<s> $A",
    "auto",
    "nan",
    "1",
    "é",
    "\n",
    "a b:0 $A",
)
KEYS = (
    "rope_scaling", "rope_parameters", "rope_theta", "sliding_window", "use_sliding_window", "layer_types", "head_dim",
    "quantization_config", "num_experts", "partial_rotary_factor", "attention_bias", "mlp_bias", "dtype", "pad_token",
    "model_max_length", "factor", "type", "chat_template", "temperature", "eos_token_id", "truncation", "padding",
    "normalizer", "post_processor", "dropout", "max_input_chars_per_word", "weight_map", "__metadata__", "name",
)  # fmt: skip
_SHAPE_KEYS = (
    "rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scale_linear",
    "expert_count", "rope.dimension_count", "attention.key_length", "attention.sliding_window", "attention.scale",
    "rope.scaling.attn_factor", "rope.scaling.yarn_log_multiplier", "attention.value_length",
)  # fmt: skip
_TOKENIZER_KEYS = (
    "scores", "token_type", "merges", "add_bos_token", "add_eos_token", "eot_token_id", "add_space_prefix", "pre",
    "tokens", "unknown_token_id",
)  # fmt: skip
_SAMPLING_KEYS = ("temp", "top_p", "top_k", "min_p", "penalty_repeat")
# Keys that a GGUF file may have; {} stands for its architecture.
GGUF_KEYS = (
    *(f"{{}}.{key}" for key in _SHAPE_KEYS),
    *(f"tokenizer.ggml.{key}" for key in _TOKENIZER_KEYS),
    *(f"general.sampling.{key}" for key in _SAMPLING_KEYS),
    *("general.architecture", "general.alignment", "tokenizer.chat_templates", "tokenizer.chat_template.x"),
    *(key for keys in UNREAD.values() for key in keys),
)

_EXPRESSIONS = ("((a+)+)+$", "a*?a*?a*?(?<=c)x?", "(", "\\p{L}", "", ".", "(?<=a)", "a{100000}", "(?:a|a?)+(?<!a)")
# What a tokenizer.json may name at places of these keys.
COMPONENTS: dict[str, list[Any]] = {
    "normalizers": [
        {"type": "NFD"}, {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True,
         "strip_accents": None}, {"type": "Precompiled", "precompiled_charsmap": "AAAA"}, {"type": "Nmt"},
        {"type": "Prepend", "prepend": ""}, {"type": "Strip", "strip_left": True, "strip_right": True},
        *({"type": "Replace", "pattern": {"Regex": text}, "content": "aa"} for text in _EXPRESSIONS),
        {"type": "Replace", "pattern": {"String": ""}, "content": "a"}, {"type": "ByteLevel"}, {"type": "Lowercase"},
    ],
    "pretokenizers": [
        {"type": "Whitespace"}, {"type": "Punctuation", "behavior": "Isolated"}, {"type": "UnicodeScripts"},
        *({"type": "Split", "pattern": {"Regex": text}, "behavior": behaviour, "invert": invert}
          for text in _EXPRESSIONS for behaviour in ("Removed", "Contiguous") for invert in (True, False)),
        {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": True},
        {"type": "CharDelimiterSplit", "delimiter": "a"}, {"type": "FixedLength", "length": 0},
        {"type": "Metaspace", "replacement": "a", "prepend_scheme": "first", "split": False},
    ],
    "processors": [
        {"type": "BertProcessing", "sep": ["x", 10**9], "cls": ["y", 2**32 - 1]},
        {"type": "RobertaProcessing", "sep": ["x", 5], "cls": ["y", 0], "trim_offsets": True, "add_prefix_space": True},
        {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}},
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}}], "pair": [],
         "special_tokens": {"x": {"id": "x", "ids": [2**32 - 1] * 3, "tokens": ["a", "b", "c"]}}},
    ],
    "decoders": [
        {"type": "WordPiece", "prefix": "", "cleanup": True}, {"type": "BPEDecoder", "suffix": ""}, {"type": "Fuse"},
        {"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": True}, {"type": "ByteFallback"},
        {"type": "Strip", "content": "a", "start": 2**63, "stop": 2**63},
        {"type": "Strip", "content": " ", "start": 9, "stop": 9},
        *({"type": "Replace", "pattern": {"Regex": text}, "content": "aa"} for text in _EXPRESSIONS),
        {"type": "Replace", "pattern": {"String": ""}, "content": "a"}, {"type": "Sequence", "decoders": []},
    ],
    "models": [
        {"type": "WordLevel", "vocab": {"a": 0, "b": 2**32 - 1}, "unk_token": "z"},
        {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "z", "continuing_subword_prefix": "##",
         "max_input_chars_per_word": 0},
        {"type": "Unigram", "vocab": [], "unk_id": None},
        {"type": "Unigram", "vocab": [["a", float("-inf")]], "unk_id": 5},
        {"type": "BPE", "vocab": {}, "merges": []}, {"type": "BPE", "vocab": {"a": 4}, "merges": [], "dropout": 1.0},
    ],
}  # fmt: skip
_BOMBS = (b"{{ 'x' * 10000000000 }}", b"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
_PLACES = {
    "normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors", "model": "models",
    "decoder": "decoders", "normalizers": "normalizers", "pretokenizers": "pretokenizers", "decoders": "decoders",
}  # fmt: skip


def odd(chance: random.Random, old: Any = None, depth: int = 0) -> Any:
    """A value that a field should not have, or hardly ever has."""
    choices: list[Callable[[], Any]] = [
        lambda: chance.choice(_NUMBERS),
        lambda: chance.choice(_FLOATS),
        lambda: chance.choice(_TEXTS),
        lambda: chance.choice((None, True, False, [], {}, [None], [[]], {"a": {}}, [0] * 5000)),
        lambda: [old] * chance.choice((1, 2, 2000)),
        lambda: str(old)[:2000],
        lambda: {"content": old},
    ]
    if isinstance(old, (int, float)) and not isinstance(old, bool):
        choices += [lambda: old + chance.choice((-1, 1, 0.5)), lambda: old * chance.choice((2, -1, 1000)), lambda: -old]
    if isinstance(old, list) and old:
        choices += [lambda: old[:-1], lambda: old + old, lambda: old[::-1], lambda: [*old, odd(chance)]]
    if isinstance(old, str) and old:
        choices += [lambda: old * 300, lambda: old[:-1], lambda: old + chance.choice(_TEXTS), lambda: old[::-1]]
    if depth < 1:
        choices += [lambda: [odd(chance, old, depth + 1) for _ in range(3)]]
        choices += [lambda: {chance.choice(KEYS): odd(chance, old, depth + 1)}]
    return chance.choice(choices)()


def mutated_json(chance: random.Random, value: Any) -> str:
    """Change one field, or the structure around it. Returns where."""
    path, place = "", value
    while True:
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys or (path and chance.random() < 0.15):
            break
        key = chance.choice(keys[:40]) if chance.random() < 0.7 else chance.choice(keys)
        inner = place[key]
        if isinstance(inner, (dict, list)) and inner and chance.random() < (0.4 if key in _PLACES else 0.85):
            place, path = inner, f"{path}/{key}"
            continue
        action = chance.random()
        if action < 0.1:
            del place[key]
        elif action < 0.15:
            other = chance.choice(keys)
            place[key], place[other] = place[other], place[key]
        elif action < 0.5 and key in _PLACES:
            made = chance.choice(COMPONENTS[_PLACES[key]])
            place[key] = [made, *inner] if isinstance(inner, list) else made
        elif action < 0.2 and isinstance(place, dict):
            place[str(key) + chance.choice(("x", "\ud800", "_token"))] = place.pop(key)
        else:
            place[key] = odd(chance, inner)
        return f"{path}/{key}"
    if isinstance(place, dict):
        key = chance.choice(KEYS)
        place[key] = odd(chance, place.get(key))
        return f"{path}/{key} (new)"
    place.append(odd(chance))
    return f"{path}/- (new)"


def json_text(chance: random.Random, value: Any) -> bytes:
    """Write JSON, seldom in an odd way."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        text = json.dumps(value)
    finally:
        sys.set_int_max_str_digits(limit)
    kind = chance.random()
    if kind < 0.02 and isinstance(value, dict) and value:  # a key twice
        text = f"{{{json.dumps(chance.choice(list(value)))}: [], {text[1:]}"
    elif kind < 0.03:
        text = '{"a":' * 20000 + "1" + "}" * 20000
    elif kind < 0.04:
        return text.encode("utf-16")
    elif kind < 0.05:
        return b"\xef\xbb\xbf" + text.encode()
    return text.encode()


def damaged_bytes(chance: random.Random, raw: bytes, limit: int | None = None) -> bytes:
    """Change bytes among the first `limit`, cut the end, insert or delete."""
    content = bytearray(raw)
    end = min(len(content), limit or len(content))
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        if not end:
            break
        at = chance.randrange(end)
        match chance.randrange(5):
            case 0:
                content[at : at + 1] = bytes([content[at] ^ 1 << chance.randrange(8)])
            case 1:
                content[at : at + 1] = chance.choice((b"\0", b"\xff", b"\x7f", b'"', b"{", b"[", b"9"))
            case 2:
                del content[at : at + chance.choice((1, 4, 8, 100))]
            case 3:
                content[at:at] = content[at : at + chance.choice((1, 8, 100))]
            case _:
                content[at : at + 8] = struct.pack("<Q", chance.choice((0, 1, 2**31, 2**32, 2**40, 2**63, 2**64 - 1)))
        end = min(len(content), end)
    if chance.random() < 0.1:
        del content[chance.randrange(len(content) + 1) :]
    return bytes(content)


def mutated_file(chance: random.Random, files: Files, original: Files) -> str:
    """Damage one whole file of a checkpoint. Returns what."""
    names = [name for name in files if not name.endswith(".safetensors")]
    name = chance.choice([*names, *files, "config.json", "tokenizer.json", "generation_config.json"])
    raw = files.get(name)
    if raw is None or raw is not original.get(name):
        return f"{name} again"
    if chance.random() < 0.02:
        del files[name]
        return f"{name} missing"
    if name.endswith(".safetensors"):
        (length,) = struct.unpack("<Q", raw[:8])
        if chance.random() < 0.7:
            header = json.loads(raw[8 : 8 + length])
            where = mutated_json(chance, header)
            head = json_text(chance, header)
            files[name] = struct.pack("<Q", len(head)) + head + raw[8 + length :]
            return f"{name}: header {where}"
        files[name] = damaged_bytes(chance, raw, 8 + length)
        return f"{name}: bytes"
    if name.endswith(".json") and chance.random() < 0.9:
        value = json.loads(raw)
        where = mutated_json(chance, value)
        files[name] = json_text(chance, value)
        return f"{name}: {where}"
    if name.endswith(".jinja") and chance.random() < 0.5:
        files[name] = chance.choice(
            (b"{{", b"{% for", b"", b"\xff", b"{{ a.b.c }}", b"{% bogus %}", b"{{ 1/0 }}", *_BOMBS)
        )
        return f"{name}: replaced"
    files[name] = damaged_bytes(chance, raw)
    return f"{name}: bytes"


def _fit(kind: GGUFValueType, value: Any) -> Any:
    """The nearest value that the type can hold."""
    if kind == GGUFValueType.STRING:
        return value if isinstance(value, str) else ""
    if kind == GGUFValueType.ARRAY:
        return value if isinstance(value, tuple) else (GGUFValueType.UINT8, [])
    if kind in (GGUFValueType.FLOAT32, GGUFValueType.FLOAT64):
        try:
            struct.pack("<f", float(value))
        except (OverflowError, ValueError, TypeError):
            return float("inf")
        return float(value)
    if kind == GGUFValueType.BOOL:
        return bool(value)
    size = struct.calcsize(LETTERS[kind])
    value = int(value) if isinstance(value, (int, float)) and value == value and abs(value) != float("inf") else 0
    low, high = (0, 256**size - 1) if LETTERS[kind].isupper() else (-(256**size) // 2, 256**size // 2 - 1)
    return min(max(value, low), high)


def odd_typed(chance: random.Random, old: Any, *, lists: bool = True) -> tuple[GGUFValueType, Any]:
    """A type and a value of it."""
    kind = chance.choice([kind for kind in GGUFValueType if lists or kind != GGUFValueType.ARRAY])
    if kind == GGUFValueType.STRING:
        value = odd(chance, old)
        return kind, value if isinstance(value, str) else chance.choice(_TEXTS)
    if kind != GGUFValueType.ARRAY:
        return kind, _fit(kind, odd(chance, old))
    inner, first = odd_typed(chance, old, lists=chance.random() < 0.1)
    return kind, (inner, [first] * chance.choice((0, 1, 2, 3, 260, 5000)))


def mutated_field(chance: random.Random, gguf: Gguf) -> str:
    place = chance.randrange(len(gguf.fields))
    key, kind, value = gguf.fields[place]
    action = chance.random()
    if action < 0.1:
        del gguf.fields[place]
        return f"{key} deleted"
    if action < 0.15:
        gguf.fields.insert(chance.randrange(len(gguf.fields)), (key, *odd_typed(chance, value)))
        return f"{key} twice"
    if action < 0.3:
        new = chance.choice(GGUF_KEYS).format(gguf.fields[0][2])
        gguf.fields = [f for f in gguf.fields if f[0] != new] + [(new, *odd_typed(chance, value))]
        return f"{new} new"
    if kind == GGUFValueType.ARRAY and action < 0.8:
        inner, items = value
        items, at = list(items), chance.choice((0, chance.randrange(len(items))))
        if chance.random() < 0.4:
            items = chance.choice((items[:at], items + items, items[:at] + items[at + 1 :]))
        else:
            longer = items[at] * chance.choice((2, 1000, 100000)) if isinstance(items[at], str) else 0
            other = chance.choice((*_TEXTS, "a b c", "▁", "<|im_end|>", "<0xZZ>", "<0x+1>"))
            items[at] = _fit(inner, chance.choice((odd(chance, items[at]), chance.choice(items), longer, other)))
        gguf.fields[place] = (key, kind, (inner, items))
        return f"{key}[{at}]"
    if action < 0.6 and kind != GGUFValueType.ARRAY:  # the type stays
        made = odd(chance, value)
        if kind == GGUFValueType.STRING:
            made = chance.choice((*_TEXTS, value * 2, "llama", "gpt2", "yarn", "qwen2", "linear"))
        gguf.fields[place] = (key, kind, _fit(kind, made))
        return f"{key} value"
    gguf.fields[place] = (key, *odd_typed(chance, value))
    return f"{key} retyped"


def mutated_tensor(chance: random.Random, gguf: Gguf) -> str:
    tensor = chance.choice([*gguf.tensors, *gguf.tensors[-1:] * 4])  # the last one may be divisors of RoPE
    match chance.randrange(8):
        case 0:
            tensor.shape[chance.randrange(len(tensor.shape))] = chance.choice((0, 1, 7, 2**31, 2**32, 2**63, 2**64 - 1))
        case 1:
            tensor.shape = [chance.choice((0, 1, 16, 64)) for _ in range(chance.choice((0, 1, 2, 3, 4, 5, 100)))]
        case 2:
            tensor.type = chance.choice((0, 1, 2, 3, 8, 10, 12, 14, 24, 30, 39, 100, 2**32 - 1))
        case 3:
            tensor.offset = chance.choice((0, 1, 32, 2**20, 2**40, 2**63, 2**64 - 1))
        case 4:
            tensor.name = chance.choice(
                ("", "rope_freqs.weight", "blk.9.attn_q.weight", "output.weight", "\ud800", "x" * 5000)
            )
        case 5:
            gguf.tensors.remove(tensor)
        case 6:
            gguf.tensors.append(TensorInfo(tensor.name, tensor.shape, tensor.type, tensor.content))
        case _:
            pattern = chance.choice((b"\xff", b"\0", b"\x7f\x80"))
            tensor.content = (pattern * len(tensor.content))[: len(tensor.content)]
    return f"tensor {tensor.name[:40]}"


@dataclass(frozen=True)
class Case:
    """A damaged model: its files, and what was done to them."""

    name: str
    files: Files


@cache
def originals() -> tuple[dict[str, Gguf], dict[str, Files]]:
    with tempfile.TemporaryDirectory() as scratch:
        return ggufs(), checkpoints() | quantised_checkpoints(Path(scratch))


def make_case(seed: int, index: int) -> Case:
    chance, (files, folders) = random.Random(f"{seed} {index}"), originals()
    name = chance.choice([*files, *files, *folders])
    changes = chance.choice((1, 1, 1, 1, 2))
    if name not in files:
        damaged = dict(folders[name])
        done = [mutated_file(chance, damaged, folders[name]) for _ in range(changes) if damaged]
        return Case(f"{name}: {'; '.join(done)}", damaged)
    gguf, done = files[name].copy(), []
    for _ in range(changes):
        change = mutated_tensor if chance.random() < 0.3 else mutated_field
        done.append(change(chance, gguf) if gguf.fields and gguf.tensors else "empty")
    if chance.random() < 0.03:
        gguf.counts = (chance.choice((0, 1, -1, 2**40)), chance.choice((0, 1, -1, 2**40)))
    content = gguf.content()
    if chance.random() < 0.15:
        end = content.rindex(b"token_embd") if b"token_embd" in content else len(content)
        content, done = damaged_bytes(chance, content, end + 3000), [*done, "bytes"]
    return Case(f"{name}: {'; '.join(done)}", {"model.gguf": content})


def start(model: str, dtype: str, kernels: str) -> None:
    """Start as the server and the engine do, and answer one chat. Raises KnapServeError."""
    tokenizer = open_tokenizer(model)  # as the server's process does; the engine's opens it again
    tokenizer.prepare()
    settings: dict[str, Any] = {"dtype": dtype, "kernels": kernels, "kv_cache_memory": 1 << 24, "max_num_seqs": 2}
    config = EngineConfig(model=model, threads=1, **settings)
    loaded = LoadedModel(config, profile=made_up_profile())
    loaded.warm_up()
    core = loaded.core(config)
    assert loaded.source.fingerprint
    tokenizer.restrict(loaded.spec.vocab)
    try:
        text = "Hi <|user|> ab 12 é " + "a" * 40 + "b"
        ids = tokenizer.encode(text)
        if tokenizer.has_chat_template:
            try:
                chat = [{"role": "user", "content": text}]
                prompt = tokenizer.render_chat(chat, literal=True)
                ids = tokenizer.encode(prompt, add_special_tokens=False, literal=True)
            except RequestError:
                pass  # chats are refused, completions work
        texts = TokenTexts(tokenizer)
        for token in {*ids[:20], *range(min(300, loaded.spec.vocab))}:
            texts.text(token)
            texts.bytes(token)
        known = [token for token in ids if token < loaded.spec.vocab][: max(loaded.length // 2, 1)]
        core.add(GenerateRequest("0", tuple(known or [0]), SamplingParams(max_tokens=2, temperature=0.0)))
        for _ in range(20):
            if any(getattr(event, "finish_reason", "failed") is not None for event in core.step().events):
                break
        tokenizer.decode(known)
    finally:
        core.close()


def attempt(case: Case, directory: Path, dtype: str, kernels: str) -> tuple[str, str]:
    """Start a damaged model. Returns "loads", "refused" or a fault, and the message."""
    single = "model.gguf" in case.files
    try:
        start(str(directory / "model.gguf" if single else directory), dtype, kernels)
    except KnapServeError as error:
        message = str(error)
        if len(message.splitlines()) != 1 or len(message) > _MESSAGE:
            return "message of several lines" if len(message.splitlines()) != 1 else "long message", message
        known = ("config.json", "tokenizer", ".safetensors", "model.gguf", ".jinja", directory.name)
        if not isinstance(error, ConfigError) and not any(name in message for name in known):
            return "message names no file", message
        return "refused", message
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in last if "/engine/" in frame.filename or "/server/" in frame.filename][-1:]
        place = "".join(f" in {Path(frame.filename).name}:{frame.lineno}" for frame in ours)
        return f"{type(error).__name__}{place}", "".join(traceback.format_exception(error))[-3000:]
    return "loads", ""


@dataclass(frozen=True)
class Outcome:
    """What became of a case. `memory` is in bytes, beyond what the process had and twice the model's files."""

    index: int
    case: str
    kind: str
    message: str
    seconds: float  # of CPU time
    memory: int

    @property
    def is_fault(self) -> bool:
        return self.kind not in ("loads", "refused")


def _run(seed: int, index: int) -> Outcome:
    """Run a case in this process, with limits on CPU time and memory."""
    case = make_case(seed, index)
    twice = 2 * sum(map(len, case.files.values()))
    with tempfile.TemporaryDirectory(prefix="fuzzed-") as scratch:
        for name, content in case.files.items():
            (Path(scratch) / name).write_bytes(content)
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
        before, start = _memory(), time.process_time()
        most = before["VmSize"] + twice + SLACK
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(start) + CPU_SECONDS + 1, resource.RLIM_INFINITY))
        choice = ("float32", "torch") if index % 2 else ("bfloat16", "auto")
        kind, message = attempt(case, Path(scratch), *choice)
        seconds, memory = time.process_time() - start, _memory()["VmHWM"] - before["VmRSS"] - twice
    if kind in ("loads", "refused") and (memory > SLACK or seconds > CPU_SECONDS):
        kind = "too much memory" if memory > SLACK else "hang"
    return Outcome(index, case.name, kind, message, seconds, memory)


def _memory() -> dict[str, int]:
    """Bytes by the names of /proc/self/status."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines() if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) << 10 for name, size, _ in lines}


def run_cases(seed: int, indices: range) -> Iterator[Outcome]:
    """Run cases in children of this process, each until a fault."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a lock of its threads may be held while a child is forked
    torch.set_num_threads(1)
    kernel_library()
    originals()
    logging.disable()
    todo = list(indices)
    while todo:
        done = []
        for outcome in _forked(seed, todo[:_BATCH]):
            done.append(outcome.index)
            yield outcome
        todo = todo[len(done) :]


def _forked(seed: int, indices: list[int]) -> Iterator[Outcome]:
    """Run cases in a child until one is a fault."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            for index in indices:
                outcome = _run(seed, index)
                os.write(writer, json.dumps(asdict(outcome)).encode() + b"\n")
                if outcome.is_fault:
                    break
        finally:
            os._exit(0)
    os.close(writer)
    told, left, fault = bytearray(), list(indices), False
    while select.select([reader], [], [], WALL_SECONDS)[0] and (piece := os.read(reader, 1 << 16)):
        told += piece
        *lines, rest = told.split(b"\n")
        told = bytearray(rest)
        for line in lines:
            outcome = Outcome(**json.loads(line))
            fault = outcome.is_fault
            left.remove(outcome.index)
            yield outcome
    os.kill(child, signal.SIGKILL)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if left and not fault:
        what = {-signal.SIGXCPU: "hang", -signal.SIGKILL: "wait"}.get(code, f"ended by {code}")
        yield Outcome(left[0], make_case(seed, left[0]).name, what, "", float(CPU_SECONDS), 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the first case's files to DIR, run nothing")
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(exist_ok=True)
        case = make_case(args.seed, args.first)
        for name, content in case.files.items():
            (args.keep / name).write_bytes(content)
        print(case.name)
        return 0
    kinds, shown = Counter[str](), Counter[str]()
    seconds, memory = 0.0, 0
    for outcome in run_cases(args.seed, range(args.first, args.first + args.count)):
        kinds[outcome.kind] += 1
        seconds, memory = max(seconds, outcome.seconds), max(memory, outcome.memory)
        if outcome.is_fault and shown[outcome.kind] < _SHOWN:
            shown[outcome.kind] += 1
            print(f"--- case {outcome.index} ({outcome.case[:300]}): {outcome.kind}\n{outcome.message}", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    print(f"at most {seconds:.2f} s of CPU time, and {memory / 2**20:.0f} MB of memory beyond twice the files")
    return int(kinds.keys() - {"loads", "refused"} != set())


if __name__ == "__main__":
    sys.exit(main())
