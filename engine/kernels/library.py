"""Compiles `kernels.cpp`, with what it includes, for this machine, once, and loads it.

It takes a few seconds at the first start, or at install (`python -m engine.kernels.library`); the result is kept under
a name made of source, compiler and CPU. Without a C++ compiler there is no library: torch's operations do the work.
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
from collections.abc import Sequence
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint64,
    c_void_p,
)
from functools import cache
from pathlib import Path

log = logging.getLogger("knapserve.engine")

SOURCE = Path(__file__).with_name("kernels.cpp")
FLAGS = ("-std=c++17", "-O3", "-fno-math-errno", "-ffp-contract=fast", "-shared", "-fPIC", "-pthread")
TIMEOUT = 120.0  # seconds for the compiler


class Written(Structure):
    """How rows of packed weights are written (`quantised.formats.Format`); `scales` is HALVES, FLOATS or LEVELS."""

    _fields_ = tuple(
        (name, c_int32) for name in ("type", "bits", "group", "offset", "minimum", "scales", "block", "block_bytes")
    )


HALVES, FLOATS, LEVELS = range(3)


class Part(Structure):
    """Some outputs of a linear layer, packed."""

    _fields_ = (("w", c_void_p), ("order", c_void_p), ("how", Written), ("panels", c_int32))


class Linear(Structure):
    """A weight in bf16 panels at `w`, or packed parts; perhaps a float32 bias."""

    _fields_ = (
        ("w", c_void_p),
        ("bias", c_void_p),
        ("out", c_int32),
        ("inputs", c_int32),
        ("parts", POINTER(Part)),
        ("count", c_int32),
        ("precise", c_int32),
    )


class Layer(Structure):
    """Linear layers by variant, as the target and in low bits (`engine.draft.base.Variants`)."""

    _fields_ = (
        ("attention_norm", c_void_p),
        ("mlp_norm", c_void_p),
        ("qk_norm", c_void_p),
        ("qkv", Linear * 2),
        ("output", Linear * 2),
        ("gate_up", Linear * 2),
        ("down", Linear * 2),
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
        ("recent", c_int32),
        ("sinks", c_int32),
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


class Table(Structure):
    """Rows of the knapsack: beyond the first, `saved`, `live`, `source` and `variant` are written, and `cosines`."""

    _fields_ = (
        ("directions", c_void_p),
        ("saves", POINTER(c_int64)),
        ("states", c_void_p),
        ("cosines", POINTER(c_float)),
        ("saved", POINTER(c_int64)),
        ("live", POINTER(c_int32)),
        ("source", POINTER(c_int32)),
        ("variant", POINTER(c_uint8)),
        ("tau", c_double),
        ("capacity", c_int64),
        ("beam", c_int32),
        ("rows", c_int32),
    )


class Sampling(Structure):
    """How a request draws; `seed` is mixed."""

    _fields_ = (
        ("temperature", c_float),
        ("top_p", c_float),
        ("min_p", c_float),
        ("noise", c_float),
        ("top_k", c_int32),
        ("seed", c_uint64),
    )


class Ends(Structure):
    """What lies before and behind the layers."""

    _fields_ = (
        ("embedding", c_void_p),
        ("norm", c_void_p),
        ("rope", c_void_p),
        ("head", Linear * 2),
        ("wide", c_int32),
        ("row_bytes", c_int64),
        ("how", Written),
    )


EDIT = ctypes.CFUNCTYPE(c_int32, c_int32, c_int32, c_void_p)
BEFORE, AFTER = 1, 2  # a token is drawn: when logits are edited


class Drafts(Structure):
    """Drafts in lock-step; `tokens`, `lengths` and `confidences` are written."""

    _fields_ = (
        ("slabs", POINTER(c_int32)),
        ("starts", POINTER(c_int32)),
        ("most", POINTER(c_int32)),
        ("plans", c_char_p),
        ("least", POINTER(c_float)),
        ("worth", POINTER(c_float)),
        ("sampling", POINTER(Sampling)),
        ("edited", c_char_p),
        ("edit", EDIT),
        ("tokens", POINTER(c_int32)),
        ("lengths", POINTER(c_int32)),
        ("confidences", POINTER(c_float)),
        ("sure", c_float),
        ("requests", c_int32),
        ("longest", c_int32),
    )


class Verify(Structure):
    """A pass over rows of tokens; `drawn`, `scores` and `records` are written."""

    _fields_ = (
        ("plan", c_char_p),
        ("tokens", POINTER(c_int32)),
        ("slabs", POINTER(c_int32)),
        ("positions", POINTER(c_int32)),
        ("picked", POINTER(c_int32)),
        ("sampling", POINTER(Sampling)),
        ("edited", c_char_p),
        ("edit", EDIT),
        ("drawn", POINTER(c_int32)),
        ("scores", POINTER(c_void_p)),
        ("records", c_void_p),
        ("rows", c_int32),
        ("draws", c_int32),
    )


class Round(Structure):
    """The verify pass over what was drafted; `drawn` and `seconds` are written."""

    _fields_ = (
        ("plan", c_char_p),
        ("sampling", POINTER(Sampling)),
        ("drawn", POINTER(c_int32)),
        ("seconds", POINTER(c_double)),
    )


class Library:
    """The functions of kernels.cpp, whose calls release the interpreter lock."""

    def __init__(self, path: Path) -> None:
        functions = ctypes.CDLL(str(path))
        self._team = functions.ks_team
        self._team.argtypes, self._team.restype = (c_int,), c_void_p
        self.pack = functions.ks_pack
        self.pack.argtypes = (c_void_p, c_int64, c_int64, c_void_p, c_int)
        self.panel_bytes = functions.ks_panel_bytes
        self.panel_bytes.argtypes, self.panel_bytes.restype = (POINTER(Written), c_int64), c_int64
        self.pack_rows = functions.ks_pack_rows
        self.pack_rows.argtypes = (c_void_p, POINTER(Written), c_void_p, c_int64, c_int, c_void_p)
        self.lower = functions.ks_lower
        self.lower.argtypes = (c_void_p, POINTER(Linear), POINTER(Part), c_int, c_int, c_void_p)
        self.read_rows = functions.ks_read_rows
        self.read_rows.argtypes = (POINTER(Written), c_void_p, c_int64, c_int64, c_void_p)
        self.run = functions.ks_pass
        self.run.argtypes = (c_void_p, POINTER(Model), POINTER(Cache), POINTER(Pass))
        self.fill = functions.ks_fill
        self.fill.argtypes = (c_void_p, POINTER(Model), POINTER(Cache), POINTER(Pass), POINTER(Table))
        self.draft = functions.ks_draft
        model = (c_void_p, POINTER(Model), POINTER(Cache), POINTER(Ends))
        self.draft.argtypes, self.draft.restype = (*model, POINTER(Drafts)), c_int
        self.round = functions.ks_round
        self.round.argtypes, self.round.restype = (*model, POINTER(Drafts), POINTER(Round)), c_int
        self.verify = functions.ks_verify
        self.verify.argtypes = (*model, POINTER(Verify))
        self.product = functions.ks_product
        self.product.argtypes = (c_void_p, POINTER(Linear), c_void_p, c_int, c_void_p, c_void_p, c_float)
        self.read = functions.ks_read
        self.read.argtypes = (c_void_p, c_void_p, c_int64)
        self.draw = functions.ks_draw
        self.draw.argtypes = (c_void_p, c_int, c_int32, POINTER(Sampling), *(c_void_p,) * 3)
        functions_without_result = (
            self.pack,
            self.pack_rows,
            self.lower,
            self.read_rows,
            self.run,
            self.fill,
            self.verify,
        )
        for function in (*functions_without_result, self.product, self.read, self.draw):
            function.restype = None
        self.mask = functions.ks_mask
        self.mask.argtypes, self.mask.restype = (c_void_p, c_void_p, c_int32), None
        self._teams: dict[int, int] = {}

    def team(self, threads: int) -> int:
        """Handle of so many threads, the caller included; one pass at a time."""
        if threads not in self._teams:
            self._teams[threads] = self._team(threads)
        return self._teams[threads]


def loaded() -> Library | None:
    """The library, if it has been asked for."""
    return library() if library.cache_info().currsize else None


@cache
def library() -> Library | None:
    """The library, compiled if need be; None, with the reason in the log, where that is not possible."""
    command = compiler()
    if command is None:
        log.info("no C++ compiler: torch's own operations do the work, slower")
        return None
    try:
        name = f"{name_for(command)}.so"
        path = directory(name) / name
        if path.exists():
            with contextlib.suppress(OSError, AttributeError):
                return Library(path)
            if not os.access(path.parent, os.W_OK):  # damaged, or another machine's
                path = private() / name
        log.info("compiling the native kernels, once")
        build(command, path)
        return Library(path)
    except (OSError, subprocess.SubprocessError, AttributeError) as error:
        reason = getattr(error, "stderr", None) or error
        log.warning("the native kernels cannot be built, torch's own operations do the work: %s", str(reason)[:2000])
        return None


def compiler() -> list[str] | None:
    """The C++ compiler's command: $CXX, or one of the usual names."""
    given = shlex.split(os.environ.get("CXX", ""))
    for command in [given] if given else [["c++"], ["g++"], ["clang++"]]:
        if shutil.which(command[0]):
            return command
    return None


