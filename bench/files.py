"""Read and write the files of measurements."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.errors import ConfigError
from profiles.store import write_atomically


def read(path: Path) -> str:
    """Return the text of a file. Raises ConfigError."""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {path}: it is not UTF-8 ({error.reason})") from None


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the fields of each line of JSON. Raises ConfigError."""
    for number, line in enumerate(read(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise ConfigError(f"{path}, line {number} is not a JSON object; expected one on each line")
        yield number, fields


def write(path: Path, content: str) -> None:
    """Write a file completely or not at all. Raises ConfigError."""
    try:
        write_atomically(content, path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None


def check_writable(path: Path, flag: str) -> None:
    """Make the file's folder, before a long measurement. Raises ConfigError if that fails."""
    if path.is_dir():
        raise ConfigError(f"{flag}: {path} is a folder; expected a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ConfigError(f"{flag}: cannot write to {path.parent}: {error.strerror or error}") from None
