"""A model's name to a directory on disk: a path, or a Hugging Face hub id fetched through its cache."""

from __future__ import annotations

import re
from pathlib import Path

from engine.errors import ModelError
from engine.model.spec import load_spec

_HUB_ID = re.compile(r"[\w][\w.-]*/[\w][\w.-]*(@[\w./-]+)?")
_DESCRIPTION, _WEIGHTS = ("*.json", "*.jinja"), ("model*.safetensors",)  # other weight files repeat these


def resolve(model: str) -> Path:
    """The directory of `model`: a path that exists, or `OWNER/NAME` or `OWNER/NAME@REVISION` on the hub.

    Files of a hub id are taken from the hub's own cache, fetched into it if they are not there. Raises ModelError.
    """
    path = Path(model).expanduser()
    try:
        is_file, exists = path.is_file(), path.exists()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    if is_file:
        kind = "a GGUF file" if path.suffix == ".gguf" else "a file"
        raise ModelError(f"{path} is {kind}; --model takes the directory of a Hugging Face checkpoint, or a hub id")
    if exists:
        return path
    if not _HUB_ID.fullmatch(model) or model.startswith((".", "/", "~")):
        raise ModelError(f"there is no directory {path}, and '{model}' is not a hub id (OWNER/NAME)")
    return _fetch(model)


def display_name(model: str) -> str:
    """What the model is called in the API when it is given no name: the hub id, or the directory's name."""
    path = Path(model).expanduser()
    return path.resolve().name if path.exists() else model


def _fetch(model: str) -> Path:
    """First what describes the model, so that one that is not supported is refused before gigabytes are fetched."""
    directory = _snapshot(model, _DESCRIPTION)
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
