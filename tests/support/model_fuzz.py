"""Damage tiny models in every field and start each of them, as the server does, in a process of its own.

`python -m tests.support.model_fuzz --count 20000 --seed 1` prints what was neither loaded nor refused in one line.
Case i of a seed is always the same: `--first I --count 1 --keep DIR` writes its files.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import torch
from gguf import GGUFValueType

from engine.config.engine import EngineConfig
from engine.errors import ConfigError, KnapServeError, RequestError
from engine.host.process import open_tokenizer
from engine.kernels.library import kernel_library
from engine.runtime.build import LoadedModel
from engine.types import GenerateRequest, SamplingParams
from server.apis.logprobs import TokenTexts
from tests.support.cores import made_up_profile
from tests.support.gguf_files import all_keys
from tests.support.mutation import ODD, damaged, mutated
from tests.support.tiny_models import LETTERS, Files, Gguf, TensorInfo, checkpoints, ggufs, quantised_checkpoints

CPU_SECONDS = 10
WALL_SECONDS = 60  # for a case that waits instead of computing
SLACK = 1 << 30  # bytes of memory beside twice the files
SOUND = {"loads", "refused"}
_BATCH = 200  # cases of a process
_MESSAGE = 800  # characters of a line that a person reads
_SHOWN = 3  # faults of a kind

_EXPRESSIONS = ("((a+)+)+$", "a*?a*?a*?(?<=c)x?", "(", "\\p{L}", "", "a{100000}", "(?:a|a?)+(?<!a)")
_PATTERNS = [{"Regex": text} for text in _EXPRESSIONS] + [{"String": ""}]
_TOKENIZER: list[Any] = [  # parts of a tokenizer.json
    *({"type": "Replace", "pattern": pattern, "content": "aa"} for pattern in _PATTERNS),
    *({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False} for pattern in _PATTERNS),
    {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
    {"type": "FixedLength", "length": 0},
    {"type": "BertProcessing", "sep": ["x", 10**9], "cls": ["y", 2**32 - 1]},
    {"type": "Strip", "content": "a", "start": 2**63, "stop": 2**63},
    {"type": "Unigram", "vocab": [["a", float("-inf")]], "unk_id": 5},
    {"type": "BPE", "vocab": {"a": 4}, "merges": [], "dropout": 1.0},
    {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "z", "continuing_subword_prefix": "##",
     "max_input_chars_per_word": 0},
]  # fmt: skip
_TEMPLATES = (b"{{ 'x' * 10000000000 }}", b"{% for %}", b"", b"\xff", b"{{ a.b.c }}", b"{{ 1/0 }}")
_COUNTS = (0, 1, 7, 16, 2**31, 2**32, 2**40, 2**63, 2**64 - 1)
_TENSORS: dict[str, tuple[Any, ...]] = {
    "shape": ([], [0], [1], [16, 64], [64, 16, 1], [1] * 100, *([count, 64] for count in _COUNTS)),
    "type": (0, 1, 2, 3, 8, 10, 12, 14, 24, 30, 39, 100, 2**32 - 1),
    "offset": _COUNTS,
    "name": ("", "rope_freqs.weight", "blk.9.attn_q.weight", "output.weight", "\ud800", "x" * 5000),
    "content": (b"\xff" * 8192, b"\x7f\x80" * 4096, b""),
}


@cache
def originals() -> tuple[dict[str, Gguf], dict[str, Files]]:
    with tempfile.TemporaryDirectory() as scratch:
        return ggufs(), checkpoints() | quantised_checkpoints(Path(scratch))


def make_case(seed: int, index: int) -> tuple[str, Files]:
    """Return the name and the files of a damaged model."""
    draw, (files, folders) = Random(f"{seed} {index}"), originals()
    name = draw.choice([*files, *files, *folders])
    if name in files:
        return name, {"model.gguf": _damaged_gguf(files[name].copy(), draw)}
    folder = folders[name]
    file = draw.choice([*folder, "config.json", "tokenizer.json", "generation_config.json"])
    content = folder.get(file, b"{}")
    if draw.random() < 0.02:
        return f"{name} without {file}", {other: raw for other, raw in folder.items() if other != file}
    if file.endswith(".safetensors"):
        (length,) = struct.unpack("<Q", content[:8])
        head = _damaged_json(content[8 : 8 + length], draw, ODD)
        content = struct.pack("<Q", len(head)) + head + content[8 + length :]
    elif file.endswith(".json"):
        content = _damaged_json(content, draw, _TOKENIZER + ODD if file == "tokenizer.json" else [*ODD, 10**4500])
    else:
        content = draw.choice((*_TEMPLATES, damaged(content, draw)))
    return f"{name}: {file}", folder | {file: content}


def _damaged_json(content: bytes, draw: Random, odd: list[Any]) -> bytes:
    """Change a value or two, seldom the text around them."""
    value = mutated(json.loads(content), draw, odd)
    value = mutated(value, draw, odd) if draw.random() < 0.2 else value
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    text = json.dumps(value)
    sys.set_int_max_str_digits(limit)
    way = draw.random()
    if way < 0.05:
        return damaged(text.encode(), draw)
    if way < 0.08:
        return draw.choice((text.encode("utf-16"), b"\xef\xbb\xbf" + text.encode(), b'{"a":' * 20000 + b"}" * 20000))
    return text.encode()


def _damaged_gguf(gguf: Gguf, draw: Random) -> bytes:
    for _ in range(draw.choice((1, 1, 1, 2))):
        if draw.random() < 0.3:
            _damage_tensor(gguf, draw)
            continue
        place = draw.randrange(len(gguf.fields))
        key, kind, value = gguf.fields[place]
        way = draw.random()
        if way < 0.1:
            del gguf.fields[place]
        elif way < 0.2:
            gguf.fields.append((draw.choice([key, *all_keys()]), *_odd_typed(value, draw)))
        elif way < 0.7:  # the type stays
            inner = mutated(value[1] if kind == GGUFValueType.ARRAY else value, draw)
            gguf.fields[place] = (key, kind, _fit(kind, inner, value))
        else:
            gguf.fields[place] = (key, *_odd_typed(value, draw))
    if draw.random() < 0.03:
        gguf.counts = draw.choice(((1, 0), (0, 1), (-1, 0), (0, -1), (2**40, 0), (0, 2**40)))
    content = gguf.content()
    if draw.random() < 0.15:
        end = content.find(b"token_embd") + 3000
        content = damaged(content[:end], draw) + content[end:]
    return content


def _damage_tensor(gguf: Gguf, draw: Random) -> None:
    tensor = draw.choice([*gguf.tensors, *gguf.tensors[-1:] * 4])  # the last one may be divisors of RoPE
    way = draw.choice([*_TENSORS, "missing", "twice"])
    if way == "missing":
        gguf.tensors.remove(tensor)
    elif way == "twice":
        gguf.tensors.append(TensorInfo(tensor.name, tensor.shape, tensor.type, tensor.content))
    else:
        setattr(tensor, way, draw.choice(_TENSORS[way]))


def _fit(kind: GGUFValueType, value: Any, old: Any) -> Any:
    """`value`, or where the type cannot hold it, `old`. A list is (type of its items, items)."""
    if kind == GGUFValueType.ARRAY:
        inner = old[0]
        return inner, [_fit(inner, item, old[1][0]) for item in value] if isinstance(value, list) else []
    try:
        struct.pack("<" + LETTERS[kind], value) if kind != GGUFValueType.STRING else value.encode(
            errors="surrogatepass"
        )
    except (struct.error, AttributeError, OverflowError):
        return old
    return value


def _odd_typed(old: Any, draw: Random) -> tuple[GGUFValueType, Any]:
    """Return a type and a value of it."""
    kind = draw.choice([*GGUFValueType])
    if kind == GGUFValueType.ARRAY:
        inner = draw.choice([*GGUFValueType])
        return kind, (inner, [_odd(inner, draw)] * draw.choice((0, 1, 2, 3, 260, 5000)))
    return kind, _fit(kind, mutated(old, draw), _odd(kind, draw))


def _odd(kind: GGUFValueType, draw: Random) -> Any:
    if kind == GGUFValueType.ARRAY:
        return GGUFValueType.UINT8, [1]
    return draw.choice(("", "x" * 5000, "é", "llama") if kind == GGUFValueType.STRING else (0, 1))


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
                prompt = tokenizer.render_chat([{"role": "user", "content": text}], literal=True)
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


def attempt(files: Files, directory: Path, *choice: str) -> tuple[str, str]:
    """Start a damaged model. Returns "loads", "refused" or a fault, and the message."""
    single = "model.gguf" in files
    try:
        start(str(directory / "model.gguf" if single else directory), *choice)
    except KnapServeError as error:
        message = str(error)
        if len(message.splitlines()) != 1 or len(message) > _MESSAGE:
            return "long message", message
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


def run_limited(seed: int, index: int) -> tuple[str, str]:
    """Attempt a case in this process, which ends where the case takes too much time."""
    _, files = make_case(seed, index)
    with tempfile.TemporaryDirectory(prefix="fuzzed-") as scratch:
        for name, content in files.items():
            (Path(scratch) / name).write_bytes(content)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + 2 * sum(map(len, files.values())) + SLACK
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + CPU_SECONDS + 1, resource.RLIM_INFINITY))
        signal.alarm(WALL_SECONDS)
        return attempt(files, Path(scratch), *(("float32", "torch") if index % 2 else ("bfloat16", "auto")))


def run_cases(seed: int, indices: range) -> Iterator[tuple[int, str, str]]:
    """Run cases in children of this process, each until a fault. Yields index, kind and message."""
    todo = list(indices)
    while todo:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                for index in todo[:_BATCH]:
                    outcome = run_limited(seed, index)
                    os.write(writer, json.dumps((index, *outcome)).encode() + b"\n")
                    if outcome[0] not in SOUND:
                        break
            finally:
                os._exit(0)
        os.close(writer)
        with open(reader, "rb") as lines:
            for line in lines:
                yield (todo.pop(0), *json.loads(line)[1:])
        _, status = os.waitpid(child, 0)
        if status:
            yield todo.pop(0), f"ended by {os.waitstatus_to_exitcode(status)}", ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the first case's files to DIR, run nothing")
    args = parser.parse_args()
    if args.keep:
        args.keep.mkdir(exist_ok=True)
        for name, content in make_case(args.seed, args.first)[1].items():
            (args.keep / name).write_bytes(content)
        return 0
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a lock of its threads may be held while a child is forked
    torch.set_num_threads(1)
    kernel_library()
    logging.disable()
    kinds = Counter[str]()
    for index, kind, message in run_cases(args.seed, range(args.first, args.first + args.count)):
        kinds[kind] += 1
        if kind not in SOUND and kinds[kind] <= _SHOWN:
            print(f"--- case {index} ({make_case(args.seed, index)[0]}): {kind}\n{message}", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    return int(kinds.keys() - SOUND != set())


if __name__ == "__main__":
    sys.exit(main())
