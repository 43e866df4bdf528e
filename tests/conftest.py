"""Shared by all tests: prompts, Hypothesis profiles, and the distribution of files to processes."""

from __future__ import annotations

import ctypes.util
import gc
import json
import os
from collections.abc import Sequence

import pytest
from xdist.scheduler import LoadFileScheduling

if ctypes.util.find_library("cuda") is None:  # no driver: Triton's interpreter runs the kernels of GPUs
    os.environ.setdefault("TRITON_INTERPRET", "1")

pytest.register_assert_rewrite("tests.support")

from tests.support.examples import register_profiles  # noqa: E402

register_profiles()


gc.disable()  # imports create no garbage


class _Scheduling(LoadFileScheduling):
    """Keep the tests of a file in one process, and those of a directory where they share a server."""

    def _split_scope(self, nodeid: str) -> str:
        directory = nodeid.split("/")[1]
        return directory if directory in ("contract", "browser") else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    return _Scheduling(config, log)


def pytest_collection_finish() -> None:
    gc.freeze()  # imported objects live as long as the process
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    # SWIG types in tokenizers' and torch's extension modules warn on import with warnings as errors.
    config.addinivalue_line("filterwarnings", "ignore:builtin type Swig.*:DeprecationWarning")


@pytest.fixture(scope="session")
def prompts() -> Sequence[str]:
    """A hundred prompts of the prepared fixture."""
    from tests.support import PROMPT_FILE

    return [json.loads(line)["prompt"] for line in PROMPT_FILE.read_text("utf-8").splitlines()[::4]]
