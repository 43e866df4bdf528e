"""Compile the native CPU kernels for this machine and load them.

Compiling takes seconds and happens once: at the first use, or at installation by `python -m engine.kernels.library`.
The result is cached under a name derived from the sources, the compiler and the CPU. Without a C++ compiler
`kernel_library()` returns None, and torch's operations take the kernels' place.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from ctypes import POINTER, Array, c_float, c_int, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path

from engine.kernels import structures as native

log = logging.getLogger("knapserve.engine")

SOURCE = Path(__file__).with_name("kernels.cpp")
FLAGS = ("-std=c++17", "-O3", "-fno-math-errno", "-ffp-contract=fast", "-shared", "-fPIC", "-pthread")
TIMEOUT = 120.0  # seconds that one run of the compiler may take

Address = int | None  # of a tensor or an array
Integers = Array[c_int64]


class KernelLibrary:
    """Call the functions of kernels.cpp, which documents them. Calls release the interpreter lock.

    Method `name` calls `ks_name`. The kernels check neither the sizes nor the types of memory at an address.
    """

    run: Callable[[int, native.Model, native.Cache, native.Pass], None]
    draft: Callable[[int, native.Model, native.Cache, native.EmbedAndHead, native.DraftBatch], int]
    verify: Callable[[int, native.Model, native.Cache, native.EmbedAndHead, native.VerifyBatch], None]
    fill: Callable[[int, native.Model, native.Cache, native.Pass, native.SearchTable], None]
    product: Callable[[int, native.Linear, Address, int, Address, Address, float], None]
    sample: Callable[[Address, int, int, Array[native.Sampling], Integers, Integers, Array[c_float] | None], None]
    mask: Callable[[Address, Address, int], None]
    pack: Callable[[Address, int, int, Address, bool], None]
    panel_bytes: Callable[[native.PackedFormat, int], int]
    pack_rows: Callable[[int, native.PackedFormat, Address, int, int, Address], None]
    quantise: Callable[[int, native.Linear, native.PackedPart | None, int, int, Address], None]
    read_rows: Callable[[native.PackedFormat, Address, int, int, Address], None]
    read: Callable[[int, Address, int], None]
    new_executor: Callable[[int], int]

    def __init__(self, path: Path) -> None:
        """Load the shared library at `path`. Raises OSError, or AttributeError if a function is missing."""
        loaded = ctypes.CDLL(str(path))

        def declare(name: str, *arguments: type[object], result: type[object] | None = None) -> None:
            function = getattr(loaded, f"ks_{name}")
            function.argtypes, function.restype = arguments, result
            setattr(self, name, function)

        declare("new_executor", c_int, result=c_void_p)
        model = (c_void_p, POINTER(native.Model), POINTER(native.Cache))
        whole_model = (*model, POINTER(native.EmbedAndHead))
        declare("run", *model, POINTER(native.Pass))
        declare("draft", *whole_model, POINTER(native.DraftBatch), result=c_int)
        declare("verify", *whole_model, POINTER(native.VerifyBatch))
        declare("fill", *model, POINTER(native.Pass), POINTER(native.SearchTable))
        declare("product", c_void_p, POINTER(native.Linear), c_void_p, c_int, c_void_p, c_void_p, c_float)
        integers = POINTER(c_int64)
        declare("sample", c_void_p, c_int, c_int32, POINTER(native.Sampling), integers, integers, POINTER(c_float))
        declare("mask", c_void_p, c_void_p, c_int32)
        declare("pack", c_void_p, c_int64, c_int64, c_void_p, c_int)
        packed = POINTER(native.PackedFormat)
        declare("panel_bytes", packed, c_int64, result=c_int64)
        declare("pack_rows", c_void_p, packed, c_void_p, c_int64, c_int, c_void_p)
        declare("quantise", c_void_p, POINTER(native.Linear), POINTER(native.PackedPart), c_int, c_int, c_void_p)
        declare("read_rows", packed, c_void_p, c_int64, c_int64, c_void_p)
        declare("read", c_void_p, c_void_p, c_int64)
        # The handle of the pool of so many threads, the calling one included. A pool runs one call at a time; further
        # calls wait.
        self.executor = cache(self.new_executor)


@cache
def kernel_library() -> KernelLibrary | None:
    """Load the library on first use, compiling it if needed; None, with the reason in the log, if there is none.

    All callers in a process get the same answer, whichever of them comes first.
    """
    command = compiler()
    if command is None:
        log.info("no C++ compiler found: PyTorch's own operations are used, which are slower")
        return None
    try:
        name = f"{name_for(command)}.so"
        path = cache_directory(name) / name
        if path.exists():
            with contextlib.suppress(OSError, AttributeError):
                return KernelLibrary(path)
            if not os.access(path.parent, os.W_OK):  # damaged, or compiled for another machine
                path = process_directory() / name
        log.info("compiling the native kernels, once")
        compile_library(command, path)
        return KernelLibrary(path)
    except (OSError, subprocess.SubprocessError, AttributeError) as error:
        reason = getattr(error, "stderr", None) or error
        log.warning("cannot build the native kernels; PyTorch's slower operations are used: %s", str(reason)[:2000])
        return None


def compiler() -> list[str] | None:
    """Find the C++ compiler's command: $CXX if set, otherwise one of the usual names; None if it does not exist."""
    given = shlex.split(os.environ.get("CXX", ""))
    for command in [given] if given else [["c++"], ["g++"], ["clang++"]]:
        if shutil.which(command[0]):
            return command
    return None


