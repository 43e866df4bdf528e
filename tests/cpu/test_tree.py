"""Token trees: what each row sees, what is accepted, and what stays in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig, MistralConfig

from engine.backends.cuda.backend import cuda_backend
from engine.config.engine import EngineConfig
from engine.config.policies import FixedConfig
from engine.core.engine import EngineCore
from engine.core.policies import POLICIES
from engine.draft.base import BatchView, PolicyContext, RequestView, RoundOutcome
from engine.draft.baselines.fixed import FixedPlan, UniformSkip
from engine.kernels.library import kernel_library
from engine.model.attention import Segment
from engine.runtime.build import LoadedModel
from engine.step import Plan, StepOutput, depths, tree_width
from engine.types import RequestRound, SamplingParams
from tests.support.cores import GREEDY, SAMPLED, Learning, answer, chat_ids, exact, load, tiny_model

# The rows of a tree: the chain 0 to 4, beside it 5 and 6 under 1, and 7 under 2, then 8 under 7, and 9 under 5.
PARENTS = (-1, 0, 1, 2, 3, 1, 1, 2, 7, 5)
TOKENS = torch.randint(0, 300, (120,), generator=torch.Generator().manual_seed(0)).tolist()
BACKENDS = ("slabs", "pages", "native")


def load_tiny(directory: Path, backend: str, threads: int = 1, **changes: Any) -> LoadedModel:
    if backend == "native":
        if kernel_library() is None:
            pytest.skip("no compiler")
        wide = {"hidden_size": 128, "intermediate_size": 192, "head_dim": 32}
        tiny_model(directory, **(wide | changes))
        return load(torch.bfloat16, model=directory, kernels="native", max_num_seqs=4, threads=threads)
    tiny_model(directory, **changes)
    pages = cuda_backend(torch.device("cpu"), torch.float64) if backend == "pages" else None
    return load(torch.float64, model=directory, backend=pages, max_num_seqs=4)


def logits(model: LoadedModel, segment: Segment, tokens: Sequence[int]) -> Tensor:
    x = model.decoder.run(model.decoder.embed(tokens), model.attention.prepare([segment]))
    return model.decoder.head(x)


@pytest.mark.parametrize("window", [None, 12, 3], ids=["whole context", "window", "window shorter than the tree"])
@pytest.mark.parametrize("backend", BACKENDS)
@torch.inference_mode()
def test_a_row_of_a_tree_sees_what_it_would_see_at_the_end_of_its_own_path(
    backend: str, window: int | None, tmp_path: Path
) -> None:
    family = LlamaConfig if window is None else MistralConfig
    changes = {} if window is None else {"sliding_window": window}
    model = load_tiny(tmp_path, backend, family=family, **changes)
    context, drafted = TOKENS[:70], TOKENS[70 : 70 + len(PARENTS)]
    for slab in (0, 1):
        logits(model, Segment(slab, 0, len(context)), context)
    tree = Segment(0, len(context), len(PARENTS), PARENTS)
    found = logits(model, tree, drafted)
    tolerance = 0 if backend == "native" else 1e-9  # the native kernels are exact
    for row, path in enumerate(tree.paths):
        chain = logits(model, Segment(1, len(context), len(path)), [drafted[i] for i in path])
        torch.testing.assert_close(found[row], chain[-1], atol=tolerance, rtol=0)


@pytest.mark.parametrize("threads", [1, 2])
@torch.inference_mode()
def test_rows_of_a_tree_are_exact_where_it_crosses_parts_of_the_context(threads: int, tmp_path: Path) -> None:
    model = load_tiny(tmp_path, "native", max_position_embeddings=2048, threads=threads)
    before = [*TOKENS, *TOKENS] * 10
    for context in (1021, 1024):  # a part has 1,024 positions
        for slab in (0, 1):
            logits(model, Segment(slab, 0, context), before[:context])
        tree = Segment(0, context, len(PARENTS), PARENTS)
        found = logits(model, tree, TOKENS[: len(PARENTS)])
        for row, path in enumerate(tree.paths):
            chain = logits(model, Segment(1, context, len(path)), [TOKENS[i] for i in path])
            assert torch.equal(found[row], chain[-1])


@pytest.mark.parametrize("backend", BACKENDS)
@torch.inference_mode()
def test_the_rows_of_an_accepted_path_move_to_the_slots_of_their_positions(backend: str, tmp_path: Path) -> None:
    model = load_tiny(tmp_path, backend)
    context, drafted = TOKENS[:57], TOKENS[57 : 57 + len(PARENTS)]  # the tree crosses blocks of the cache
    for slab in (0, 1):
        logits(model, Segment(slab, 0, len(context)), context)
    tree = Segment(0, len(context), len(PARENTS), PARENTS)
    logits(model, tree, drafted)
    path = tree.paths[8]
    assert path == (0, 1, 2, 7, 8)
    for position, row in enumerate(path):
        model.attention.cache.move(0, len(context) + row, len(context) + position)
    logits(model, Segment(1, len(context), len(path)), [drafted[i] for i in path])
    end = len(context) + len(path)
    after, expected = (logits(model, Segment(slab, end, 1), TOKENS[:1]) for slab in (0, 1))
    torch.testing.assert_close(after, expected, atol=0 if backend == "native" else 1e-9, rtol=0)


class Branching(UniformSkip):
    """Skip layers, and verify three more tokens beside each that is not certain."""

    def propose(self, batch: BatchView[None]) -> Sequence[Plan]:
        return [replace(plan, siblings=((0.9999, 4),)) for plan in super().propose(batch)]


CONFIG = EngineConfig(draft_confidence=0.1, fixed=FixedConfig(skip_ratio=0.3, gamma=5))


def branching(model: LoadedModel) -> EngineCore:
    with patch.dict(POLICIES, {"fixed": Branching}):
        return model.core(CONFIG)


def watched_branching(model: LoadedModel) -> tuple[EngineCore, list[StepOutput]]:
    """A core that branches, and what its runner will put out."""
    watched = Learning("fixed")
    with patch.dict(POLICIES, {"fixed": Branching}):
        return watched.core(model.core, CONFIG), watched.ran


KINDS = {
    "greedy": GREEDY,
    "sampled": SAMPLED,
    "penalties": replace(SAMPLED, frequency_penalty=0.5, logit_bias=((5, 2.0),)),
    "grammar": replace(GREEDY, grammar="%llguidance {}\nstart: /[a-z]{3,9}( [a-z]{2,9}){20}/"),
}


CHECKED = ("sampled", "grammar")


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in CHECKED else pytest.mark.nightly) for kind in KINDS]
)
def test_trees_give_the_tokens_of_plain_decoding_in_fewer_rounds(kind: str, prompts: Sequence[str]) -> None:
    model, sampling = exact(max_num_seqs=8, max_model_len=256), KINDS[kind]
    plain = model.core(CONFIG)
    ids = [chat_ids(plain, text)[:150] for text in prompts[::15]]
    expected = answer(plain, ids, sampling, ["none"])
    chains: list[RequestRound] = []
    trees: list[RequestRound] = []
    assert answer(plain, ids, sampling, ["fixed"], rounds=chains) == expected
    assert answer(branching(model), ids, sampling, ["fixed"], rounds=trees) == expected
    assert len(trees) < len(chains)
    assert sum(r.emitted for r in trees) == sum(r.emitted for r in chains) == sum(map(len, expected))
    mixed = answer(branching(model), ids, sampling, ["fixed", "none", "knapspec"], concurrency=8)
    assert mixed == expected


@pytest.mark.slow
def test_trees_on_pages_give_the_tokens_of_plain_decoding(prompts: Sequence[str], tiny: Path) -> None:
    pages = cuda_backend(torch.device("cpu"), torch.float64)
    model = load(torch.float64, model=tiny, backend=pages, max_num_seqs=8, max_model_len=256)
    plain, (core, ran) = model.core(CONFIG), watched_branching(model)
    ids = [chat_ids(plain, text)[:150] for text in prompts[::20]]
    sampling = SamplingParams(max_tokens=32, temperature=0.0, logprobs=2)
    assert answer(core, ids, sampling, ["fixed"], concurrency=4) == answer(plain, ids, sampling, ["none"])
    assert any(output.siblings for out in ran for output in out.outputs)
    assert core.scheduler.blocks.usage == 0


def test_a_tree_that_has_no_room_is_drafted_as_a_chain(prompts: Sequence[str]) -> None:
    model = exact(max_num_seqs=2, max_model_len=64)
    plain = model.core(CONFIG)
    ids = [chat_ids(plain, prompts[0])[:40]]
    core, ran = watched_branching(model)
    sampling = replace(GREEDY, ignore_eos=True, max_tokens=64 - len(ids[0]))
    assert answer(core, ids, sampling, ["fixed"]) == answer(plain, ids, sampling, ["none"])
    drafts = [output for out in ran for output in out.outputs if output.drafted > 1]
    assert drafts[0].siblings > 0
    assert drafts[-1].siblings == 0, "the context is nearly full"


def test_less_certain_tokens_get_more_siblings() -> None:
    siblings = ((0.5, 10), (0.8, 5), (0.95, 3))
    assert [tree_width(siblings, p) for p in (0.1, 0.5, 0.51, 0.8, 0.95, 0.96)] == [10, 10, 5, 5, 3, 1]
    plan = Plan((1, 1, 1), gamma=25, min_confidence=0.81, siblings=siblings)
    assert plan.most_rows == 24 * 3 + 10
    assert plan.capped(0).most_rows == 0
    assert replace(plan, siblings=()).most_rows == 25


GIVEN_CHECKED = (("slabs", "sampled"), ("pages", "grammar"))


class Known(FixedPlan):
    """Give random trees, in which the answer that is known occurs, and ask for the draws."""

    name = "fixed"
    answers: ClassVar[list[tuple[int, ...]]]  # each with its prompt

    def __init__(self, context: PolicyContext) -> None:
        super().__init__(Plan(context.spec.whole, gamma=0))
        self._random = Random(1)

    def propose(self, batch: BatchView[None]) -> Sequence[Plan]:
        return [self._tree(tuple(view.tokens)) for view in batch.views]

    def _tree(self, text: tuple[int, ...]) -> Plan:
        rest = next(known[len(text) :] for known in self.answers if known[: len(text)] == text)
        branches: dict[tuple[int, int], None] = {}  # parent and token
        for _ in range(self._random.randrange(12)):
            parents = [parent for parent, _ in branches]
            parent = self._random.randrange(-1, len(branches))
            depth = depths([*parents, parent])[-1]
            right = self._random.random() < 0.6 and depth <= len(rest)
            branches[parent, rest[depth - 1] if right else self._random.randrange(99)] = None
        parents, tokens = [parent for parent, _ in branches], [token for _, token in branches]
        return Plan(self._plan.variants, len(tokens), tokens=tuple(tokens), parents=tuple(parents), draws=True)

    def can_reuse_plans(self) -> bool:
        return False

    def observe(self, views: Sequence[RequestView[None]], round: RoundOutcome) -> None:
        for view, outcome in zip(views, round.outcomes, strict=True):
            assert (outcome.variants, outcome.drafted) == (None, 0), "no sub-network has drafted"
            if outcome.draws:
                assert outcome.draws[0] == view.tokens[-outcome.emitted]


@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        pytest.param(backend, kind, marks=[] if (backend, kind) in GIVEN_CHECKED else pytest.mark.nightly)
        for backend in ("slabs", "pages")
        for kind in KINDS
    ],
)
def test_given_trees_give_the_tokens_of_plain_decoding(backend: str, kind: str, tmp_path: Path) -> None:
    model = load_tiny(tmp_path, backend, num_hidden_layers=2)
    plain = model.core(EngineConfig(max_num_batched_tokens=24))
    ids = [tuple(TOKENS[i : i + 20]) for i in range(0, 100, 25)]
    sampling = replace(KINDS[kind], max_tokens=30)
    expected = answer(plain, ids, sampling, ["none"])
    Known.answers = [prompt + tokens for prompt, tokens in zip(ids, expected, strict=True)]
    watched, rounds = Learning("fixed"), list[RequestRound]()
    with patch.dict(POLICIES, {"fixed": Known}):
        core = watched.core(model.core, EngineConfig(max_num_batched_tokens=24))
        assert answer(core, ids, sampling, ["fixed"], concurrency=3, rounds=rounds) == expected
    assert all(sum(1 + output.draft_rows for output in out.outputs) <= 24 for out in watched.ran)
    assert any(output.siblings for out in watched.ran for output in out.outputs)
    assert sum(r.accepted for r in rounds) > 10
    assert {(r.source, r.plan, r.draft_passes) for r in rounds} == {("model", None, 0)}


def test_a_given_tree_is_cut_before_a_token_that_is_too_deep() -> None:
    assert depths(PARENTS) == [1, 2, 3, 4, 5, 3, 3, 4, 5, 4]
    plan = Plan((1, 1, 1), len(PARENTS), tokens=tuple(range(10)), parents=PARENTS)
    assert plan.most_rows == 10
    assert plan.within(5) == plan
    assert plan.within(4).tokens == (0, 1, 2, 3)
    assert plan.capped(6) == replace(plan, gamma=6, tokens=tuple(range(6)), parents=PARENTS[:6])
    assert plan.within(0).gamma == plan.capped(-1).most_rows == 0
    assert replace(plan, parents=()).within(3).tokens == (0, 1, 2)
