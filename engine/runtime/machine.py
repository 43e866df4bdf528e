"""What the machine has for us: cores, memory, and the name that latency profiles know it by."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path

import torch


def usable_cores() -> int:
    """Processor cores that this process may keep busy."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *container_cores(Path("/sys/fs/cgroup"))]))


def container_cores(group: Path) -> Iterator[int]:
    """What a cgroup's share of processor time comes to in whole cores, if it is limited at all: more threads than that
    would be held up in turns, all at the same time."""
    with contextlib.suppress(OSError, ValueError):  # no such limit, or "max"
        quota, period = (group / "cpu.max").read_text("utf-8").split()
        yield int(quota) // int(period)
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = ((group / "cpu" / f"cpu.cfs_{name}_us").read_text("utf-8") for name in ("quota", "period"))
        if int(quota) > 0:
            yield int(quota) // int(period)


def free_memory(device: torch.device) -> int:
    """Bytes that can be had on the device; on a CPU, page cache included and no more than the container's."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([free, *container_memory(Path("/sys/fs/cgroup"))])


def container_memory(group: Path) -> Iterator[int]:
    """What a cgroup leaves this process, if it is limited at all; what it holds of files can be had as well."""
    for limit, used, held, prefix in (
        ("memory.max", "memory.current", "memory.stat", ""),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_"),
    ):
        with contextlib.suppress(OSError, ValueError):  # no such limit, or "max"
            most = int((group / limit).read_text("utf-8"))
            taken = int((group / used).read_text("utf-8"))
            with contextlib.suppress(OSError, ValueError):
                facts = dict(line.split() for line in (group / held).read_text("utf-8").splitlines())
                taken -= sum(int(facts.get(f"{prefix}{kind}_file", 0)) for kind in ("active", "inactive"))
            yield min(most, max(0, most - taken))


def native_bf16() -> bool:
    """Whether the CPU has bf16 dot products; without them torch emulates bf16, and its float32 is faster."""
    return bool(torch.cpu._is_avx512_bf16_supported())


def hardware(device: torch.device) -> str:
    """Name of the device that a profile belongs to."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        facts = dict(line.split(":", 1) for line in lines if ":" in line)
        facts = {name.strip(): value.strip() for name, value in facts.items()}
        named = " ".join(facts[k] for k in ("model name", "cpu family", "model") if k in facts)
        tiles = " with AMX" if "amx_bf16" in facts.get("flags", "").split() else ""
    except (OSError, ValueError):
        named = tiles = ""
    widening = "" if native_bf16() else " without bf16"  # as a virtual machine may hide it
    return f"{named or platform.processor() or platform.machine()} {os.cpu_count()} cores{tiles}{widening}"
