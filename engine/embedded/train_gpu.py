"""Trains the embedded model and its twin side by side on a GPU: `python -m engine.embedded.train_gpu --minutes 10 …`.

Both begin with the same checkpoint and read the same batches; only `--prepared` learns to draft. Steps are recorded
(`recorded`), batches are made by processes ahead of the run (`loading`, `packing`). The run lasts as long as it is
given: the learning rate warms up and falls to nothing over the last part of that time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from engine.embedded.batches import pool_drawn
from engine.embedded.export import export, imported
from engine.embedded.loading import Pools
from engine.embedded.network import Network, Shape
from engine.embedded.packing import LENGTHS, Layout, Packer
from engine.embedded.process import begin_anew, interruption, keep_freed_memory
from engine.embedded.recorded import Learner
from engine.embedded.sources import Quotes, Sources
from engine.seeds import mix64

WARM_UP_STEPS = 150
AHEAD = 8  # steps that may be begun beyond the last that is known to be done
PROGRESS = 1.0  # in the mixture: that of a run's end, from the beginning

Made = tuple[int, np.ndarray]  # a batch: its kind and its array


class Stream:
    """The batches of a run, in order, and the place on the device where one after the other is put."""

    def __init__(self, tokenizer: Tokenizer, width: int, seed: int, workers: int) -> None:
        self.layout, self._seed = Layout(width), seed
        sources = Sources(tokenizer)
        sources(np.array([[1, 2, 1, 2]]), np.array([[False, True, True, True]]))  # compiles
        packer = Packer(self.layout, sources, Quotes(tokenizer))

        def make(pool: int) -> list[Made]:
            return list(packer.batches(pool_drawn(tokenizer, seed, pool, PROGRESS), mix64(seed ^ pool)))

        self._pools = Pools(make, workers)  # forked before anything is put on the device
        self._pools.begin(0)
        self._pool, self._made = 0, deque[Made]()
        self._slots: deque[tuple[torch.Tensor, torch.cuda.Event | None]] = deque()

    def to(self, device: torch.device) -> dict[str, torch.Tensor]:
        """Where batches are put from now on."""
        self._flat = torch.zeros(self.layout.total, dtype=torch.int32, device=device)
        on_gpu = device.type == "cuda"
        for _ in range(AHEAD):
            self._slots.append((torch.zeros(self.layout.total, dtype=torch.int32, pin_memory=on_gpu), None))
        return self.layout.views(self._flat)

    def next(self) -> Made:
        while not self._made:
            self._made.extend(self._pools.take(self._pool, lambda: False))
            self._pool += 1
        return self._made.popleft()

    def put(self, array: np.ndarray) -> None:
        """Put a batch on the device, behind all that it has been given to do."""
        slot, done = self._slots.popleft()
        if done is not None:
            done.synchronize()
        slot.copy_(torch.from_numpy(array))
        self._flat.copy_(slot, non_blocking=True)
        if self._flat.is_cuda:
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record()
        self._slots.append((slot, done))

    def close(self) -> None:
        self._pools.close()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engine.embedded.train_gpu", description=__doc__)
    parser.add_argument("--start", type=Path, required=True, help="exported checkpoint that both begin with")
    parser.add_argument("--prepared", type=Path, help="where to export the one that is prepared for drafting")
    parser.add_argument("--plain", type=Path, help="where to export its twin")
    parser.add_argument("--go-on", action="store_true", help="begin with what is exported there, not with --start")
    parser.add_argument("--log", type=Path, help="JSON lines: tokens, seconds, losses")
    parser.add_argument("--save-every", type=float, default=2.0, help="minutes between exports before the last (2)")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to train (10)")
    parser.add_argument("--rate", type=float, default=2.5e-3, help="peak learning rate (2.5e-3)")
    parser.add_argument("--decay", type=float, default=0.85, help="share of the time in which the rate falls (0.85)")
    parser.add_argument("--width", type=int, default=32768, help="tokens of a batch (32768)")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--intermediate", type=int, default=640)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=14, help="processes that make batches (14)")
    parser.add_argument("--compile", action="store_true", help="fuse what lies between matrix products")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    if not (args.prepared or args.plain):
        parser.error("one of --prepared and --plain is required")
    begun = [args.start, *(path for path in (args.prepared, args.plain) if path and args.go_on)]
    if missing := [str(path) for path in begun if not (path / "model.safetensors").exists()]:
        parser.error(f"no checkpoint in {', '.join(missing)}")
    return args


def rate_at(share: float, step: int, decay: float) -> float:
    """Of the peak, after this share of the time."""
    return min(1.0, (step + 1) / WARM_UP_STEPS, max(0.0, 1 - share) / decay)


def main() -> None:
    args = arguments()
    torch.set_num_threads(1 if args.device == "cuda" else torch.get_num_threads())
    torch.manual_seed(args.seed)
    keep_freed_memory()
    tokenizer = Tokenizer.from_file(str(args.start / "tokenizer.json"))
    stream = Stream(tokenizer, args.width, args.seed, args.workers)
    try:
        train(args, tokenizer, stream)
    finally:
        stream.close()


def train(args: argparse.Namespace, tokenizer: Tokenizer, stream: Stream) -> None:
    device = torch.device(args.device)
    batch = stream.to(device)
    shape = Shape(layers=args.layers, intermediate=args.intermediate)
    network = imported(args.start, shape)
    learners: dict[Path, Learner] = {}
    for directory in (args.prepared, args.plain):
        if directory:
            own = Network(shape)
            own.load_state_dict((imported(directory, shape) if args.go_on else network).state_dict())
            prepared = directory == args.prepared
            learners[directory] = Learner(own.to(device), batch, prepared=prepared, compiled=args.compile)
    tokens = step = 0
    seen: set[int] = set()
    began = said = saved = time.monotonic()
    with interruption() as interrupted:
        while (share := (time.monotonic() - began) / (60 * args.minutes)) < 1 and not interrupted.is_set():
            kind, array = stream.next()
            stream.put(array)
            for learner in learners.values():
                if device.type == "cuda" and kind not in seen:
                    learner.record(kind)
                learner.rate.fill_(args.rate * rate_at(share, step, args.decay))
                learner.step(kind)
            if kind not in seen:
                seen.add(kind)
                print(
                    f"step {step}: batches of up to {LENGTHS[kind]} after {time.monotonic() - began:.1f} s", flush=True
                )
            tokens, step = tokens + args.width, step + 1
            if step == 1 or time.monotonic() - said > 5:
                said = time.monotonic()
                losses = [round(float(learner.loss), 4) for learner in learners.values()]
                line = {"step": step, "tokens": tokens, "seconds": round(said - began, 1), "losses": losses}
                print(json.dumps(line), flush=True)
                if args.log:
                    with args.log.open("a", encoding="utf-8") as log:
                        print(json.dumps(line), file=log)
            if time.monotonic() - saved > 60 * args.save_every:
                saved = time.monotonic()
                save(learners, tokenizer)
    save(learners, tokenizer)


def save(learners: dict[Path, Learner], tokenizer: Tokenizer) -> None:
    for directory, learner in learners.items():
        export(learner.network, tokenizer, directory)


if __name__ == "__main__":
    begin_anew()
    main()
