"""Budgets of grammars: structured output and forced tool calls. They come from strangers."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config.fields import parse_bytes, setting

_SECONDS = (0.01, 600)


@dataclass(frozen=True)
class GrammarConfig:
    """Flags, variables and files add the prefix `grammar_` to the names."""

    build_seconds: float = setting(2.0, "CPU seconds in which a schema or grammar must be compiled", limits=_SECONDS)
    step_seconds: float = setting(
        0.2, "CPU seconds in which a grammar must say which tokens may follow", limits=_SECONDS
    )
    memory: int = setting(
        512 * 2**20,
        "memory for each grammar, in bytes or with a unit (512MiB)",
        parse=parse_bytes,
        limits=(2**20, 2**40),
    )
