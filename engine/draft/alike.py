"""What requests with prompts alike saw: how well drafts will do is known, in part, before the first of them.

Requests of one kind share their words: a template, a language, an instruction. Each is remembered by the tokens at both
ends of its prompt and the draft tokens that were tested in its answer. A new one is told what those most like it saw:
Nadaraya–Watson regression with an exponential kernel over the cosine, in which rare tokens count more.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.draft.objective import BROUGHT, SHARED_ROWS, shaped, smoothed
from engine.draft.tpt import CELLS, AcceptanceCounts
from engine.types import SamplingParams

Variants = tuple[int, ...]

REQUESTS = 128  # remembered
FEATURES = 2048  # that tokens are hashed into
PLANS = 16  # told apart
MOST_TESTED = 16.0  # tokens that a request counts for
MOST_ROWS = 8.0  # weight of what requests alike saw of a plan, in tested tokens
USUAL = 8.0  # tokens of theirs that are as everybody's, to tell how theirs differ
MOST_MADE = 48.0  # tokens of a request that count for what drafting brings
FEW_UNDRAFTED = 32  # requests that may hold places although none of their drafts was tested
_ENDS = 128  # tokens of either end of a prompt that are looked at
_SETTINGS = 4  # features of how a request is sampled,
_NOT_TOKENS = 1 << 24  # numbered from here
_HASH = 2654435761  # Knuth's multiplicative hash; its upper bits are the feature


class Kernel(NamedTuple):
    """How requests count by how alike their prompts are."""

    bandwidth: float  # as a difference of cosines
    strange: float  # cosine below which even the nearest is hardly like it
    power: float  # of how rare features are, in their weights

    @property
    def rarities(self) -> np.ndarray:
        """Weights of features that 0, 1 … requests have."""
        weights: np.ndarray = np.log((REQUESTS + 1.0) / np.arange(1.0, REQUESTS + 2.0)) ** self.power
        return weights


EVIDENCE = Kernel(0.1, 0.3, 2.0)  # for what is chosen,
PROMISES = Kernel(0.05, 0.2, 1.0)  # and for what is promised: kinds of text rather than the same text


class Kin:
    """One request among those remembered."""

    __slots__ = ("slot",)

    def __init__(self, slot: int) -> None:
        self.slot = slot  # -1: forgotten


class Alike(NamedTuple):
    """What to expect of a request, by what others like it saw."""

    version: int  # of the plans
    found: Any  # floats, in cells: a ratio, by which their draft tokens differ from those of all; theirs of each plan
    agreement: Mapping[Variants, float]  # share of draft tokens that is to agree


class Likely(NamedTuple):
    """What drafting with one plan brought requests alike."""

    found: Any  # floats: what drafting brought them, then their tested tokens, in cells; as they weigh

    @property
    def brought(self) -> Sequence[float]:
        """Tokens that plain decoding would have made in the time of their drafting rounds, and those that they made: by
        decisions that all share, then the same by their own."""
        brought: Sequence[float] = self.found[:BROUGHT]
        return brought

    @property
    def cells(self) -> Sequence[float]:
        cells: Sequence[float] = self.found[BROUGHT:]
        return cells


class Memory:
    """The last requests, and what each saw of each plan."""

    def __init__(self) -> None:
        self.features = np.zeros((REQUESTS, FEATURES // 64), np.uint64)  # bits
        self.having = np.zeros(FEATURES, np.int32)  # requests with each
        self.counts = np.zeros((REQUESTS, PLANS, CELLS), np.float32)  # tested tokens
        self.tested = np.zeros(REQUESTS, np.float32)  # their sum
        self._counts = self.counts.data.cast("B").cast("f")  # where one number is written sooner
        self.brought = np.zeros((REQUESTS, BROUGHT))  # as in `Likely`
        self._brought = self.brought.data.cast("B").cast("d")
        self.columns: dict[Variants, int] = {}  # of the plans that are told apart
        self.version = 0  # of these
        self._kin: list[Kin | None] = [None] * REQUESTS
        self.begun = np.zeros(REQUESTS, np.int64)  # numbers of the requests, as they came
        self._requests = 0

    def keep(self, plans: Collection[Variants]) -> None:
        """Tell these plans apart from now on, and forget what was seen of others."""
        self.version += 1
        for gone in [variants for variants in self.columns if variants not in plans]:
            self.counts[:, self.columns.pop(gone)] = 0.0
        self.tested[:] = self.counts.sum(axis=(1, 2))
        free = iter(sorted(set(range(PLANS)) - set(self.columns.values())))
        for variants in plans:
            if variants not in self.columns:
                self.columns[variants] = next(free)

    def begin(self, prompt: Sequence[int], sampling: SamplingParams) -> Kin:
        """Remember a request; the oldest is forgotten, of those that never drafted if they are many."""
        settings = _NOT_TOKENS + _SETTINGS * (2 * round(10 * sampling.temperature) + (sampling.grammar is not None))
        tokens = array("I", prompt if len(prompt) <= 2 * _ENDS else (*prompt[:_ENDS], *prompt[-_ENDS:]))
        tokens.extend(range(settings, settings + _SETTINGS))
        self._requests += 1
        slot = self._place(tokens)
        old = self._kin[slot]
        if old is not None:
            old.slot = -1
        made = self._kin[slot] = Kin(slot)
        return made

    def _place(self, tokens: array[int]) -> int:
        """Where a request of these features is remembered from now on."""
        undrafted = np.flatnonzero(self.tested == 0.0)
        if len(undrafted) > FEW_UNDRAFTED:
            slot = int(undrafted[self.begun[undrafted].argmin()])
        else:
            slot = int(self.begun.argmin())
        self.begun[slot] = self._requests
        self.counts[slot] = 0.0
        self.tested[slot] = 0.0
        self.brought[slot] = 0.0
        bits = np.zeros(FEATURES, np.uint8)
        bits[(np.array(tokens, np.uint64) * _HASH % (1 << 32) // ((1 << 32) // FEATURES)).astype(np.int64)] = 1
        self.having += bits.astype(np.int32) - self._bits(slot)
        self.features[slot] = np.packbits(bits, bitorder="little").view(np.uint64)
        return slot

    def _bits(self, slots: int | slice) -> np.ndarray:
        """[.., features]: 0 or 1."""
        return np.unpackbits(self.features[slots].view(np.uint8), axis=-1, bitorder="little")

    def saw(self, kin: Kin, variants: Variants, found: Sequence[int]) -> None:
        """Draft tokens of its answer were verified, by their `cells`."""
        column = self.columns.get(variants)
        if kin.slot >= 0 and column is not None:
            counts, first = self._counts, (kin.slot * PLANS + column) * CELLS
            for cell in found:
                counts[first + cell] += 1.0
            self.tested[kin.slot] += len(found)

    def told(self, kin: Kin, own: bool, undrafted: float, made: float) -> None:
        """Of a drafting round of its answer, by its own decision or by that of all: as in `Likely`."""
        if kin.slot >= 0:
            at = BROUGHT * kin.slot + 2 * own
            self._brought[at] += undrafted
            self._brought[at + 1] += made

    def brought_by(self, kin: Kin) -> tuple[float, float]:
        """What a request's drafting by a decision of all has brought it, as in `Likely`."""
        at = BROUGHT * kin.slot
        return (self._brought[at], self._brought[at + 1]) if kin.slot >= 0 else (0.0, 0.0)

    def like(self, kin: Kin, known: Mapping[Variants, AcceptanceCounts]) -> Alike:
        """What to expect of a remembered request, where all have seen the counts `known` of the plans told apart."""
        found, agreement = self._regress(kin.slot, known)
        return Alike(self.version, found, dict(zip(known, agreement, strict=True)))

    def likely(self, kin: Kin, variants: Variants) -> Likely | None:
        """What one of the plans is to bring a remembered request; None where it is not told apart."""
        column = self.columns.get(variants)
        if column is None or kin.slot < 0:
            return None
        return Likely(self._likely(kin.slot, column))

    def _likely(self, slot: int, column: int) -> Any:
        """`Likely.found`."""
        others, weights = self._others(slot, PROMISES)
        made = self.brought[others, 1::2].repeat(2, axis=1)
        brought: list[float] = (
            weights @ (self.brought[others] * np.minimum(MOST_MADE / np.maximum(made, 1.0), 1.0))
        ).tolist()
        weights *= np.minimum(MOST_TESTED / self.tested[others], 1.0)
        seen: list[float] = (weights @ self.counts[others, column]).tolist()
        return brought + seen

    def _others(self, slot: int, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        """The requests that saw drafts tested, but for this one, and how much each counts for it."""
        others = np.flatnonzero((self.tested > 0) & (np.arange(REQUESTS) != slot))
        if not others.size:
            return others, np.zeros(0)
        likeness = self._likeness(slot, kernel)[others]
        return others, np.exp((likeness - max(likeness.max(), kernel.strange)) / kernel.bandwidth)

    def _regress(self, slot: int, known: Mapping[Variants, AcceptanceCounts]) -> tuple[Any, Sequence[float]]:
        """`Alike.found` and the agreement of each plan."""
        others, weights = self._others(slot, EVIDENCE)
        seen = np.zeros((len(known), CELLS // 2, 2))
        if others.size:
            weights *= np.minimum(MOST_TESTED / self.tested[others], 1.0)
            columns = [self.columns[variants] for variants in known]
            counts = self.counts[others][:, columns].astype(np.float64)
            seen = np.tensordot(weights, counts, 1).reshape(seen.shape)
        believed = smoothed(np.stack([each.counts for each in known.values()]))
        believed *= (SHARED_ROWS / np.maximum(believed.sum(axis=(1, 2)), SHARED_ROWS))[:, None, None]
        share = believed / believed.sum(axis=(1, 2), keepdims=True)
        tested = seen.sum(axis=(1, 2))
        expected = (share * tested[:, None, None]).sum(axis=0)
        usual = (expected + share.mean(axis=0)) / (tested.sum() + 1.0) * USUAL
        ratio = (seen.sum(axis=0) + usual) / (expected + usual)
        seen *= np.minimum(MOST_ROWS / np.maximum(tested, 1e-9), 1.0)[:, None, None]
        believed = shaped(believed, ratio) + seen
        agreement = believed[:, :, 1].sum(axis=1) / believed.sum(axis=(1, 2))
        return np.concatenate([ratio[None], seen]).ravel().tolist(), agreement.tolist()

    def _likeness(self, slot: int, kernel: Kernel) -> np.ndarray:
        """Cosines [requests] between the features of one and of each, weighed by how rare they are."""
        features = self._bits(slice(None)).astype(np.float64)
        rarity = kernel.rarities[self.having]
        own = features[slot] * rarity
        cosines: np.ndarray = features @ own / np.sqrt(np.maximum(features @ rarity * own.sum(), 1e-9))
        return cosines
