"""Where copied tokens come from, and the loss that tells a head."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from engine.build import EMBEDDED
from engine.embedded.network import Attention, Network, Shape
from engine.embedded.pointing import Sources, pointing_loss

SHAPE = Shape(vocabulary=64, layers=2, hidden=32, intermediate=32, heads=4, kv_heads=2, head_dim=16)


TOKENIZER = Tokenizer.from_file(str(EMBEDDED / "tokenizer.json"))


def pointed(text: str) -> list[tuple[str, list[str], list[int]]]:
    """For each token of the last answer of `text`: what it says, and its sources with the characters they begin at."""
    encoding = TOKENIZER.encode(text, add_special_tokens=False)
    begin = text.rindex("<|assistant|>") + len("<|assistant|>")
    learned = np.array([start >= begin for start, _ in encoding.offsets])
    out = Sources(TOKENIZER)(np.array(encoding.ids)[None], learned[None])[0]
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
        torch.testing.assert_close(pointing_loss(attention, head, x, allowed, cos, sin), wanted)
    assert pointing_loss(attention, 0, x, torch.zeros_like(allowed), cos, sin) == 0


def weights_of(attention: Attention, x: torch.Tensor, head: int, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Attention's shares of one head, [rows, length, length], found by asking the sublayer with telling values."""
    s, length = SHAPE, x.shape[1]
    probe = Attention(s)
    probe.load_state_dict(attention.state_dict())
    columns = []
    for position in range(length):
        with torch.no_grad():
            # v of every kv head is 1 at `position` and 0 elsewhere: the output of a head is its share.
            probe.v_proj = torch.nn.Linear(s.hidden, s.kv_heads * s.head_dim, bias=False)
            probe.v_proj.forward = (
                lambda y, at=position: (  # type: ignore[method-assign]
                    torch.zeros(*y.shape[:2], s.kv_heads * s.head_dim).index_fill(1, torch.tensor([at]), 1.0)
                )
            )
            probe.o_proj = torch.nn.Identity()  # type: ignore[assignment]
            columns.append(probe(x, cos, sin)[:, :, head * s.head_dim])
    return torch.stack(columns, dim=2)


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
        loss = pointing_loss(attention, 1, x, allowed, cos, sin)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.3 * losses[0]
