"""Imports every policy module, which registers it."""

import engine.draft.fixed
import engine.draft.knapspec  # noqa: F401
