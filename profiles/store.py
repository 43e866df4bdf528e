"""Profiles on disk: the shipped ones beside this file, the measured ones in the user's directory."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from profiles.schema import LatencyProfile, ProfileError, ProfileKey

SHIPPED = Path(__file__).parent / "data"


def default_directory() -> Path:
    """Where measured profiles are kept unless `--profile-dir` says otherwise."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "knapserve" / "profiles"


def load(path: Path) -> LatencyProfile:
    """Read one file. Raises ProfileError naming it."""
    try:
        return LatencyProfile.from_json(path.read_text("utf-8"))
    except OSError as error:
        raise ProfileError(f"cannot read profile {path}: {error.strerror or error}") from None
    except (ProfileError, UnicodeDecodeError) as error:
        raise ProfileError(f"profile {path}: {error}") from None


def find(key: ProfileKey, directory: Path | None, shipped: Path = SHIPPED) -> tuple[LatencyProfile, Path] | None:
    """Find the profile of `key`: in `directory` alone, or with None in the user's own before `shipped`.

    Raises ProfileError for a damaged match.
    """
    for folder in (default_directory(), shipped) if directory is None else (directory,):
        path = folder / f"{key.slug}.json"
        try:
            there = path.exists()
        except OSError as error:  # somebody else's home
            if directory is not None:
                raise ProfileError(f"cannot read profile {path}: {error.strerror or error}") from None
            continue
        if there:
            profile = load(path)
            if profile.key == key:
                return profile, path
    return None


def save(profile: LatencyProfile, directory: Path) -> Path:
    """Write under the profile's key, whole or not at all. Returns the path."""
    path = directory / f"{profile.key.slug}.json"
    write_whole(profile.to_json(), path)
    return path


def write_whole(text: str, path: Path) -> None:
    """Write a file whole or not at all, and the directories that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{uuid4().hex}.tmp")  # others may write at the same time
    temporary.write_text(text, "utf-8")
    temporary.replace(path)
