"""Compiles `kernels.cpp` for this machine, once, and loads it.

It takes a few seconds at the first start, or at install (`python -m engine.native.library`); the result is kept under a
name made of source, compiler and CPU. Without a C++ compiler there is no library: torch's operations do the work.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_float, c_int, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path

log = logging.getLogger("knapserve.engine")

VERSION = 2  # of the interface, as in kernels.cpp
SOURCE = Path(__file__).with_name("kernels.cpp")
FLAGS = ("-std=c++17", "-O3", "-fno-math-errno", "-ffp-contract=fast", "-shared", "-fPIC", "-pthread")
TIMEOUT = 120.0  # seconds for the compiler


class Linear(Structure):
    """A packed weight and perhaps its float32 bias."""

    _fields_ = (("w", c_void_p), ("bias", c_void_p), ("out", c_int32), ("inputs", c_int32))


class Layer(Structure):
    _fields_ = (
        ("attention_norm", c_void_p),
        ("mlp_norm", c_void_p),
        ("qk_norm", c_void_p),
        ("qkv", Linear),
        ("output", Linear),
        ("gate_up", Linear),
        ("down", Linear),
        ("window", c_int32),
    )


class Model(Structure):
    _fields_ = (
        ("layers", c_int32),
        ("hidden", c_int32),
        ("heads", c_int32),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("intermediate", c_int32),
        ("epsilon", c_float),
        ("layer", POINTER(Layer)),
    )


class Cache(Structure):
    """Where the K/V blocks lie; strides in elements."""

    _fields_ = (("data", c_void_p), ("layer", c_int64), ("slab", c_int64), ("head", c_int64))


class Pass(Structure):
    _fields_ = (
        ("rope", c_void_p),
        ("x", c_void_p),
        ("slabs", c_void_p),
        ("positions", c_void_p),
        ("plans", c_void_p),
        ("records", c_void_p),
        ("plan_stride", c_int32),
        ("rows", c_int32),
        ("first", c_int32),
        ("last", c_int32),
        ("own", c_int32),
    )


class Library:
    """The functions of kernels.cpp. Calls release the interpreter lock; one pass runs at a time."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._library.ks_version.restype = c_int
        if self._library.ks_version() != VERSION:
            raise OSError(f"{path} has another interface")
        self.pack = self._library.ks_pack
        self.pack.argtypes = (c_void_p, c_int64, c_int64, c_void_p, c_int)
        self.run = self._library.ks_pass
        self.run.argtypes = (POINTER(Model), POINTER(Cache), POINTER(Pass))
        self.product = self._library.ks_product
        self.product.argtypes = (POINTER(Linear), c_void_p, c_int, c_void_p, c_void_p, c_float)
        self.top = self._library.ks_top
        self.top.argtypes = (c_void_p, c_int, c_int64, c_void_p, c_void_p)
        self.read = self._library.ks_read
        self.read.argtypes = (c_void_p, c_int64)
        for function in (self.pack, self.run, self.product, self.top):
            function.restype = None
        self.threads = 0
        self.set_threads(1)

    def set_threads(self, threads: int) -> None:
        """How many share a pass, the caller included."""
        if threads != self.threads:
            self._library.ks_threads(threads)
            self.threads = threads


def loaded() -> Library | None:
    """The library, if a model already uses it."""
    return library() if library.cache_info().currsize else None


@cache
def library() -> Library | None:
    """The library, compiled if need be; None, with the reason in the log, where that is not possible."""
    found = compiler()
    if found is None:
        log.info("no C++ compiler: torch's own operations do the work, slower")
        return None
    try:
        path = directory() / f"{_name(found)}.so"
        if not path.exists():
            build(found, path)
        return Library(path)
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or error
        log.warning("the native kernels cannot be built, torch's own operations do the work: %s", str(reason)[:2000])
        return None


def compiler() -> str | None:
    """Path of the C++ compiler: $CXX, or the usual names."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]
    return next((path for path in map(shutil.which, names) if path), None)


def directory() -> Path:
    """Where compiled libraries are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "knapserve" / "native"


def build(found: str, path: Path) -> None:
    """Compile to `path`, which appears whole or not at all. Raises OSError, SubprocessError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        for tuning in _tunings():
            command = [found, *FLAGS, tuning, str(SOURCE), "-o", str(made)]
            result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
            if result.returncode == 0:
                made.replace(path)
                return
        raise subprocess.CalledProcessError(result.returncode, command, result.stdout, result.stderr)


def _tunings() -> Sequence[str]:
    return ("-march=native", "-mcpu=native")


def _name(found: str) -> str:
    """Of a library that fits this source, compiler and CPU."""
    facts = hashlib.sha256(SOURCE.read_bytes())
    facts.update(" ".join(FLAGS).encode())
    facts.update(subprocess.run([found, "--version"], capture_output=True, timeout=TIMEOUT, check=True).stdout)
    facts.update(f"{platform.machine()} {platform.processor()}".encode())
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        facts.update("".join(sorted({line for line in lines if line.startswith(("flags", "Features"))})).encode())
    except OSError:
        facts.update(platform.platform().encode())
    return f"kernels-{facts.hexdigest()[:20]}"


if __name__ == "__main__":
    print("native kernels ready" if library() else "no native kernels; see the log")
