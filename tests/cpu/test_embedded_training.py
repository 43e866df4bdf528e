"""How the embedded model is made: tokenizer, template, batches, the network, a run that is interrupted."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.embedded import train as training
from engine.embedded.answers import CHOSEN_STEP
from engine.embedded.batches import (
    PROMPT_SHARE,
    PROMPT_WEIGHT,
    collate,
    grouped,
    padded_length,
    pool_batches,
    pool_candidates,
)
from engine.embedded.bpe import train_tokenizer
from engine.embedded.conversation import SPECIAL_TOKENS, segments, tokenize
from engine.embedded.corpus.base import Example
from engine.embedded.corpus.mixture import CANDIDATES, SKILLS, example, training_examples, weights
from engine.embedded.draws import KEPT_PARTS, PROMPT_SAMPLE_WEIGHT, left_out, sampled
from engine.embedded.export import export
from engine.embedded.muon import Muon, orthogonalised
from engine.embedded.network import Network, Shape, long_attention, short_attention
from engine.embedded.train import Settings, Trainer

SHAPE = Shape(vocabulary=640, layers=3, hidden=64, intermediate=96, heads=4, kv_heads=2, head_dim=16, positions=512)
TINY = Settings(seed=3, tokens=4000, batch_tokens=600, rate=5e-3, decay=0.5, plain=False, shape=SHAPE)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    made = training_examples(1, 0, 300, 0.5)
    return train_tokenizer((text for e in made for text, _ in segments(e.messages, e.tools)), SHAPE.vocabulary)


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_comes_back_and_digits_stay_single(tokenizer: Tokenizer, text: str) -> None:
    encoding = tokenizer.encode(text)
    if not any(token in text for token in SPECIAL_TOKENS):
        assert tokenizer.decode(encoding.ids) == text
    assert all(sum(c.isascii() and c.isdigit() for c in token) <= 1 for token in encoding.tokens)


def test_special_tokens_come_first_and_calls_are_one_token_each(tokenizer: Tokenizer) -> None:
    assert [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS] == list(range(len(SPECIAL_TOKENS)))
    ids = tokenizer.encode("<tool_call>\n{}\n</tool_call>").ids
    assert tokenizer.decode(ids) == "<tool_call>\n{}\n</tool_call>"
    assert tokenizer.id_to_token(ids[0]) == "<tool_call>"


@pytest.mark.parametrize("name", [name for name in SKILLS if not name.startswith("documents_")])
def test_training_sees_what_the_template_renders(tokenizer: Tokenizer, tmp_path: Path, name: str) -> None:
    """Text and ids of whole conversations, tools and tool results included; the assistant's part alone is learned."""
    export(Network(SHAPE), tokenizer, tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for seed in range(12):
        made = example(name, seed, "train")
        text = theirs.apply_chat_template(made.messages, tools=made.tools or None, tokenize=False)
        assert "".join(text for text, _ in segments(made.messages, made.tools)) == text
        tokens = tokenize(tokenizer, made)
        assert tokens.ids == theirs.encode(text, add_special_tokens=False)
        said = "".join(f"{m['content']}<|end|>" for m in made.messages if m["role"] == "assistant")
        learned = [i for i, own in zip(tokens.ids, tokens.learned, strict=True) if own]
        assert tokenizer.decode(learned, skip_special_tokens=False) == said


def test_held_out_examples_are_never_trained_on() -> None:
    for name in SKILLS:
        if name.startswith("documents_"):
            continue
        seen = {e.key for e in (example(name, seed, "train") for seed in range(300)) if e.key}
        kept = {e.key for e in (example(name, seed, "held_out") for seed in range(300)) if e.key}
        assert not seen & kept
    early, late = weights(0.0), weights(1.0)
    assert early["documents_long"] == 0 < late["documents_long"]
    assert all(share > 0 for share in late.values())


def test_batches_hold_every_token_once(tokenizer: Tokenizer) -> None:
    rows = [tokenize(tokenizer, e) for e in training_examples(1, 0, 64, 0.2)]
    groups = grouped(rows, 2000)
    assert sorted(len(r.ids) for g in groups for r in g) == sorted(len(r.ids) for r in rows)
    for group in groups:
        batch = collate(group)
        assert len(group) == 1 or batch.inputs.numel() <= 2000
        assert batch.tokens == sum(len(r.ids) - 1 for r in group)
        for i, row in enumerate(group):
            n = len(row.ids) - 1
            assert [*batch.inputs[i, :n].tolist(), row.ids[-1]] == row.ids
            assert batch.targets[i, :n].tolist() == row.ids[1:]
            assert not batch.weights[i, n:].any()
            learned = torch.tensor(row.learned[1:])
            assert (batch.weights[i, :n][learned] == 1).all()
            prompt = batch.weights[i, :n][~learned]
            assert prompt.max() <= PROMPT_WEIGHT
            assert prompt.sum() <= PROMPT_SHARE * learned.sum() + 1e-4
    again = [b.inputs for b in pool_batches(rows, 5, 2, 4000)]
    assert all(torch.equal(a, b.inputs) for a, b in zip(again, pool_batches(rows, 5, 2, 4000), strict=True))


def test_the_loss_is_sampled_without_bias() -> None:
    batch_weights = torch.tensor([[1.0, 0.1, 0.05, 0.0]]).expand(20000, 4)
    chosen, weighed = sampled(batch_weights, torch.Generator().manual_seed(0))
    assert len(chosen) % CHOSEN_STEP == 0
    assert weighed[weighed > 0].min() >= PROMPT_SAMPLE_WEIGHT
    total = torch.zeros(80000).index_add(0, chosen, weighed).view(20000, 4)
    torch.testing.assert_close(total.mean(0), batch_weights[0], atol=0.01, rtol=0)


@pytest.mark.parametrize("rows", [1, 3, 10, 64])
def test_sublayers_are_left_out_at_their_rates_for_few_numbers_of_rows(rows: int) -> None:
    rates, draw = torch.tensor([0.0, 0.2, 0.5, 1.0]), torch.Generator().manual_seed(0)
    drawn = torch.stack([left_out(rates, rows, draw) for _ in range(4000)])
    torch.testing.assert_close(drawn.float().mean((0, 2)), rates, atol=0.03, rtol=0)
    torch.testing.assert_close(drawn.float().mean(0), rates[:, None].expand(-1, rows), atol=0.05, rtol=0)
    assert len(drawn.sum(-1).unique()) <= KEPT_PARTS + 1


def test_rows_are_padded_to_few_lengths() -> None:
    lengths = {padded_length(n) for n in range(1, 8193)}
    assert all(n <= padded_length(n) <= 1.25 * n for n in range(64, 8193))
    assert len(lengths) < 90


@torch.no_grad()
def test_both_attentions_are_the_same() -> None:
    g = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(3, 21, heads, 16, generator=g) for heads in (4, 2, 2))
    torch.testing.assert_close(short_attention(q, k, v), long_attention(q, k, v))


