"""`knapserve tune --policy layerskip`: measure exits and draft lengths on sample prompts (LS(ℰ-γ) in DEL's paper)."""

import argparse
import json
from dataclasses import replace
from itertools import product

from bench.prompts import encode, evenly, read_prompts
from bench.results import aligned
from bench.targets import PolicyTarget, RunStats, run_in_turns
from bench.tuning.layer_sets import MAX_TOKENS
from engine.config.engine import EngineConfig
from engine.config.policies import LayerSkipConfig
from engine.logs import progress_bar
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

EXITS = (1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4)  # shares of the layers; LayerSkip's own exits: 1/8 to 1/2
LENGTHS = (1, 2, 4, 6, 8, 12)  # γ; LayerSkip's settings lie between 4 and 12


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Measure every exit with every length, in turns; print a table, the best flags, and JSON as the last line."""
    bare = replace(config, draft_policy="none", prior="none")
    model = LoadedModel(bare)
    model.warm_up()
    prompts = evenly([encode(model, text) for text in read_prompts(args.prompts, args.limit)], args.samples)
    sampling = SamplingParams(max_tokens=args.max_tokens or MAX_TOKENS, temperature=args.temperature, ignore_eos=True)
    exits = sorted({max(1, round(share * model.spec.layers)) for share in EXITS})
    grid = list(product(exits, LENGTHS))
    plain, *targets = [PolicyTarget("none", model.core(bare), sampling)] + [
        PolicyTarget("layerskip", model.core(replace(bare, layerskip=LayerSkipConfig(*point))), sampling)
        for point in grid
    ]
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
    return 0


def _speed(target: PolicyTarget) -> float:
    return target.stats.decode_tokens / target.stats.decode_seconds
