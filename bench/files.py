"""Write the files of measurements."""

import tempfile
from pathlib import Path

from engine.errors import ConfigError
from profiles.store import write_atomically


def write(path: Path, content: str | bytes) -> None:
    """Write a file completely or not at all. Raises ConfigError."""
    try:
        write_atomically(content, path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None


def check_writable(path: Path, flag: str) -> None:
    """Make the file's folder, before a long measurement. Raises ConfigError if the file could not be written."""
    if path.is_dir():
        raise ConfigError(f"{flag}: {path} is a folder; expected a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ConfigError(f"{flag}: cannot write to {path.parent}: {error.strerror or error}") from None