@torch.no_grad()
def test_what_is_exported_is_what_was_trained(tokenizer: Tokenizer, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = Network(SHAPE)
    for parameter in network.parameters():
        parameter.copy_(torch.randn_like(parameter).bfloat16() * 0.2 + (parameter.dim() == 1))
    export(network, tokenizer, tmp_path)
    reference = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert type(reference).__name__ == "LlamaForCausalLM"
    tokens = torch.randint(0, SHAPE.vocabulary, (2, 33))
    want = reference(tokens).logits
    (x,) = network.states(tokens)
    assert (network.logits(x) - want).abs().max() < 1e-4 * want.abs().max()


@torch.no_grad()
def test_rows_leave_out_their_own_sublayers_and_exits_are_on_the_way() -> None:
    torch.manual_seed(0)
    network = Network(SHAPE)
    tokens = torch.randint(0, SHAPE.vocabulary, (3, 9))
    drop = torch.zeros(2 * SHAPE.layers, 3, dtype=torch.bool)
    drop[2:, 1] = True  # row 1 leaves after the first layer
    drop[3, 2] = True
    last, early = network.states(tokens, drop, exit_after=1)
    whole, exited = network.states(tokens, exit_after=1)
    torch.testing.assert_close(last[0], whole[0])
    torch.testing.assert_close(last[1], exited[1])
    torch.testing.assert_close(early, exited)
    assert not torch.allclose(last[2], whole[2])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "TOKENIZER_EXAMPLES", 300)
    monkeypatch.setattr("engine.embedded.batches.POOL", 24)


def run(directory: Path, minutes: float = 60.0, plain: bool = False) -> Trainer:
    trainer = Trainer(TINY if not plain else Settings(**{**vars(TINY), "plain": True}), directory, torch.device("cpu"))
    if trainer.checkpoint.exists():
        trainer.resume()
    training.train(trainer, minutes, evaluate_every=1000, save_every=60.0)
    trainer.save()
    return trainer


@pytest.mark.usefixtures("quick")
def test_an_interrupted_run_ends_like_one_that_was_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(tmp_path / "whole")
    assert whole.progress.tokens >= TINY.tokens
    steps = 0
    step = Trainer.step

    def some(self: Trainer, batch: object) -> float:
        nonlocal steps
        steps += 1
        if steps == 5:
            raise KeyboardInterrupt
        return step(self, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "step", some)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts")
    monkeypatch.setattr(Trainer, "step", step)
    parts = run(tmp_path / "parts")
    assert parts.progress.step == whole.progress.step
    for name, value in whole.network.state_dict().items():
        torch.testing.assert_close(parts.network.state_dict()[name], value)
    lines = [json.loads(line) for line in (tmp_path / "parts" / "log.jsonl").read_text().splitlines()]
    assert all(line["loss"] > 0 for line in lines if "loss" in line)


