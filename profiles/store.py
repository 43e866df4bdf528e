"""Load and save profiles: shipped ones beside this file, measured ones in the user's directory."""

import os
from pathlib import Path
from uuid import uuid4

from profiles.schema import LatencyProfile, ProfileError, ProfileKey

SHIPPED = Path(__file__).parent / "data"


def default_directory() -> Path:
    """Return the directory of measured profiles without `--profile-dir`."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "knapserve" / "profiles"


def load(path: Path) -> LatencyProfile:
    """Read a profile. Raises ProfileError naming the file."""
    try:
        return LatencyProfile.from_json(path.read_text("utf-8"))
    except OSError as error:
        raise ProfileError(f"cannot read profile {path}: {error.strerror or error}") from None
    except (ProfileError, UnicodeDecodeError) as error:
        raise ProfileError(f"profile {path}: {error}") from None


def find(key: ProfileKey, directory: Path | None, shipped: Path = SHIPPED) -> tuple[LatencyProfile, Path] | None:
    """Find the profile of a key: in `directory` only, or, if None, in the user's directory and then in `shipped`.

    Raises ProfileError if that profile is damaged.
    """
    for folder in (default_directory(), shipped) if directory is None else (directory,):
        path = folder / f"{key.slug}.json"
        try:
            exists = path.exists()
        except OSError as error:  # the home of another user
            if directory is not None:
                raise ProfileError(f"cannot read profile {path}: {error.strerror or error}") from None
            continue
        if exists:
            profile = load(path)
            if profile.key == key:
                return profile, path
    return None


def save(profile: LatencyProfile, directory: Path) -> Path:
    """Write a profile under the name of its key, atomically. Returns the path."""
    path = directory / f"{profile.key.slug}.json"
    write_atomically(profile.to_json(), path)
    return path


def write_atomically(content: str | bytes, path: Path) -> None:
    """Write a file atomically and create its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{uuid4().hex}.tmp")  # other processes may write the same file
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
