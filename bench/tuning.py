"""`knapserve tune` for policies of papers: layer sets; exit and draft length of layerskip."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from bench.files import write
from bench.prompts import encode, evenly, read_prompts
from bench.results import Column, Row, aligned, table
from bench.targets import PolicyTarget, Prompt, run_in_turns, warm_up
from engine.config.engine import EngineConfig
from engine.config.policies import FixedConfig
from engine.draft.fixed import uniform_variants
from engine.errors import ConfigError, TunedFileError
from engine.logs import progress_bar
from engine.plans import Variants, skipped
from engine.runtime.build import LoadedModel
from engine.runtime.runner import Runner
from engine.step import Overlap, StepOutput, StepPlan
from engine.types import SamplingParams
from papers.knn_ssd import last_hidden
from papers.layer_sets import LayerSets, load_for, require_extra, to_json, unit
from papers.offline import SEED, LayerSearch, choose, least_similarity
from papers.settings import KnnSSDConfig, LayerSkipConfig, SelfSDConfig

MAX_TOKENS = 32  # tokens of an answer, at most (Draft & Verify, `searching.py` of its code)
EXITS = (1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4)  # shares of the layers; LayerSkip has 1/8 to 1/2
LENGTHS = (1, 2, 4, 6, 8, 12)  # γ; LayerSkip's settings lie between 4 and 12
# Shares of the layers that the first candidates skip. The authors of Draft & Verify, too, first
# measure sets that they know to be good; these are ours.
_FIRST_RATIOS = (0.25, 0.5)
_COLUMNS = (
    Column("domain", "domain", "{}"),
    Column("plain/s", "plain", "{:.1f}"),
    Column("decode/s", "drafted", "{:.1f}"),
    Column("speed-up", "decode_speedup"),
    Column("skip attn", "skipped_attention", "{:.0%}"),
    Column("skip mlp", "skipped_mlp", "{:.0%}"),
)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Tune a policy; print a table, then JSON. Raises ConfigError, PolicyUnavailableError."""
    if args.policy != "layerskip":
        require_extra("the search for layer sets")
    texts = read_prompts(args.prompts, args.limit)
    if args.policy == "knn-ssd" and len(texts) < 2:
        raise ConfigError(f"{args.prompts} has one prompt; policy knn-ssd requires at least two")
    bare = replace(
        config, draft_policy="none", prior="none", policies=(SelfSDConfig(sets="none"), KnnSSDConfig(sets="none"))
    )
    model = LoadedModel(bare)
    model.warm_up()
    prompts = [encode(model, text) for text in texts]
    tokens = args.max_tokens or MAX_TOKENS
    sampling = SamplingParams(max_tokens=tokens, temperature=args.temperature, ignore_eos=True)
    if args.policy == "layerskip":
        _measure_exits(model, bare, sampling, evenly(prompts, args.samples))
    else:
        _SetSearch(args, config, bare, model, sampling).run(prompts)
    return 0


def _measure_exits(model: LoadedModel, bare: EngineConfig, sampling: SamplingParams, prompts: Sequence[Prompt]) -> None:
    """Measure every exit with every length (LS(ℰ-γ) in DEL's paper); print a table and the best."""
    exits = sorted({max(1, round(share * model.spec.layers)) for share in EXITS})
    grid = list(product(exits, LENGTHS))
    settings = [replace(bare, policies=(LayerSkipConfig(*point), *bare.policies)) for point in grid]
    plain = PolicyTarget("none", model.core(bare), sampling)
    targets = [PolicyTarget("layerskip", model.core(each), sampling) for each in settings]
    show = progress_bar("measuring exits")
    warm_up([plain], prompts[:1])
    for number, prompt in enumerate(prompts, 1):
        run_in_turns([plain, *targets], [prompt], first=number % len(targets))
        show(number / len(prompts))
    undrafted = plain.stats.total.decode_speed
    ratios = [target.stats.total.decode_speed / undrafted for target in targets]
    speeds = dict(zip(grid, ratios, strict=True))
    rows = [["layers", *(f"γ {length}" for length in LENGTHS)]]
    rows += [[str(depth), *(f"{speeds[depth, length]:.2f}" for length in LENGTHS)] for depth in exits]
    print(aligned(rows))
    depth, length = max(speeds, key=lambda point: speeds[point])
    flags = f"--layerskip-exit {depth} --layerskip-gamma {length}"
    print(f"fastest, with {speeds[depth, length]:.2f} of the speed of plain decoding: {flags}")
    figures = [{"exit": point[0], "gamma": point[1], "decode_speedup": speed} for point, speed in speeds.items()]
    print(json.dumps({"exit": depth, "gamma": length, "plain": undrafted, "measured": figures}))