@pytest.mark.usefixtures("quick")
def test_it_learns_and_the_twin_is_not_prepared(tmp_path: Path) -> None:
    trainer = run(tmp_path / "twin", plain=True)
    trainer.progress.tokens, trainer.progress.step = 0, 1000  # the rate is at its height
    batch = next(trainer.batches())
    before = trainer.step(batch)
    for _ in range(30):
        after = trainer.step(batch)
    assert after < before - 0.5
    prepared = Trainer(TINY, tmp_path / "prepared", torch.device("cpu"))
    with_exit = {True: 0, False: 0}
    for made, plain in ((trainer, True), (prepared, False)):
        for made.progress.step in range(24):
            loss, total = made._losses(batch)
            with_exit[plain] += not torch.equal(loss, total.detach())
    assert with_exit[True] == 0
    assert 1 <= with_exit[False] <= 16


@pytest.mark.usefixtures("quick")
def test_an_exit_learns_to_say_what_the_whole_network_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("THINNED_SHARE", 0.0), ("EXIT_SHARE", 1.0), ("POINTING_WEIGHT", 0.0)):
        monkeypatch.setattr(training, name, value)
    trainer = run(tmp_path)
    batch = next(trainer.batches())
    batch = replace(batch, weights=batch.weights.eq(1.0).float())  # all that is learned, and nothing else
    places = batch.weights.flatten().nonzero().squeeze(1)
    with torch.no_grad(), trainer.autocast():
        loss, total = trainer._losses(batch)
        differences = []
        for depth in range(1, TINY.shape.layers + 1):
            last, exited = (
                trainer.network.logits(x.flatten(0, 1)[places]).float()
                for x in trainer.network.states(batch.inputs, None, depth)
            )
            wanted = -(last.softmax(-1) * exited.log_softmax(-1)).sum(-1).mean()
            differences.append(abs(float((total - loss) / training.EXIT_WEIGHT - wanted)))
    assert min(differences) < 0.01


@pytest.mark.usefixtures("quick")
def test_it_learns_from_the_hardest_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "EASY_SHARE", 0.0)
    trainer = run(tmp_path)  # has read a little: candidates are not all alike
    candidates = pool_candidates(trainer.tokenizer, 8, 2, 0.5)
    picked = trainer.hardest(candidates)
    assert {len(rows) for rows in candidates} == {1, *CANDIDATES.values()}
    assert len(set(picked)) > 1
    for rows, choice in zip(candidates, picked, strict=True):
        surprises = []
        for row in rows:
            batch = collate([row])
            with torch.no_grad(), trainer.autocast():
                logits = trainer.network.logits(trainer.network.states(batch.inputs)[0]).float()
            each = torch.nn.functional.cross_entropy(logits[0], batch.targets[0], reduction="none")
            surprises.append(float(each[batch.weights[0] == 1].sum()) / len(row.ids))
        assert surprises[choice] >= max(surprises) - 0.02
    monkeypatch.setattr(training, "EASY_SHARE", 1.0)
    assert not any(trainer.hardest(candidates))