def cache_directory(name: str = "") -> Path:
    """Choose where compiled libraries are stored: the user's cache, or a directory for this process alone.

    Loading a library runs its code, so the cache is used only if nobody else may write to it. A read-only cache will
    do if it contains `name` already.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        path = (Path(base) if base else Path.home() / ".cache") / "knapserve" / "native"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
        ours = found.st_uid == os.getuid() and not found.st_mode & 0o022
        if ours and (os.access(path, os.W_OK) or (name and (path / name).exists())):
            return path
        reason = "is not writable" if ours else "belongs to, or is writable by, other users"
        log.warning("%s %s: the native kernels are compiled at every start", path, reason)
    except (OSError, RuntimeError) as error:  # no home directory, or a read-only one
        log.info("no cache for the native kernels (%s): they are compiled at every start", error)
    return process_directory()


def process_directory() -> Path:
    """Make a directory that is removed when this process exits."""
    path = tempfile.mkdtemp(prefix="knapserve-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


def compile_library(command: Sequence[str], path: Path, options: Sequence[str] = ()) -> None:
    """Compile to `path`, which appears complete or not at all. Raises OSError, SubprocessError."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        for tuning in ("-march=native", "-mcpu=native"):  # the second for compilers that refuse the first
            line = [*command, *FLAGS, tuning, *options, str(SOURCE), "-o", str(made)]
            result = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT, check=False)
            if result.returncode == 0:
                with made.open("rb+") as file:
                    os.fsync(file.fileno())  # or a power cut could leave the name without the contents
                made.replace(path)
                return
        raise subprocess.CalledProcessError(result.returncode, line, result.stdout, result.stderr)


def name_for(command: Sequence[str]) -> str:
    """Name a library, without suffix, by all that its machine code depends on: sources, flags, compiler and CPU."""
    headers = sorted(SOURCE.parent.glob("*.h"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in (SOURCE, *headers)))
    digest.update(" ".join((*FLAGS, *command)).encode())
    digest.update(subprocess.run([*command, "--version"], capture_output=True, timeout=TIMEOUT, check=True).stdout)
    targets = [*command, "-march=native", "-dM", "-E", "-x", "c++", os.devnull]  # the CPU as the compiler sees it
    digest.update(subprocess.run(targets, capture_output=True, timeout=TIMEOUT, check=False).stdout)
    digest.update(f"{platform.machine()} {platform.processor()}".encode())
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        digest.update("".join(sorted({line for line in lines if line.startswith(("flags", "Features"))})).encode())
    except OSError:
        digest.update(platform.platform().encode())
    return f"kernels-{digest.hexdigest()[:20]}"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    found = kernel_library()
    print("native kernels: ready" if found else "native kernels: none")
    sys.exit(found is None and "--required" in sys.argv)
