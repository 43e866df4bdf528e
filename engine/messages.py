"""Messages between the event loop's side of an engine and the loop that runs its rounds.

Each kind is a class of its own. All of them can be pickled, for the loop may run in another process.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.config.engine import EngineConfig
from engine.errors import KnapServeError
from engine.types import EngineInfo, GenerateRequest, RoundReport


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Forget a request and free its cache. Unknown ids are ignored."""

    request_id: str


@dataclass(frozen=True, slots=True)
class ResetCalibration:
    """Price passes by the latency profile again."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """End the loop after the current round."""


EngineMessage = GenerateRequest | CancelRequest | ResetCalibration | Shutdown  # what the engine loop receives


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The idle loop is alive."""


@dataclass(frozen=True, slots=True)
class EngineFailed:
    """The loop has ended with an error."""

    reason: str


LoopMessage = RoundReport | Heartbeat | EngineFailed  # what the engine loop sends


@dataclass(frozen=True, slots=True)
class StartEngine:
    """What a new engine process has to load, and how it logs."""

    config: EngineConfig
    log_level: str
    log_format: str


StartReply = EngineInfo | KnapServeError  # the answer to `StartEngine`: the loaded engine, or why there is none
