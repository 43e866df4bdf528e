"""Shared helpers: tiny checkpoints made on the spot, made-up profiles, cores that run prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
PROMPT_LINES = (REPOSITORY / "tests/fixtures/prepared/prompts.jsonl").read_text("utf-8").splitlines()[::4]
PROMPTS = [json.loads(line)["prompt"] for line in PROMPT_LINES]


def pytest_configure(config: pytest.Config) -> None:
    # SWIG types in tokenizers' and torch's extension modules warn on import with warnings as errors.
    config.addinivalue_line("filterwarnings", "ignore:builtin type Swig.*:DeprecationWarning")


@pytest.fixture(scope="session")
def prompts() -> Sequence[str]:
    """A hundred of the prompts beside the embedded model."""
    return PROMPTS