class _SetSearch:
    """Searches for the layer sets of self-sd or knn-ssd."""

    def __init__(
        self,
        args: argparse.Namespace,
        config: EngineConfig,
        bare: EngineConfig,
        model: LoadedModel,
        sampling: SamplingParams,
    ) -> None:
        """`bare`: the settings to measure with, without layer sets or prior plans."""
        self.args, self.bare, self.model, self.sampling = args, bare, model, sampling
        self.settings: SelfSDConfig | KnnSSDConfig = config.of(KnnSSDConfig)
        if args.policy == "self-sd":
            self.settings = config.of(SelfSDConfig)
        self.path = Path(self.settings.sets).expanduser()
        if self.settings.sets in ("auto", "none"):
            self.path = model.tuned_path(config, args.policy)

    def run(self, prompts: Sequence[Prompt]) -> None:
        """Search, and save at each improvement; then measure the best sets again, and print a table."""
        samples, found = self._samples(prompts)
        self._speed(self.model.spec.whole, next(iter(samples.values())))  # warms up
        known, layers = self._known_sets(), self.model.spec.layers
        first = [uniform_variants(layers, ratio) for ratio in _FIRST_RATIOS]
        searches = {
            # The known set is measured first, so that it is not lost.
            domain: LayerSearch(layers, partial(self._speed, prompts=own), [*known.get(domain, ()), *first])
            for domain, own in samples.items()
        }
        search(searches, self.args.iterations, found, self.path)
        # Of many noisy measurements the best is a lucky one, so it is measured again.
        rows = [self._row(domain, searches[domain].best, own) for domain, own in samples.items()]
        print(table(rows, _COLUMNS))
        print(f"saved: {self.path}")
        print(json.dumps({"path": str(self.path), "domains": dict(zip(samples, rows, strict=True))}))

    def _samples(self, prompts: Sequence[Prompt]) -> tuple[dict[str, list[Prompt]], LayerSets]:
        """Return the prompts to measure on, by domain, and the content of the file without sets."""
        args = self.args
        settings: dict[str, float] = {
            "iterations": args.iterations,
            "samples": args.samples,
            "max_tokens": self.sampling.max_tokens or 0,
            "temperature": args.temperature,
            "gamma": self.settings.gamma,
            "confidence": self.settings.confidence,
            "seed": SEED,
        }
        found = LayerSets(args.policy, self.model.source.fingerprint, {}, prompts=len(prompts), settings=settings)
        if args.policy == "self-sd":
            own = evenly(prompts, args.samples)
            return {"": own}, replace(found, prompts=len(own))
        vectors, domains = last_hidden_vectors(self.model, self.bare, prompts), [each.domain for each in prompts]
        anchors = choose(domains, vectors)
        # KNN-SSD, section 5.1: K-means chooses the samples too.
        chosen = choose(domains, vectors, args.samples)
        samples = {domain: [prompts[index] for index in own] for domain, own in chosen.items()}
        return samples, replace(
            found,
            anchors={domain: vectors[own] for domain, own in anchors.items()},
            least_similarity=least_similarity(vectors, [index for own in anchors.values() for index in own]),
        )

    def _speed(self, plan: Variants, prompts: Sequence[Prompt], policy: str = "fixed") -> float:
        """Return the tokens per second of decoding with a plan, without the reading of prompts.

        It is the reciprocal of Draft & Verify's time per token.
        """
        fixed = FixedConfig(plan="".join(map(str, plan)), gamma=self.settings.gamma)
        config = replace(self.bare, fixed=fixed, draft_confidence=self.settings.confidence)
        target = PolicyTarget(policy, self.model.core(config), self.sampling)
        if target.core.runner.overlaps:  # on a GPU, the first rounds with a plan record its graphs
            warm_up([target], prompts[:1])
        for prompt in prompts:
            target.run([prompt], 1)
        return target.stats.total.decode_speed

    def _known_sets(self) -> dict[str, list[Variants]]:
        """Return the set of each domain in the file, if there is a file that suits the model."""
        if not self.path.exists():
            return {}
        try:
            found = load_for(self.path, self.args.policy, self.model.spec, self.model.source.fingerprint)
        except TunedFileError as error:
            print(f"{error}; they will be replaced")
            return {}
        return {domain: [plan] for domain, plan in found.sets.items()}

    def _row(self, domain: str, plan: Variants, prompts: Sequence[Prompt]) -> Row:
        """Measure plain decoding and a set on the prompts. Speeds are in tokens per second."""
        plain, drafted = self._speed(self.model.spec.whole, prompts, "none"), self._speed(plan, prompts)
        attention, mlp = (count / self.model.spec.layers for count in skipped(plan))
        return {
            "domain": domain or "(all)",
            "set": "".join(map(str, plan)),
            "plain": plain,
            "drafted": drafted,
            "decode_speedup": drafted / plain,
            "skipped_attention": attention,
            "skipped_mlp": mlp,
        }


