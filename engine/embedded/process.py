"""What the process of a training run is begun with, how it is stopped, and how it hands tensors to its device."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator

import torch
from torch import Tensor


def begin_anew() -> None:
    """Start this process again with what only its beginning can set, unless that is set: malloc in huge pages (a step
    takes a tenth less), and room for more ready products of oneDNN than the 1,024 that a run's shapes exceed."""
    wanted = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8192"}
    if wanted.keys() - os.environ.keys():
        os.execve(sys.executable, sys.orig_argv, {**wanted, **os.environ})


def keep_freed_memory() -> None:
    """Has glibc keep large freed blocks: getting them anew from the system, page by page, is an eighth of a step."""
    mmap_threshold, trim_threshold, top_pad = -3, -1, -2  # numbers of mallopt(3)
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        for option, size in ((mmap_threshold, 1 << 30), (trim_threshold, 2**31 - 1), (top_pad, 1 << 28)):
            libc.mallopt(option, size)


@contextlib.contextmanager
def interruption() -> Iterator[threading.Event]:
    """Set by Ctrl-C or SIGTERM, for whoever looks between two steps."""
    event = threading.Event()
    before = {number: signal.signal(number, lambda *_: event.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def uploaded(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host on `device`, without waiting for what the device still has to do."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
