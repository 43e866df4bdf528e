"""Helpers shared by several test modules. Only `cores` imports torch at import time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
PREPARED = REPOSITORY / "tests" / "fixtures" / "prepared"  # a small model that is prepared for drafting
CONFIG: dict[str, Any] = json.loads((PREPARED / "config.json").read_text("utf-8"))
PROMPT_FILE = PREPARED / "prompts.jsonl"
