"""The few plans that all requests share: what is known of each, and what each promises (METHODS 1, stage 2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.draft.base import Plan
from engine.draft.costs import CostModel
from engine.draft.objective import Chosen, Prices, Question, choose, promises
from engine.draft.tpt import MEMORY, THRESHOLDS, AcceptanceCounts
from engine.draft.trust import Drift, Trust
from engine.model.spec import Variants

MOST_PLANS = 8
_USUAL = 2.0  # plans that kept what they promised, before any was tried
_PASS_WORTH = 0.5  # of what a pass's time is worth: products of confidences understate how far drafts reach (measured)


@dataclass(slots=True)
class Known:
    """What has been seen of one plan."""

    counts: AcceptanceCounts
    trust: dict[int, Trust] = field(default_factory=lambda: defaultdict(Trust))  # by `size` of the company


class Choice(NamedTuple):
    """A plan, its gain over plain decoding, and the factors by which its raw promises, of TPT and of acceptance, were
    corrected."""

    plan: Plan
    gain: float
    trust: float
    credit: float = 1.0
    hopeful: Choice | None = None  # another plan that may be better still, for all that is known of it


class Library:
    """At most `MOST_PLANS` plans, by their variants, in the order in which they came."""

    def __init__(self, costs: CostModel, gamma: int, memory: float = MEMORY) -> None:
        """`gamma`: most tokens that a plan may draft; `memory`: of each plan's counts."""
        self._costs = costs
        self._gamma = gamma
        self._remembered = memory
        self._whole = costs.spec.whole
        self._plans: dict[Variants, Known] = {}
        self._drift = Drift()
        # What is accepted of what is thought to be: tokens of a draft agree or not together, chosen plans were lucky.
        self._credit: dict[int, Trust] = defaultdict(Trust)  # by `size` of the company

    def __len__(self) -> int:
        return len(self._plans)

    def __iter__(self) -> Iterator[Variants]:
        return iter(self._plans)

    def __contains__(self, variants: Variants) -> bool:
        return variants in self._plans

    def counts(self) -> dict[Variants, AcceptanceCounts]:
        """What has been seen of every plan's drafts."""
        return {variants: known.counts for variants, known in self._plans.items()}

    # -- what is learnt ----------------------------------------------------------------------------------------------

    def add(self, variants: Variants, counts: AcceptanceCounts) -> None:
        """A plan that may be new."""
        if variants not in self._plans:
            self._plans[variants] = Known(AcceptanceCounts(self._remembered))
        self._plans[variants].counts.merge(counts)

    def shrink(self, context: int) -> None:
        """The plans that promise most, by what is known of them, stay."""
        if len(self._plans) > MOST_PLANS:
            for variants in self.rank(self.counts(), context)[MOST_PLANS:]:
                del self._plans[variants]

    def tested(self, variants: Variants, round: int, found: Sequence[int]) -> None:
        """Draft tokens of a request that were verified, by their `cells`."""
        if variants in self._plans:
            counts = self._plans[variants].counts
            self._drift.add(round, len(found), counts.agreement * len(found), sum(cell % 2 for cell in found))
            counts.add_cells(found)

    def compare(self, variants: Variants, requests: int, round: int, promised: float, kept: float) -> None:
        """Tokens promised, before any correction, and kept in one round of `requests` that drafted with this plan."""
        if variants in self._plans:
            self._plans[variants].trust[size(requests)].add(round, promised, kept)

    def credit(self, requests: int, round: int, expected: float, accepted: float) -> None:
        """The same of draft tokens that were to be accepted: this corrects what is said of acceptance, no choice."""
        self._credit[size(requests)].add(round, expected, accepted)

    def renew(self, variants: Variants, requests: int) -> None:
        """Let what is seen next decide whether drafting with this plan pays for so many requests."""
        if variants in self._plans:
            self._plans[variants].trust[size(requests)].renew()

    # -- what is promised --------------------------------------------------------------------------------------------

    def plain(self, contexts: Sequence[int]) -> Choice:
        """Plain decoding of all these requests. Its promise is a price, which what is seen corrects."""
        requests = len(contexts)
        promise = 1.0 / (self._costs.verify_pass(requests, contexts) + self._costs.overhead(requests))
        return Choice(Plan(self._whole, 0, predicted_tpt=promise, plain_tpt=promise), 1.0, 1.0)

    def best(
        self,
        contexts: Sequence[int],
        running: Sequence[Variants],
        round: int,
        own: Mapping[Variants, AcceptanceCounts] | None = None,
    ) -> Choice:
        """argmax of TPT over plans × thresholds × γ ≥ 1; plain decoding only if there is nothing else.

        With others in flight, who draft with the plans `running`, the price is that of a batch in which all draft like
        this, each sublayer run once for all whose plan has it, and the verify pass as wide as all of them. `own`: what
        the one request that asks has seen itself. Where one request alone drafts, `hopeful` is what it might try.
        """
        plain = self.plain(contexts)
        if not self._plans or self._gamma == 0:
            return plain
        plans = tuple(self._plans)
        unions: Sequence[Variants] = [union([variants, *running]) for variants in plans] if running else plans
        asked = Question(
            known=[known.counts.cells for known in self._plans.values()],
            own=[own[variants].cells if own and variants in own else None for variants in plans],
            drift=self._drift.factor(round),
            trust=self._trust(len(contexts), round),
            prices=self._prices(unions, contexts),
            hope=len(contexts) == 1,
        )
        best, other = choose(asked)
        credit = self._credit[size(len(contexts))].factor(round)

        def promising(chosen: Chosen) -> Choice:
            i = chosen.plan
            return self._choice(chosen, plans[i], unions[i], contexts, plain, asked.trust[i], credit)

        choice = promising(best)
        return choice if other is None or choice.gain <= 1.0 else choice._replace(hopeful=promising(other))

    def _prices(self, drafting: Sequence[Variants], contexts: Sequence[int]) -> Prices:
        """`drafting[i]` is what a draft pass runs when plan i is chosen."""
        requests, costs = len(contexts), self._costs
        rows, verify = costs.verify_curve(requests * (1 + self._gamma), contexts)
        return Prices(
            requests,
            self._gamma,
            [costs.draft_pass(variants, contexts) for variants in drafting],
            rows,
            verify,
            costs.overhead(requests, 0) + costs.draft_setup(requests),
            costs.per_accepted,
        )

    def _choice(
        self,
        chosen: Chosen,
        variants: Variants,
        drafting: Variants,
        contexts: Sequence[int],
        plain: Choice,
        trust: float,
        credit: float,
    ) -> Choice:
        """The plan that was chosen, with what it promises."""
        requests, worth = len(contexts), 0.0
        if requests > 1:
            row = self._costs.verify_pass(requests + 1, contexts) - self._costs.verify_pass(requests, contexts)
            seconds = self._costs.draft_pass(drafting, contexts) + max(row, 0.0)
            worth = _PASS_WORTH * requests * chosen.tpt * seconds
        undrafted = plain.plan.predicted_tpt
        assert undrafted is not None
        expected = min(chosen.accepted / chosen.drafted, 1.0)
        acceptance = min(credit * expected, 1.0)
        credit = acceptance / expected if expected else 1.0
        plan = Plan(
            *(variants, chosen.gamma, THRESHOLDS[chosen.threshold], worth, chosen.tpt, acceptance, undrafted),
            expected=1.0 + chosen.accepted,
        )
        return Choice(plan, chosen.tpt / undrafted, trust, credit)

    def rank(self, known: Mapping[Variants, AcceptanceCounts], context: int) -> list[Variants]:
        """Plans with their counts, by the TPT that these promise a request alone; best first."""
        plans = list(known)
        tpt = promises([counts.cells for counts in known.values()], self._prices(plans, [context]))
        return sorted(plans, key=dict(zip(plans, tpt, strict=True)).__getitem__, reverse=True)

    def _trust(self, requests: int, round: int) -> list[float]:
        """A factor for each plan: of one that has promised nothing yet, what is usual among those that have."""
        trusts = [known.trust[size(requests)] for known in self._plans.values()]
        seen = [trust.factor(round) for trust in trusts if trust.promised]
        expected = (sum(seen) + _USUAL) / (len(seen) + _USUAL)
        return [trust.factor(round, expected) for trust in trusts]


def size(requests: int) -> int:
    """Numbers of requests within a factor of two are alike."""
    return (requests - 1).bit_length()


def union(plans: Sequence[Variants]) -> Variants:
    """The sublayers that any of these run."""
    return tuple(max(column) for column in zip(*plans, strict=True))
