"""Helpers shared by several test modules.

Only `cores` imports torch at import time, and whichever process first expands the prepared fixture.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.prepared import expand

REPOSITORY = Path(__file__).parents[2]
# A small model that is prepared for drafting.
PREPARED = expand(REPOSITORY / "tests" / "fixtures" / "prepared", REPOSITORY / "build" / "prepared")
CONFIG: dict[str, Any] = json.loads((PREPARED / "config.json").read_text("utf-8"))
PROMPT_FILE = PREPARED / "prompts.jsonl"
