"""`knapserve tune` for policies of papers: layer sets of self-sd and knn-ssd, exit and draft length of layerskip."""

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
from bench.results import aligned
from bench.targets import PolicyTarget, Prompt, RunStats, run_in_turns
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
EXITS = (1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4)  # shares of the layers; LayerSkip's own exits: 1/8 to 1/2
LENGTHS = (1, 2, 4, 6, 8, 12)  # γ; LayerSkip's settings lie between 4 and 12
# Shares of the layers that the first candidates skip. The authors of Draft & Verify, too, first measure sets that they
# know to be good; these are ours.
_FIRST_RATIOS = (0.25, 0.5)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Tune a policy; print a table, and JSON as the last line. Raises ConfigError, PolicyUnavailableError."""
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
    sampling = SamplingParams(max_tokens=args.max_tokens or MAX_TOKENS, temperature=args.temperature, ignore_eos=True)
    if args.policy == "layerskip":
        _measure_exits(model, bare, sampling, evenly(prompts, args.samples))
    else:
        _search_sets(args, config, bare, model, sampling, prompts)
    return 0


def _measure_exits(model: LoadedModel, bare: EngineConfig, sampling: SamplingParams, prompts: Sequence[Prompt]) -> None:
    """Measure every exit with every length, in turns (LS(ℰ-γ) in DEL's paper); print a table and the best flags."""
    exits = sorted({max(1, round(share * model.spec.layers)) for share in EXITS})
    grid = list(product(exits, LENGTHS))
    settings = [replace(bare, policies=(LayerSkipConfig(*point), *bare.policies)) for point in grid]
    plain = PolicyTarget("none", model.core(bare), sampling)
    targets = [PolicyTarget("layerskip", model.core(each), sampling) for each in settings]
    show = progress_bar("measuring exits")
    plain.run(prompts[:1], 1)  # warm up
    plain.stats = RunStats()
    for number, prompt in enumerate(prompts, 1):
        run_in_turns([plain, *targets], [prompt], first=number % len(targets))
        show(number / len(prompts))
    undrafted = _speed(plain)
    speeds = {point: _speed(target) / undrafted for point, target in zip(grid, targets, strict=True)}
    rows = [["layers", *(f"γ {length}" for length in LENGTHS)]]
    rows += [[str(depth), *(f"{speeds[depth, length]:.2f}" for length in LENGTHS)] for depth in exits]
    print(aligned(rows))
    depth, length = max(speeds, key=lambda point: speeds[point])
    flags = f"--layerskip-exit {depth} --layerskip-gamma {length}"
    print(f"fastest, with {speeds[depth, length]:.2f} of the speed of plain decoding: {flags}")
    figures = [{"exit": point[0], "gamma": point[1], "decode_speedup": speed} for point, speed in speeds.items()]
    print(json.dumps({"exit": depth, "gamma": length, "plain": undrafted, "measured": figures}))


def _search_sets(
    args: argparse.Namespace,
    config: EngineConfig,
    bare: EngineConfig,
    model: LoadedModel,
    sampling: SamplingParams,
    prompts: Sequence[Prompt],
) -> None:
    """Search for layer sets, and save them at each improvement; print a table."""
    own = config.of(SelfSDConfig) if args.policy == "self-sd" else config.of(KnnSSDConfig)
    path = model.tuned_path(config, args.policy) if own.sets in ("auto", "none") else Path(own.sets).expanduser()
    found = LayerSets(args.policy, model.source.fingerprint, {})
    if args.policy == "self-sd":
        prompts = evenly(prompts, args.samples)
        samples = {"": prompts}
    else:
        vectors, domains = last_hidden_vectors(model, bare, prompts), [prompt.domain for prompt in prompts]
        # KNN-SSD, section 5.1: K-means chooses the samples too.
        samples = {domain: [prompts[i] for i in own] for domain, own in choose(domains, vectors, args.samples).items()}
        anchors = choose(domains, vectors)
        found = replace(
            found,
            anchors={domain: vectors[own] for domain, own in anchors.items()},
            least_similarity=least_similarity(vectors, [i for own in anchors.values() for i in own]),
        )
    settings = {"iterations": args.iterations, "samples": args.samples, "max_tokens": sampling.max_tokens or 0}
    settings |= {"temperature": args.temperature, "gamma": own.gamma, "confidence": own.confidence, "seed": SEED}
    found = replace(found, prompts=len(prompts), settings=settings)

    def speed(plan: Variants, prompts: Sequence[Prompt], policy: str = "fixed") -> float:
        """Return the tokens per second of decoding: the reciprocal of Draft & Verify's time per token.

        Answers prompts in turn, with drafts of `plan`. The time of reading the prompts does not count.
        """
        fixed = FixedConfig(plan="".join(map(str, plan)), gamma=own.gamma)
        core = model.core(replace(bare, fixed=fixed, draft_confidence=own.confidence))
        target = PolicyTarget(policy, core, sampling)
        if core.runner.overlaps:  # on a GPU, the first rounds with a plan record its graphs
            target.run(prompts[:1], 1)
            target.stats = RunStats()
        for prompt in prompts:
            target.run([prompt], 1)
        return _speed(target)

    speed(model.spec.whole, next(iter(samples.values())))  # warm up
    known = _known_sets(model, path, args.policy)  # measured first, so that none is lost
    first = [uniform_variants(model.spec.layers, ratio) for ratio in _FIRST_RATIOS]
    searches = {
        domain: LayerSearch(
            model.spec.layers,
            partial(speed, prompts=sample),
            [known[domain], *first] if domain in known else first,
        )
        for domain, sample in samples.items()
    }
    search(searches, args.iterations, found, path)
    # Measured again: of many noisy measurements the best is a lucky one, and the machine may be slower now.
    speeds = {
        domain: (speed(model.spec.whole, sample, "none"), speed(searches[domain].best, sample))
        for domain, sample in samples.items()
    }
    _report({domain: each.best for domain, each in searches.items()}, speeds, path)


def _speed(target: PolicyTarget) -> float:
    return target.stats.decode_tokens / target.stats.decode_seconds


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
    """Return the last hidden vector of each prompt, as policy knn-ssd sees it, scaled to length one: [prompts, hidden].

    Raises ConfigError for a prompt that does not fit into the context.
    """
    runners: list[_RecordingRunner] = []

    def watched(runner: Runner) -> Runner:
        runners.append(_RecordingRunner(runner, model))
        return runners[-1]

    target = PolicyTarget("none", model.core(config, wrap_runner=watched), SamplingParams(max_tokens=1))
    for prompt in prompts:  # one at a time: the order of vectors is that of prompts
        target.run([prompt], 1)
    return unit(np.stack(runners[0].vectors))


def _known_sets(model: LoadedModel, path: Path, policy: str) -> Mapping[str, Variants]:
    """Return the sets of a file, if there is one that suits the model."""
    if not path.exists():
        return {}
    try:
        return load_for(path, policy, model.spec, model.source.fingerprint).sets
    except TunedFileError as error:
        print(f"{error}; they will be replaced")
        return {}


def search(searches: Mapping[str, LayerSearch], iterations: int, found: LayerSets, path: Path) -> None:
    """Measure `iterations` candidates of each domain, in turns; save all sets whenever one is better.

    An interruption leaves the best so far in the file. Raises ConfigError if it cannot be written.
    """
    show = progress_bar("searching for layer sets")
    try:
        for iteration in range(iterations):
            improved = False
            for number, each in enumerate(searches.values(), 1):
                improved |= each.step()
                show((iteration + number / len(searches)) / iterations)
            if improved:
                sets = {domain: each.best for domain, each in searches.items()}
                write(path, to_json(replace(found, sets=sets)))
    except KeyboardInterrupt:
        kept = f"; the best so far: {path}" if iteration else ", before anything was found"
        print(f"interrupted in iteration {iteration + 1} of {iterations}{kept}")
        raise


def _report(sets: Mapping[str, Variants], speeds: Mapping[str, tuple[float, float]], path: Path) -> None:
    """Print a table and JSON. `speeds`: tokens per second of plain decoding and with the set."""
    rows = [["domain", "plain/s", "decode/s", "speed-up", "skip attn", "skip mlp"]]
    figures = {}
    for domain, plan in sets.items():
        plain, drafted = speeds[domain]
        attention, mlp = (2 * count / (len(plan) - 1) for count in skipped(plan))
        rows.append([domain or "(all)", f"{plain:.1f}", f"{drafted:.1f}", f"{drafted / plain:.2f}"])
        rows[-1] += [f"{attention:.0%}", f"{mlp:.0%}"]
        figures[domain] = {"set": "".join(map(str, plan)), "decode_speedup": drafted / plain}
    print(aligned(rows))
    print(f"saved: {path}")
    print(json.dumps({"path": str(path), "domains": figures}))