class _RecordingRunner(Runner):
    """A runner that keeps the last hidden vector of each prompt that it reads."""

    def __init__(self, runner: Runner, model: LoadedModel) -> None:
        super().__init__(runner.decoder, runner.attention, model.clock, overlaps=False)
        self.vectors: list[np.ndarray] = []

    def run(self, plan: StepPlan, overlap: Overlap | None = None) -> StepOutput:
        for work in plan.work:
            work.rows_to_record = int(work.reads_prompt and work.draws_token)
        out = super().run(plan, overlap)
        self.vectors += [last_hidden(o.references) for o in out.outputs if o.references is not None]
        return out


def last_hidden_vectors(model: LoadedModel, config: EngineConfig, prompts: Sequence[Prompt]) -> np.ndarray:
    """Return the last hidden vector of each prompt, scaled to length one: [prompts, hidden].

    They are the vectors that policy knn-ssd sees. Raises ConfigError for a prompt that does not fit.
    """
    runners: list[_RecordingRunner] = []

    def watched(runner: Runner) -> Runner:
        runners.append(_RecordingRunner(runner, model))
        return runners[-1]

    target = PolicyTarget("none", model.core(config, wrap_runner=watched), SamplingParams(max_tokens=1))
    for prompt in prompts:  # one at a time: the order of vectors is that of prompts
        target.run([prompt], 1)
    return unit(np.stack(runners[0].vectors))


def search(searches: Mapping[str, LayerSearch], iterations: int, found: LayerSets, path: Path) -> None:
    """Measure `iterations` candidates of each domain, in turns. Save all sets when one is better.

    An interruption leaves the best so far in the file. Raises ConfigError if it cannot be written.
    """
    show = progress_bar("searching for layer sets")
    for iteration in range(iterations):
        improved = False
        for number, each in enumerate(searches.values(), 1):
            improved |= each.step()
            show((iteration + number / len(searches)) / iterations)
        if improved:
            sets = {domain: each.best for domain, each in searches.items()}
            write(path, to_json(replace(found, sets=sets)))
