"""What the kernels of a recorded pass have in common: how they begin, and when they do nothing.

On compute capability 9 and later, a kernel is launched before its predecessor has finished (programmatic dependent
launch). It asks for its first weights, then waits. Every kernel waits, so that the end of one means the end of all
before it.

A pass of a draft starts before the host knows whether the draft goes on. If the device has found that it does not, the
kernels of that pass return at once.
"""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

from engine.errors import ConfigError

_EARLY = (9, 0)  # least compute capability with programmatic dependent launch


@triton.jit
def begin(alive, EARLY: tl.constexpr):
    """Wait for the kernels before this one, let the next one be launched, and return whether there is work."""
    if EARLY:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    going = True
    if alive is not None:
        going = tl.load(alive, cache_modifier=".cg") != 0
    return going


@triton.jit
def prefetch(pointers, alive, EARLY: tl.constexpr):
    """Ask for the lines of 128 bytes at these addresses: into the L2 cache, before the kernel may read them.

    A draft that has ended asks for nothing. The flag may be read too early: then lines are asked for in vain, or not.
    """
    if EARLY:
        wanted = True
        if alive is not None:
            wanted = tl.load(alive, cache_modifier=".cg") != 0
        if wanted:
            tl.inline_asm_elementwise(
                "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [pointers], dtype=tl.int32, is_pure=False, pack=1
            )


class Launch:
    """The options of all kernels on one device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.alive = torch.ones(1, dtype=torch.int32, device=device)  # 0: the draft has ended
        self.early = device.type == "cuda" and torch.cuda.get_device_capability(device) >= _EARLY
        self._stops = False

    @contextmanager
    def of_draft(self, stops: bool) -> Iterator[None]:
        """Launch kernels that do nothing once the draft has ended, if `stops`."""
        self._stops = stops
        try:
            yield
        finally:
            self._stops = False

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of every launch."""
        early = {"launch_pdl": True} if self.early else {}  # the interpreter does not know this option
        return {"alive": self.alive if self._stops else None, "EARLY": self.early, **early}


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
