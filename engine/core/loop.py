"""The engine loop: messages in, rounds while there is work, reports out.

A thread or a process of `engine.host` runs it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from engine.errors import RequestError, RequestFailedError
from engine.messages import CancelRequest, EngineMessage, Shutdown
from engine.types import GenerateRequest, RequestFailure, RoundReport

if TYPE_CHECKING:
    from engine.core.engine import EngineCore

log = logging.getLogger("knapserve.engine")

_HEARTBEAT = 1.0  # seconds between signs of life of an idle loop


class LoopPort(Protocol):
    """The engine loop's connection to its clients."""

    def take(self) -> list[EngineMessage]:
        """All messages that have arrived, without waiting."""

    def wait(self, timeout: float) -> None:
        """Sleep until a message arrives, `timeout` seconds at most."""

    def deliver(self, report: RoundReport) -> None:
        """Send the report of a round to the clients."""

    def beat(self) -> None:
        """Show that the idle loop is alive."""


def run_rounds(core: EngineCore, port: LoopPort) -> None:
    """Run rounds while there is work, until `Shutdown` arrives. Raises what a round raises."""
    reported_work = False  # whether clients last saw a busy engine

    def deliver(report: RoundReport) -> None:
        nonlocal reported_work
        reported_work = bool(report.running or report.waiting)
        port.deliver(report)

    while True:
        for message in port.take():
            core.flush(deliver)  # finished work does not wait for the message
            if isinstance(message, Shutdown):
                return
            if isinstance(message, GenerateRequest):
                _add(core, message, port)
            elif isinstance(message, CancelRequest):
                core.cancel(message.request_id)
            else:
                core.reset_calibration()
        if not core.scheduler.idle:
            core.run_round(deliver)
            continue
        core.flush(deliver)
        port.beat()
        if reported_work:  # a cancellation emptied the engine
            deliver(core.idle_report())
        port.wait(_HEARTBEAT)


def _add(core: EngineCore, request: GenerateRequest, port: LoopPort) -> None:
    """Queue a request. A request that cannot begin fails alone."""
    try:
        core.add(request)
        return
    except RequestError as error:
        failure = RequestFailure(request.id, error)
    except Exception:
        log.exception("request %s could not be started", request.id)
        failure = RequestFailure(request.id, RequestFailedError("The request could not be started."))
    port.deliver(core.idle_report(failure))
