"""The compiled kernels are cached where that is safe and possible, and used in any case."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError, CompletedProcess

import pytest

from engine.kernels import library
from engine.kernels.library import (
    KernelLibrary,
    cache_directory,
    compile_library,
    compiler,
    kernel_library,
    name_for,
    read_cached,
)


class Cache:
    """An empty cache, and a compiler that takes no time: its library is the one that was compiled before."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compilations = 0
        found = kernel_library() and read_cached(f"{name_for(compiler() or [])}.so")
        if found is None:
            pytest.skip("there is no compiler, or the kernels are kept nowhere")
        self.library, self._compile = found, library.compile_library
        monkeypatch.setenv("XDG_CACHE_HOME", str(directory))
        monkeypatch.setattr(library, "compile_library", self._compiled)

    def load(self) -> KernelLibrary | None:
        found: KernelLibrary | None = kernel_library.__wrapped__()
        return found

    def _compiled(self, command: Sequence[str], options: Sequence[str] = ()) -> bytes:
        self.compilations += 1
        return self.library


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    return Cache(tmp_path, monkeypatch)


def test_a_library_is_compiled_once(compiled: Cache) -> None:
    assert compiled.load() is not None
    assert compiled.load() is not None
    assert compiled.compilations == 1


@pytest.mark.parametrize("damage", ["empty", "cut", "a bit", "text", "a directory", "a link to nothing"])
def test_a_damaged_library_is_compiled_again(compiled: Cache, damage: str) -> None:
    compiled.load()
    (path,) = cache_directory().iterdir()
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.unlink()
    if damage == "a directory":
        path.mkdir()
    elif damage == "a link to nothing":
        path.symlink_to("nowhere")
    else:
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        path.write_bytes({"empty": b"", "cut": whole[:middle], "a bit": flipped, "text": b"not a library"}[damage])
    assert compiled.load() is not None
    assert compiled.compilations == 2
    if damage != "a directory":
        assert path.read_bytes() == whole


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


FAILURES = [OSError(code, os.strerror(code)) for code in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: errno.errorcode[failure.errno])
@pytest.mark.parametrize("where", ["pathlib.Path.mkdir", "os.fsync", "pathlib.Path.replace"])
def test_a_library_that_cannot_be_cached_is_used(
    compiled: Cache,
    where: str,
    failure: OSError,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise failure

    monkeypatch.setattr(where, fail)
    assert compiled.load() is not None
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert str(failure) in warning


@pytest.mark.parametrize("memory", ["memory", "a file"])
def test_a_cache_that_is_a_file_or_nowhere_is_not_needed(
    compiled: Cache, memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if memory == "a file":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    (tmp_path / "knapserve").write_text("a file")
    assert compiled.load() is not None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert compiled.load() is not None
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [name in warning for name, warning in zip(("knapserve", "home"), warnings, strict=True)] == [True, True]


@pytest.mark.parametrize("failure", [OSError(errno.ENOENT, "no such directory"), CalledProcessError(1, "c++")])
def test_the_compiler_works_in_the_temporary_directory_where_it_cannot_in_memory(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_to(line: Sequence[str], **variables: str) -> CompletedProcess[str]:
        made = Path(line[-1])
        assert variables == {"TMPDIR": str(made.parent)}
        if made.is_relative_to("/dev/shm"):
            raise failure
        made.write_bytes(b"a library")
        return CompletedProcess(line, 0)

    monkeypatch.setattr(library, "_run", compile_to)
    assert compile_library(["c++"]) == b"a library"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "a C++ compiler"),
        ("exit 1", "exit status 1"),
        ("printf 'error: no\\n\\377space\\n' >&2; exit 1", "error: no \ufffdspace"),
    ],
)
def test_without_a_library_the_reason_is_one_line(
    script: str | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = tmp_path / "compiler"
    if script:
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
    monkeypatch.setenv("CXX", str(command))
    assert kernel_library.__wrapped__() is None
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert reason in line
    assert "PyTorch" in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("given", "named"),
    [("", "c++, g++ or clang++"), ("/no/such -O2", "/no/such -O2"), ('"', "No closing quotation")],
)
def test_a_compiler_that_is_not_there_is_named(
    given: str, named: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", given)
    assert kernel_library.__wrapped__() is None
    assert named in caplog.messages[-1]


def test_a_cache_directory_that_others_can_write_to_is_not_used(compiled: Cache) -> None:
    compiled.load()
    ours = cache_directory()
    (path,) = ours.iterdir()
    ours.chmod(0o777)
    with pytest.raises(PermissionError, match="other users"):
        cache_directory()
    path.write_bytes(b"of others")
    assert compiled.load() is not None
    assert path.read_bytes() == b"of others"