def directory(name: str = "") -> Path:
    """Where compiled libraries are kept: the user's cache; a private place if others may write to that, or we may not
    and `name` is not there yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        path = (Path(base) if base else Path.home() / ".cache") / "knapserve" / "native"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
        ours = found.st_uid == os.getuid() and not found.st_mode & 0o022
        if ours and (os.access(path, os.W_OK) or (name and (path / name).exists())):
            return path
        reason = "may not be written to" if ours else "is not ours alone"
        log.warning("%s %s: the native kernels are compiled anew at every start", path, reason)
    except (OSError, RuntimeError) as error:  # no home, or not to be written to
        log.info("no cache for the native kernels (%s): they are compiled at every start", error)
    return private()


def private() -> Path:
    """A directory for as long as this process lives."""
    path = tempfile.mkdtemp(prefix="knapserve-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


def build(command: Sequence[str], path: Path, options: Sequence[str] = ()) -> None:
    """Compile to `path`, which appears whole or not at all. Raises OSError, SubprocessError."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        for tuning in ("-march=native", "-mcpu=native"):  # the second for compilers that refuse the first
            line = [*command, *FLAGS, tuning, *options, str(SOURCE), "-o", str(made)]
            result = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT, check=False)
            if result.returncode == 0:
                with made.open("rb+") as file:
                    os.fsync(file.fileno())  # after a power cut, a name without its contents would be loaded
                made.replace(path)
                return
        raise subprocess.CalledProcessError(result.returncode, line, result.stdout, result.stderr)


def name_for(command: Sequence[str]) -> str:
    """Name the library that fits this source, compiler and CPU, without suffix."""
    headers = sorted(SOURCE.parent.glob("*.h"))
    facts = hashlib.sha256(b"".join(source.read_bytes() for source in (SOURCE, *headers)))
    facts.update(" ".join((*FLAGS, *command)).encode())
    facts.update(subprocess.run([*command, "--version"], capture_output=True, timeout=TIMEOUT, check=True).stdout)
    targets = [*command, "-march=native", "-dM", "-E", "-x", "c++", os.devnull]  # old kernels do not list all flags
    facts.update(subprocess.run(targets, capture_output=True, timeout=TIMEOUT, check=False).stdout)
    facts.update(f"{platform.machine()} {platform.processor()}".encode())
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        facts.update("".join(sorted({line for line in lines if line.startswith(("flags", "Features"))})).encode())
    except OSError:
        facts.update(platform.platform().encode())
    return f"kernels-{facts.hexdigest()[:20]}"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    found = library()
    print("native kernels: ready" if found else "native kernels: none")
    sys.exit(found is None and "--required" in sys.argv)
