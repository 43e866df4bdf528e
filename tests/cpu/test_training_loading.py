"""What makes a GPU's batches ready beside it, and a step that never waits for it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from engine.build import EMBEDDED
from engine.embedded import network as network_module
from engine.embedded import train as training
from engine.embedded.batches import Batch, drawn_example, pool_batches, pool_drawn
from engine.embedded.conversation import tokenize
from engine.embedded.corpus.mixture import training_candidates, training_examples
from engine.embedded.loading import SPARE, Pools
from engine.embedded.matching import compiled, matches, matches_in_loops, matches_in_numpy
from engine.embedded.muon import Muon
from engine.embedded.network import Shape
from engine.embedded.pointing import COPYING, Pointing
from engine.embedded.sources import Sources
from engine.embedded.train import Settings, Trainer

TOKENIZER = Tokenizer.from_file(str(EMBEDDED / "tokenizer.json"))
SHAPE = Shape(TOKENIZER.get_vocab_size(), 10, hidden=32, intermediate=32, heads=4, kv_heads=2, head_dim=16)
TINY = Settings(seed=3, tokens=12_000, batch_tokens=2000, rate=5e-3, decay=0.5, plain=False, shape=SHAPE)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Small pools, and a directory of a run with a tokenizer."""
    for name, value in (("POOL", 24), ("PROBED", 24)):
        monkeypatch.setattr(f"engine.embedded.batches.{name}", value)
    TOKENIZER.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def batches(count: int, batch_tokens: int = 4000) -> list[Batch]:
    rows = [tokenize(TOKENIZER, e) for e in training_examples(5, 0, count, 0.5)]
    return [b for b in pool_batches(rows, 1, 0, batch_tokens) if b.inputs.shape[1] < 1500]


@pytest.mark.parametrize("jitted", [False, True])
def test_both_ways_find_the_same_sources(jitted: bool) -> None:
    if jitted:
        pytest.importorskip("numba")
    find = compiled() if jitted else matches_in_loops
    assert find
    spelling = Sources(TOKENIZER)._spelling
    for batch in batches(200 if jitted else 24):
        ids, learned = batch.targets.numpy(), batch.weights.numpy() >= 1.0
        for ours, theirs in zip(find(ids, learned, spelling), matches_in_numpy(ids, learned, spelling), strict=True):
            assert np.array_equal(ours, theirs)


def test_without_numba_it_is_done_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    compiled.cache_clear()
    try:
        assert compiled() is None
        ids = np.array([TOKENIZER.encode("Kosa is Kosa").ids])
        learned = np.arange(ids.shape[1])[None] == ids.shape[1] - 1
        at, place = matches(ids, learned, Sources(TOKENIZER)._spelling)
        assert at.tolist() == [ids.shape[1] - 1]
        assert len(place) == 1
    finally:
        compiled.cache_clear()


def test_what_is_drawn_is_one_of_the_candidates() -> None:
    made = list(training_candidates(1, 0, 60, 0.3))
    drawn = [drawn_example(1, i, 0.3) for i in range(60)]
    places = [candidates.index(e) for candidates, e in zip(made, drawn, strict=True)]
    assert {1, 2} <= set(places)


def test_a_batch_arrives_as_it_was_sent() -> None:
    batch = Pointing(TOKENIZER).with_told(batches(24)[0])
    arrived = Batch.unpacked(batch.packed())
    assert arrived.told
    assert batch.told
    assert arrived.told.counts == batch.told.counts
    assert torch.equal(arrived.told.indices, batch.told.indices)
    assert arrived.tokens == batch.tokens
    for name in ("inputs", "targets", "weights"):
        assert torch.equal(getattr(arrived, name).to(getattr(batch, name).dtype), getattr(batch, name))


@pytest.mark.parametrize("workers", [1, 3])
def test_pools_come_in_order_from_where_they_begin(workers: int) -> None:
    pools = Pools(lambda number: [number, os.getpid()], workers)
    try:
        pools.begin(7)
        taken = [pools.take(number, lambda: False) for number in range(7, 27)]
        assert [number for number, _ in taken] == list(range(7, 27))
        assert os.getpid() not in {pid for _, pid in taken}
    finally:
        pools.close()


