"""Trains the embedded model: `python -m engine.embedded.train --run DIR`; started again, it resumes.

Preparation for drafting: on some of the batches each sublayer is left out at rates growing with depth (stochastic
depth, attention and MLP apart) up to one that is drawn for the batch, and some add the loss of an exit after a layer
drawn at random, early ones more often: what is to be said there is what the whole network says (distillation), since
that is what drafts have to guess; where sublayers are left out besides, it is what the text says.
`--plain` trains the twin without either. A few heads are told where to look (`pointing`), the twin's too.

Where a skill makes several candidates for an example, the run learns from the one whose answers it finds hardest; with
`--workers`, which make batches ahead of it in processes of their own, from one drawn at random. A step never waits for
a GPU, so that the next is under way while the GPU is at this one: what depends on numbers is decided on the host.

Matrices are trained with Muon, the rest with AdamW; the learning rate warms up, stays, and falls to nothing over the
last part of the token budget.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from tqdm import tqdm

from engine.embedded.answers import Answers
from engine.embedded.batches import Batch, Packed, pool_batches, pool_candidates, pool_drawn, pool_tokens
from engine.embedded.bpe import train_tokenizer
from engine.embedded.conversation import Tokens, segments
from engine.embedded.corpus.mixture import training_examples
from engine.embedded.draws import left_out, sampled, weighted_loss
from engine.embedded.export import export, imported
from engine.embedded.loading import Pools
from engine.embedded.muon import Muon
from engine.embedded.network import Network, Shape
from engine.embedded.pointing import Pointing
from engine.embedded.process import begin_anew, interruption, keep_freed_memory, uploaded
from engine.model.linear_onednn import native_bf16
from engine.seeds import mix64

TOKENIZER_EXAMPLES = 30_000
CLIP = 1.0
WARM_UP_STEPS = 150
THINNED_SHARE = 0.5  # of the batches leave sublayers out
DROP_AT_LAST = (0.2, 0.9)  # between these is the rate at the last sublayer of such a batch; 0 at the first
EXIT_SHARE = 0.25  # of the batches add an exit's loss
EXIT_WEIGHT = 0.3
POINTING_WEIGHT = 0.3
EASY_SHARE = 0.25  # of the examples that have candidates are not picked by how hard they are


@dataclass(frozen=True)
class Settings:
    """What defines a run; kept in its checkpoint."""

    seed: int
    tokens: int
    batch_tokens: int
    rate: float
    decay: float
    plain: bool
    shape: Shape = field(default_factory=Shape)


@dataclass
class Progress:
    """Where a run stands."""

    step: int = 0
    tokens: int = 0
    pool: int = 0
    pool_progress: float = 0.0
    batch: int = 0
    picked: list[int] = field(default_factory=list)  # of the pool's candidates; none where workers draw them
    seconds: float = 0.0


class Trainer:
    def __init__(self, settings: Settings, run: Path, device: torch.device, workers: int = 0) -> None:
        self.settings, self.run, self.device = settings, run, device
        self.progress = Progress()
        self.tokenizer = self._tokenizer()
        self.pointing = Pointing(self.tokenizer)
        self.pools = self._workers(workers) if workers else None  # forked before anything is put on the device
        torch.manual_seed(settings.seed)
        self.network = Network(settings.shape).to(device)
        self.loss = weighted_loss
        self.answers = Answers(self.network, device, self.autocast)
        hidden = [p for n, p in self.network.named_parameters() if p.dim() == 2 and "embedding" not in n]
        rest = [p for n, p in self.network.named_parameters() if p.dim() != 2 or "embedding" in n]
        self.optimizers: list[torch.optim.Optimizer] = [
            Muon(hidden, settings.rate, precision=torch.float32 if self.emulates_bf16 else torch.bfloat16),
            torch.optim.AdamW(rest, lr=settings.rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
        ]

    def _tokenizer(self) -> Tokenizer:
        path = self.run / "tokenizer.json"
        if not path.exists():
            examples = training_examples(self.settings.seed, 0, TOKENIZER_EXAMPLES, 0.5)
            tokenizer = train_tokenizer(
                (text for e in examples for text, _ in segments(e.messages, e.tools)),
                self.settings.shape.vocabulary,
            )
            self.run.mkdir(parents=True, exist_ok=True)
            tokenizer.save(str(path))
        return Tokenizer.from_file(str(path))

    def _workers(self, count: int) -> Pools:
        """Processes that make a pool's batches with all that can be done on the host; what they make depends on the
        seed and the length of the run alone."""
        settings = self.settings
        expected = pool_tokens(self.tokenizer, settings.seed)
        self.pointing.told(Batch(torch.zeros(1, 2).long(), torch.zeros(1, 2).long(), torch.ones(1, 2), 2))  # compiles

        def make(pool: int) -> list[Packed]:
            rows = pool_drawn(self.tokenizer, settings.seed, pool, min(1.0, pool * expected / settings.tokens))
            batches = pool_batches(rows, settings.seed, pool, settings.batch_tokens)
            return [self.pointing.with_told(batch).packed() for batch in batches]

        return Pools(make, count)

    def close(self) -> None:
        """Ends the workers, if there are any."""
        if self.pools:
            self.pools.close()

    def compile(self) -> None:
        torch._dynamo.config.recompile_limit = 64  # lengths that equal another size are compiled apart
        self.network.compile_sublayers()
        self.loss = torch.compile(weighted_loss, dynamic=True)

    @property
    def emulates_bf16(self) -> bool:
        """Whether products of bf16 would take many times as long as those of float32."""
        return self.device.type == "cpu" and torch.cpu._is_avx2_supported() and not native_bf16()

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=not self.emulates_bf16)

    # ---- checkpoints

    @property
    def checkpoint(self) -> Path:
        return self.run / "checkpoint.pt"

    @property
    def plateau(self) -> Path:
        return self.run / "plateau.pt"

    def save(self, path: Path | None = None) -> None:
        path = path or self.checkpoint
        state = {
            "settings": asdict(self.settings),
            "progress": asdict(self.progress),
            "network": self.network.state_dict(),
            "optimizers": [o.state_dict() for o in self.optimizers],
        }
        partial = path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(path)

    def resume(self) -> None:
        """Raises SystemExit where the run is of another kind: its length and rates may change."""
        state = torch.load(self.checkpoint, map_location=self.device, weights_only=True)
        ours = asdict(self.settings)
        for name in ("seed", "batch_tokens", "plain", "shape"):
            if state["settings"][name] != ours[name]:
                raise SystemExit(f"{self.run} holds a run with {name} {state['settings'][name]}, not {ours[name]}")
        self.progress = Progress(**state["progress"])
        self.network.load_state_dict(state["network"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)

    def start_from(self, directory: Path) -> None:
        """Takes over an exported checkpoint, which may have fewer layers and narrower MLPs."""
        self.network.load_state_dict(imported(directory, self.settings.shape).state_dict())

    @torch.no_grad()
    def average_with(self, directory: Path, share: float) -> None:
        """Mix an exported checkpoint of the same shape in; `share` stays of what is here. Runs that begin with a high
        rate end beside where they began, and the mean of both is better than either."""
        other = Network(self.settings.shape)
        other.read(load_file(directory / "model.safetensors"))
        for own, mixed_in in zip(self.network.parameters(), other.parameters(), strict=True):
            own.lerp_(mixed_in.to(own.device), 1 - share)

    # ---- steps

    def rate(self) -> float:
        """Linear warm-up, a plateau, and a linear fall over the last `decay` of the tokens."""
        left = 1 - self.progress.tokens / self.settings.tokens
        factor = min(1.0, (self.progress.step + 1) / WARM_UP_STEPS, max(0.0, left) / self.settings.decay)
        return self.settings.rate * factor

    @property
    def falling(self) -> bool:
        """Whether the rate has begun to fall."""
        return self.progress.tokens > (1 - self.settings.decay) * self.settings.tokens

    def batches(self, over: Callable[[], bool] = lambda: False) -> Iterator[Batch]:
        """The training batches from where the run stands, without end but where workers are waited for and it is
        `over`."""
        p = self.progress
        if self.pools:
            self.pools.begin(p.pool)
        while True:
            made: Iterable[Batch] | None
            if self.pools:
                packed: list[Packed] | None = self.pools.take(p.pool, over)
                made = None if packed is None else map(Batch.unpacked, packed)
            else:
                made = self._pool()
            if made is None:
                return
            for i, batch in enumerate(made):
                if i >= p.batch:
                    yield batch
            p.pool, p.batch = p.pool + 1, 0

    def _pool(self) -> Iterator[Batch]:
        """The batches of the pool where the run stands, made here, of the hardest candidates."""
        p = self.progress
        if p.batch == 0 or not p.picked:  # or begun by workers
            p.pool_progress = min(1.0, p.tokens / self.settings.tokens)
        candidates = pool_candidates(self.tokenizer, self.settings.seed, p.pool, p.pool_progress)
        if len(p.picked) != len(candidates) or p.batch == 0:
            p.picked = self.hardest(candidates)
        rows = [rows[i] for rows, i in zip(candidates, p.picked, strict=True)]
        return pool_batches(rows, self.settings.seed, p.pool, self.settings.batch_tokens)

    def hardest(self, candidates: Sequence[Sequence[Tokens]]) -> list[int]:
        """Which of each example's candidates to learn from: the hardest, or the first for a share of them."""
        draw = torch.Generator().manual_seed(mix64(self.settings.seed ^ ~self.progress.pool) >> 1)
        easy = torch.rand(len(candidates), generator=draw) < EASY_SHARE
        compared = [i for i, rows in enumerate(candidates) if len(rows) > 1 and not easy[i]]
        rows = [row for i in compared for row in candidates[i]]
        found = iter(self.answers.difficulties(rows, self.settings.batch_tokens))
        picked = [0] * len(candidates)
        for i in compared:
            difficulties = [next(found) for _ in candidates[i]]
            picked[i] = difficulties.index(max(difficulties))
        return picked

    def step(self, batch: Batch) -> Tensor:
        """One update; returns the full model's or the thinned model's loss, on the device, which may be yet to compute
        it."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.rate()
        loss, total = self._losses(batch)
        total.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        self.progress.batch += 1
        self.progress.tokens += batch.tokens
        return loss

    def _losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss to report, and the one to train on."""
        draw = torch.Generator().manual_seed(mix64(self.settings.seed ^ self.progress.step) >> 1)
        thinned, exits, layer = torch.rand(3, generator=draw).tolist()
        layers, rows = self.settings.shape.layers, len(batch.inputs)
        drop = exit_after = None
        if not self.settings.plain:
            if thinned < THINNED_SHARE:
                least, most = DROP_AT_LAST
                last = least + (most - least) * float(torch.rand((), generator=draw))
                drop = left_out(torch.linspace(0, last, 2 * layers), rows, draw)
            if exits < EXIT_SHARE:
                first = max(1, layers // 4)
                exit_after = first + int(layer**2 * (layers - first))
        chosen, weights = sampled(batch.weights, draw)
        found = batch.inputs, batch.targets.flatten()[chosen], chosen
        inputs, targets, chosen = (uploaded(t, self.device).long() for t in found)
        weights = uploaded(weights, self.device)
        into = self.pointing.wanted(self.network, inputs) if drop is None else {}
        with self.autocast():
            states = self.network.states(inputs, drop, exit_after, into)
            logits = [self.network.logits(x.flatten(0, 1).index_select(0, chosen)) for x in states]
            loss = total = self.loss(logits[0], targets, weights)
            if exit_after is not None:
                wanted = targets if drop is not None else logits[0].detach().float().softmax(-1)
                total = total + EXIT_WEIGHT * self.loss(logits[1], wanted, weights)
            if into:
                total = total + POINTING_WEIGHT * self.pointing.loss(self.network, batch, into)
        return loss.detach(), total


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engine.embedded.train", description=__doc__)
    parser.add_argument(
        "--run", type=Path, required=True, help="directory of checkpoint and log; resumed if it has any"
    )
    parser.add_argument("--tokens", type=float, default=40e6, help="tokens to read in all (40e6)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop, resumable, after this long")
    parser.add_argument("--batch-tokens", type=int, default=8192, help="tokens of a batch, padding included (8192)")
    parser.add_argument("--rate", type=float, default=5e-3, help="peak learning rate (5e-3)")
    parser.add_argument(
        "--decay", type=float, default=0.3, help="share of the tokens, the last, in which the rate falls (0.3)"
    )
    parser.add_argument("--layers", type=int, default=Shape.layers)
    parser.add_argument("--hidden", type=int, default=Shape.hidden)
    parser.add_argument("--intermediate", type=int, default=Shape.intermediate)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="the twin: no stochastic depth, no exits")
    parser.add_argument(
        "--start", type=Path,
        help="exported checkpoint that a new run goes on from, its tokenizer too; "
        "what --layers and --intermediate ask beyond its own is new and adds nothing at first",
    )  # fmt: skip
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, help="fuse with torch.compile (on a CPU)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (torch's choice)")
    parser.add_argument("--workers", type=int, default=0, help="processes that make batches ahead (0: in this one)")
    parser.add_argument(
        "--evaluate-every", type=int, default=250, help="steps between looks at held-out answers (250; 0: none)"
    )
    parser.add_argument("--save-every", type=float, default=5.0, help="minutes between checkpoints")
    parser.add_argument("--export", type=Path, help="write the Hugging Face checkpoint here when done or stopped")
    parser.add_argument(
        "--average", type=float, default=1.0, metavar="SHARE",
        help="export the mean of --start's weights and the run's own, these with this share (1)",
    )  # fmt: skip
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.threads or (args.workers and args.device != "cpu"):  # what is left to do here is little, and workers many
        torch.set_num_threads(args.threads or 1)
    keep_freed_memory()
    shape = Shape(layers=args.layers, hidden=args.hidden, intermediate=args.intermediate)
    settings = Settings(args.seed, int(args.tokens), args.batch_tokens, args.rate, args.decay, args.plain, shape)
    if args.start and not (args.run / "tokenizer.json").exists():
        args.run.mkdir(parents=True, exist_ok=True)
        shutil.copy(args.start / "tokenizer.json", args.run)
    trainer = Trainer(settings, args.run, torch.device(args.device), args.workers)
    try:
        if trainer.checkpoint.exists():
            trainer.resume()
        elif args.start:
            trainer.start_from(args.start)
        if args.device == "cpu" if args.compile is None else args.compile:
            trainer.compile()
        train(trainer, args.minutes, args.evaluate_every, args.save_every)
    finally:
        trainer.close()
    trainer.save()
    if args.export:
        if args.start and args.average < 1:
            trainer.average_with(args.start, args.average)
        export(trainer.network, trainer.tokenizer, args.export)


