"""A model's name to a directory or GGUF file on disk: a path, or a Hugging Face hub id fetched through its cache."""

from __future__ import annotations

import re
from pathlib import Path

from engine.architecture.spec import load_spec
from engine.errors import ModelError

SYNTHETIC = "synthetic:"  # what the names of made-up models begin with
_HUB_ID = re.compile(r"[\w][\w.-]*/[\w][\w.-]*(:[\w.-]+)?(@[\w./-]+)?")
_LATER_SHARD = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")
_DESCRIPTION, _WEIGHTS = ("*.json", "*.jinja"), ("model*.safetensors",)  # other weight files repeat these


def resolve(model: str) -> Path:
    """The directory or GGUF file of `model`: a path that exists, or a hub id: `OWNER/NAME`, for a repository of GGUF
    files with the one that is meant, `OWNER/NAME:Q4_K_M`; `@REVISION` may follow.

    Files of a hub id are taken from the hub's own cache, fetched into it if they are not there. Raises ModelError.
    """
    path = Path(model).expanduser()
    try:
        is_file, exists = path.is_file(), path.exists()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    if is_file:
        if path.suffix != ".gguf":
            raise ModelError(f"{path} is a file; --model takes a checkpoint's directory, a .gguf file, or a hub id")
        return path
    if exists:
        return path if (path / "config.json").exists() else _gguf_in(path) or path
    if not _HUB_ID.fullmatch(model) or model.startswith((".", "/", "~")):
        raise ModelError(
            f"there is no file or directory {path}, and '{model}' is not a hub id (OWNER/NAME, or OWNER/NAME:Q4_K_M)"
        )
    return _fetch(model)


def _gguf_in(directory: Path, kind: str = "") -> Path | None:
    """The GGUF file whose name says `kind`, of a split model the first. Raises ModelError if there are several."""
    files = [
        path
        for path in sorted(directory.glob("*.gguf"))
        if kind.lower() in path.name.lower() and not _LATER_SHARD.search(path.name) and "mmproj" not in path.name
    ]
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise ModelError(f"{directory} has several GGUF files: {names}; give --model the path of one")
    return files[0] if files else None


def display_name(model: str) -> str:
    """What the model is called in the API when it is given no name: the hub id, or the file's or directory's name."""
    path = Path(model).expanduser()
    if not path.exists():
        return model
    return path.stem if path.is_file() else path.resolve().name


def _fetch(model: str) -> Path:
    """First what describes the model, so that one that is not supported is refused before gigabytes are fetched."""
    named, at, revision = model.partition("@")
    repository, _, kind = named.partition(":")
    model = repository + at + revision
    if kind:
        found = _gguf_in(_snapshot(model, (f"*{kind}*.gguf", f"*{kind.lower()}*.gguf")), kind)
        if found is None:
            raise ModelError(f"{repository} has no GGUF file whose name says {kind}")
        return found
    directory = _snapshot(model, _DESCRIPTION)
    if not (directory / "config.json").exists():
        raise ModelError(
            f"{repository} has no config.json; of a repository of GGUF files name one: {repository}:Q4_K_M"
        )
    load_spec(directory)
    return _snapshot(model, (*_DESCRIPTION, *_WEIGHTS))


def _snapshot(model: str, patterns: tuple[str, ...]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

    name, _, revision = model.partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=list(patterns)))
    except GatedRepoError:
        why = "its owner asks users to agree to terms first: do so on its page, then log in with `hf auth login`"
    except RepositoryNotFoundError:
        why = "the hub has no such model, or it is private: log in with `hf auth login`"
    except LocalEntryNotFoundError:
        why = (
            "the hub cannot be reached, and the model is not in its cache; "
            f"where there is a network, `hf download {name}` fetches it, or give --model a directory"
        )
    except Exception as error:  # whatever its HTTP client raises when a download breaks off
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
    raise ModelError(f"cannot get {model}: {why}")
