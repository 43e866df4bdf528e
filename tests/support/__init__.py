"""Helpers shared by several test modules.

Only `cores` imports torch at import time, and whichever process first expands the prepared fixture.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from tests.support.prepared import expand

REPOSITORY = Path(__file__).parents[2]
# A small model that is prepared for drafting.
PREPARED = expand(REPOSITORY / "tests" / "fixtures" / "prepared", REPOSITORY / "build" / "prepared")
CONFIG: dict[str, Any] = json.loads((PREPARED / "config.json").read_text("utf-8"))
PROMPT_FILE = PREPARED / "prompts.jsonl"
# Whether the kernels of GPUs run in Triton's interpreter (`tests/conftest.py`).
INTERPRETED = importlib.util.find_spec("triton") is not None and os.environ.get("TRITON_INTERPRET") == "1"
