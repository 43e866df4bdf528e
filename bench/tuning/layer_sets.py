"""`knapserve tune --policy self-sd` and `--policy knn-ssd`: search offline for the layer sets of these policies."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.files import write
from bench.prompts import encode, evenly, read_prompts
from bench.results import aligned
from bench.targets import PolicyTarget, Prompt, RunStats
from bench.tuning.anchors import choose_anchors, last_hidden_vectors, least_similarity, representatives
from bench.tuning.search import LayerSearch
from engine.config.engine import EngineConfig
from engine.config.policies import FixedConfig, KnnSSDConfig, SelfSDConfig
from engine.draft.baselines.fixed import uniform_variants
from engine.draft.baselines.layer_sets import LayerSets
from engine.errors import ConfigError, LayerSetsError
from engine.logs import progress_bar
from engine.plans import Variants, skipped
from engine.runtime import layer_sets as files
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

MAX_TOKENS = 32  # tokens of an answer, at most (Draft & Verify, `searching.py` of its code)
SEED = 1  # the seed of K-means and of the searches, as in that code
# Shares of the layers that the first candidates skip. The authors of Draft & Verify, too, first measure sets that they
# know to be good; these are ours.
_FIRST_RATIOS = (0.25, 0.5)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Search for layer sets, and save them at each improvement; print a table, and JSON as the last line.

    Raises ConfigError, LayerSetsError.
    """
    texts = read_prompts(args.prompts, args.limit)
    if args.policy == "knn-ssd" and len(texts) < 2:
        raise ConfigError(f"{args.prompts} has one prompt; policy knn-ssd requires at least two")
    bare = replace(
        config,
        draft_policy="none", prior="none", self_sd=SelfSDConfig(sets="none"), knn_ssd=KnnSSDConfig(sets="none"),
    )  # fmt: skip
    model = LoadedModel(bare)
    model.warm_up()
    own = config.self_sd if args.policy == "self-sd" else config.knn_ssd
    path = model.tuned_path(config, args.policy) if own.sets in ("auto", "none") else Path(own.sets).expanduser()
    sampling = SamplingParams(max_tokens=args.max_tokens or MAX_TOKENS, temperature=args.temperature, ignore_eos=True)
    speed = Speed(model, bare, sampling, own.gamma, own.confidence)
    prompts = [encode(model, text) for text in texts]
    if args.policy == "self-sd":
        prompts = evenly(prompts, args.samples)
        samples, found = {"": prompts}, LayerSets(args.policy, model.source.fingerprint, {})
    else:
        samples, found = represent(model, bare, prompts, args.samples)
    settings = {"iterations": args.iterations, "samples": args.samples, "max_tokens": sampling.max_tokens or 0}
    settings |= {"temperature": args.temperature, "gamma": own.gamma, "confidence": own.confidence, "seed": SEED}
    found = replace(found, prompts=len(prompts), settings=settings)
    speed(model.spec.whole, next(iter(samples.values())))  # warm up
    searches = start(speed, samples, path, args.policy)
    search(searches, args.iterations, found, path)
    # Measured again: of many noisy measurements the best is a lucky one, and the machine may be slower now.
    speeds = {
        domain: (speed(model.spec.whole, sample, plain=True), speed(searches[domain].best, sample))
        for domain, sample in samples.items()
    }
    _report({domain: each.best for domain, each in searches.items()}, speeds, path)
    return 0


@dataclass(frozen=True, slots=True)
class Speed:
    """Measures the tokens per second of decoding with a plan: the reciprocal of Draft & Verify's time per token."""

    model: LoadedModel
    config: EngineConfig
    sampling: SamplingParams
    gamma: int
    confidence: float

    def __call__(self, plan: Variants, prompts: Sequence[Prompt], *, plain: bool = False) -> float:
        """Answer prompts in turn, with drafts of `plan`, or `plain`. The time of reading the prompts does not count."""
        fixed = FixedConfig(plan="".join(map(str, plan)), gamma=self.gamma)
        core = self.model.core(replace(self.config, fixed=fixed, draft_confidence=self.confidence))
        target = PolicyTarget("none" if plain else "fixed", core, self.sampling)
        if core.runner.overlaps:  # on a GPU, the first rounds with a plan record its graphs
            target.run(prompts[:1], 1)
            target.stats = RunStats()
        for prompt in prompts:
            target.run([prompt], 1)
        return target.stats.decode_tokens / target.stats.decode_seconds


def represent(
    model: LoadedModel, config: EngineConfig, prompts: Sequence[Prompt], count: int
) -> tuple[dict[str, list[Prompt]], LayerSets]:
    """Return up to `count` samples of each domain's prompts, and layer sets that have anchors but no sets yet.

    KNN-SSD, section 5.1: K-means chooses the samples too.
    """
    vectors, domains = last_hidden_vectors(model, config, prompts), [prompt.domain for prompt in prompts]
    chosen = choose_anchors(domains, vectors, SEED)
    samples = {}
    for domain in chosen:
        own = [i for i, other in enumerate(domains) if other == domain]
        samples[domain] = [prompts[own[i]] for i in representatives(vectors[own], count, SEED)]
    anchors = {domain: vectors[own] for domain, own in chosen.items()}
    least = least_similarity(vectors, [i for own in chosen.values() for i in own])
    return samples, LayerSets("knn-ssd", model.source.fingerprint, {}, anchors, least)


def start(speed: Speed, samples: Mapping[str, Sequence[Prompt]], path: Path, policy: str) -> dict[str, LayerSearch]:
    """Return a search for each domain. It begins with the sets of `path`, if they suit, so that none is lost."""
    layers = speed.model.spec.layers
    known: Mapping[str, Variants] = {}
    if path.exists():
        try:
            known = files.load_for(path, policy, speed.model.source).sets
        except LayerSetsError as error:
            print(f"{error}; they will be replaced")

    def begin(domain: str) -> LayerSearch:
        first = [known[domain]] if domain in known else []
        first += [uniform_variants(layers, ratio) for ratio in _FIRST_RATIOS]
        return LayerSearch(layers, lambda plan: speed(plan, samples[domain]), first, SEED)

    return {domain: begin(domain) for domain in samples}


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
                write(path, files.to_json(replace(found, sets=sets)))
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
