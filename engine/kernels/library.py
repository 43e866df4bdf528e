"""Compile the native CPU kernels for this machine and load them.

Compiling takes seconds and happens once: at the first use, or at installation by `python -m engine.kernels.library`.
The result is cached under a name derived from the sources, the compiler and the CPU, and loaded from memory. Without a
C++ compiler `kernel_library()` returns None, and torch's operations take the kernels' place.
"""

from __future__ import annotations

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
from itertools import product
from pathlib import Path

from engine.kernels import structures as native

log = logging.getLogger("knapserve.engine")

SOURCE = Path(__file__).with_name("kernels.cpp")
FLAGS = ("-std=c++17", "-O3", "-fno-math-errno", "-ffp-contract=fast", "-shared", "-fPIC", "-pthread")
TIMEOUT = 120.0  # seconds that one run of the compiler may take
DIGEST = hashlib.sha256().digest_size  # bytes at the end of a cached library

Address = int | None  # where a tensor or an array begins
Integers = Array[c_int64]


class KernelLibrary:
    """Call the functions of kernels.cpp, which documents them. Calls release the interpreter lock.

    Method `name` calls `ks_name`. The kernels check neither the sizes nor the types of memory at an address.
    """

    run: Callable[[int, native.Model, native.Cache, native.Pass], None]
    draft: Callable[[int, native.Model, native.Cache, native.EmbedAndHead, native.DraftBatch], int]
    verify: Callable[[int, native.Model, native.Cache, native.EmbedAndHead, native.VerifyBatch], None]
    product: Callable[[int, native.Linear, Address, int, Address, Address, float], None]
    sample: Callable[[Address, int, int, Array[native.Sampling], Integers, Integers, Array[c_float] | None], None]
    mask: Callable[[Address, Address, int], None]
    pack: Callable[[Address, int, int, Address, bool], None]
    panel_bytes: Callable[[native.PackedFormat, int], int]
    pack_rows: Callable[[int, native.PackedFormat, Address, int, int, Address], None]
    quantise: Callable[[int, native.Linear, native.PackedPart | None, int, int, Address], None]
    read_rows: Callable[[native.PackedFormat, Address, int, int, Address], None]
    new_executor: Callable[[int], int]

    def __init__(self, path: Path | str) -> None:
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
        # The handle of the pool of so many threads, the calling one included. A pool runs one call at a time; further
        # calls wait.
        self.executor = cache(self.new_executor)


@cache
def kernel_library() -> KernelLibrary | None:
    """Load the library on first use, compiling it if needed; None, with the reason in the log, if there is none.

    All callers in a process get the same answer, whichever of them comes first.
    """
    try:
        command = compiler()
        if command is None:
            named = os.environ.get("CXX") or "c++, g++ or clang++"
            raise FileNotFoundError(f"a C++ compiler ({named}) is missing; install one, as with 'apt install g++'")
        name = f"{name_for(command)}.so"
        if (library := read_cached(name)) is None:
            log.info("compiling the native kernels, once")
            library = compile_library(command)
            try:
                store(name, library)
            except (OSError, RuntimeError) as error:
                log.warning("%s: without a cache, the native kernels are compiled at every start", error)
        return load_from_memory(library, name)
    except (OSError, subprocess.SubprocessError, AttributeError, ValueError) as error:
        reason = " ".join(str(getattr(error, "stderr", None) or error).split())[:500]
        log.warning("no native kernels: %s. PyTorch runs the model, several times slower", reason)
        return None


def compiler() -> list[str] | None:
    """Find the C++ compiler's command: $CXX if set, otherwise one of the usual names; None if it does not exist."""
    given = shlex.split(os.environ.get("CXX", ""))
    for command in [given] if given else [["c++"], ["g++"], ["clang++"]]:
        if shutil.which(command[0]):
            return command
    return None


def cache_directory() -> Path:
    """Return the directory of compiled libraries in the user's cache. Raises OSError; RuntimeError without a home.

    Loading a library runs its code, so nobody else may write to the directory.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    path = (Path(base) if base else Path.home() / ".cache") / "knapserve" / "native"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{path} belongs to, or is writable by, other users")
    return path


def read_cached(name: str) -> bytes | None:
    """Return the library that `store` wrote; None if it is missing or damaged: running its code could crash."""
    with contextlib.suppress(OSError, RuntimeError):
        contents = (cache_directory() / name).read_bytes()
        if hashlib.sha256(contents[:-DIGEST]).digest() == contents[-DIGEST:]:
            return contents[:-DIGEST]
    return None


def store(name: str, library: bytes) -> None:
    """Cache a library and its digest: the file appears complete or not at all. Raises OSError, RuntimeError."""
    directory = cache_directory()
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        made = Path(scratch) / name
        with made.open("xb") as file:
            file.write(library + hashlib.sha256(library).digest())
            file.flush()
            os.fsync(file.fileno())  # or a power cut could leave the name without the contents
        made.replace(directory / name)


def load_from_memory(library: bytes, name: str) -> KernelLibrary:
    """Load a library from memory, or where that is impossible, from a temporary file. Raises OSError, AttributeError.

    A cache may be on a file system whose files are not executed.
    """
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.memfd_create(name)  # stays open: the loader recognises libraries by their paths
        with open(descriptor, "wb", closefd=False) as file:
            file.write(library)
        return KernelLibrary(f"/proc/self/fd/{descriptor}")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / name
        path.write_bytes(library)
        return KernelLibrary(path)


def compile_library(command: Sequence[str], options: Sequence[str] = ()) -> bytes:
    """Compile and return the library. Raises OSError, SubprocessError.

    The compiler works in memory where it can, since the disk of the temporary directory may be full.
    """
    failure: Exception | None = None
    for directory, tuning in product(("/dev/shm", None), ("-march=native", "-mcpu=native")):  # compilers know either
        try:
            with tempfile.TemporaryDirectory(dir=directory, prefix="knapserve-") as scratch:
                made = Path(scratch) / "kernels.so"
                line = [*command, *FLAGS, tuning, *options, str(SOURCE), "-o", str(made)]
                _run(line, TMPDIR=scratch).check_returncode()
                return made.read_bytes()
        except (OSError, subprocess.CalledProcessError) as error:
            failure = error
    assert failure is not None
    raise failure


def _run(command: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | variables
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, env=env)


def name_for(command: Sequence[str]) -> str:
    """Name a library, without suffix, by all that its machine code depends on: sources, flags, compiler and CPU."""
    headers = sorted(SOURCE.parent.glob("*.h"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in (SOURCE, *headers)))
    digest.update(" ".join((*FLAGS, *command)).encode())
    digest.update(_run([*command, "--version"]).stdout.encode())
    targets = [*command, "-march=native", "-dM", "-E", "-x", "c++", os.devnull]  # the CPU as the compiler sees it
    digest.update(_run(targets).stdout.encode())
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
