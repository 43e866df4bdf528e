"""Launch a kernel of Triton, which needs more at run time than the package."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import torch
import triton
import triton.language as tl

from engine.errors import ConfigError


@triton.jit
def _write(out):
    tl.store(out, 1)


def launch(device: torch.device) -> None:
    """Compile and launch a kernel."""
    _write[(1,)](torch.zeros(1, dtype=torch.int32, device=device))


def check_launches(device: torch.device) -> None:
    """Launch a kernel. Raises ConfigError, which names what is missing, if that is impossible."""
    try:
        launch(device)
    except (RuntimeError, OSError, AssertionError, subprocess.CalledProcessError) as error:
        header = Path(sysconfig.get_path("include", "posix_prefix"), "Python.h")
        unread = isinstance(error, subprocess.CalledProcessError) and not header.exists()
        problem = f"there is no {header}" if unread else " ".join(str(error).split()).rstrip(".")
        raise ConfigError(
            f"Triton cannot launch kernels on {device}: {problem}. It needs a C compiler (gcc or clang), the headers "
            "of Python (Debian: python3-dev) and NVIDIA's driver; install what is missing, or choose --device cpu"
        ) from error
