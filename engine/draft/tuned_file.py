"""Read the files that `knapserve tune` writes for policies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from engine.errors import TunedFileError

T = TypeVar("T")


def parse_tuned(text: str, version: int, make: Callable[[dict[str, Any]], T]) -> T:
    """Parse the text of a file that `knapserve tune` wrote, an object with a version. Raises TunedFileError.

    `make` may raise KeyError for what is missing, and ValueError, TypeError or AttributeError for what is invalid.
    """
    try:
        raw: dict[str, Any] = json.loads(text)
        if raw["version"] != version:
            raise TunedFileError(
                f"version {raw['version']}, but this server reads version {version}; run `knapserve tune` again"
            )
        return make(raw)
    except KeyError as error:
        raise TunedFileError(f"not a file of `knapserve tune`: {error} is missing") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise TunedFileError(f"not a file of `knapserve tune`: {error}") from None


def read_tuned(path: Path, kind: str, parse: Callable[[str], T]) -> T:
    """Read a file that `knapserve tune` wrote; `kind` names its content. Raises TunedFileError, which names it."""
    try:
        return parse(path.read_text("utf-8"))
    except OSError as error:
        raise TunedFileError(f"cannot read {kind} {path}: {error.strerror or error}") from None
    except (TunedFileError, UnicodeDecodeError) as error:
        raise TunedFileError(f"{kind} {path}: {error}") from None
