"""How a network answers what it is shown, token by token with the right ones before each (teacher forcing)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from engine.embedded.batches import collate, grouped
from engine.embedded.conversation import Tokens, tokenize
from engine.embedded.corpus.mixture import SKILLS, example
from engine.embedded.network import Network
from engine.seeds import mix64

CHOSEN_STEP = 256  # the number of places where logits are made is a multiple of this


class Answers:
    """Of a network as it is while it learns."""

    def __init__(self, network: Network, device: torch.device, autocast: Callable[[], torch.autocast]) -> None:
        self._network, self._device, self._autocast = network, device, autocast

    @torch.no_grad()
    def difficulties(self, rows: Sequence[Tokens], batch_tokens: int) -> list[float]:
        """By how much each row's answers surprise the network, in nats a token of the whole row, its prompt included:
        what there is to learn for what it costs."""
        found: dict[int, float] = {}
        for group in grouped(list(rows), batch_tokens):
            batch = collate(group)
            inputs, targets = batch.inputs.to(self._device), batch.targets.to(self._device)
            places = batch.weights.eq(1.0).flatten().nonzero().squeeze(1)
            chosen = F.pad(places, (0, -len(places) % CHOSEN_STEP)).to(self._device)
            with self._autocast():
                (x,) = self._network.states(inputs)
                logits = self._network.logits(x.flatten(0, 1)[chosen])
            surprise = F.cross_entropy(logits.float(), targets.flatten()[chosen], reduction="none")[: len(places)]
            total = torch.zeros(len(group)).index_add(0, places // inputs.shape[1], surprise.cpu())
            found |= {id(row): s / len(row.ids) for row, s in zip(group, total.tolist(), strict=True)}
        return [found[id(row)] for row in rows]

    @torch.no_grad()
    def exactness(self, tokenizer: Tokenizer, count: int) -> dict[str, float]:
        """Share of held-out last answers, of `count` a skill, that greedy decoding would give word for word."""
        shares = {}
        for name in SKILLS:
            if name.startswith("documents_"):
                continue
            rows = [tokenize(tokenizer, example(name, mix64(i), "held_out")) for i in range(count)]
            rows.sort(key=lambda row: len(row.ids))
            shares[name] = sum(self._exact(rows[i : i + 8]) for i in range(0, count, 8)) / count
        return shares

    def _exact(self, rows: list[Tokens]) -> int:
        batch = collate(rows)
        with self._autocast():
            (x,) = self._network.states(batch.inputs.to(self._device))
            chosen = self._network.logits(x).argmax(-1).cpu()
        right = chosen.eq(batch.targets) | batch.weights.lt(1.0)
        return int(sum(bool(right[i, last_answer(row) :].all()) for i, row in enumerate(rows)))


def last_answer(row: Tokens) -> int:
    """Index among the targets of the first token of the last answer."""
    i = len(row.learned) - 1
    while row.learned[i]:
        i -= 1
    return i