@pytest.mark.usefixtures("quick")
def test_ctrl_c_ends_a_run_between_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Trainer.step

    def interrupted(self: Trainer, batch: object) -> float:
        if self.progress.step == 3:
            signal.raise_signal(signal.SIGINT)
        return step(self, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "step", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    assert run(tmp_path).progress.step == 4
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize(("words", "share"), [(2700, 0.95), (40, 0.95)])
@torch.inference_mode()
def test_an_untrained_network_copies(words: int, share: float) -> None:
    """The second time a random text comes, it knows how it goes on, also where each word comes more than once."""
    torch.manual_seed(1)
    network = Network(Shape())
    text = torch.randint(300, 300 + words, (16, 60))
    guesses = network.logits(network.states(torch.cat([text, text], 1))[0]).argmax(-1)
    assert (guesses[:, 64:-1] == text[:, 5:]).float().mean() > share
    assert (guesses[:, :59] == text[:, 1:]).float().mean() < 0.1


@torch.inference_mode()
def test_a_run_can_go_on_with_more_layers_and_wider_ones_which_change_nothing_at_first(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    base = Network(SHAPE)
    export(base, tokenizer, tmp_path / "base")
    (tmp_path / "run").mkdir()
    tokenizer.save(str(tmp_path / "run" / "tokenizer.json"))
    larger = replace(TINY, shape=replace(SHAPE, layers=SHAPE.layers + 2, intermediate=SHAPE.intermediate + 16))
    trainer = Trainer(larger, tmp_path / "run", torch.device("cpu"))
    trainer.start_from(tmp_path / "base")
    assert len(trainer.network.mlp) == SHAPE.layers + 2
    base.read(load_file(tmp_path / "base" / "model.safetensors"))
    tokens = torch.randint(0, SHAPE.vocabulary, (2, 30))
    torch.testing.assert_close(trainer.network.states(tokens)[0], base.states(tokens)[0])


def test_a_run_can_go_on_from_an_exported_checkpoint(tokenizer: Tokenizer, tmp_path: Path) -> None:
    torch.manual_seed(1)
    first, second = Network(SHAPE), Network(SHAPE)
    export(first, tokenizer, tmp_path)
    second.read(load_file(tmp_path / "model.safetensors"))
    for name, value in second.state_dict().items():
        assert torch.equal(value, first.state_dict()[name].bfloat16().float())
    with pytest.raises(ValueError, match="shape"):
        Network(replace(SHAPE, layers=2)).read(load_file(tmp_path / "model.safetensors"))


@pytest.mark.usefixtures("quick")
def test_a_run_is_not_resumed_as_one_of_another_kind(tmp_path: Path) -> None:
    run(tmp_path, plain=True)
    longer = Trainer(replace(TINY, plain=True, tokens=9000, rate=1e-3), tmp_path, torch.device("cpu"))
    longer.resume()
    with pytest.raises(SystemExit, match="plain True, not False"):
        Trainer(TINY, tmp_path, torch.device("cpu")).resume()


def test_what_is_exported_may_be_the_mean_of_before_and_after(tokenizer: Tokenizer, tmp_path: Path) -> None:
    torch.manual_seed(1)
    export(Network(SHAPE), tokenizer, tmp_path / "before")
    (tmp_path / "run").mkdir()
    tokenizer.save(str(tmp_path / "run" / "tokenizer.json"))
    trainer = Trainer(TINY, tmp_path / "run", torch.device("cpu"))
    after = {name: value.clone() for name, value in trainer.network.state_dict().items()}
    before = Network(SHAPE)
    before.read(load_file(tmp_path / "before" / "model.safetensors"))
    trainer.average_with(tmp_path / "before", 0.25)
    for name, value in trainer.network.state_dict().items():
        torch.testing.assert_close(value, 0.25 * after[name] + 0.75 * before.state_dict()[name])


def test_the_rate_warms_up_stays_and_falls(tmp_path: Path, quick: None) -> None:
    trainer = Trainer(TINY, tmp_path, torch.device("cpu"))
    seen = []
    for share in (0.0, 0.2, 0.45, 0.75, 1.0):
        trainer.progress.tokens, trainer.progress.step = int(share * TINY.tokens), int(share * 1000)
        seen.append(trainer.rate() / TINY.rate)
    assert seen == pytest.approx([1 / training.WARM_UP_STEPS, 1.0, 1.0, 0.5, 0.0], abs=1e-6)
    assert trainer.falling


def test_examples_are_the_seeds() -> None:
    def texts(seed: int) -> list[Example]:
        return list(training_examples(seed, 10, 30, 0.7))

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float32])
def test_muon_moves_matrices_as_torch_does_one_by_one(precision: torch.dtype) -> None:
    draw = torch.Generator().manual_seed(1)
    shapes = [(24, 48), (48, 24), (32, 32), (24, 48)]
    first = [torch.randn(shape, generator=draw) * 0.02 for shape in shapes]
    ours, theirs = ([torch.nn.Parameter(p.clone()) for p in first] for _ in range(2))
    untouched = torch.nn.Parameter(torch.ones(4, 4))
    optimizers = (
        Muon([*ours, untouched], 1e-2, precision=precision),
        torch.optim.Muon(theirs, 1e-2, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
    )
    for _ in range(4):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn(a.shape, generator=draw)
            b.grad = a.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for a, b, start in zip(ours, theirs, first, strict=True):
        moved = (b - start).norm()
        assert (a - b).norm() < 0.03 * moved
    assert torch.equal(untouched, torch.ones(4, 4))


def test_orthogonalised_matrices_keep_directions_and_have_singular_values_of_about_one() -> None:
    draw = torch.Generator().manual_seed(2)
    matrices = torch.randn(3, 40, 24, generator=draw) * torch.tensor([1e-3, 1.0, 1e3])[:, None, None]
    made = orthogonalised(matrices, torch.float32)
    for before, after in zip(matrices, made, strict=True):
        left, _, right = torch.linalg.svd(before, full_matrices=False)
        turned = left.T @ after @ right.T
        assert ((turned.diagonal() > 0.6) & (turned.diagonal() < 1.3)).all()
        assert (turned - torch.diag(turned.diagonal())).abs().max() < 0.02
    with pytest.raises(ValueError, match="matrices"):
        Muon([torch.nn.Parameter(torch.ones(3))], 1e-2)
