"""The few plans that all requests share: what is known of each, and what each promises (METHODS 1, stage 2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.draft.alike import Alike, Kin, Likely, Memory, Variants
from engine.draft.base import Plan
from engine.draft.costs import CostModel
from engine.draft.objective import Chosen, Prices, Promised, Question, choose, corrected, promises
from engine.draft.tpt import MEMORY, THRESHOLDS, AcceptanceCounts
from engine.draft.trust import Drift, Trust
from engine.types import SamplingParams

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

    def __init__(
        self, costs: CostModel, layers: int, gamma: int, *, marginal: bool = False, memory: float = MEMORY
    ) -> None:
        """`gamma`: most tokens that a plan may draft; `marginal`: they stop by what a pass is worth alone; `memory`:
        of each plan's counts."""
        self._costs = costs
        self._gamma = gamma
        self._marginal = marginal
        self._remembered = memory
        self._whole = (1,) * (2 * layers)
        self._plans: dict[Variants, Known] = {}
        self._variants: tuple[Variants, ...] = ()  # of the plans
        self._drift = Drift()
        # What is accepted of what is thought to be: tokens of a draft agree or not together, chosen plans were lucky.
        self._credit: dict[int, Trust] = defaultdict(Trust)  # by `size` of the company
        self._memory = Memory()

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
            self._changed()
        self._plans[variants].counts.merge(counts)

    def shrink(self, context: int) -> None:
        """The plans that promise most, by what is known of them, stay."""
        if len(self._plans) > MOST_PLANS:
            for variants in self.rank(self.counts(), context)[MOST_PLANS:]:
                del self._plans[variants]
            self._changed()

    def _changed(self) -> None:
        self._variants = tuple(self._plans)
        self._memory.keep(self._plans)

    def begin(self, prompt: Sequence[int], sampling: SamplingParams) -> Kin:
        """A request whose drafts are to be remembered."""
        return self._memory.begin(prompt, sampling)

    def tested(
        self,
        variants: Variants,
        round: int,
        found: Sequence[int],
        kin: Kin | None = None,
        alike: Alike | None = None,
    ) -> None:
        """Draft tokens of a request that were verified, by their `cells`; `alike`: what was expected of it."""
        if variants in self._plans:
            counts = self._plans[variants].counts
            expected = counts.agreement if alike is None else alike.agreement.get(variants, counts.agreement)
            self._drift.add(round, len(found), expected * len(found), sum(cell % 2 for cell in found))
            counts.add_cells(found)
            if kin is not None:
                self._memory.saw(kin, variants, found)

    def compare(self, variants: Variants, requests: int, round: int, promised: float, kept: float) -> None:
        """Tokens promised, before any correction, and kept in one round of `requests` that drafted with this plan."""
        if variants in self._plans:
            self._plans[variants].trust[size(requests)].add(round, promised, kept)

    def credit(self, requests: int, round: int, expected: float, accepted: float) -> None:
        """The same of draft tokens that were to be accepted: this corrects what is said of acceptance, no choice."""
        self._credit[size(requests)].add(round, expected, accepted)

    def told(self, kin: Kin, own: bool, undrafted: float, made: float) -> None:
        """Tokens that a drafting round of one request would have made undrafted, and made: this corrects what it and
        those like it are promised, no choice either."""
        self._memory.told(kin, own, undrafted, made)

    def renew(self, variants: Variants, requests: int) -> None:
        """Let what is seen next decide whether drafting with this plan pays for so many requests."""
        if variants in self._plans:
            self._plans[variants].trust[size(requests)].renew()

    def like(self, kin: Kin) -> Alike:
        """What to expect of a request, by what those like it saw."""
        return self._memory.like(kin, self.counts())

    def fresh(self, alike: Alike) -> bool:
        """Whether it is of the plans that are known now."""
        return alike.version == self._memory.version

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
        alike: Sequence[Alike] = (),
    ) -> Choice:
        """argmax of TPT over plans × thresholds × γ ≥ 1; plain decoding only if there is nothing else.

        With others in flight, who draft with the plans `running`, the price is that of a batch in which all draft like
        this, each sublayer run once for all whose plan has it, and the verify pass as wide as all of them. `own`: what
        the one request that asks has seen itself; `alike`: what to expect of each that asks. Where one request alone
        drafts, `hopeful` is what it might try.
        """
        plain = self.plain(contexts)
        if not self._plans or self._gamma == 0:
            return plain
        plans = self._variants
        unions: Sequence[Variants] = [union([variants, *running]) for variants in plans] if running else plans
        asked = Question(
            known=[known.counts.cells for known in self._plans.values()],
            own=[own[variants].cells if own and variants in own else None for variants in plans],
            alike=[each.found for each in alike],
            drift=self._drift.factor(round),
            trust=self._trust(len(contexts), round),
            prices=self._prices(unions, contexts),
            hope=len(contexts) == 1,
        )
        best, other = choose(asked)
        credit = self._credit[size(len(contexts))].factor(round)
        choice = self._choice(best, asked, unions, contexts, plain, credit)
        if other is None or choice.gain <= 1.0:
            return choice
        return choice._replace(hopeful=self._choice(other, asked, unions, contexts, plain, credit))

    def _prices(self, drafting: Sequence[Variants], contexts: Sequence[int]) -> Prices:
        """`drafting[i]` is what a draft pass runs when plan i is chosen."""
        requests, costs = len(contexts), self._costs
        rows, verify = costs.verify_curve(requests * (1 + self._gamma), contexts)
        return Prices(
            requests,
            self._gamma,
            costs.draft_passes(drafting, contexts),
            rows,
            verify,
            costs.overhead(requests, 0) + costs.draft_setup(requests),
            costs.per_accepted,
        )

    def _choice(
        self,
        chosen: Chosen,
        asked: Question,
        unions: Sequence[Variants],
        contexts: Sequence[int],
        plain: Choice,
        credit: float,
    ) -> Choice:
        """The plan that was chosen, with what it promises."""
        confidence, gamma, worth = THRESHOLDS[chosen.threshold], chosen.gamma, 0.0
        if self._marginal:
            confidence, gamma = 0.0, self._gamma
        requests = len(contexts)
        if requests > 1 or self._marginal:
            row = self._costs.verify_pass(requests + 1, contexts) - self._costs.verify_pass(requests, contexts)
            seconds = self._costs.draft_pass(unions[chosen.plan], contexts) + max(row, 0.0)
            worth = _PASS_WORTH * requests * chosen.tpt * seconds
        undrafted = plain.plan.predicted_tpt
        assert undrafted is not None
        variants, expected = self._variants[chosen.plan], min(chosen.accepted / chosen.drafted, 1.0)
        acceptance = min(credit * expected, 1.0)
        credit = acceptance / expected if expected else 1.0
        plan = Plan(variants, gamma, confidence, worth, chosen.tpt, acceptance, undrafted)
        return Choice(plan, chosen.tpt / undrafted, asked.trust[chosen.plan], credit)

    def likely(self, kin: Kin, choice: Choice) -> Likely | None:
        """What the chosen plan is to bring a request, for `corrected`."""
        return self._memory.likely(kin, choice.plan.variants)

    def corrected(
        self, choice: Choice, likely: Likely, kin: Kin, counts: Mapping[Variants, AcceptanceCounts], *, own: bool
    ) -> Choice:
        """The same choice, promising one request what drafts brought those like it, beside what they brought itself
        and the `counts` that it has seen. `own`: it decided by these.

        Which plan is best, and how far to draft, differs less between kinds of text than how far drafts get.
        """
        plan = choice.plan
        tpt, plain, variants = plan.predicted_tpt, plan.plain_tpt, plan.variants
        if plan.gamma == 0 or not tpt or not plain or variants not in self._plans:
            return choice
        known, seen = self._plans[variants].counts.cells, counts[variants].cells if variants in counts else None
        trust, acceptance = corrected(
            Promised(
                *(tpt / plain, THRESHOLDS.index(plan.min_confidence), plan.gamma, known, seen, own, likely.found),
                self._memory.brought_by(kin),
            )
        )
        credit = min(choice.credit, 1.0 / acceptance) if acceptance else 1.0
        promise = tpt * trust, acceptance * credit
        plan = Plan(variants, plan.gamma, plan.min_confidence, plan.pass_worth, *promise, plain)
        return Choice(plan, choice.gain, choice.trust * trust, credit, choice.hopeful)

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
