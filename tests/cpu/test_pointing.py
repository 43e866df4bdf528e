"""Where copied tokens come from, and the loss that tells a head."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from engine.build import EMBEDDED
from engine.embedded import network as network_module
from engine.embedded.batches import Batch
from engine.embedded.network import Attention, Network, Shape
from engine.embedded.pointing import BEGINNING, COPYING, FINDING, LONGEST, Pointing, head_scores, pointing_loss
from engine.embedded.sources import FIRST_TOKENS, Quotes, Sources

SHAPE = Shape(vocabulary=64, layers=2, hidden=32, intermediate=32, heads=4, kv_heads=2, head_dim=16)


TOKENIZER = Tokenizer.from_file(str(EMBEDDED / "tokenizer.json"))


def pointed(text: str) -> list[tuple[str, list[str], list[int]]]:
    """For each token of the last answer of `text`: what it says, and its sources with the characters they begin at."""
    encoding = TOKENIZER.encode(text, add_special_tokens=False)
    begin = text.rindex("<|assistant|>") + len("<|assistant|>")
    learned = np.array([start >= begin for start, _ in encoding.offsets])
    out = Sources(TOKENIZER)(np.array(encoding.ids)[None], learned[None]).dense(1)[0]
    said = [text[a:b] for a, b in encoding.offsets]
    assert not out[~learned].any()
    found = []
    for t in np.nonzero(learned)[0]:
        places = np.nonzero(out[t])[0]
        assert all(s < t for s in places), "nothing is copied from what comes later"
        found.append((said[t], [said[s] for s in places], [encoding.offsets[s][0] for s in places]))
    return found


@pytest.mark.parametrize("name", ["Kai Rojafi", "Kosote Labs", "Quito", "Ben Kebraho"])
def test_a_value_comes_from_where_it_stands_however_it_is_cut(name: str) -> None:
    """After a quotation mark the tokens are others than after a space."""
    text = f'<|user|>The guests are Ina Kosa, {name} and Kim Rojan of Bern.<|end|><|assistant|>{{"guest": "{name}"'
    found = pointed(text)
    first = next(i for i, (said, _, _) in enumerate(found) if said and name.startswith(said) and i > 1)
    begin = text.index(name)
    spelled = ""
    for said, _, places in found[first:-1]:
        (place,) = places
        assert begin - 1 <= place <= begin + len(spelled)
        spelled += said
    assert spelled.startswith(name)


def test_the_record_that_is_being_quoted_is_the_source() -> None:
    """Two records with the same words around their values: the neighbourhood decides, however far."""
    first, second = "Anna - team red, room 12", "Olaf - team red, room 12"
    text = f"<|user|>{first}\n{second}<|end|><|assistant|>> {second}"
    for said, _, places in pointed(text)[1:]:
        assert len(places) == 1, said
        assert text.index(second) - 1 <= places[0] < text.index(second) + len(second)


def test_what_stands_twice_alike_is_told_twice_and_what_stands_nowhere_not_at_all() -> None:
    found = pointed("<|user|>Is it the red one? The red one, or so.<|end|><|assistant|>red zebra")
    assert [places for said, _, places in found if said == "red"] == [[]], "either, for all that is said"
    assert not any(places for said, _, places in found if said.strip() in ("zebra", "ze", "bra"))
    found = pointed("<|user|>Is it the red one there?<|end|><|assistant|>red")
    assert [sources for _, sources, _ in found] == [[" red"]]


def quoted(text: str) -> list[dict[str, str]]:
    """What is said, up to the end of each token that is told, and up to where it may look: by values, by beginnings,
    and as the first tokens of a quote."""
    encoding = TOKENIZER.encode(text, add_special_tokens=False)
    begin = text.rindex("<|assistant|>") + len("<|assistant|>")
    learned = np.array([start >= begin for start, _ in encoding.offsets])[None]
    ids = np.array(encoding.ids)[None]
    ends = [end for _, end in encoding.offsets]
    out = []
    for told in (found.dense(1) for found in Quotes(TOKENIZER)(ids, learned, Sources(TOKENIZER)(ids, learned))):
        assert not np.triu(told[0], 1).any(), "nothing looks at what comes later"
        places = {t: np.flatnonzero(row) for t, row in enumerate(told[0]) if row.any()}
        out.append({text[: ends[t]]: text[: ends[s[-1]]] for t, s in places.items()})
    return out


DESKS = "Desk 12: owner Ina Kosa, room 7; Anna\nDesk 31: owner Ben Rojan, room 9; Olaf\nDesk 57: owner Kim Wabe, room 7"


def test_a_line_found_by_a_value_is_looked_for_where_the_value_stands_in_it() -> None:
    text = f"<|user|>{DESKS}\nWhose room is 9?<|end|><|assistant|>The line with room 9:\n> {DESKS.splitlines()[1]}"
    values, beginnings, first = quoted(text + "<|end|>")
    answer = text.rindex("room 9:")
    assert [said[answer:] for said in values] == ["room 9", "room 9:", "room 9:\n", "room 9:\n>"]
    assert set(values.values()) == {text[: text.index("room 9") + len("room 9")]}
    start, end = text.index("Desk 31"), text.index("Desk 57")
    assert beginnings
    for said, seen in beginnings.items():
        assert start < len(seen) < len(said) < end, "within the line, and before"
        assert len(TOKENIZER.encode(seen[start:], add_special_tokens=False).ids) <= FIRST_TOKENS
    assert first
    quote = text.rindex("> ") + len("> ")
    for said, source in first.items():
        assert DESKS.splitlines()[1].startswith(said[quote:])
        assert source[start - 1 :].lstrip() == said[quote:]


def test_a_line_quoted_for_its_key_has_no_value_above() -> None:
    text = f"<|user|>{DESKS}\nWhose is desk 31?<|end|><|assistant|>> {DESKS.splitlines()[1]}\n\nBen Rojan.<|end|>"
    values, beginnings, first = quoted(text)
    assert not values
    assert not first
    assert beginnings


@pytest.mark.parametrize(
    "answer", ["Ben Rojan.", ">", "> ", "12 > 7, as a > b", "room 7:\n> Nothing that stands above", ":\n>"]
)
def test_where_nothing_is_quoted_nobody_is_told(answer: str) -> None:
    assert quoted(f"<|user|>{DESKS}\nWhose?<|end|><|assistant|>{answer}<|end|>") == [{}, {}, {}]


def loss_of(
    attention: Attention, head: int, x: torch.Tensor, allowed: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor,
    *, evenly: bool = False,
) -> torch.Tensor:  # fmt: skip
    """`pointing_loss` where `allowed` [rows, length, length] says who may look where."""
    asked = allowed.any(-1).flatten().nonzero().squeeze(1)
    places = allowed.flatten(0, 1)[asked].flatten().nonzero().squeeze(1)
    return pointing_loss(head_scores(attention, head, x, cos, sin), asked, places, evenly=evenly)


def test_a_head_that_has_to_look_evenly_pays_for_each_place() -> None:
    torch.manual_seed(0)
    attention = Attention(SHAPE)
    x, length = torch.randn(1, 7, SHAPE.hidden), 7
    cos, sin = Network(SHAPE).rotations(length, x.device)
    allowed = torch.zeros(1, length, length, dtype=torch.bool)
    allowed[0, 5, 2] = allowed[0, 5, 3] = allowed[0, 6, 0] = True
    shares = weights_of(attention, x, 1, cos, sin)
    wanted = -((torch.log(shares[0, 5, 2]) + torch.log(shares[0, 5, 3])) / 2 + torch.log(shares[0, 6, 0])) / 2
    torch.testing.assert_close(loss_of(attention, 1, x, allowed, cos, sin, evenly=True), wanted)


def test_the_loss_is_what_attention_gives() -> None:
    torch.manual_seed(0)
    attention = Attention(SHAPE)
    x, length = torch.randn(2, 7, SHAPE.hidden), 7
    cos, sin = Network(SHAPE).rotations(length, x.device)
    allowed = torch.zeros(2, length, length, dtype=torch.bool)
    allowed[0, 5, 2] = allowed[0, 5, 3] = allowed[1, 4, 0] = True
    for head in range(SHAPE.heads):
        shares = weights_of(attention, x, head, cos, sin)
        wanted = -(torch.log(shares[0, 5, 2] + shares[0, 5, 3]) + torch.log(shares[1, 4, 0])) / 2
        torch.testing.assert_close(loss_of(attention, head, x, allowed, cos, sin), wanted)


@pytest.mark.parametrize("evenly", [True, False])
def test_the_loss_of_those_asked_is_that_of_masks_of_all_pairs(evenly: bool) -> None:
    torch.manual_seed(0)
    attention, x = Attention(SHAPE), torch.randn(3, 11, SHAPE.hidden)
    cos, sin = Network(SHAPE).rotations(11, x.device)
    allowed = (torch.rand(3, 11, 11) < 0.15).tril()
    scores = head_scores(attention, 2, x, cos, sin).view(3, 11, 11)
    asked = allowed.any(-1)
    seen, wanted = scores[asked], allowed[asked]
    if evenly:
        loss = (seen.logsumexp(-1) - seen.masked_fill(~wanted, 0.0).sum(-1) / wanted.sum(-1)).mean()
    else:
        loss = (seen.logsumexp(-1) - seen.masked_fill(~wanted, float("-inf")).logsumexp(-1)).mean()
    torch.testing.assert_close(loss_of(attention, 2, x, allowed, cos, sin, evenly=evenly), loss)


def weights_of(attention: Attention, x: torch.Tensor, head: int, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Attention's shares of one head, [rows, length, length], found by giving the sublayer telling values."""
    length = x.shape[1]
    assert length <= SHAPE.head_dim
    attend, shares = network_module.short_attention, []

    def tell(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        telling = torch.eye(length, v.shape[-1])[None, :, None].expand_as(v)  # each position's own dimension is 1
        shares.append(attend(q, k, telling))
        return shares[0]

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(network_module, "short_attention", tell)
        attention(x, cos, sin)
    return shares[0][:, :, head, :length]


def test_a_head_learns_to_point() -> None:
    torch.manual_seed(0)
    network = Network(SHAPE)
    attention = network.attention[0]
    assert isinstance(attention, Attention)
    x = torch.randn(4, 12, SHAPE.hidden)
    allowed = torch.zeros(4, 12, 12, dtype=torch.bool)
    allowed[:, 6:, 3] = True
    cos, sin = network.rotations(12, x.device)
    optimizer = torch.optim.Adam(attention.parameters(), lr=0.02)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = loss_of(attention, 1, x, allowed, cos, sin)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.3 * losses[0]


def batch_of(text: str) -> Batch:
    """A batch of `text` alone, of which the last answer is learned."""
    encoding = TOKENIZER.encode(text, add_special_tokens=False)
    begin = text.rindex("<|assistant|>") + len("<|assistant|>")
    ids = torch.tensor(encoding.ids)[None]
    weights = torch.tensor([[1.0 if start >= begin else 0.1 for start, _ in encoding.offsets[1:]]])
    return Batch(ids[:, :-1], ids[:, 1:], weights, len(ids[0]) - 1)


def test_who_is_asked_and_where_they_may_look_is_what_was_found() -> None:
    """Two rows of other lengths: kinds in the order of `KINDS`, copied tokens asked for one position before them."""
    texts = (
        f"<|user|>{DESKS}\nWhose is 9?<|end|><|assistant|>The line with room 9:\n> {DESKS.splitlines()[1]}<|end|>",
        "<|user|>Is it Ina Kosa?<|end|><|assistant|>It is Ina Kosa.<|end|>",
    )
    one, two = map(batch_of, texts)
    length = one.inputs.shape[1]
    padded = (F.pad(t, (0, length - t.shape[1])) for t in (two.inputs, two.targets, two.weights))
    whole = (torch.cat(pair) for pair in zip((one.inputs, one.targets, one.weights), padded, strict=True))
    batch = Batch(*whole, one.tokens + two.tokens)
    told = Pointing(TOKENIZER).told(batch)
    assert told is not None

    ids = torch.cat((batch.inputs[:, :1], batch.targets), dim=1).numpy()
    learned = F.pad(batch.weights >= 1.0, (1, 0)).numpy()
    sources = Sources(TOKENIZER)(ids, learned)
    value, beginning, first = (found.dense(2) for found in Quotes(TOKENIZER)(ids, learned, sources))
    wanted = [beginning[:, :-1, :-1], value[:, :-1, :-1], sources.dense(2)[:, 1:, :-1], first[:, 1:, :-1]]
    for (asked, places), allowed in zip(told.kinds(told.indices), wanted, strict=True):
        out = np.zeros((2 * length, length), bool)
        out[asked.numpy()[places.numpy() // length], places.numpy() % length] = True
        assert np.array_equal(out.reshape(2, length, length), allowed)
        assert np.array_equal(asked.numpy(), np.flatnonzero(allowed.any(-1)))
    long = torch.ones(1, LONGEST, dtype=torch.long)
    assert Pointing(TOKENIZER).told(Batch(long, long, long.float(), LONGEST)) is None


@pytest.mark.parametrize("quotes", [True, False])
def test_what_nobody_is_asked_takes_nothing_from_the_rest(quotes: bool) -> None:
    """The loss is a sum of kinds: with quotes and without, copying heads count half each."""
    answer = "The line with room 9:\n> " if quotes else "It is Ben Rojan, in "
    batch = batch_of(f"<|user|>{DESKS}\nWhose is 9?<|end|><|assistant|>{answer}{DESKS.splitlines()[1]}<|end|>")
    torch.manual_seed(0)
    network = Network(Shape(TOKENIZER.get_vocab_size(), 10, 32, 32, heads=4, kv_heads=2, head_dim=16))
    pointing = Pointing(TOKENIZER)
    into = pointing.wanted(network, batch.inputs)
    states = {layer: torch.randn(*batch.inputs.shape, 32) for layer in into}
    total = pointing.loss(network, batch, states)

    beginning, finding, *copying = pointing.last
    assert (beginning > 0, finding > 0) == (quotes, quotes)
    assert len(copying) == 2 * len(COPYING)
    assert all(loss > 0 for loss in copying[: len(COPYING)])
    assert any(copying[len(COPYING) :]) == quotes, "the first tokens of a quote count once more"
    torch.testing.assert_close(
        float(total.detach()), beginning + finding + sum(copying) / len(COPYING), rtol=0, atol=4e-3
    )
    total.backward()
    told = {layer for layer in range(10) if network.attention[layer].q_proj.weight.grad is not None}
    assert told == {layer for layer, _ in ((BEGINNING, FINDING, *COPYING) if quotes else COPYING)}


def test_a_word_that_stands_once_far_from_the_line_does_not_hide_the_quote() -> None:
    line = DESKS.splitlines()[1]
    text = f"<|user|>A word of Olga first. {'And so on. ' * 20}\n{DESKS}\nWhose room is 9?<|end|><|assistant|>"
    values, beginnings, _ = quoted(f"{text}The line with room 9:\n> {line} Olga<|end|>")
    assert values
    assert beginnings
    start, end = text.index("Desk 31"), text.index("Desk 57")
    assert all(start < len(seen) < len(said) < end for said, seen in beginnings.items())


def test_a_quote_that_does_not_hold_the_value_above_it_says_nothing_of_where_to_look() -> None:
    values, beginnings, first = quoted(
        f"<|user|>{DESKS}\n?<|end|><|assistant|>zebra:\n> {DESKS.splitlines()[1]}<|end|>"
    )
    assert not values
    assert not first
    assert beginnings
