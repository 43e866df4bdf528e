"""Packed batches and the step that a GPU records: the same conversations, the same network, the same losses."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engine.build import EMBEDDED
from engine.embedded import batches as batches_module
from engine.embedded import recorded, train_gpu
from engine.embedded.batches import collate
from engine.embedded.conversation import SPECIAL_TOKENS, Tokens, tokenize
from engine.embedded.corpus.mixture import example, training_examples
from engine.embedded.export import export, imported
from engine.embedded.network import Network, Shape
from engine.embedded.packing import (
    ASKED,
    GARBLED_SKILLS,
    KINDS,
    LENGTHS,
    PAIRS,
    Conversation,
    Layout,
    Packer,
    garbled,
    packed_groups,
)
from engine.embedded.pointing import BEGINNING, COPYING, FINDING, Pointing
from engine.embedded.recorded import Learner, PackedNetwork
from engine.embedded.sources import Quotes, Sources

WIDTH = 512
TOKENIZER = Tokenizer.from_file(str(EMBEDDED / "tokenizer.json"))
SHAPE = Shape(layers=10, hidden=32, intermediate=48, heads=4, kv_heads=2, head_dim=16)


@pytest.fixture(scope="module")
def practised() -> list[Tokens]:
    documents = (example("documents", seed, "train") for seed in range(16))  # by whose lines heads are told
    made = (tokenize(TOKENIZER, e) for e in (*training_examples(5, 0, 60, 1.0), *documents))
    return [row for row in made if len(row.ids) <= WIDTH]


@pytest.fixture(scope="module")
def rows(practised: list[Tokens]) -> list[Tokens]:
    """Without their skills, so that none is garbled."""
    return [Tokens(row.ids, row.learned) for row in practised]


@pytest.fixture(scope="module")
def made(rows: list[Tokens]) -> list[tuple[list[Conversation], dict[str, torch.Tensor]]]:
    """What some batches were made of, and their parts."""
    layout = Layout(WIDTH)
    packer = Packer(layout, Sources(TOKENIZER), Quotes(TOKENIZER))
    arrays = [torch.from_numpy(array) for _, array in packer.batches(rows, 3)]
    groups = packed_groups(rows, WIDTH, layout.segments, 3)
    assert len(arrays) > 3
    return [(group, layout.views(array)) for group, array in zip(groups, arrays, strict=True)]


@settings(max_examples=50, deadline=None)
@given(lengths=st.lists(st.integers(2, 9000), max_size=60), seed=st.integers(0, 99))
def test_every_conversation_is_packed_once_but_for_those_of_the_last_batch(lengths: list[int], seed: int) -> None:
    width, segments = 10_000, 40
    rows = [Tokens([i] * n, [False] + [True] * (n - 1)) for i, n in enumerate(lengths)]
    groups = packed_groups(rows, width, segments, seed)
    packed = [int(row.ids[0]) for group in groups for row in group]
    assert len(packed) == len(set(packed))
    for group in groups:
        assert sum(map(len, group)) <= width
        assert len(group) < segments
        assert all(len(row) == min(lengths[row.ids[0]] - 1, LENGTHS[-1]) for row in group)
    assert sum(min(n - 1, LENGTHS[-1]) for i, n in enumerate(lengths) if i not in packed) <= width


def test_a_batch_says_what_its_conversations_say(
    made: list[tuple[list[Conversation], dict[str, torch.Tensor]]],
) -> None:
    for group, part in made:
        bounds, begin = part["bounds"].tolist(), 0
        for number, row in enumerate(group):
            here = slice(begin, begin + len(row))
            assert bounds[number : number + 2] == [begin, begin + len(row)] or number == len(group) - 1
            assert part["ids"][here].tolist() == row.ids[:-1].tolist()
            assert part["targets"][here].tolist() == row.ids[1:].tolist()
            assert part["position"][here].tolist() == list(range(len(row)))
            assert set(part["segment"][here].tolist()) == {number}
            begin += len(row)
        assert bounds[len(group)] == begin
        assert set(bounds[len(group) + 1 :]) == {WIDTH}
        weights = torch.from_numpy(np.concatenate([row.weights for row in group]))
        counted = part["weight"] > 0
        places = part["place"][counted].long()
        assert len(set(places.tolist())) == len(places)
        assert int(places.max()) < begin, "nothing is learned of what fills the rest"
        learned = (weights == 1.0).nonzero().flatten()
        assert set(learned.tolist()) <= set(places.tolist()) or len(places) == len(part["place"])
        assert torch.equal(part["weight"][counted], weights[places].clamp(min=0.5))


def test_some_prompts_are_garbled_but_not_what_is_copied(practised: list[Tokens]) -> None:
    draw, sources, changed = np.random.default_rng(1), Sources(TOKENIZER), 0
    for row in map(Conversation.of, practised):
        copied = sources(row.ids[None], row.learned[None]).place
        at = np.flatnonzero(garbled(row, copied, np.array([len(SPECIAL_TOKENS)]), draw) != row.ids)
        assert row.skill in GARBLED_SKILLS or not len(at)
        assert not row.learned[at].any()
        assert (row.ids[at] >= len(SPECIAL_TOKENS)).all()
        assert not set(at) & set(copied)
        changed += len(at)
    assert changed


def test_weights_are_those_of_batches_of_rows(rows: list[Tokens]) -> None:
    for row in rows:
        assert np.array_equal(Conversation.of(row).weights, collate([row]).weights[0, : len(row.ids) - 1].numpy())


def test_what_heads_are_told_is_what_they_are_told_row_by_row(
    made: list[tuple[list[Conversation], dict[str, torch.Tensor]]],
) -> None:
    pointing, some = Pointing(TOKENIZER), dict.fromkeys(KINDS, 0)
    for group, part in made:
        wanted: dict[str, set[tuple[int, int]]] = {kind: set() for kind in KINDS}
        begin = 0
        for row in group:
            told = pointing.told(collate([Tokens(row.ids.tolist(), row.learned.tolist())]))
            assert told is not None
            length = batches_module.padded_length(len(row))
            for kind, (asked, places) in zip(KINDS, told.kinds(told.indices), strict=True):
                pairs = zip(asked[places // length].tolist(), (places % length).tolist(), strict=True)
                wanted[kind] |= {(begin + at, begin + place) for at, place in pairs}
            begin += len(row)
        for kind in KINDS:
            row_of, place, shares = (part[f"{kind}_{name}"] for name in ("row", "place", "shares"))
            real = shares > 0
            asked = part[f"{kind}_asked"][row_of[real].long()].tolist()
            found = list(zip(asked, place[real].tolist(), strict=True))
            assert len(found) <= PAIRS[kind]
            assert int(part[f"{kind}_counts"].sum()) == len(set(asked)) <= ASKED[kind]
            complete = len(set(asked)) == len({at for at, _ in wanted[kind]})
            assert set(found) == wanted[kind] if complete else set(found) < wanted[kind]
            each = torch.zeros(ASKED[kind]).index_add(0, row_of[real].long(), shares[real])
            torch.testing.assert_close(each, part[f"{kind}_counts"])
            some[kind] += len(found)
    assert all(some.values()), some


def test_a_conversation_that_is_cut_off_in_a_quote_can_be_told() -> None:
    text = "<|user|>Ina, room 3\nBen, room 9\nWhose is 9?<|end|><|assistant|>The line with room 9:\n>"
    encoding = TOKENIZER.encode(text, add_special_tokens=False)
    row = Tokens(encoding.ids, [begin >= text.index("The line") for begin, _ in encoding.offsets])
    packer = Packer(Layout(256), Sources(TOKENIZER), Quotes(TOKENIZER))
    assert len(list(packer.batches([row] * 20, 1))) > 0


@torch.inference_mode()
def test_packed_conversations_are_seen_each_by_itself(
    made: list[tuple[list[Conversation], dict[str, torch.Tensor]]],
) -> None:
    torch.manual_seed(1)
    network = Network(SHAPE)
    packed = PackedNetwork(network)
    for group, part in made[:3]:
        states = packed.states(part, LENGTHS[1], packed.turn(part))
        assert len(states) == SHAPE.layers + 1
        begin = 0
        for row in group:
            last, early = network.states(torch.from_numpy(row.ids[None, :-1]), exit_after=4)
            torch.testing.assert_close(states[-1][begin : begin + len(row)], last[0], rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(states[4][begin : begin + len(row)], early[0], rtol=1e-4, atol=1e-4)
            begin += len(row)


@torch.inference_mode()
def test_what_is_left_out_is_left_out(made: list[tuple[list[Conversation], dict[str, torch.Tensor]]]) -> None:
    torch.manual_seed(1)
    network = Network(SHAPE)
    packed = PackedNetwork(network)
    group, part = made[0]
    drop = torch.rand(2 * SHAPE.layers, len(group) + 1) < 0.4
    keep = (~drop).float().index_select(1, part["segment"])
    states = packed.states(part, LENGTHS[1], packed.turn(part), keep)
    begin = 0
    for number, row in enumerate(group):
        (last,) = network.states(torch.from_numpy(row.ids[None, :-1]), drop[:, number : number + 1])
        torch.testing.assert_close(states[-1][begin : begin + len(row)], last[0], rtol=1e-4, atol=1e-4)
        begin += len(row)


def test_answers_of_harder_conversations_weigh_more() -> None:
    segment = torch.tensor([0, 0, 1, 1, 2, 2, 3])
    each = torch.tensor([0.1, 0.1, 0.4, 0.2, 0.9, 0.9, 0.9])
    weight = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 1.0])
    counted = torch.tensor([True, True, True, False, False])
    made = recorded.by_hardness(each, weight, segment, counted)
    assert torch.equal(made[5:], weight[5:]), "prompts and what is not counted weigh what they did"
    assert made[0] == made[1] < made[2] == made[3] < made[4]
    torch.testing.assert_close(made[:5].sum(), weight[:5].sum())
    least, most = recorded.HARDNESS
    assert made[4] / made[0] <= most / least
    assert torch.equal(recorded.by_hardness(each, weight, segment, torch.zeros(5, dtype=torch.bool)), weight)


def test_losses_are_those_of_rows(
    made: list[tuple[list[Conversation], dict[str, torch.Tensor]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words' loss at the places that were drawn; the heads', of one conversation, as `Pointing` has it."""
    monkeypatch.setattr(recorded, "POINTING_WEIGHT", 1.0)
    torch.manual_seed(1)
    network = Network(SHAPE)
    group, part = made[0]
    loss, _ = PackedNetwork(network).losses(part, LENGTHS[1], prepared=False)
    states = torch.cat([network.states(torch.from_numpy(row.ids[None, :-1]))[0][0] for row in group])
    states = F.pad(states, (0, 0, 0, WIDTH - len(states)))
    each = F.cross_entropy(network.logits(states), part["targets"].long(), reduction="none")
    wanted = (each[part["place"].long()] * part["weight"]).sum() / part["weight"].sum()
    torch.testing.assert_close(loss, wanted.detach())

    row = next(row for group, _ in made for row in group if b">" in TOKENIZER.decode(row.ids).encode())
    layout = Layout(1024)
    alone = Packer(layout, Sources(TOKENIZER), Quotes(TOKENIZER))._array([row], np.random.default_rng(1))
    part = layout.views(torch.from_numpy(alone))
    loss, total = PackedNetwork(network).losses(part, LENGTHS[1], prepared=False)
    pointing, batch = Pointing(TOKENIZER), collate([Tokens(row.ids.tolist(), row.learned.tolist())])
    into = pointing.wanted(network, batch.inputs)
    network.states(batch.inputs, into=into)
    told = {kind: int(part[f"{kind}_counts"].sum()) for kind in KINDS}
    assert all(told[kind] < ASKED[kind] for kind in KINDS), "nobody was left out"
    torch.testing.assert_close(total - loss, pointing.loss(network, batch, into), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("prepared", [True, False])
def test_a_learner_learns(
    made: list[tuple[list[Conversation], dict[str, torch.Tensor]]], prepared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "DROP_AT_LAST", (0.2, 0.3))
    torch.manual_seed(1)
    learner = Learner(Network(SHAPE), made[0][1], prepared=prepared)
    learner.rate.fill_(5e-3)
    losses = []
    for _ in range(10):
        learner.step(1)
        losses.append(float(learner.loss))
    assert losses[-1] < 0.9 * losses[0]
    learner.rate.zero_()
    before = [p.clone() for p in learner.network.parameters()]
    learner.step(1)
    assert all(map(torch.equal, before, learner.network.parameters())), "at a rate of 0 nothing changes"


def test_exits_and_what_is_left_out_are_for_the_prepared_alone(
    made: list[tuple[list[Conversation], dict[str, torch.Tensor]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    packed = PackedNetwork(Network(SHAPE))
    part = made[0][1]
    plain, total = packed.losses(part, LENGTHS[1], prepared=False)
    monkeypatch.setattr(recorded, "THINNED_SHARE", 0.0)
    whole, with_exits = packed.losses(part, LENGTHS[1], prepared=True)
    torch.testing.assert_close(whole, plain)
    assert float(with_exits.detach()) > float(total.detach())
    monkeypatch.setattr(recorded, "THINNED_SHARE", 1.0)
    thinned, _ = packed.losses(part, LENGTHS[1], prepared=True)
    assert not torch.allclose(thinned, plain)


def test_heads_that_are_told_are_those_of_pointing() -> None:
    assert list(recorded.HEADS.values()) == [(BEGINNING,), (FINDING,), COPYING, COPYING]


def test_a_run_trains_both_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, from a checkpoint of fewer layers and narrower MLPs to two of the shape that is asked for."""
    torch.manual_seed(1)
    small = Shape(layers=1, intermediate=64)
    export(Network(small), TOKENIZER, tmp_path / "start")
    monkeypatch.setattr(batches_module, "POOL", 48)  # workers are forked, and have it too
    log = tmp_path / "log.jsonl"
    called = f"--start {tmp_path}/start --prepared {tmp_path}/a --plain {tmp_path}/b --log {log} --minutes 0.1"
    called += " --layers 2 --intermediate 96 --width 512 --workers 1 --rate 1e-3 --device cpu"
    monkeypatch.setattr(sys, "argv", ["train_gpu", *called.split()])
    threads = torch.get_num_threads()
    train_gpu.main()
    torch.set_num_threads(threads)
    grown = Shape(layers=2, intermediate=96)
    one, two, began = (imported(tmp_path / name, grown).state_dict() for name in ("a", "b", "start"))
    assert "losses" in log.read_text("utf-8")
    name = "embedding.weight"
    assert not torch.equal(one[name], began[name])
    assert not torch.equal(one[name], two[name])
    with pytest.raises(ValueError, match="more than"):
        imported(tmp_path / "a", small)
