"""Where copied tokens come from, and the loss that tells a head."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from engine.build import EMBEDDED
from engine.embedded.network import Attention, Network, Shape
from engine.embedded.pointing import alike, pointing_loss, sources

SHAPE = Shape(vocabulary=64, layers=2, hidden=32, intermediate=32, heads=4, kv_heads=2, head_dim=16)


def naive(ids: list[int], learned: list[bool]) -> dict[int, set[int]]:
    """The same in the words of the docstring."""
    found: dict[int, set[int]] = {}
    for t in range(len(ids)):
        runs = {}
        for s in range(t):
            if ids[s] == ids[t]:
                before = next((n for n in range(1, s + 1) if ids[s - n] != ids[t - n]), s + 1) - 1
                ahead = len(ids) - t
                after = next((n for n in range(1, ahead) if ids[s + n] != ids[t + n]), ahead) - 1
                runs[s] = before + after
        best = {s for s, run in runs.items() if run == max(runs.values())}
        if learned[t] and best and (max(runs.values()) > 0 or len(best) == 1):
            found[t] = best
    return found


@pytest.mark.parametrize("seed", range(20))
def test_sources_are_the_longest_runs(seed: int) -> None:
    draw = np.random.default_rng(seed)
    ids, learned = draw.integers(0, 5, (3, 24)), draw.random((3, 24)) < 0.6
    out = sources(ids, learned)
    for r in range(3):
        wanted = naive(ids[r].tolist(), learned[r].tolist())
        assert {t: set(np.nonzero(out[r, t])[0].tolist()) for t in range(24) if out[r, t].any()} == wanted


def test_the_record_that_is_being_quoted_is_the_source() -> None:
    """Two records with the same words around their values: the neighbourhood decides, however far."""
    first, second = [1, 9, 9, 9, 20], [2, 9, 9, 9, 20]
    ids = np.array([[*first, *second, 30, *second]])
    out = sources(ids, np.arange(ids.shape[1])[None] > 10)
    assert [np.nonzero(row)[0].tolist() for row in out[0, 11:]] == [[5], [6], [7], [8], [9]]


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


def test_a_space_before_a_token_makes_no_difference() -> None:
    tokenizer = Tokenizer.from_file(str(EMBEDDED / "tokenizer.json"))
    same = alike(tokenizer)
    text = '<|user|>The maker is Kosote Labs of Bern.<|end|><|assistant|>{"maker": "Kosote Labs"}<|end|>'
    encoding = tokenizer.encode(text, add_special_tokens=False)
    ids = np.array(encoding.ids)
    answer, source = text.rindex("Kosote"), text.index("Kosote")
    (t,) = (i for i, (start, _) in enumerate(encoding.offsets) if start == answer)
    (s,) = (i for i, (start, end) in enumerate(encoding.offsets) if start <= source < end)
    assert ids[s] != ids[t]
    learned = np.arange(len(ids))[None] >= t
    assert not sources(ids[None], learned)[0, t, s]
    assert np.nonzero(sources(same[ids][None], learned)[0, t])[0].tolist() == [s]
    assert same[tokenizer.token_to_id("Ġ")] == tokenizer.token_to_id("Ġ")