def train(trainer: Trainer, minutes: float, evaluate_every: int, save_every: float) -> None:
    """Steps until the tokens are read, the minutes are over or it is interrupted; logs a JSON line every ten steps."""
    p, budget = trainer.progress, trainer.settings.tokens
    began = saved = time.monotonic()
    before = p.seconds
    smooth: Tensor | None = None  # on the device, like the losses that it is made of
    with (
        interruption() as interrupted,
        tqdm(total=budget, initial=p.tokens, unit="tok", unit_scale=True, smoothing=0.05) as bar,
        (trainer.run / "log.jsonl").open("a", encoding="utf-8") as log,
    ):

        def write(**figures: Any) -> None:
            line = {"step": p.step, "tokens": p.tokens, "seconds": round(p.seconds), **figures}
            print(json.dumps(line), file=log, flush=True)

        def over() -> bool:
            return time.monotonic() - began > 60 * minutes or interrupted.is_set()

        for batch in trainer.batches(over):
            if trainer.falling and not trainer.plateau.exists():
                trainer.save(trainer.plateau)  # a longer run can go on from here
            if p.tokens >= budget or over():
                return
            loss = trainer.step(batch)
            p.seconds = before + time.monotonic() - began
            smooth = loss if smooth is None else 0.95 * smooth + 0.05 * loss
            bar.update(batch.tokens)
            if p.step % 10 == 0:
                shown = float(smooth)  # waits for the device, as a look at held-out answers and saving do
                bar.set_postfix(loss=f"{shown:.3f}")
                write(loss=round(shown, 4), rate=trainer.rate(), pointing=trainer.pointing.last)
            if evaluate_every and p.step % evaluate_every == 0:
                write(exact={k: round(v, 3) for k, v in trainer.answers.exactness(trainer.tokenizer, 48).items()})
            if time.monotonic() - saved > 60 * save_every:
                trainer.save()
                saved = time.monotonic()


if __name__ == "__main__":
    begin_anew()
    main()
