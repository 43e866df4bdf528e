"""`knapserve profile`: measure passes of this model on this machine; fit, print and save the latency profile."""

from __future__ import annotations

import argparse
import json
import statistics

from bench.prompts import positive
from engine.architecture.spec import LOW_BIT, SKIP, TARGET, ModelSpec
from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.logs import progress_bar
from engine.runtime.build import LoadedModel
from engine.runtime.measure import Design, Measured, Measurement, thorough_grid
from profiles import store
from profiles.fit import Observation, price
from profiles.schema import LatencyProfile, ProfileKey

_MAX_ERROR = 0.1  # median relative error of a usable profile
# Prevents a quick measurement while the model loads.
_PLACEHOLDER = LatencyProfile(
    ProfileKey("", 0, "", "", ""), (1,), (1,), 1.0, ((1.0,),), ((1.0,),), ((1.0,),), ((0.0,),), 1.0, 0.0, 0.0
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repetitions", type=positive, default=7, help="measurements of each pass (default: 7)")


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Measure, fit and save; print a table, and JSON as the last line. Raises ConfigError."""
    model = LoadedModel(config, profile=_PLACEHOLDER)
    measurement = Measurement(model.decoder, model.attention, model.clock)
    measured = measurement.thorough(
        model.key,
        thorough_grid(model.attention.cache.length),
        repetitions=args.repetitions,
        progress=progress_bar("measuring passes"),
    )
    profile, spec = measured.profile, model.spec
    try:
        path = store.save(profile, config.profile_dir or store.default_directory())
    except OSError as error:
        raise ConfigError(f"cannot save the profile: {error}") from None
    errors = _errors(measured, spec)
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


def _errors(measured: Measured, spec: ModelSpec) -> list[float]:
    """Return the relative errors on passes that were not fitted."""

    def error(design: Design, seconds: float) -> float:
        return abs(price(measured.profile, _observed(design, spec, measured.profile, seconds)) / seconds - 1)

    return [error(design, seconds) for design, seconds in measured.unseen]


def _observed(design: Design, spec: ModelSpec, profile: LatencyProfile, seconds: float = 0.0) -> Observation:
    return design.observe(spec, range(1, profile.variants + 1), seconds)


def _table(profile: LatencyProfile, spec: ModelSpec) -> str:
    """Format the costs of sublayers and passes by context length as Markdown."""

    def full_pass(n: int, rows: int) -> float:
        return price(profile, _observed(Design(rows, n, spec.whole), spec, profile))

    def half_pass(n: int) -> float:
        plan = ((TARGET, TARGET, SKIP, SKIP) * spec.layers)[: spec.sublayers]
        return price(profile, _observed(Design(1, n, (*plan, TARGET)), spec, profile))

    def low_bit(n: int) -> str:
        if profile.variants == 1:
            return "-"
        plan = (LOW_BIT,) * len(spec.whole)
        return f"{price(profile, _observed(Design(1, n, plan), spec, profile)) / full_pass(n, 1):.2f}×"

    lines = [
        "| context | attention | MLP | attention/MLP | full pass | half pass | low-bit | 4 rows | 8 rows | 16 rows |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for n in profile.contexts:
        attention, mlp, plain = profile.projection(1) + profile.scan(n, 1), profile.mlp(1), full_pass(n, 1)
        widths = " | ".join(f"{full_pass(n, rows) / plain:.2f}×" for rows in (4, 8, 16))
        ratio = f"{attention / mlp:.2f}" if mlp else "-"
        lines.append(
            f"| {n} | {1e6 * attention:.0f} µs | {1e6 * mlp:.0f} µs | {ratio} | {1e3 * plain:.2f} ms | "
            f"{half_pass(n) / plain:.2f}× | {low_bit(n)} | {widths} |"
        )
    return "\n".join(lines)
