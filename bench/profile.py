"""`knapserve profile`: measure passes of this model here; fit, print and save the profile."""

import argparse
import gc
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bench.prompts import positive
from engine.architecture.spec import ModelSpec
from engine.checkpoints.default import NAME as DEFAULT_NAME
from engine.checkpoints.hub import SYNTHETIC
from engine.checkpoints.shapes import SHAPES, shape
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.logs import progress_bar
from engine.plans import LOW_BIT, SKIP, TARGET, Variants
from engine.runtime.build import LoadedModel
from engine.runtime.loading import choices
from engine.runtime.machine import hardware
from engine.runtime.measure import THOROUGH, Design, Measurement, thorough_grid
from profiles import store
from profiles.fit import price
from profiles.schema import LatencyProfile, ProfileError, ProfileKey

_DEFAULT_SHAPE = shape("smollm2-135m").shape_key  # the default model's shape
_MAX_ERROR = 0.1  # median relative error of a usable profile
# Prevents a quick measurement while the model loads.
_PLACEHOLDER = LatencyProfile(
    ProfileKey("", 0, "", "", "", 0), (1,), (1,), 1.0, ((1.0,),), ((1.0,),), ((1.0,),), ((0.0,),), 1.0, 0.0, 0.0
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repetitions", type=positive, default=7, help="measurements of each pass (default: 7)")
    parser.add_argument(
        "--all-shapes",
        action="store_true",
        help="measure the default model, and random weights in the shapes of the shipped profiles; "
        "profiles that this command has saved before are kept",
    )
    parser.add_argument("--again", action="store_true", help="with --all-shapes: replace those profiles too")


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Measure, fit and save; print a table, and JSON as the last line. Raises ConfigError."""
    saved = _saved_shapes(config)  # an error in the file comes before minutes of measurement
    if not args.all_shapes:
        print(json.dumps(_measure(args.repetitions, config)))
        return 0
    if config.model is not None:
        raise ConfigError("--all-shapes measures models of its own; leave out --model")
    results, models = [], _models()
    for i, (kind, model) in enumerate(models.items(), 1):
        print(f"{i} of {len(models)}: {model or DEFAULT_NAME}", flush=True)
        if kind in saved and not args.again:
            print("It has a profile; --again measures another one.")
            continue
        try:
            results.append(_measure(args.repetitions, replace(config, model=model)))
        except ConfigError as error:  # mostly for lack of memory
            print(f"Skipped: {error}", flush=True)
        gc.collect()
        torch.cuda.empty_cache()
    print(json.dumps(results))
    return 0


def _models() -> dict[str, str | None]:
    """Return the models of `--all-shapes` by shape, the smallest first. None: the default model."""
    shipped = {profile.key.shape for path in store.SHIPPED.glob("*.json") for profile in store.load(path)}
    shapes = sorted(((shape(name), name) for name in SHAPES), key=lambda each: each[0].parameters)
    others = {spec.shape_key: SYNTHETIC + name for spec, name in shapes if spec.shape_key in shipped}
    return {_DEFAULT_SHAPE: None, **{kind: name for kind, name in others.items() if kind != _DEFAULT_SHAPE}}


def _saved_shapes(config: EngineConfig) -> set[str]:
    """Return the shapes with a thorough profile of this hardware. Raises ConfigError."""
    device = choices.choose_device(config.device)
    name = hardware(device)
    path = store.path_of(name, config.profile_dir or store.default_directory())
    try:
        profiles = store.load(path) if path.exists() else []
    except (OSError, ProfileError) as error:
        raise ConfigError(str(error)) from None
    return {
        profile.key.shape
        for profile in profiles
        if profile.key.hardware == name
        and {*THOROUGH[device.type].rows} <= {*profile.rows}
        and (profile.key.draft_bits or config.draft_bits == "none" or profile.key.dtype != "bfloat16")
    }


def _measure(repetitions: int, config: EngineConfig) -> dict[str, Any]:
    """Measure, fit, save and print one model's profile. Returns a summary. Raises ConfigError."""
    model = LoadedModel(config, profile=_PLACEHOLDER)
    measurement = Measurement(model.decoder, model.attention, model.clock)
    grid = thorough_grid(model.decoder.device.type, model.attention.cache.length)
    progress = progress_bar("measuring passes")
    measured = measurement.thorough(model.key, grid, repetitions=repetitions, progress=progress)
    profile, spec = measured.profile, model.spec
    path = _save(profile, config)
    errors = [abs(_predict(profile, spec, design) / seconds - 1) for design, seconds in measured.unseen]
    copy = f"copy in {model.draft_bits} bits" if model.draft_bits else "no copy"
    print(f"{model.key.machine}, {model.key.dtype}, {copy}, {model.key.backend}; {spec.shape_key}")
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
    return {
        "profile": str(path),
        "passes": len(measured.passes),
        "median_error": profile.residual,
        "worst_error": profile.worst,
        "median_error_unseen": statistics.median(errors),
        "worst_error_unseen": max(errors),
        "fits": not poor,
    }


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
