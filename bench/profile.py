"""`knapserve profile`: measure passes of this model on this machine; fit, print and save the latency profile."""

import argparse
import json
import statistics
from pathlib import Path

from bench.prompts import positive
from engine.architecture.spec import LOW_BIT, SKIP, TARGET, ModelSpec, Variants
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.logs import progress_bar
from engine.runtime.build import LoadedModel
from engine.runtime.measure import Design, Measurement, thorough_grid
from profiles import store
from profiles.fit import price
from profiles.schema import LatencyProfile, ProfileError, ProfileKey

_MAX_ERROR = 0.1  # median relative error of a usable profile
# Prevents a quick measurement while the model loads.
_PLACEHOLDER = LatencyProfile(
    ProfileKey("", 0, "", "", "", 0), (1,), (1,), 1.0, ((1.0,),), ((1.0,),), ((1.0,),), ((0.0,),), 1.0, 0.0, 0.0
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repetitions", type=positive, default=7, help="measurements of each pass (default: 7)")


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Measure, fit and save; print a table, and JSON as the last line. Raises ConfigError."""
    model = LoadedModel(config, profile=_PLACEHOLDER)
    measurement = Measurement(model.decoder, model.attention, model.clock)
    grid, progress = thorough_grid(model.attention.cache.length), progress_bar("measuring passes")
    measured = measurement.thorough(model.key, grid, repetitions=args.repetitions, progress=progress)
    profile, spec = measured.profile, model.spec
    path = _save(profile, config)
    errors = [abs(_predict(profile, spec, design) / seconds - 1) for design, seconds in measured.unseen]
    print(f"{model.key.machine}, {model.key.dtype}, {model.key.backend}; {spec.shape_key}")
    print(_table(profile, spec))
    print(
        f"fixed cost {1e3 * profile.fixed:.3f} ms per pass; error on {len(measured.passes)} fitted kinds of passes: "
        f"median {profile.residual:.1%}, maximum {profile.worst:.1%}; on {len(errors)} other passes: median "
        f"{statistics.median(errors):.1%}, maximum {max(errors):.1%}"
    )
    poor = max(profile.residual, statistics.median(errors)) > _MAX_ERROR
    if poor:
        print("The fit is poor: the machine was busy, or the costs do not add up. Measure again on an idle machine.")
    print(f"saved: {path}")
    result = {
        "profile": str(path),
        "passes": len(measured.passes),
        "median_error": profile.residual,
        "worst_error": profile.worst,
        "median_error_unseen": statistics.median(errors),
        "worst_error_unseen": max(errors),
        "fits": not poor,
    }
    print(json.dumps(result))
    return 0


def _save(profile: LatencyProfile, config: EngineConfig) -> Path:
    try:
        return store.save(profile, config.profile_dir or store.default_directory())
    except (OSError, ProfileError) as error:
        raise ConfigError(f"cannot save the profile: {error}") from None


def _predict(profile: LatencyProfile, spec: ModelSpec, design: Design) -> float:
    return price(profile, design.observe(spec, range(1, profile.variants + 1), seconds=0.0))


def _table(profile: LatencyProfile, spec: ModelSpec) -> str:
    """Format costs by context length as Markdown."""
    every_other_layer = (*((TARGET, TARGET, SKIP, SKIP) * spec.layers)[: spec.sublayers], TARGET)
    in_few_bits = (LOW_BIT,) * len(spec.whole)

    def seconds(n: int, plan: Variants = spec.whole, rows: int = 1) -> float:
        return _predict(profile, spec, Design(rows, n, plan))

    lines = [
        "| context | attention | MLP | attention/MLP | full pass | half pass | low-bit | 4 rows | 8 rows | 16 rows |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for n in profile.contexts:
        attention, mlp, plain = profile.projection(1) + profile.scan(n, 1), profile.mlp(1), seconds(n)
        low_bit = f"{seconds(n, in_few_bits) / plain:.2f}×" if profile.variants > 1 else "-"
        widths = " | ".join(f"{seconds(n, rows=rows) / plain:.2f}×" for rows in (4, 8, 16))
        ratio = f"{attention / mlp:.2f}" if mlp else "-"
        lines.append(
            f"| {n} | {1e6 * attention:.0f} µs | {1e6 * mlp:.0f} µs | {ratio} | {1e3 * plain:.2f} ms | "
            f"{seconds(n, every_other_layer) / plain:.2f}× | {low_bit} | {widths} |"
        )
    return "\n".join(lines)
