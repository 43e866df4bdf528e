"""A GPU on which Triton cannot compile or launch is an error of the start, which says what to install."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine.errors import ConfigError
from tests.support import INTERPRETED

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs triton")

SOURCE = """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "launched"};
PyMODINIT_FUNC PyInit_launched(void) { return PyModule_Create(&module); }
"""


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], object]:
    """Make the backend of a GPU whose first launch compiles a module, as Triton's does."""
    from triton.runtime.build import compile_module_from_src

    from engine.backends.cuda import launch
    from engine.backends.cuda.backend import cuda_backend

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(launch, "launch", lambda device: compile_module_from_src(SOURCE, "launched"))
    return lambda: cuda_backend(torch.device("cuda"), torch.bfloat16)


def test_a_start_without_a_compiler_names_it(
    start: Callable[[], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"Failed to find C compiler.* \(gcc or clang\)"):
        start()


@pytest.mark.slow
def test_a_start_without_the_headers_of_python_names_them(
    start: Callable[[], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sysconfig, "get_paths", lambda **_: {"include": str(tmp_path)})
    monkeypatch.setattr(sysconfig, "get_path", lambda *_: str(tmp_path))
    with pytest.raises(ConfigError, match=r"there is no .*Python\.h.* python3-dev"):
        start()
    assert "Python.h" in capfd.readouterr().err


def test_the_kernel_that_is_launched_runs() -> None:
    from engine.backends.cuda.launch import check_launches

    check_launches(torch.device("cpu"))
