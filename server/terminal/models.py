"""`knapserve models`: list the models on this machine. Their descriptions are read, not their weights."""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from huggingface_hub import constants, scan_cache_dir

from engine.architecture.spec import load_spec, read_json
from engine.checkpoints.default import NAME, find_default_model
from engine.checkpoints.gguf_file import ARCHITECTURES, GgufFile
from engine.checkpoints.hub import models_in
from engine.config.engine import EngineConfig
from engine.errors import ConfigError, KnapServeError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `models`."""
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="also list the models in this folder")


def run(args: argparse.Namespace, _: EngineConfig) -> int:
    """Print a line for each model: its size, the argument for --model, and whether it is supported."""
    if args.folder is not None and not args.folder.is_dir():
        raise ConfigError(f"{args.folder} is not a folder")
    for argument, path in sorted(_models(args.folder)):
        split = path.name.replace("-00001-of-", "-*-of-")  # matches all files of a split model
        files = path.glob("*.safetensors") if path.is_dir() else path.parent.glob(split)
        print(f"{sum(file.stat().st_size for file in files) / 1e6:>9,.0f} MB  {argument}: {_verdict(path)}")
    return 0


def _models(folder: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield the argument for --model, and the path, of the default model, cached ones and those of a folder."""
    with suppress(ConfigError):
        yield f"(default) {NAME}", find_default_model()
    if Path(constants.HF_HUB_CACHE).is_dir():
        for repository in scan_cache_dir(constants.HF_HUB_CACHE).repos:
            for revision in repository.revisions:
                at = "" if "main" in revision.refs else f"@{revision.commit_hash}"
                for path in models_in(revision.snapshot_path):
                    yield repository.repo_id + (f":{path.stem}" if path.suffix == ".gguf" else "") + at, path
    for directory in [folder, *folder.iterdir()] if folder else []:
        yield from ((str(path), path) for path in models_in(directory))


def _verdict(path: Path) -> str:
    try:
        if path.suffix == ".gguf":
            kind = GgufFile(path).field("general.architecture", str, "")
            return "supported" if kind in ARCHITECTURES else f"not supported: architecture {kind or '(none)'}"
        load_spec(path)
        if "quantization_config" in (config := read_json(path / "config.json")):
            from engine.quantised.config import parse_quantisation  # imports torch

            parse_quantisation(config)
    except KnapServeError as error:
        return f"not supported: {error}"
    return "supported"
