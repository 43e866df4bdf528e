"""Find the cores and memory that this process may use, and the machine's name in latency profiles."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path

import torch


def usable_cores() -> int:
    """Return the number of processor cores that this process may keep busy, at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *container_cores(Path("/sys/fs/cgroup"))]))


def container_cores(group: Path) -> Iterator[int]:
    """Yield a cgroup's limit of processor time in whole cores, if it has one; `group`: the root of cgroup files.

    The system would pause all threads at once if more of them ran.
    """
    with contextlib.suppress(OSError, ValueError):  # no such limit, or "max"
        quota, period = (group / "cpu.max").read_text("utf-8").split()
        yield int(quota) // int(period)
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = ((group / "cpu" / f"cpu.cfs_{name}_us").read_text("utf-8") for name in ("quota", "period"))
        if int(quota) > 0:
            yield int(quota) // int(period)


def free_memory(device: torch.device) -> int:
    """Return the bytes that this process can allocate on the device.

    On a CPU, memory of the page cache counts as free, and a container's limit applies. On a GPU, torch's cache of
    freed memory is emptied first.
    """
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([free, *container_memory(Path("/sys/fs/cgroup"))])


def container_memory(group: Path) -> Iterator[int]:
    """Yield the bytes that a cgroup's memory limit leaves free, if it has one; its page cache counts as free."""
    for limit, used, statistics, prefix in (
        ("memory.max", "memory.current", "memory.stat", ""),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_"),
    ):
        with contextlib.suppress(OSError, ValueError):  # no such limit, or "max"
            total = int((group / limit).read_text("utf-8"))
            taken = int((group / used).read_text("utf-8"))
            with contextlib.suppress(OSError, ValueError):
                facts = dict(line.split() for line in (group / statistics).read_text("utf-8").splitlines())
                taken -= sum(int(facts.get(f"{prefix}{kind}_file", 0)) for kind in ("active", "inactive"))
            yield min(total, max(0, total - taken))


def native_bf16() -> bool:
    """Whether the CPU has bf16 dot products. Without them, torch emulates bf16, and float32 is faster."""
    return bool(torch.cpu._is_avx512_bf16_supported())


def hardware(device: torch.device) -> str:
    """Return the device's name in latency profiles."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        facts = dict(line.split(":", 1) for line in lines if ":" in line)
        facts = {name.strip(): value.strip() for name, value in facts.items()}
        name = " ".join(facts[k] for k in ("model name", "cpu family", "model") if k in facts)
        amx = " with AMX" if "amx_bf16" in facts.get("flags", "").split() else ""
    except (OSError, ValueError):
        name = amx = ""
    no_bf16 = "" if native_bf16() else " without bf16"  # a virtual machine may hide bf16 of the same processor
    return f"{name or platform.processor() or platform.machine()} {os.cpu_count()} cores{amx}{no_bf16}"
