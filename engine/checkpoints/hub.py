"""Resolve a model's name to a directory or GGUF file, downloading models from the Hugging Face hub."""

import re
from pathlib import Path

from engine.architecture.spec import load_spec
from engine.checkpoints.default import NAME as DEFAULT_NAME
from engine.checkpoints.default import find_default_model
from engine.errors import ModelError

SAMPLE = 1 << 20  # bytes at the start and at the end of each file that a fingerprint includes
SYNTHETIC = "synthetic:"  # prefix of the names of synthetic models
_HUB_ID = re.compile(r"[\w][\w.-]*/[\w][\w.-]*(:[\w.-]+)?(@[\w./-]+)?")
_LATER_SHARD = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")
_DESCRIPTION, _WEIGHTS = ("*.json", "*.jinja"), ("model*.safetensors",)  # other weight files contain the same weights


def resolve(model: str | None, *, download: bool = True) -> Path:
    """Return the directory or GGUF file of `model`, an existing path or a hub id; None: the default model.

    Hub ids are `OWNER/NAME`, or `OWNER/NAME:Q4_K_M` for one file of a GGUF repository, optionally with `@REVISION`.
    Missing files are downloaded into the hub's cache; without `download`, a hub id is returned as it is. Raises
    ModelError, and ConfigError if the default model is missing.
    """
    if model is None:
        return find_default_model()
    path = Path(model).expanduser()
    try:
        is_file, exists = path.is_file(), path.exists()
        for part in path.iterdir() if path.is_dir() else [path]:
            if part.exists() and not (part.is_file() or part.is_dir()):  # a pipe could be waited for without end
                raise ModelError(f"{part} is neither a file nor a directory")
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    if model == DEFAULT_NAME and not exists:
        return find_default_model()
    if is_file:
        if path.suffix != ".gguf":
            raise ModelError(f"{path} is a file; --model takes a checkpoint's directory, a .gguf file, or a hub id")
        return path
    if exists:
        return path if (path / "config.json").exists() else _find_gguf(path) or path
    if not _HUB_ID.fullmatch(model) or model.startswith((".", "/", "~")):
        raise ModelError(f"{path} does not exist, and '{model}' is not a hub id (OWNER/NAME or OWNER/NAME:Q4_K_M)")
    return _fetch(model) if download else path


def models_in(directory: Path) -> list[Path]:
    """Return the models of a directory: GGUF files, of a split one the first, and itself if it is a checkpoint."""
    paths = sorted(directory.glob("*.gguf"))
    files = [path for path in paths if not _LATER_SHARD.search(path.name) and "mmproj" not in path.name]
    is_checkpoint = (directory / "config.json").exists() and any(directory.glob("*.safetensors"))
    return [*files, directory] if is_checkpoint else files


def _find_gguf(directory: Path, kind: str = "") -> Path | None:
    """Return the GGUF file whose name contains `kind`, or None. Raises ModelError if there are several."""
    files = [path for path in models_in(directory) if path != directory and kind.lower() in path.name.lower()]
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise ModelError(f"{directory} has several GGUF files: {names}; set --model to the path of one")
    return files[0] if files else None


def display_name(model: str | None) -> str:
    """Return the default name of the model in the API: the hub id, or the name of the file or directory."""
    if model is None:
        return DEFAULT_NAME
    path = Path(model).expanduser()
    if not path.exists():
        return model
    return path.stem if path.is_file() else path.resolve().name


def _fetch(model: str) -> Path:
    """Download a model. Its configuration comes first, so that unsupported models fail before the weights load."""
    named, at, revision = model.partition("@")
    repository, _, kind = named.partition(":")
    model = repository + at + revision
    if kind:
        path = _find_gguf(_snapshot(model, (f"*{kind}*.gguf", f"*{kind.lower()}*.gguf")), kind)
        if path is None:
            raise ModelError(f"{repository} has no GGUF file whose name contains {kind}")
        return path
    directory = _snapshot(model, _DESCRIPTION)
    if not (directory / "config.json").exists():
        raise ModelError(f"{repository} has no config.json; for a GGUF repository, name a file: {repository}:Q4_K_M")
    load_spec(directory)
    return _snapshot(model, (*_DESCRIPTION, *_WEIGHTS))


def _snapshot(model: str, patterns: tuple[str, ...]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

    name, _, revision = model.partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=list(patterns)))
    except GatedRepoError:
        reason = "the model is gated: accept its terms on its page, then log in with `hf auth login`"
    except RepositoryNotFoundError:
        reason = "the model does not exist or is private: log in with `hf auth login`"
    except LocalEntryNotFoundError:
        reason = (
            "the hub is unreachable, and the model is not in the cache: run `hf download "
            f"{name}` with a network connection, or set --model to a directory"
        )
    except Exception as error:  # the HTTP client's errors are not documented
        reason = (str(error) or type(error).__name__).splitlines()[0]
    raise ModelError(f"cannot download {model}: {reason}")
