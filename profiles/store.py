"""Load and save profiles: a file for each hardware, shipped ones beside this module, measured ones of the user.

A file is an object with a list `profiles` of entries (`LatencyProfile`), and perhaps a `note` to its readers.
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from profiles.schema import VERSION, LatencyProfile, ProfileError, ProfileKey, slug

SHIPPED = Path(__file__).parent / "data"


def default_directory() -> Path:
    """Return the directory of measured profiles without `--profile-dir`."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "knapserve" / "profiles"


def path_of(hardware: str, directory: Path) -> Path:
    """Return the file for all profiles of a kind of hardware."""
    return directory / f"{slug(hardware)}.json"


def load(path: Path) -> list[LatencyProfile]:
    """Read the entries of a file but those of other versions. Raises ProfileError, which names the file."""
    return _read(path)[1]


def find(key: ProfileKey, directory: Path | None, shipped: Path = SHIPPED) -> tuple[LatencyProfile, Path] | None:
    """Find the profile of a key, else one whose key differs in the copy of the weights only.

    Search `directory` only, or, if None, the user's directory and then `shipped`. Raises ProfileError if a file of this
    hardware is damaged.
    """
    found = []
    for folder in (default_directory(), shipped) if directory is None else (directory,):
        path = path_of(key.hardware, folder)
        try:
            exists = path.exists()
        except OSError as error:  # the home of another user
            if directory is not None:
                raise ProfileError(f"cannot read profiles {path}: {error.strerror or error}") from None
            continue
        found += [(profile, path) for profile in (load(path) if exists else ())]
    suiting = [(profile, path) for profile, path in found if replace(profile.key, draft_bits=key.draft_bits) == key]
    return min(suiting, key=lambda pair: pair[0].key != key, default=None)


def save(profile: LatencyProfile, directory: Path) -> Path:
    """Add a profile to the file of its hardware, in place of an entry with the same key. Returns the path.

    The file changes at once, and other processes may save at the same time. Raises OSError, and ProfileError if the
    file is damaged; it then stays as it is.
    """
    path = path_of(profile.key.hardware, directory)
    directory.mkdir(parents=True, exist_ok=True)
    with _locked(directory):
        raw = _read(path)[0] if path.exists() else {"profiles": []}
        entry = asdict(profile)
        raw["profiles"] = [*(other for other in raw["profiles"] if other["key"] != entry["key"]), entry]
        write_atomically(json.dumps(raw, indent=1), path)
    return path


def _read(path: Path) -> tuple[dict[str, Any], list[LatencyProfile]]:
    """Read a file as it is, and its entries of this version. Raises ProfileError, which names the file."""
    place = ""
    try:
        raw: dict[str, Any] = json.loads(path.read_text("utf-8"))
        profiles = []
        for i, entry in enumerate(raw["profiles"]):
            place = f", entry {i + 1}"
            if entry["key"]["version"] == VERSION:
                profiles.append(LatencyProfile.from_dict(entry))
        return raw, profiles
    except OSError as error:
        raise ProfileError(f"cannot read profiles {path}: {error.strerror or error}") from None
    except ProfileError as error:
        raise ProfileError(f"profiles {path}{place}: {error}") from None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ProfileError(f"profiles {path}{place}: not a file of latency profiles: {error}") from None


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Let one process at a time save to a directory, where the file system has locks."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):
            import fcntl

            handle = os.open(directory, os.O_RDONLY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_atomically(content: str | bytes, path: Path) -> None:
    """Write a file atomically and create its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{uuid4().hex}.tmp")  # other processes may write the same file
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