def test_workers_stop_when_they_are_far_enough_ahead() -> None:
    pools = Pools(lambda number: number, 2)
    try:
        pools.begin(0)
        for number in range(5):
            pools.take(number, lambda: False)
        assert pools._next.value <= 5 + 2 + SPARE
    finally:
        pools.close()


def test_a_worker_that_fails_or_dies_ends_the_run() -> None:
    def fail(number: int) -> None:
        raise ValueError("no such pool")

    def die(number: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    for make, message in ((fail, "no such pool"), (die, "died, exit code -9")):
        pools = Pools(make, 2)
        try:
            pools.begin(0)
            with pytest.raises(RuntimeError, match=message):
                pools.take(0, lambda: False)
        finally:
            pools.close()


def test_a_pool_is_not_waited_for_when_the_run_is_over_and_workers_ignore_ctrl_c() -> None:
    pools = Pools(lambda number: time.sleep(3600) if number else os.getpid(), 1)
    try:
        pools.begin(0)
        worker = pools.take(0, lambda: False)
        os.kill(worker, signal.SIGINT)
        looks = iter([False, False, True])
        assert pools.take(1, lambda: next(looks)) is None
    finally:
        pools.close()
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def run(directory: Path, workers: int, stop_after: int | None = None) -> Trainer:
    trainer = Trainer(TINY, directory, torch.device("cpu"), workers)
    try:
        if trainer.checkpoint.exists():
            trainer.resume()
        if stop_after:
            for batch in trainer.batches():
                trainer.step(batch)
                if trainer.progress.step == stop_after:
                    break
        else:
            training.train(trainer, 60.0, evaluate_every=0, save_every=60.0)
    finally:
        trainer.close()
    trainer.save()
    return trainer


def test_a_run_is_its_seeds_whatever_the_number_of_workers_and_goes_on_where_it_was(few: Path) -> None:
    directories = [few / name for name in ("one", "three")]
    for directory in directories:
        directory.mkdir()
        TOKENIZER.save(str(directory / "tokenizer.json"))
    whole = run(directories[0], 1)
    assert whole.progress.tokens >= TINY.tokens
    assert whole.progress.pool > 1
    run(directories[1], 3, stop_after=3)
    parts = run(directories[1], 3)
    assert parts.progress.step == whole.progress.step
    for name, value in whole.network.state_dict().items():
        torch.testing.assert_close(parts.network.state_dict()[name], value)


def test_workers_make_what_the_seed_draws_with_all_that_is_told(few: Path) -> None:
    trainer = Trainer(TINY, few, torch.device("cpu"), 1)
    try:
        first = next(trainer.batches())
    finally:
        trainer.close()
    rows = pool_drawn(TOKENIZER, TINY.seed, 0, 0.0)
    wanted = next(pool_batches(rows, TINY.seed, 0, TINY.batch_tokens))
    assert torch.equal(first.inputs.long(), wanted.inputs)
    assert first.told
    told = trainer.pointing.told(wanted)
    assert told
    assert torch.equal(first.told.indices, told.indices)


def test_a_step_never_asks_the_device_for_numbers(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device whose tensors have shapes and no values: whatever would wait for a GPU raises there."""
    trainer = Trainer(TINY, few, torch.device("cpu"))
    ready = [trainer.pointing.with_told(batch) for batch in batches(200, 2000)]
    assert all(sum(asked for asked, _ in kind) for kind in zip(*(b.told.counts for b in ready if b.told), strict=True))
    trainer.device = torch.device("meta")
    trainer.network.to("meta")
    hidden = list(trainer.network.attention.parameters())
    hidden, rest = [p for p in hidden if p.dim() == 2], [trainer.network.embedding.weight, trainer.network.norm]
    trainer.optimizers = [Muon(hidden, 1e-3), torch.optim.AdamW(rest, 1e-3)]
    monkeypatch.setattr(Trainer, "autocast", lambda self: nullcontext())
    kept, drawn = network_module.kept_rows, []
    monkeypatch.setattr(network_module, "kept_rows", lambda *given: drawn.append(given) or kept(*given))
    for batch in ready * 3:
        assert trainer.step(batch).device.type == "meta"
    assert len(trainer.pointing._last) == len(COPYING) * 2 + 2
    assert 0 < len(drawn) < 3 * len(ready)
    with pytest.raises((RuntimeError, NotImplementedError)):
        float(trainer.step(ready[0]))
