"""The prepared fixture as a checkpoint that the engine can load.

The repository has its weights as whole numbers, with a step for each row.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory


def expand(stored: Path, checkpoint: Path) -> Path:
    """Make the checkpoint, in bfloat16, unless it is there and newer weights are not. Returns its folder.

    Processes may call this at the same time. Files but the weights are links.
    """
    checkpoint.mkdir(parents=True, exist_ok=True)
    packed, weights = stored / "weights.npz", checkpoint / "model.safetensors"
    for path in stored.iterdir():
        if path != packed:
            with suppress(FileExistsError):
                (checkpoint / path.name).symlink_to(os.path.relpath(path, checkpoint))
    changed = packed.stat().st_mtime_ns
    if not weights.exists() or weights.stat().st_mtime_ns != changed:
        with TemporaryDirectory(dir=checkpoint.parent) as folder:
            made = Path(folder) / weights.name
            _write_weights(packed, made)
            os.utime(made, ns=(changed, changed))
            made.replace(weights)
    return checkpoint


def _write_weights(packed: Path, path: Path) -> None:
    import numpy as np
    import torch
    from safetensors.torch import save_file

    with np.load(packed) as arrays:
        steps = {name: arrays[name] for name in arrays if name.endswith(".step")}
        values = {name: arrays[name] * steps.get(f"{name}.step", 1) for name in arrays if name not in steps}
    save_file({name: torch.from_numpy(value).bfloat16() for name, value in values.items()}, path, {"format": "pt"})
